/* SPDX-License-Identifier: Apache-2.0 */
/* Narrow products that write their results packed, in the emulator: the bits of the cpu, which
 * packs them afterwards, with every tile of two packed operands. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/macros.h"
#include "cuda/cuda_emulator.h"
#include "ops/cpu/arch/half.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/cuda_launch.h"
#include "ops/lowering.h"
#include "ops/pack.h"
#include "support/model_data.h"
#include "support/test.h"

typedef struct product_type {
    sp_pack_format format;
    sp_kernel_id pack, product;
    void (*launch)(const sp_gemm_constants *k, uint32_t tile, sp_launch_shape *out);
} product_type;

static const product_type types[] = {
    {SP_PACK_TF32, SP_KERNEL_ID_narrow_pack_tf32, SP_KERNEL_ID_gemm_packed_tf32,
     sp__cuda_launch_packed_tf32},
    {SP_PACK_F16, SP_KERNEL_ID_narrow_pack_f16, SP_KERNEL_ID_gemm_packed_f16,
     sp__cuda_launch_packed_f16},
    {SP_PACK_BF16, SP_KERNEL_ID_narrow_pack_bf16, SP_KERNEL_ID_gemm_packed_bf16,
     sp__cuda_launch_packed_bf16},
};

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

static void *allocate(uint64_t bytes)
{
    void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    if (memory == NULL) abort();
    memset(memory, 0xff, (size_t)bytes);
    return memory;
}

/* Random values, some of which are not finite or have no small type. */
static float *fill(data_random *random, int64_t count)
{
    static const float specials[] = {INFINITY, NAN, -0.0f, 1e-42f, 65519.9f, 3e-8f};
    float *values = allocate((uint64_t)count * sizeof *values);
    data_fill(random, values, (size_t)count);
    for (int64_t i = 0; i < count; i += 1 + (int64_t)(data_next(random) % 900)) {
        values[i] = specials[data_next(random) % SP_COUNT_OF(specials)];
    }
    return values;
}

/* By the cpu: lines of `depth` neighbouring elements. */
static void *pack(const product_type *type, const float *values, int64_t lines, int64_t depth)
{
    const sp_pack_constants k = {
        .depth = depth, .columns = lines, .depth_stride = 1, .column_stride = depth};
    void *packed = allocate(sp__pack_bytes(type->format, depth, lines));
    void *const bindings[] = {(void *)(uintptr_t)values, packed};
    CHECK_OK(sp__kernel_run(&sp__cpu_kernels(SP_CPU_PORTABLE)[type->pack], bindings, &k));
    return packed;
}

typedef struct call {
    const product_type *type;
    sp_gemm_constants k;
    void *left, *right;
    float *c;
} call;

static void pick_call(data_random *random, call *out)
{
    const product_type *type = &types[pick(random, 0, 2)];
    const int64_t steps = SP_NARROW_BYTES / (type->format == SP_PACK_TF32 ? 4 : 2);
    const bool has_c = pick(random, 0, 1) != 0;
    out->type = type;
    out->k = (sp_gemm_constants){.rows = SP_NARROW_LINES * pick(random, 1, 40),
                                 .columns = steps * pick(random, 1, 5),
                                 .depth = pick(random, 1, 300),
                                 .alpha = pick(random, 0, 3) == 0 ? -1.5f : 1,
                                 .beta = 1,
                                 .has_c = has_c,
                                 .c_column = 1,
                                 .activation = pick(random, 0, 1) != 0 ? SP_ACTIVATION_RELU
                                                                       : SP_ACTIVATION_NONE,
                                 .b_format = (uint8_t)type->format,
                                 .is_b_constant = true};
    const sp_gemm_constants *k = &out->k;
    out->k.c_row = has_c && pick(random, 0, 1) != 0 ? k->columns : 0;
    float *a = fill(random, k->rows * k->depth), *b = fill(random, k->columns * k->depth);
    out->left = pack(type, a, k->rows, k->depth);
    out->right = pack(type, b, k->columns, k->depth);
    out->c = has_c ? fill(random, (k->c_row != 0 ? k->rows : 1) * k->columns) : NULL;
    free(a);
    free(b);
}

static void free_call(call *c)
{
    free(c->left);
    free(c->right);
    free(c->c);
}

static uint32_t bind(const call *c, void *y, void **bindings)
{
    uint32_t count = 0;
    bindings[count++] = c->left;
    bindings[count++] = c->right;
    if (c->c != NULL) bindings[count++] = c->c;
    bindings[count++] = y;
    return count;
}

/* The cpu's result, packed when it is there. */
static void *make_wanted(const call *c)
{
    float *y = allocate((uint64_t)(c->k.rows * c->k.columns) * sizeof *y);
    void *bindings[4];
    CHECK(bind(c, y, bindings) >= 3);
    CHECK_OK(sp__kernel_run(&sp__cpu_kernels(SP_CPU_PORTABLE)[c->type->product], bindings, &c->k));
    void *packed = pack(c->type, y, c->k.rows, c->k.columns);
    free(y);
    return packed;
}

static bool is_wide_run[2][2];

