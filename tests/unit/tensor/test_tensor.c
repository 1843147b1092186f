/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: their properties, views and copies through the public calls, and many threads on one of
 * them. The arithmetic of layouts is tested in test_layout.c. */
#include <streampool/tensor.h>

#include <stdlib.h>
#include <string.h>

#include "runtime_fixture.h"

enum { MOST = 512 };

static const int64_t shape234[] = {2, 3, 4};

/* f32 with the values 0, 1, 2 ... */
static sp_tensor count_up(sp_device device, uint32_t rank, const int64_t *shape)
{
    float values[MOST];
    uint64_t count = 1;
    sp_tensor tensor;
    for (uint32_t i = 0; i < rank; i++) count *= (uint64_t)shape[i];
    for (uint64_t i = 0; i < count; i++) values[i] = (float)i;
    CHECK_OK(sp_tensor_from_host(device, SP_F32, rank, shape, values, count * sizeof values[0],
                                 &tensor));
    return tensor;
}

static sp_tensor_info facts(sp_tensor tensor)
{
    sp_tensor_info info = {.rank = 0};
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    return info;
}

/* Checks the elements in order, and releases the tensor. */
static void expect(sp_tensor tensor, uint32_t count, const float *want)
{
    float got[MOST] = {0};
    CHECK_OK(sp_tensor_read(tensor, got, count * sizeof got[0]));
    CHECK_EQ_MEM(got, want, count * sizeof got[0]);
    CHECK_OK(sp_tensor_release(tensor));
}

#define EXPECT(tensor, ...)                                                                        \
    expect(tensor, SP_COUNT_OF(((const float[]){__VA_ARGS__})), (const float[]){__VA_ARGS__})

static bool has_shape(sp_tensor tensor, uint32_t rank, const int64_t *shape)
{
    const sp_tensor_info info = facts(tensor);
    return info.rank == rank && memcmp(info.shape, shape, rank * sizeof *shape) == 0;
}

/* ---- making ---- */

TEST(a_new_tensor_says_what_it_is)
{
    runtime_begin();
    sp_tensor tensor;
    CHECK_OK(sp_tensor_create(TESTED, SP_F64, 3, shape234, &tensor));
    const sp_tensor_info info = facts(tensor);
    CHECK_EQ_INT(info.dtype, SP_F64);
    CHECK(has_shape(tensor, 3, shape234));
    CHECK_EQ_MEM(info.strides, ((const int64_t[]){12, 4, 1}), 24);
    CHECK_EQ_U64(info.bytes, 192);
    CHECK_EQ_U64(info.offset, 0);
    CHECK(info.is_contiguous);
    sp_device_info device;
    CHECK_OK(sp_device_get_info(info.device, &device));
    sp_storage_info storage;
    CHECK_OK(sp_storage_get_info(info.storage, &storage));
    CHECK_EQ_U64(storage.bytes, 192);
    CHECK(storage.is_tracked);
    CHECK_OK(sp_tensor_retain(tensor));
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_STATUS(sp_storage_get_info(info.storage, &storage), SP_INVALID); /* it was the last */
    runtime_end();
}

TEST(tensors_of_one_element_and_of_none_are_fine)
{
    runtime_begin();
    sp_tensor scalar, none, copy;
    const float value = 2.5f;
    CHECK_OK(sp_tensor_from_host(TESTED, SP_F32, 0, NULL, &value, 4, &scalar));
    CHECK_EQ_U64(facts(scalar).rank, 0);
    EXPECT(scalar, 2.5f);
    CHECK_OK(sp_tensor_from_host(TESTED, SP_I64, 2, (const int64_t[]){3, 0}, NULL, 0, &none));
    CHECK_OK(sp_tensor_create(TESTED, SP_I64, 2, (const int64_t[]){3, 0}, &copy));
    CHECK_OK(sp_tensor_copy(copy, none));
    CHECK_OK(sp_tensor_read(copy, NULL, 0));
    CHECK_OK(sp_tensor_release(none));
    CHECK_OK(sp_tensor_release(copy));
    runtime_end();
}

