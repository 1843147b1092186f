/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA kernels that no op's lowering emits, and reductions that are too long for random calls: the
 * CPU's bits, in the emulator. */
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "cuda/cuda_emulator.h"
#include "ops/cpu/tiling.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/lowering.h"
#include "ops/pack.h"
#include "support/model_data.h"
#include "support/test.h"

enum { MAX_OPERANDS = 6 };

/* A call: operands before the last one are read, the last one has `out` elements. */
typedef struct fused_call {
    sp_kernel_id kernel;
    const void *constants;
    int64_t count, per_tile; /* of the CPU's tiles */
    float *operands[MAX_OPERANDS];
    uint32_t operand_count;
    int64_t out;
    bool is_updated; /* the last operand has numbers before */
} fused_call;

static float *floats_of(data_random *random, int64_t count)
{
    float *values = malloc((size_t)(count > 0 ? count : 1) * sizeof *values);
    if (values == NULL) abort();
    data_fill(random, values, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t special = data_next(random) % 400;
        if (special == 0) values[i] = -0.0f;
        if (special == 1) values[i] *= 100;
        if (special == 2) values[i] *= 1e-40f;
    }
    return values;
}

/* Numbers that are not finite, in some calls. */
static void spoil(data_random *random, float *values, int64_t count)
{
    static const float specials[] = {0x1p127f * 2, -0x1p127f * 2, 0x1p127f * 2 - 0x1p127f * 2};
    if (count == 0 || data_next(random) % 4 != 0) return;
    for (size_t i = 0; i < SP_COUNT_OF(specials); i++) {
        values[data_next(random) % (uint64_t)count] = specials[i];
    }
}

static bool is_same(const fused_call *call)
{
    const sp_kernel *cpu = &sp__cpu_kernels(SP_CPU_PORTABLE)[call->kernel];
    const sp_gpu_kernel *gpu = sp__cuda_kernels()[call->kernel].gpu;
    const size_t bytes = (size_t)call->out * sizeof(float);
    void *bindings[MAX_OPERANDS];
    for (uint32_t i = 0; i < call->operand_count; i++) bindings[i] = call->operands[i];
    float *wanted = malloc(bytes + 1), *got = malloc(bytes + 1);
    if (wanted == NULL || got == NULL) abort();
    memset(wanted, call->is_updated ? 0x3e : 0xa5, bytes);
    memset(got, call->is_updated ? 0x3e : 0xa5, bytes);
    sp_tiling tiling;
    sp_tiling_line(&tiling, call->count, call->per_tile);
    bindings[call->operand_count] = wanted;
    CHECK_OK(sp__kernel_run_tiling(cpu, &tiling, bindings, call->constants));
    bindings[call->operand_count] = got;
    sp_launch_shape shape;
    gpu->shape(call->constants, &shape);
    CHECK(cuda_emulator_launch(gpu->entry, &shape, bindings, call->operand_count + 1,
                               call->constants));
    const bool same = memcmp(wanted, got, bytes) == 0;
    free(wanted);
    free(got);
    return same;
}

static void check(const fused_call *call)
{
    const bool same = is_same(call);
    CHECK(same);
    if (!same) test_note("%s of %lld", sp__cuda_kernels()[call->kernel].name, (long long)call->out);
    for (uint32_t i = 0; i < call->operand_count; i++) free(call->operands[i]);
}

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

/* ---- gates ---- */

