/* SPDX-License-Identifier: Apache-2.0 */
/* Products of computed values that are rounded, in the emulator: the bits of the cpu for strides,
 * batches, addends and grids of any size, with values that no float of 16 bits has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/macros.h"
#include "cuda/cuda_emulator.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/cuda_launch.h"
#include "ops/lowering.h"
#include "support/model_data.h"
#include "support/test.h"

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

static bool one_in(data_random *random, int64_t count)
{
    return pick(random, 1, count) == 1;
}

/* Often near an end of what a warp or a block computes. */
static int64_t pick_size(data_random *random, int64_t most)
{
    static const int64_t ends[] = {8, 16, 32, 48, 64, 128, 256, 512};
    const int64_t end = ends[pick(random, 0, SP_COUNT_OF(ends) - 1)] + pick(random, -1, 1);
    return one_in(random, 2) || end > most ? pick(random, 1, most < 40 ? most : 40) : end;
}

typedef struct call {
    sp_gemm_constants k;
    int64_t matrices;
    size_t counts[4]; /* elements of a, b, c, y */
    float *memory[4];
} call;

/* Strides of one operand's matrices, of `one` elements; some dimensions are broadcast. */
static size_t pick_batch(data_random *random, const sp_gemm_constants *k, int64_t one,
                         int64_t *strides)
{
    int64_t extent = one;
    for (uint32_t i = k->batch_rank; i-- > 0;) {
        if (one_in(random, 3)) continue;
        strides[i] = extent;
        extent *= k->batch_dims[i];
    }
    return (size_t)extent;
}

static void pick_addend(data_random *random, call *c)
{
    sp_gemm_constants *k = &c->k;
    k->has_c = true;
    k->c_row = one_in(random, 2) ? k->columns + pick(random, 0, 4) : 0;
    k->c_column = one_in(random, 4) ? 0 : 1;
    c->counts[2] = (size_t)((k->rows - 1) * k->c_row + (k->columns - 1) * k->c_column + 1);
}

static void pick_product(data_random *random, call *c)
{
    sp_gemm_constants *k = &c->k;
    const bool is_turned = one_in(random, 4);
    const int64_t gap = one_in(random, 2) ? 0 : pick(random, 0, 4);
    *k = (sp_gemm_constants){.rows = pick_size(random, 150),
                             .columns = pick_size(random, 150),
                             .depth = one_in(random, 20) ? 0 : pick_size(random, 600),
                             .batch_rank = (uint32_t)pick(random, 0, 3),
                             .alpha = one_in(random, 4) ? -1.5f : 1,
                             .beta = one_in(random, 4) ? 0.25f : 1,
                             .rounding = (uint8_t)pick(random, SP_ROUNDING_F16, SP_ROUNDING_BF16)};
    k->a_row = is_turned ? 1 : k->depth + gap;
    k->a_depth = is_turned ? k->rows + gap : 1;
    k->b_depth = k->columns;
    k->activation =
        one_in(random, 2) ? SP_ACTIVATION_NONE : (uint8_t)pick(random, 0, SP_ACTIVATION_COUNT - 1);
    c->matrices = 1;
    for (uint32_t i = 0; i < k->batch_rank; i++) {
        k->batch_dims[i] = pick(random, 1, 3);
        c->matrices *= k->batch_dims[i];
    }
    const int64_t a = is_turned ? k->depth * k->a_depth : k->rows * k->a_row;
    c->counts[0] = pick_batch(random, k, a, k->a_batch);
    c->counts[1] = pick_batch(random, k, k->depth * k->columns, k->b_batch);
    c->counts[3] = (size_t)(c->matrices * k->rows * k->columns);
    if (c->matrices == 1 && one_in(random, 2)) pick_addend(random, c);
}

/* Random values, some of them such as few kernels have. */
static float *fill(data_random *random, size_t count, bool has_specials)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN,     -0.0f, 1e-42f,
                                     3e38f,    65519.9f,  65520.f, 3e-8f, 1e-40f};
    float *values = malloc((count + 1) * sizeof *values);
    if (values == NULL) abort();
    data_fill(random, values, count);
    for (size_t i = 0; i < count && has_specials; i++) {
        if (one_in(random, 200)) values[i] = specials[pick(random, 0, SP_COUNT_OF(specials) - 1)];
    }
    return values;
}

static uint32_t bind(const call *c, float *y, void **bindings)
{
    uint32_t count = 0;
    bindings[count++] = c->memory[0];
    bindings[count++] = c->memory[1];
    if (c->k.has_c) bindings[count++] = c->memory[2];
    bindings[count++] = y;
    return count;
}

static void run_emulated(data_random *random, const call *c, float *y)
{
    void *bindings[4];
    const uint32_t count = bind(c, y, bindings);
    const sp_cuda_tile of_size = {0};
    sp_launch_shape shape = {0};
    sp__cuda_launch_gemm(&c->k, &of_size, &shape);
    REQUIRE(shape.variant != NULL);
    for (int i = 0; i < 3; i++) {
        if (one_in(random, 2)) shape.grid[i] = 1; /* blocks with several tiles, or matrices */
    }
    CHECK(cuda_emulator_launch(shape.variant->entry, &shape, bindings, count, &c->k));
}

static uint64_t addends, batches;

static void check_call(uint64_t seed)
{
    data_random random = {seed};
    call c = {0};
    pick_product(&random, &c);
    if (c.matrices * c.k.rows * c.k.columns * c.k.depth > 4000000) return; /* slow */
    const bool has_specials = one_in(&random, 3);
    for (int i = 0; i < 4; i++) c.memory[i] = fill(&random, c.counts[i], has_specials);
    float *got = fill(&random, c.counts[3], false);
    void *bindings[4];
    CHECK(bind(&c, c.memory[3], bindings) >= 3);
    const sp_kernel *cpu = &sp__cpu_kernels(SP_CPU_PORTABLE)[SP_KERNEL_ID_gemm_f32];
    CHECK_OK(sp__kernel_run(cpu, bindings, &c.k));
    run_emulated(&random, &c, got);
    const bool is_same = memcmp(c.memory[3], got, c.counts[3] * sizeof *got) == 0;
    CHECK(is_same);
    if (!is_same) {
        test_note("seed %llu: %lld matrices of %lld x %lld x %lld", (unsigned long long)seed,
                  (long long)c.matrices, (long long)c.k.rows, (long long)c.k.depth,
                  (long long)c.k.columns);
    }
    addends += c.k.has_c;
    batches += c.matrices > 1;
    for (int i = 0; i < 4; i++) free(c.memory[i]);
    free(got);
}

TEST(rounded_products_have_the_bits_of_the_cpu)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t seed = 1; seed <= test_count(2000, 150); seed++) check_call(seed);
    sp_fpenv_leave(before);
    CHECK(addends > 5 && batches > 5);
}

TEST_MAIN