static void run_tile(const call *c, uint32_t tile, bool is_few, void *y)
{
    void *bindings[4];
    const uint32_t count = bind(c, y, bindings);
    const sp_gpu_kernel *gpu = sp__cuda_kernels()[c->type->product].gpu;
    sp_launch_shape shape = {0};
    c->type->launch(&c->k, tile, &shape);
    if (tile == SP_CUDA_PACKED_TILES - 1) {
        sp__cuda_launch_groups(&c->k, c->k.depth % 2 == 0 ? 192 : 128, &shape);
        is_wide_run[c->k.is_y_half][c->k.depth % 2 == 0] = true;
        if (is_few) shape.grid[0] = SP_CUDA_GROUP_BLOCKS;
    } else if (is_few) {
        shape.grid[0] = shape.grid[1] = 1;
    }
    if (shape.variant != NULL) gpu = shape.variant;
    CHECK(cuda_emulator_launch(gpu->entry, &shape, bindings, count, &c->k));
}

/* The wanted bytes, by the cpu and with every tile. */
static void check_tiles(data_random *random, const call *c, const void *want, uint64_t bytes,
                        uint64_t seed)
{
    void *got = allocate(bytes), *bindings[4];
    CHECK(bind(c, got, bindings) >= 3);
    CHECK_OK(sp__kernel_run(&sp__cpu_kernels(SP_CPU_PORTABLE)[c->type->product], bindings, &c->k));
    CHECK(memcmp(got, want, (size_t)bytes) == 0);
    for (uint32_t tile = 0; tile < SP_CUDA_PACKED_TILES; tile++) {
        memset(got, 0xff, (size_t)bytes);
        run_tile(c, tile, pick(random, 0, 1) != 0, got);
        const bool is_same = memcmp(got, want, (size_t)bytes) == 0;
        CHECK(is_same);
        if (!is_same) test_note("seed %llu, tile %u", (unsigned long long)seed, tile);
    }
    free(got);
}

static void check_call(uint64_t seed)
{
    data_random random = {seed};
    call c;
    pick_call(&random, &c);
    void *want = make_wanted(&c);
    const uint64_t bytes = sp__pack_bytes(c.type->format, c.k.columns, c.k.rows);
    c.k.y_format = (uint8_t)c.type->format;
    check_tiles(&random, &c, want, bytes, seed);
    free(want);
    free_call(&c);
}

/* ---- rows of two bytes ---- */

static void pick_scales(data_random *random, sp_gemm_constants *k)
{
    static const float numbers[] = {8, 5.656854f, -0.3f, 1e-30f};
    k->scaled[0] = 8 * pick(random, 0, k->columns / 8);
    k->scaled[1] = 8 * pick(random, k->scaled[0] / 8, k->columns / 8);
    for (int i = 0; i < 2; i++) {
        k->scales[i].kind = (uint32_t)pick(random, SP_SCALE_NONE, SP_SCALE_DIVIDES);
        k->scales[i].number = numbers[pick(random, 0, 3)];
    }
}

/* The cpu's result of f32, scaled and rounded when it is there. */
static uint16_t *make_wanted_halves(const call *c)
{
    const sp_gemm_constants *k = &c->k;
    const int64_t count = k->rows * k->columns;
    float *y = allocate((uint64_t)count * sizeof *y);
    uint16_t *halves = allocate((uint64_t)count * sizeof *halves);
    void *bindings[4];
    CHECK(bind(c, y, bindings) >= 3);
    CHECK_OK(sp__kernel_run(&sp__cpu_kernels(SP_CPU_PORTABLE)[c->type->product], bindings, k));
    for (int64_t i = 0; i < count; i++) {
        const int64_t column = i % k->columns;
        const sp_attention_scale *by = column < k->scaled[0]   ? &k->scales[0]
                                       : column < k->scaled[1] ? &k->scales[1]
                                                               : NULL;
        if (by != NULL && by->kind == SP_SCALE_MULTIPLIES) y[i] *= by->number;
        if (by != NULL && by->kind == SP_SCALE_DIVIDES) y[i] /= by->number;
        halves[i] = c->type->format == SP_PACK_F16 ? sp_f16_of_float(y[i]) : sp_bf16_of_float(y[i]);
    }
    free(y);
    return halves;
}

static void check_halves(uint64_t seed)
{
    data_random random = {seed};
    call c;
    do pick_call(&random, &c);
    while (c.type->format == SP_PACK_TF32 && (free_call(&c), true));
    c.k.activation = SP_ACTIVATION_NONE;
    c.k.c_row = 0;
    pick_scales(&random, &c.k);
    uint16_t *want = make_wanted_halves(&c);
    const uint64_t bytes = (uint64_t)(c.k.rows * c.k.columns) * sizeof *want;
    c.k.is_y_half = true;
    check_tiles(&random, &c, want, bytes, seed);
    free(want);
    free_call(&c);
}

TEST(results_of_two_bytes_have_the_bits_of_results_that_are_rounded)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t seed = 1; seed <= test_count(300, 15); seed++) check_halves(seed);
    sp_fpenv_leave(before);
}

TEST(packed_results_have_the_bits_of_results_that_are_packed)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t seed = 1; seed <= test_count(300, 15); seed++) check_call(seed);
    sp_fpenv_leave(before);
}

TEST(groups_of_both_widths_have_run)
{
    for (int i = 0; i < 4; i++) CHECK(is_wide_run[i / 2][i % 2]);
}

TEST_MAIN