TEST(gates_have_the_bits_of_the_cpu)
{
    static const sp_kernel_id kernels[] = {
        SP_KERNEL_ID_erf_gate_f32, SP_KERNEL_ID_clip_gate_f32, SP_KERNEL_ID_hard_sigmoid_gate_f32,
        SP_KERNEL_ID_softplus_gate_f32, SP_KERNEL_ID_tanh_gate_f32};
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t i = 0; i < test_count(2000, 200); i++) {
        data_random random = {i};
        const int64_t count = pick(&random, 0, 5000);
        const sp_gate_constants k = {.count = count,
                                     .divisor = i % 3 == 0 ? 1.41421354f : 6,
                                     .addend = i % 2 == 0 ? 1 : 3,
                                     .factor = 0.5f,
                                     .low = 0,
                                     .high = 6,
                                     .cube = 0.044715f,
                                     .scale = 1.0f / 6};
        fused_call call = {.kernel = kernels[i % SP_COUNT_OF(kernels)],
                           .constants = &k,
                           .count = count,
                           .per_tile = 4096,
                           .operands = {floats_of(&random, count)},
                           .operand_count = 1,
                           .out = count};
        spoil(&random, call.operands[0], count);
        check(&call);
    }
    sp_fpenv_leave(before);
}

/* ---- rows ---- */

static void check_row_norm(uint64_t seed)
{
    data_random random = {seed};
    const int64_t extent = pick(&random, 1, seed % 5 == 0 ? 9000 : 300);
    const int64_t rows = pick(&random, 0, 40), block = pick(&random, 1, 8);
    const int64_t blocks = (rows + block - 1) / block;
    const sp_row_norm_constants k = {.rows = rows,
                                     .extent = extent,
                                     .addend_block = block,
                                     .addend_outer = extent,
                                     .addend_inner = blocks * extent,
                                     .is_centred = pick(&random, 0, 3) > 0,
                                     .by_reciprocal = pick(&random, 0, 1) != 0,
                                     .has_scale = pick(&random, 0, 2) > 0,
                                     .has_bias = pick(&random, 0, 2) > 0,
                                     .has_addend = pick(&random, 0, 1) != 0,
                                     .activation = (uint8_t)pick(&random, 0, 4)};
    fused_call call = {.kernel = SP_KERNEL_ID_row_norm_f32,
                       .constants = &k,
                       .count = k.rows,
                       .per_tile = 7,
                       .operands = {floats_of(&random, k.rows * extent), floats_of(&random, 1)},
                       .operand_count = 2,
                       .out = k.rows * extent};
    *call.operands[1] = 1e-5f;
    spoil(&random, call.operands[0], k.rows * extent);
    if (k.has_scale) call.operands[call.operand_count++] = floats_of(&random, extent);
    if (k.has_bias) call.operands[call.operand_count++] = floats_of(&random, extent);
    if (k.has_addend) {
        call.operands[call.operand_count++] = floats_of(&random, blocks * block * extent);
    }
    check(&call);
}

/* Lines are rows in their order, or in that of a transposed batch. */
static void pick_lines(data_random *random, sp_row_norm_constants *k)
{
    static const sp_pack_format formats[] = {SP_PACK_TF32, SP_PACK_F16, SP_PACK_BF16};
    const int64_t block = pick(random, 1, 4);
    const bool is_plain = pick(random, 0, 1) != 0;
    k->y_format = (uint8_t)formats[pick(random, 0, 2)];
    k->is_only_packed = pick(random, 0, 1) != 0;
    k->line_block = is_plain ? k->rows : block;
    k->line_outer = is_plain ? 0 : 1;
    k->line_inner = is_plain ? 1 : k->rows / block;
}

