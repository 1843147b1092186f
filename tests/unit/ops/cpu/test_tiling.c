/* SPDX-License-Identifier: Apache-2.0 */
/* Tilings of the CPU's kernels: each kernel has one; tiles cover the operands; grids that 32 bits
 * do not count are refused where a call is lowered. */
#include "ops/cpu/tiling.h"

#include "ops/cpu/arch/kernels.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "support/model_data.h"
#include "support/test.h"

TEST(every_kernel_of_every_table_has_a_body_and_a_tiling)
{
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        for (int i = 0; kernels != NULL && i < SP_KERNEL_COUNT; i++) {
            CHECK(kernels[i].name != NULL && kernels[i].run != NULL && kernels[i].tiling != NULL);
        }
    }
}

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

/* The last tile along the dimension has something, and ends at `count`. */
static void check_cover(const sp_tiling *tiling, uint32_t dimension, int64_t count)
{
    const uint32_t tiles = tiling->grid[dimension];
    REQUIRE(tiles > 0 && tiling->size[dimension] > 0);
    sp_tile tile = {.size = {tiling->size[0], tiling->size[1], tiling->size[2]}};
    tile.index[dimension] = tiles - 1;
    CHECK(sp_tile_first(&tile, dimension) < count);
    CHECK_EQ_INT(sp_tile_end(&tile, dimension, count), count);
    CHECK((int64_t)tiles * tiling->size[dimension] >= count);
}

TEST(tiles_of_products_cover_rows_panels_and_batch)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        data_random random = {seed};
        const sp_gemm_constants k = {.rows = pick(&random, 1, seed % 3 == 0 ? 5000 : 70),
                                     .columns = pick(&random, 1, seed % 5 == 0 ? 9000 : 300),
                                     .depth = pick(&random, 0, seed % 7 == 0 ? 5000 : 300),
                                     .batch_rank = 2,
                                     .batch_dims = {pick(&random, 1, 5), pick(&random, 1, 5)}};
        sp_tiling tiling;
        sp__tiling_gemm(&k, &tiling);
        check_cover(&tiling, 0, k.rows);
        check_cover(&tiling, 1, (k.columns + SP_GEMM_PANEL - 1) / SP_GEMM_PANEL);
        CHECK_EQ_INT(tiling.grid[2], k.batch_dims[0] * k.batch_dims[1]);
    }
}

TEST(nothing_is_one_tile_and_each_unit_of_a_batch_is_one)
{
    sp_tiling tiling;
    sp_tiling_line(&tiling, 0, 100);
    CHECK_EQ_U64(tiling.grid[0], 1);
    sp_tiling_line(&tiling, 100, 100);
    CHECK_EQ_U64(tiling.grid[0], 1);
    sp_tiling_line(&tiling, 101, 100);
    CHECK_EQ_U64(tiling.grid[0], 2);
    sp_tiling_each(&tiling, 2, 0);
    CHECK_EQ_U64(tiling.grid[2], 0);
}

TEST(numbers_of_more_than_32_bits_are_the_largest_one)
{
    sp_tiling tiling;
    sp_tiling_line(&tiling, INT64_C(1) << 40, 4);
    CHECK_EQ_U64(tiling.grid[0], UINT32_MAX);
    sp_tiling_line(&tiling, INT64_C(1) << 40, INT64_C(1) << 39);
    CHECK_EQ_U64(tiling.size[0], UINT32_MAX);
    check_cover(&tiling, 0, INT64_C(1) << 40);
}

/* ---- the check of lowerings ---- */

static int64_t matrices;

/* A batch of products of one element each. */
static sp_status lower_products(const sp_op_call *call, sp_lowering *lowering)
{
    (void)call;
    const sp_gemm_constants k = {
        .rows = 1, .columns = 1, .depth = 1, .batch_rank = 1, .batch_dims = {matrices}};
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_gemm_f32, &k, sizeof k, &dispatch));
    const uint64_t bytes = (uint64_t)matrices * sizeof(float);
    sp__lower_bind(dispatch, (sp_operand){SP_OPERAND_INPUT, 0, false, bytes});
    sp__lower_bind(dispatch, (sp_operand){SP_OPERAND_INPUT, 1, false, bytes});
    sp__lower_bind(dispatch, (sp_operand){SP_OPERAND_OUTPUT, 0, true, bytes});
    return SP_OK;
}

static sp_status lower(int64_t count)
{
    const sp_op op = {.name = "Products", .lower = lower_products};
    const sp_op_call call = {.op = &op};
    sp_lowering lowering;
    matrices = count;
    sp__lowering_init(&lowering);
    const sp_status status = sp__op_lower(&call, &lowering);
    sp__lowering_deinit(&lowering);
    return status;
}

TEST(a_call_of_too_many_tiles_is_refused)
{
    CHECK_OK(lower(1));
    CHECK_OK(lower(UINT32_MAX - 1));
    CHECK_EQ_INT(lower(UINT32_MAX), SP_EXHAUSTED);
    CHECK_EQ_INT(lower(INT64_C(1) << 36), SP_EXHAUSTED);
}

TEST_MAIN
