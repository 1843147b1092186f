/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between any two layouts, compared with element-by-element copies. */
#include "tensor/strided_copy.h"

#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

enum { STORAGE_BYTES = 4096 };

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

static sp_dtype pick_dtype(data_random *random)
{
    static const sp_dtype all[] = {SP_U8, SP_BF16, SP_F32, SP_I64};
    return all[pick(random, 0, 3)];
}

/* A random layout of that shape in a storage of STORAGE_BYTES; strides of any sign, gaps. */
static bool random_layout(data_random *random, const sp_shape *shape, sp_dtype dtype,
                          sp_layout *out)
{
    uint32_t order[SP_MAX_RANK] = {0};
    for (uint32_t i = 0; i < shape->rank; i++) {
        const uint32_t k = (uint32_t)pick(random, 0, i);
        order[i] = order[k];
        order[k] = i;
    }
    int64_t strides[SP_MAX_RANK] = {0}, next = 1, below = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        const uint32_t d = order[i];
        strides[d] = next * pick(random, 1, 2);
        next = strides[d] * shape->dims[d];
        if (pick(random, 0, 2) == 0 && shape->dims[d] > 0) {
            below += strides[d] * (shape->dims[d] - 1);
            strides[d] = -strides[d];
        }
    }
    const uint64_t offset = (uint64_t)(below + pick(random, 0, 5)) * sp_dtype_bytes(dtype);
    return sp__layout_init(out, dtype, shape, strides, offset, STORAGE_BYTES) == SP_OK;
}

static int64_t byte_of(const sp_layout *layout, uint64_t index)
{
    int64_t byte = (int64_t)layout->offset;
    for (uint32_t i = layout->shape.rank; i-- > 0;) {
        const int64_t at = (int64_t)(index % (uint64_t)layout->shape.dims[i]);
        byte += at * layout->strides[i] * (int64_t)sp_dtype_bytes(layout->dtype);
        index /= (uint64_t)layout->shape.dims[i];
    }
    return byte;
}

TEST(a_move_puts_each_element_to_its_place_and_touches_nothing_else)
{
    data_random random = {.state = 11};
    static unsigned char from[STORAGE_BYTES], to[STORAGE_BYTES], want[STORAGE_BYTES];
    uint64_t moves = 0, plain = 0;
    for (uint64_t i = 0; i < test_count(100000, 5000); i++) {
        sp_shape shape = {.rank = (uint32_t)pick(&random, 0, SP_MAX_RANK)};
        for (uint32_t d = 0; d < shape.rank; d++)
            shape.dims[d] = pick(&random, 0, 25) ? 1 + pick(&random, 0, 2) : 0;
        const sp_dtype dtype = pick_dtype(&random);
        sp_layout a, b;
        if (!random_layout(&random, &shape, dtype, &a)) continue;
        if (!random_layout(&random, &shape, dtype, &b)) continue;
        CHECK(!sp__layout_overlaps_itself(&b));
        for (int k = 0; k < STORAGE_BYTES; k++) from[k] = (unsigned char)data_next(&random);
        memset(to, 0xcc, sizeof to);
        memset(want, 0xcc, sizeof want);
        for (uint64_t k = 0; k < sp__shape_count(&shape); k++) {
            memcpy(want + byte_of(&b, k), from + byte_of(&a, k), sp_dtype_bytes(dtype));
        }
        sp_layout_reach ra, rb;
        REQUIRE(sp__layout_reach(&a, &ra) && sp__layout_reach(&b, &rb));
        sp_strided_copy move;
        sp__strided_copy_plan(&b, &a, &move);
        sp__strided_copy_on_host(&move, to + b.offset - rb.below, from + a.offset - ra.below);
        REQUIRE_EQ_MEM(to, want, sizeof to);
        moves++;
        plain += sp__strided_copy_is_plain(&move);
    }
    CHECK(moves > 0 && plain > 0 && plain < moves);
}

TEST(dimensions_that_both_sides_walk_alike_become_one)
{
    const sp_shape shape = {.rank = 3, .dims = {4, 5, 6}};
    const int64_t axes[] = {2, 0, 1};
    sp_layout a, b;
    sp_strided_copy move;
    CHECK_OK(sp__layout_init_contiguous(&a, SP_F32, &shape));
    CHECK_OK(sp__layout_permute(&a, axes, 3, &b));
    sp__strided_copy_plan(&b, &b, &move); /* both transposed: the bytes are in order */
    CHECK(sp__strided_copy_is_plain(&move));
    sp_layout packed;
    CHECK_OK(sp__layout_init_contiguous(&packed, SP_F32, &b.shape));
    sp__strided_copy_plan(&packed, &b, &move);
    CHECK_EQ_U64(move.rank, 2);
    CHECK(!sp__strided_copy_is_plain(&move));
}

TEST_MAIN