/* Of the rows and the packed ones, by the cpu and emulated. */
static void check_packed_norm(uint64_t seed)
{
    data_random random = {seed};
    sp_row_norm_constants k = {.rows = 24 * pick(&random, 1, 3),
                               .extent = 64 * pick(&random, 1, seed % 10 == 0 ? 64 : 9),
                               .is_centred = pick(&random, 0, 3) > 0,
                               .by_reciprocal = pick(&random, 0, 1) != 0,
                               .has_scale = pick(&random, 0, 1) != 0};
    pick_lines(&random, &k);
    const int64_t count = k.rows * k.extent;
    float *x = floats_of(&random, count), *scale = floats_of(&random, k.extent), epsilon = 1e-5f;
    spoil(&random, x, count);
    const size_t bytes[] = {(size_t)count * sizeof *x,
                            (size_t)sp__pack_bytes(k.y_format, k.extent, k.rows)};
    void *results[2][2], *bindings[5] = {x, &epsilon, scale};
    const uint32_t first = k.has_scale ? 3 : 2;
    for (int i = 0; i < 4; i++) {
        results[i / 2][i % 2] = malloc(bytes[i % 2]);
        if (results[i / 2][i % 2] == NULL) abort();
        memset(results[i / 2][i % 2], 0xa5, bytes[i % 2]);
    }
    const sp_kernel *cpu = &sp__cpu_kernels(SP_CPU_PORTABLE)[SP_KERNEL_ID_row_norm_f32];
    sp_launch_shape shape = {0};
    sp__cuda_kernels()[SP_KERNEL_ID_row_norm_f32].gpu->shape(&k, &shape);
    for (int emulated = 0; emulated < 2; emulated++) {
        uint32_t at = first;
        if (!k.is_only_packed) bindings[at++] = results[emulated][0];
        bindings[at++] = results[emulated][1];
        if (emulated == 0) CHECK_OK(sp__kernel_run(cpu, bindings, &k));
        else CHECK(cuda_emulator_launch(shape.variant->entry, &shape, bindings, at, &k));
    }
    for (int i = 0; i < 2; i++) {
        CHECK(memcmp(results[0][i], results[1][i], bytes[i]) == 0);
        for (int e = 0; e < 2; e++) free(results[e][i]);
    }
    free(x);
    free(scale);
}

TEST(normalisations_that_pack_their_rows_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t i = 0; i < test_count(300, 40); i++) check_packed_norm(i);
    sp_fpenv_leave(before);
}

TEST(normalisations_in_steps_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t i = 0; i < test_count(1000, 100); i++) check_row_norm(i);
    sp_fpenv_leave(before);
}

/* At both sides of where a row gets more registers, more warps, or no longer fits them. */
static const int64_t ends[] = {1, 16, 32, 128, 256, 512, 768, 1024, 2048, 4096};

static void check_softmax(uint64_t seed)
{
    data_random random = {seed};
    const int64_t extent = ends[seed % SP_COUNT_OF(ends)] + pick(&random, 0, 1);
    const sp_axis_constants k = {.rows = pick(&random, 1, 9),
                                 .extent = extent,
                                 .inner = 1,
                                 .is_log = pick(&random, 0, 1) != 0};
    fused_call call = {.kernel = SP_KERNEL_ID_softmax_f32,
                       .constants = &k,
                       .count = k.rows,
                       .per_tile = 7,
                       .operands = {floats_of(&random, k.rows * extent)},
                       .operand_count = 1,
                       .out = k.rows * extent};
    spoil(&random, call.operands[0], call.out);
    check(&call);
}

static void check_norm(uint64_t seed)
{
    data_random random = {seed};
    const int64_t span = pick(&random, 1, 2); /* elements with one scale */
    const int64_t extent = (ends[seed % SP_COUNT_OF(ends)] + pick(&random, 0, 1)) / span * span;
    const sp_norm_constants k = {.rows = pick(&random, 1, 9),
                                 .extent = extent > 0 ? extent : span,
                                 .scale_rows = 1,
                                 .span = span,
                                 .epsilon = 1e-5f,
                                 .has_bias = pick(&random, 0, 1) != 0};
    fused_call call = {
        .kernel = SP_KERNEL_ID_norm_f32,
        .constants = &k,
        .count = k.rows,
        .per_tile = 7,
        .operands = {floats_of(&random, k.rows * k.extent), floats_of(&random, k.extent)},
        .operand_count = 2,
        .out = k.rows * k.extent};
    spoil(&random, call.operands[0], call.out);
    if (k.has_bias) call.operands[call.operand_count++] = floats_of(&random, k.extent);
    check(&call);
}