TEST(every_dtype_goes_in_and_out)
{
    runtime_begin();
    uint8_t values[64], got[64];
    for (int i = 0; i < 64; i++) values[i] = (uint8_t)(i * 37);
    for (int dtype = SP_F32; dtype <= SP_BOOL; dtype++) {
        sp_tensor tensor, turned, packed;
        const int64_t shape[] = {2, 4};
        const uint64_t bytes = 8 * sp_dtype_bytes((sp_dtype)dtype);
        CHECK_OK(sp_tensor_from_host(TESTED, (sp_dtype)dtype, 2, shape, values, bytes, &tensor));
        CHECK_OK(sp_tensor_transpose(tensor, 0, 1, &turned));
        CHECK_OK(sp_tensor_contiguous(turned, &packed)); /* by the kernel of that size */
        CHECK_OK(sp_tensor_release(turned));
        CHECK_OK(sp_tensor_transpose(packed, 1, 0, &turned));
        CHECK_OK(sp_tensor_read(turned, got, bytes)); /* by the host's copy */
        CHECK_EQ_MEM(got, values, bytes);
        CHECK_OK(sp_tensor_release(tensor));
        CHECK_OK(sp_tensor_release(turned));
        CHECK_OK(sp_tensor_release(packed));
    }
    runtime_end();
}

TEST(a_tensor_over_a_storage_sees_its_bytes)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    const float values[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    sp_tensor all, back;
    CHECK_OK(sp_tensor_from_storage(storage, 0, SP_F32, 1, (const int64_t[]){16}, NULL, &all));
    CHECK_OK(sp_tensor_write(all, values, sizeof values));
    const int64_t strides[] = {-4, 2};
    CHECK_OK(
        sp_tensor_from_storage(storage, 52, SP_F32, 2, (const int64_t[]){3, 2}, strides, &back));
    CHECK(facts(back).storage.bits == storage.bits);
    CHECK(!facts(back).is_contiguous);
    CHECK_OK(sp_storage_release(storage)); /* the tensors have their own references */
    CHECK_OK(sp_tensor_release(all));
    EXPECT(back, 13, 15, 9, 11, 5, 7);
    runtime_end();
}

