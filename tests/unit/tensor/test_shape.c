/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, shapes, and their sizes at the limits. */
#include "tensor/shape.h"

#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "support/test.h"
#include "tensor/array.h"

static sp_shape shape(uint32_t rank, const int64_t *dims)
{
    sp_shape s = {.rank = rank};
    memcpy(s.dims, dims, rank * sizeof(dims[0]));
    return s;
}

#define SHAPE(...)                                                                                 \
    shape((uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

TEST(every_dtype_has_its_name_and_size)
{
#define CHECK_DTYPE(code, value, name, bytes)                                                      \
    CHECK_EQ_STR(sp_dtype_name(code), name);                                                       \
    CHECK_EQ_U64(sp_dtype_bytes(code), bytes);                                                     \
    CHECK_EQ_INT(code, value);
    SP_DTYPE_LIST(CHECK_DTYPE)
#undef CHECK_DTYPE
    CHECK_EQ_U64(sp_dtype_bytes((sp_dtype)99), 0);
    CHECK_EQ_STR(sp_dtype_name((sp_dtype)99), "none");
}

TEST(sizes_are_exact_or_refused)
{
    uint64_t bytes;
    const sp_shape scalar = {0}, limit = SHAPE(1 << 20, 1 << 18), over = SHAPE(1 << 20, 262145);
    CHECK_OK(sp__shape_bytes(&scalar, SP_F64, &bytes));
    CHECK_EQ_U64(bytes, 8);
    CHECK_OK(sp__shape_bytes(&limit, SP_F32, &bytes));
    CHECK_EQ_U64(bytes, SP_MAX_TENSOR_BYTES);
    CHECK_STATUS(sp__shape_bytes(&over, SP_F32, &bytes), SP_EXHAUSTED);
    CHECK_MESSAGE("[1048576,262145]");
    const sp_shape wrap = SHAPE(INT64_MAX, INT64_MAX, 4), zero = SHAPE(3, 0, 5);
    CHECK_STATUS(sp__shape_bytes(&wrap, SP_I8, &bytes), SP_EXHAUSTED);
    CHECK_OK(sp__shape_bytes(&zero, SP_F32, &bytes));
    CHECK_EQ_U64(bytes, 0);
    const sp_shape negative = SHAPE(3, -2);
    CHECK_STATUS(sp__shape_bytes(&negative, SP_F32, &bytes), SP_MISMATCH);
    sp_shape made;
    CHECK_STATUS(sp__shape_make((int64_t[9]){0}, 9, &made), SP_MISMATCH);
    CHECK_STATUS(sp__shape_make((int64_t[1]){-1}, 1, &made), SP_MISMATCH);
}

TEST(broadcasting_follows_numpy)
{
    sp_shape both;
    const sp_shape a = SHAPE(4, 1, 3), b = SHAPE(5, 1), c = SHAPE(2, 3), scalar = {0};
    const sp_shape want = SHAPE(4, 5, 3), zero = SHAPE(0, 1), zeros = SHAPE(4, 0, 3);
    CHECK_OK(sp__shape_broadcast(&a, &b, &both));
    CHECK(sp__shape_equal(&both, &want));
    CHECK_OK(sp__shape_broadcast(&b, &a, &both));
    CHECK(sp__shape_equal(&both, &want));
    CHECK_OK(sp__shape_broadcast(&scalar, &a, &both));
    CHECK(sp__shape_equal(&both, &a));
    CHECK_OK(sp__shape_broadcast(&a, &zero, &both));
    CHECK(sp__shape_equal(&both, &zeros));
    CHECK_STATUS(sp__shape_broadcast(&b, &c, &both), SP_MISMATCH);
    CHECK_MESSAGE("[5,1] and [2,3]");
    int64_t strides[SP_MAX_RANK];
    sp__shape_broadcast_strides(&b, &want, strides);
    CHECK_EQ_INT(strides[0], 0);
    CHECK_EQ_INT(strides[1], 1);
    CHECK_EQ_INT(strides[2], 0);
}

TEST(axes_count_from_both_ends)
{
    const sp_shape s = SHAPE(2, 3, 4);
    uint32_t axis;
    CHECK_OK(sp__shape_axis(&s, -1, &axis));
    CHECK_EQ_INT(axis, 2);
    CHECK_OK(sp__shape_axis(&s, 0, &axis));
    CHECK_EQ_INT(axis, 0);
    CHECK_STATUS(sp__shape_axis(&s, 3, &axis), SP_MISMATCH);
    CHECK_STATUS(sp__shape_axis(&s, -4, &axis), SP_MISMATCH);
    CHECK_STATUS(sp__shape_axis(&s, INT64_MIN, &axis), SP_MISMATCH);
}

TEST(shapes_and_hostile_names_print)
{
    sp_shape longest = {.rank = SP_MAX_RANK};
    for (int i = 0; i < SP_MAX_RANK; i++) longest.dims[i] = INT64_MIN;
    CHECK(strlen(sp__shape_print(&longest).text) < SP_SHAPE_TEXT_BYTES);
    const sp_shape none = {0};
    CHECK_EQ_STR(sp__shape_print(&none).text, "[]");
    char name[500];
    memset(name, 'a', sizeof(name));
    name[0] = '\n';
    name[499] = 'z';
    const sp_text_print text = sp__text_print((sp_text){name, sizeof(name)});
    CHECK_EQ_INT(text.text[0], '?');
    CHECK_EQ_INT(text.text[strlen(text.text) - 1], 'z');
    CHECK(strstr(text.text, "...") != NULL);
    CHECK_EQ_STR(sp__text_print((sp_text){0}).text, "");
}

TEST(arrays_are_zeroed_and_aligned)
{
    sp_array array;
    const sp_shape s = SHAPE(3, 5);
    REQUIRE_OK(sp__array_init(&array, SP_F32, &s));
    CHECK_EQ_U64((uintptr_t)array.data % SP_ARRAY_ALIGNMENT, 0);
    for (int i = 0; i < 15; i++) CHECK(((float *)array.data)[i] == 0);
    sp__array_deinit(&array);
    sp_heap_fail_after(0);
    CHECK_STATUS(sp__array_init(&array, SP_F32, &s), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    sp__array_deinit(&array);
}

TEST_MAIN