TEST(rows_of_any_length_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t i = 0; i < test_count(1000, 80); i++) {
        check_softmax(i);
        check_norm(i);
    }
    sp_fpenv_leave(before);
}

static void check_row_affine(uint64_t seed)
{
    data_random random = {seed};
    const int64_t extent = pick(&random, 2, seed % 5 == 0 ? 3000 : 90);
    const sp_row_affine_constants k = {.rows = pick(&random, 0, 40), .extent = extent};
    fused_call call = {.kernel = SP_KERNEL_ID_row_affine_f32,
                       .constants = &k,
                       .count = k.rows,
                       .per_tile = 7,
                       .operands = {floats_of(&random, k.rows * extent), floats_of(&random, k.rows),
                                    floats_of(&random, k.rows), floats_of(&random, extent),
                                    floats_of(&random, extent)},
                       .operand_count = 5,
                       .out = k.rows * extent};
    for (uint32_t i = 0; i < 3; i++) spoil(&random, call.operands[i], i == 0 ? call.out : k.rows);
    check(&call);
}

TEST(rows_moved_by_moments_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t i = 0; i < test_count(1000, 100); i++) check_row_affine(i);
    sp_fpenv_leave(before);
}

/* ---- look-ups ---- */

/* Some indices have no row. */
static float *indices_of(data_random *random, int64_t count, int64_t depth, bool is_wide)
{
    char *indices = malloc((size_t)(count + 1) * sizeof(int64_t));
    if (indices == NULL) abort();
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = pick(random, -2, depth + 1);
        const int32_t narrow = (int32_t)index;
        if (is_wide) memcpy(indices + 8 * i, &index, sizeof index);
        else memcpy(indices + 4 * i, &narrow, sizeof narrow);
    }
    return (float *)(void *)indices;
}

static void check_look_up(uint64_t seed)
{
    data_random random = {seed};
    const int64_t rows = pick(&random, 1, 60), depth = pick(&random, 2, 9);
    const int64_t columns = pick(&random, 1, seed % 5 == 0 ? 700 : 40);
    const bool has_c = pick(&random, 0, 1) != 0, is_one_row = pick(&random, 0, 1) != 0;
    const sp_look_up_constants k = {.rows = rows,
                                    .columns = columns,
                                    .depth = depth,
                                    .c_row = is_one_row ? 0 : columns,
                                    .is_wide = pick(&random, 0, 1) != 0,
                                    .has_c = has_c,
                                    .activation = (uint8_t)pick(&random, 0, 4)};
    fused_call call = {.kernel = SP_KERNEL_ID_look_up_f32,
                       .constants = &k,
                       .count = rows,
                       .per_tile = 7,
                       .operands = {indices_of(&random, rows, depth, k.is_wide),
                                    floats_of(&random, (depth + 1) * columns)},
                       .operand_count = 2,
                       .out = rows * columns};
    if (has_c) call.operands[call.operand_count++] = floats_of(&random, rows * columns);
    check(&call);
}

static void check_look_up_pack(uint64_t seed)
{
    data_random random = {seed};
    const int64_t depth = pick(&random, 1, 40), columns = pick(&random, 1, 300);
    const bool is_transposed = pick(&random, 0, 1) != 0;
    const sp_pack_constants k = {.depth = depth,
                                 .columns = columns,
                                 .depth_stride = is_transposed ? 1 : columns,
                                 .column_stride = is_transposed ? depth : 1};
    fused_call call = {.kernel = SP_KERNEL_ID_look_up_pack_f32,
                       .constants = &k,
                       .count = 1,
                       .per_tile = 1,
                       .operands = {floats_of(&random, depth * columns)},
                       .operand_count = 1,
                       .out = (depth + 1) * columns};
    for (int i = 0; i < 3; i++) spoil(&random, call.operands[0], depth * columns);
    check(&call);
}

TEST(look_ups_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t i = 0; i < test_count(1000, 100); i++) {
        check_look_up(i);
        check_look_up_pack(i);
    }
    sp_fpenv_leave(before);
}