TEST(tensors_that_do_not_fit_are_refused)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    sp_tensor out = {1};
    const int64_t sixteen[] = {16}, seventeen[] = {17}, negative[] = {-1};
    CHECK_STATUS(sp_tensor_from_storage(storage, 0, SP_F32, 1, seventeen, NULL, &out), SP_INVALID);
    CHECK_MESSAGE("exceeds its storage of 64 bytes");
    CHECK_EQ_U64(out.bits, 0);
    CHECK_STATUS(sp_tensor_from_storage(storage, 4, SP_F32, 1, sixteen, NULL, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_from_storage(storage, 0, SP_F32, 1, negative, NULL, &out), SP_MISMATCH);
    CHECK_STATUS(sp_tensor_from_storage(storage, 0, SP_F32, 9, sixteen, NULL, &out), SP_MISMATCH);
    CHECK_STATUS(sp_tensor_from_storage(storage, 0, SP_F32, 1, NULL, NULL, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_from_storage(storage, 0, SP_F32, 1, sixteen, NULL, NULL), SP_INVALID);
    CHECK_STATUS(sp_tensor_from_storage(storage, 0, (sp_dtype)99, 1, sixteen, NULL, &out),
                 SP_INVALID);
    CHECK_STATUS(sp_tensor_create(CPU, SP_F32, 1, seventeen, NULL), SP_INVALID);
    const int64_t vast[] = {(int64_t)1 << 39};
    CHECK_STATUS(sp_tensor_create(CPU, SP_F32, 1, vast, &out), SP_EXHAUSTED);
    out.bits = 1;
    CHECK_STATUS(sp_tensor_from_host(CPU, SP_F32, 1, sixteen, &out, 63, &out), SP_MISMATCH);
    CHECK_MESSAGE("63 bytes of host memory for a f32 tensor of shape [16], which has 64");
    CHECK_EQ_U64(out.bits, 0);
    CHECK_STATUS(sp_tensor_from_host(CPU, SP_F32, 1, sixteen, NULL, 64, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_from_host(CPU, SP_F32, 1, sixteen, NULL, 64, NULL), SP_INVALID);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(memory_that_is_not_aligned_for_its_elements_is_refused)
{
    runtime_begin();
    _Alignas(8) static unsigned char bytes[40];
    sp_storage storage;
    sp_tensor tensor;
    const int64_t one[] = {1};
    CHECK_OK(sp_storage_adopt(CPU, bytes + 1, 32, NULL, &storage));
    CHECK_STATUS(sp_tensor_from_storage(storage, 0, SP_F32, 1, one, NULL, &tensor), SP_INVALID);
    CHECK_MESSAGE("not aligned");
    CHECK_OK(sp_tensor_from_storage(storage, 0, SP_U8, 1, one, NULL, &tensor));
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

/* ---- views ---- */

TEST(each_view_has_the_elements_that_its_name_says)
{
    runtime_begin();
    sp_tensor view;
    const sp_tensor row = count_up(TESTED, 1, (const int64_t[]){6});
    const sp_tensor table = count_up(TESTED, 2, (const int64_t[]){2, 3});
    CHECK_OK(sp_tensor_permute(table, (const int64_t[]){1, 0}, 2, &view));
    EXPECT(view, 0, 3, 1, 4, 2, 5);
    CHECK_OK(sp_tensor_transpose(table, -1, 0, &view));
    EXPECT(view, 0, 3, 1, 4, 2, 5);
    CHECK_OK(sp_tensor_slice(row, 0, 1, 3, 2, &view));
    EXPECT(view, 1, 3, 5);
    CHECK_OK(sp_tensor_slice(row, 0, 5, 6, -1, &view));
    EXPECT(view, 5, 4, 3, 2, 1, 0);
    CHECK_OK(sp_tensor_select(table, 1, -1, &view));
    CHECK(has_shape(view, 1, (const int64_t[]){2}));
    EXPECT(view, 2, 5);
    CHECK_OK(sp_tensor_reshape(table, 2, (const int64_t[]){3, -1}, &view));
    CHECK(has_shape(view, 2, (const int64_t[]){3, 2}));
    EXPECT(view, 0, 1, 2, 3, 4, 5);
    CHECK_OK(sp_tensor_slice(row, 0, 1, 2, 1, &view));
    sp_tensor repeated;
    CHECK_OK(sp_tensor_expand(view, 2, (const int64_t[]){3, 2}, &repeated));
    CHECK_OK(sp_tensor_release(view));
    EXPECT(repeated, 1, 2, 1, 2, 1, 2);
    CHECK_OK(sp_tensor_unsqueeze(row, 0, &view));
    CHECK(has_shape(view, 2, (const int64_t[]){1, 6}));
    sp_tensor flat;
    CHECK_OK(sp_tensor_squeeze(view, 0, &flat));
    CHECK(has_shape(flat, 1, (const int64_t[]){6}));
    CHECK_OK(sp_tensor_release(flat));
    CHECK_OK(sp_tensor_release(view));
    CHECK_OK(sp_tensor_view_as(row, SP_U32, &view));
    CHECK_EQ_INT(facts(view).dtype, SP_U32);
    CHECK_OK(sp_tensor_release(view));
    CHECK_OK(sp_tensor_release(row));
    CHECK_OK(sp_tensor_release(table));
    runtime_end();
}

TEST(what_one_view_writes_the_others_read)
{
    runtime_begin();
    const sp_tensor table = count_up(TESTED, 2, (const int64_t[]){2, 3});
    sp_tensor column;
    CHECK_OK(sp_tensor_select(table, 1, 1, &column));
    const float values[] = {70, 80};
    CHECK_OK(sp_tensor_write(column, values, sizeof values));
    CHECK_OK(sp_tensor_release(column));
    EXPECT(table, 0, 70, 2, 3, 80, 5);
    runtime_end();
}

TEST(views_without_what_they_need_are_refused)
{
    runtime_begin();
    sp_tensor view = {1};
    const sp_tensor table = count_up(CPU, 2, (const int64_t[]){2, 3});
    CHECK_STATUS(sp_tensor_permute(table, NULL, 2, &view), SP_INVALID);
    CHECK_EQ_U64(view.bits, 0);
    CHECK_STATUS(sp_tensor_reshape(table, 1, NULL, &view), SP_INVALID);
    CHECK_STATUS(sp_tensor_expand(table, 1, NULL, &view), SP_INVALID);
    CHECK_STATUS(sp_tensor_expand(table, 9, shape234, &view), SP_MISMATCH);
    CHECK_STATUS(sp_tensor_transpose(table, 0, 2, &view), SP_MISMATCH);
    CHECK_STATUS(sp_tensor_transpose(table, -3, 0, &view), SP_MISMATCH);
    CHECK_STATUS(sp_tensor_select(table, 0, 0, NULL), SP_INVALID);
    CHECK_STATUS(sp_tensor_contiguous(table, NULL), SP_INVALID);
    CHECK_STATUS(sp_tensor_get_info(table, NULL), SP_INVALID);
    CHECK_OK(sp_tensor_transpose(table, 0, 1, &view));
    sp_tensor flat;
    CHECK_STATUS(sp_tensor_reshape(view, 1, (const int64_t[]){6}, &flat), SP_MISMATCH);
    CHECK_MESSAGE("sp_tensor_contiguous");
    CHECK_OK(sp_tensor_release(view));
    CHECK_OK(sp_tensor_release(table));
    runtime_end();
}

/* ---- handles ---- */

static void expect_refused(sp_tensor tensor, sp_tensor good)
{
    sp_tensor out = {1};
    sp_tensor_info info;
    float value;
    const int64_t one[] = {1};
    CHECK_STATUS(sp_tensor_retain(tensor), SP_INVALID);
    CHECK_STATUS(sp_tensor_get_info(tensor, &info), SP_INVALID);
    CHECK_STATUS(sp_tensor_permute(tensor, one, 1, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_transpose(tensor, 0, 0, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_slice(tensor, 0, 0, 1, 1, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_select(tensor, 0, 0, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_reshape(tensor, 1, one, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_expand(tensor, 1, one, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_squeeze(tensor, 0, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_unsqueeze(tensor, 0, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_view_as(tensor, SP_I32, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_contiguous(tensor, &out), SP_INVALID);
    CHECK_STATUS(sp_tensor_copy(tensor, good), SP_INVALID);
    CHECK_STATUS(sp_tensor_copy(good, tensor), SP_INVALID);
    CHECK_STATUS(sp_tensor_read(tensor, &value, 4), SP_INVALID);
    CHECK_STATUS(sp_tensor_write(tensor, &value, 4), SP_INVALID);
    CHECK_MESSAGE("tensor");
    CHECK_EQ_U64(out.bits, 0);
}

TEST(zero_stale_and_foreign_handles_are_refused_by_every_call)
{
    runtime_begin();
    const sp_tensor good = count_up(CPU, 1, (const int64_t[]){1});
    const sp_tensor stale = count_up(CPU, 1, (const int64_t[]){1});
    CHECK_OK(sp_tensor_release(stale));
    CHECK_STATUS(sp_tensor_release(stale), SP_INVALID);
    CHECK_OK(sp_tensor_release((sp_tensor){0}));
    CHECK_STATUS(sp_tensor_release((sp_tensor){facts(good).storage.bits}), SP_INVALID);
    expect_refused((sp_tensor){0}, good);
    expect_refused(stale, good);
    expect_refused((sp_tensor){facts(good).storage.bits}, good);
    CHECK_STATUS(sp_storage_retain((sp_storage){good.bits}), SP_INVALID);
    CHECK_OK(sp_tensor_release(good));
    runtime_end();
}

TEST(a_storage_released_under_its_tensors_is_an_error_and_no_crash)
{
    runtime_begin();
    const sp_tensor tensor = count_up(CPU, 1, (const int64_t[]){4});
    const sp_tensor other = count_up(CPU, 1, (const int64_t[]){4});
    float values[4] = {0};
    sp_tensor view;
    CHECK_OK(sp_storage_release(facts(tensor).storage)); /* the tensor's own reference */
    CHECK_STATUS(sp_tensor_read(tensor, values, sizeof values), SP_INVALID);
    CHECK_STATUS(sp_tensor_write(tensor, values, sizeof values), SP_INVALID);
    CHECK_STATUS(sp_tensor_copy(tensor, other), SP_INVALID);
    CHECK_STATUS(sp_tensor_copy(other, tensor), SP_INVALID);
    CHECK_STATUS(sp_tensor_slice(tensor, 0, 0, 1, 1, &view), SP_INVALID);
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_OK(sp_tensor_release(other));
    runtime_end();
}

TEST(references_have_a_limit_that_is_an_error)
{
    runtime_begin();
    const sp_tensor tensor = count_up(CPU, 1, (const int64_t[]){4});
    sp_tensor view;
    for (int i = 0; i < 65534; i++) CHECK_OK(sp_tensor_retain(tensor));
    CHECK_STATUS(sp_tensor_retain(tensor), SP_EXHAUSTED);
    CHECK_STATUS(sp_tensor_contiguous(tensor, &view), SP_EXHAUSTED);
    for (int i = 0; i < 65534; i++) CHECK_OK(sp_tensor_release(tensor));
    for (int i = 0; i < 65534; i++) CHECK_OK(sp_storage_retain(facts(tensor).storage));
    CHECK_STATUS(sp_tensor_slice(tensor, 0, 0, 1, 1, &view), SP_EXHAUSTED);
    CHECK_EQ_U64(view.bits, 0);
    for (int i = 0; i < 65534; i++) CHECK_OK(sp_storage_release(facts(tensor).storage));
    CHECK_OK(sp_tensor_slice(tensor, 0, 0, 1, 1, &view));
    CHECK_OK(sp_tensor_release(view));
    CHECK_OK(sp_tensor_release(tensor));
    runtime_end();
}

/* ---- faults and freezing ---- */

TEST(a_frozen_tensor_is_read_and_not_written)
{
    runtime_begin();
    const sp_tensor frozen = count_up(CPU, 1, (const int64_t[]){4});
    const sp_tensor other = count_up(CPU, 1, (const int64_t[]){4});
    const float values[4] = {0};
    CHECK_OK(sp_storage_freeze(facts(frozen).storage));
    CHECK_STATUS(sp_tensor_write(frozen, values, sizeof values), SP_INVALID);
    CHECK_STATUS(sp_tensor_copy(frozen, other), SP_INVALID);
    CHECK_MESSAGE("frozen");
    CHECK_OK(sp_tensor_copy(other, frozen));
    EXPECT(other, 0, 1, 2, 3);
    CHECK_OK(sp_tensor_release(frozen));
    runtime_end();
}

TEST(what_a_failed_command_should_have_written_is_an_error_until_all_of_it_is_written)
{
    runtime_begin();
    const sp_tensor table = count_up(TESTED, 2, (const int64_t[]){2, 4});
    const sp_tensor source = count_up(TESTED, 1, (const int64_t[]){4});
    sp_tensor even, half, whole_source;
    float values[8] = {1};
    CHECK_OK(sp_tensor_slice(table, 1, 0, 2, 3, &even)); /* first and last column: all the range */
    CHECK_OK(sp_tensor_reshape(source, 2, (const int64_t[]){2, 2}, &half));
    submit_failing(current_stream(), facts(table).storage);
    CHECK_STATUS(sp_tensor_read(table, values, 32), SP_FAILED);
    CHECK_STATUS(sp_tensor_write(even, values, 16), SP_FAILED); /* the rest would stay poisoned */
    CHECK_OK(sp_tensor_copy(even, half));
    CHECK_STATUS(sp_tensor_read(table, values, 32), SP_FAILED);
    CHECK_OK(sp_tensor_create(TESTED, SP_F32, 2, (const int64_t[]){4, 2}, &whole_source));
    CHECK_OK(sp_tensor_write(whole_source, values, 32));
    sp_tensor turned;
    CHECK_OK(sp_tensor_transpose(whole_source, 0, 1, &turned));
    CHECK_OK(sp_tensor_copy(table, turned)); /* by the kernel, and without gaps */
    CHECK_OK(sp_tensor_read(table, values, 32));
    submit_failing(current_stream(), facts(table).storage);
    CHECK_OK(sp_tensor_write(table, values, 32)); /* all of it */
    CHECK_OK(sp_tensor_read(table, values, 32));
    CHECK_STATUS(sp_stream_synchronize(current_stream()), SP_FAILED);
    CHECK_OK(sp_tensor_release(even));
    CHECK_OK(sp_tensor_release(half));
    CHECK_OK(sp_tensor_release(turned));
    CHECK_OK(sp_tensor_release(whole_source));
    CHECK_OK(sp_tensor_release(source));
    CHECK_OK(sp_tensor_release(table));
    runtime_end();
}

/* ---- commands in flight ---- */

static void await_word(void *ctx, sp_status status)
{
    CHECK_OK(status);
    await_at_least(ctx, 1);
}

/* The memory of a number beside a tensor whose run is still queued. */
TEST(a_tensor_from_host_memory_does_not_wait_for_earlier_commands)
{
    runtime_begin();
    sp_atomic_u32 is_ready = {0};
    const float values[4] = {3, 2, 1, 0};
    const sp_tensor source = count_up(TESTED, 1, (const int64_t[]){4});
    sp_tensor used, made;
    CHECK_OK(sp_stream_host_function(current_stream(), await_word, &is_ready));
    CHECK_OK(sp_tensor_create(TESTED, SP_F32, 1, (const int64_t[]){4}, &used));
    CHECK_OK(sp_tensor_copy(used, source));
    CHECK_OK(sp_tensor_release(used));
    CHECK_OK(
        sp_tensor_from_host(TESTED, SP_F32, 1, (const int64_t[]){4}, values, sizeof values, &made));
    CHECK_STATUS(sp_stream_query(current_stream()), SP_NOT_READY);
    raise_by_one(&is_ready);
    EXPECT(made, 3, 2, 1, 0);
    CHECK_OK(sp_tensor_release(source));
    runtime_end();
}

/* ---- host functions ---- */

typedef struct inside_call {
    sp_stream stream;
    sp_atomic_u32 is_ready;
    sp_tensor made;
    sp_status status;
} inside_call;

static void create_inside(void *ctx, sp_status status)
{
    inside_call *call = ctx;
    const float values[4] = {0, 1, 2, 3};
    sp_stream_guard guard;
    CHECK_OK(status);
    await_at_least(&call->is_ready, 1);
    CHECK_OK(sp_stream_guard_begin(call->stream, &guard));
    call->status = sp_tensor_from_host(TESTED, SP_F32, 1, (const int64_t[]){4}, values,
                                       sizeof values, &call->made);
    CHECK_OK(sp_stream_guard_end(&guard));
}

/* What the stream's cache has is used by a copy behind the function. */
TEST(a_host_function_creates_tensors_on_the_stream_that_waits_for_it)
{
    runtime_begin();
    inside_call call = {.stream = current_stream()};
    const sp_tensor source = count_up(TESTED, 1, (const int64_t[]){4});
    sp_tensor used;
    CHECK_OK(sp_stream_host_function(call.stream, create_inside, &call));
    CHECK_OK(sp_tensor_create(TESTED, SP_F32, 1, (const int64_t[]){4}, &used));
    CHECK_OK(sp_tensor_copy(used, source));
    CHECK_OK(sp_tensor_release(used));
    raise_by_one(&call.is_ready);
    CHECK_OK(sp_stream_synchronize(call.stream));
    CHECK_OK(call.status);
    EXPECT(call.made, 0, 1, 2, 3);
    CHECK_OK(sp_tensor_release(source));
    runtime_end();
}

/* The same of a thread whose own access the stream waits for. */
TEST(a_thread_with_an_open_access_creates_tensors)
{
    runtime_begin();
    const float values[4] = {3, 2, 1, 0};
    const sp_tensor source = count_up(TESTED, 1, (const int64_t[]){4});
    const sp_storage open = facts(source).storage;
    sp_tensor used, made;
    void *data;
    CHECK_OK(sp_storage_host_begin(open, SP_READ_WRITE, &data));
    CHECK_OK(sp_tensor_create(TESTED, SP_F32, 1, (const int64_t[]){4}, &used));
    CHECK_OK(sp_tensor_copy(used, source));
    CHECK_OK(sp_tensor_release(used));
    CHECK_OK(
        sp_tensor_from_host(TESTED, SP_F32, 1, (const int64_t[]){4}, values, sizeof values, &made));
    CHECK_OK(sp_storage_host_end(open, SP_READ_WRITE));
    EXPECT(made, 3, 2, 1, 0);
    CHECK_OK(sp_tensor_release(source));
    runtime_end();
}

TEST_MAIN