/* ---- long chains, lines and lists of updates ---- */

static void check_cumsum(uint64_t seed)
{
    data_random random = {seed};
    const sp_axis_constants k = {.rows = pick(&random, 1, 20),
                                 .extent = pick(&random, 1, 500),
                                 .inner = 1,
                                 .is_exclusive = pick(&random, 0, 1) != 0,
                                 .is_reverse = pick(&random, 0, 1) != 0};
    fused_call call = {.kernel = SP_KERNEL_ID_cumsum_f32,
                       .constants = &k,
                       .count = k.rows,
                       .per_tile = 7,
                       .operands = {floats_of(&random, k.rows * k.extent)},
                       .operand_count = 1,
                       .out = k.rows * k.extent};
    spoil(&random, call.operands[0], call.out);
    check(&call);
}

TEST(running_sums_of_rows_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t i = 0; i < test_count(1000, 60); i++) check_cumsum(i);
    sp_fpenv_leave(before);
}

/* More updates than a block has threads, some of them of one place, or out of range. */
static void check_scatter(uint64_t seed)
{
    data_random random = {seed};
    const int64_t places = pick(&random, 1, 300), slice = pick(&random, 1, seed % 4 == 0 ? 300 : 3);
    const sp_scatter_nd_constants k = {.depth = 1,
                                       .dtype = SP_F32,
                                       .index_bytes = 8,
                                       .reduction = (uint32_t)pick(&random, 0, SP_SCATTER_MIN),
                                       .count = pick(&random, 1, 700),
                                       .slice = slice,
                                       .dims = {places},
                                       .strides = {slice}};
    int64_t *indices = malloc((size_t)k.count * sizeof *indices);
    if (indices == NULL) abort();
    for (int64_t i = 0; i < k.count; i++) indices[i] = pick(&random, -places, places - 1);
    fused_call call = {.kernel = SP_KERNEL_ID_scatter_nd,
                       .constants = &k,
                       .count = slice,
                       .per_tile = 100,
                       .operands = {(float *)(void *)indices, floats_of(&random, k.count * slice)},
                       .operand_count = 2,
                       .out = places * slice,
                       .is_updated = true};
    check(&call);
}

TEST(lists_of_updates_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t i = 0; i < test_count(500, 16); i++) check_scatter(i);
    sp_fpenv_leave(before);
}

/* ---- long reductions ---- */

static void check_sum(uint32_t reduction, int64_t extent, int64_t columns)
{
    data_random random = {(uint64_t)(extent + columns)};
    sp_reduce_constants k = {.reduction = reduction,
                             .kept_rank = 1,
                             .reduced_rank = 1,
                             .is_columns = columns > 1,
                             .extent = extent,
                             .count = columns,
                             .kept_dims = {columns},
                             .kept_strides = {1},
                             .dims = {extent},
                             .strides = {columns}};
    fused_call call = {.kernel = SP_KERNEL_ID_reduce_f32,
                       .constants = &k,
                       .count = columns,
                       .per_tile = 64,
                       .operands = {floats_of(&random, extent * columns)},
                       .operand_count = 1,
                       .out = columns};
    check(&call);
}

TEST(sums_of_three_levels_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    check_sum(SP_REDUCE_SUM, INT64_C(4096) * 4096 + 5000, 1);
    check_sum(SP_REDUCE_MEAN, INT64_C(4096) * 4096, 1);
    sp_fpenv_leave(before);
}

/* So many columns that a block of threads has several of them, block by block. */
TEST(long_columns_side_by_side_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    check_sum(SP_REDUCE_SUM_SQUARE, 4097, SP_CUDA_ENOUGH_BLOCKS * SP_CUDA_REDUCTIONS);
    check_sum(SP_REDUCE_SUM, 9001, 17);
    sp_fpenv_leave(before);
}

TEST_MAIN
