/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution that stores the maxima over windows of its results alone: the bits of a convolution
 * and a pool, by blocks of tiles, with every instruction set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "ops/ops.h"
#include "support/conv_cases.h"
#include "support/test.h"

/* So that a band has few of the results' rows, and moves. */
static void enlarge(sp_conv_constants *conv, data_random *random)
{
    conv->channels = conv_pick(random, 1, 20);
    conv->filters = conv_pick(random, 20, 64);
    conv->planes = conv->filters;
    conv->out_h = conv_pick(random, 8, 24);
    conv->out_w = conv_pick(random, 30, 120);
    conv->in_h = (conv->out_h - 1) * conv->stride_h + 1;
    conv->in_w = (conv->out_w - 1) * conv->stride_w + 1;
}

/* Windows of results of the convolution; false: there is none. */
static bool random_pool(const sp_conv_constants *conv, data_random *random, sp_conv_constants *out)
{
    *out = (sp_conv_constants){.groups = conv->groups * conv->filters,
                               .channels = 1,
                               .filters = 1,
                               .in_h = conv->out_h,
                               .in_w = conv->out_w,
                               .kernel_h = conv_pick(random, 1, 3),
                               .kernel_w = conv_pick(random, 1, 3),
                               .stride_h = conv_pick(random, 1, 4),
                               .stride_w = conv_pick(random, 1, 4),
                               .dilation_h = conv_pick(random, 1, 2),
                               .dilation_w = conv_pick(random, 1, 2)};
    const int64_t span_h = (out->kernel_h - 1) * out->dilation_h + 1;
    const int64_t span_w = (out->kernel_w - 1) * out->dilation_w + 1;
    out->pad_top = conv_pick(random, 0, span_h - 1);
    out->pad_left = conv_pick(random, 0, span_w - 1);
    const int64_t height = out->in_h + out->pad_top + conv_pick(random, 0, span_h - 1);
    const int64_t width = out->in_w + out->pad_left + conv_pick(random, 0, span_w - 1);
    if (height < span_h || width < span_w) return false;
    out->out_h = (height - span_h) / out->stride_h + 1;
    out->out_w = (width - span_w) / out->stride_w + 1;
    return true;
}

/* The pool by itself. */
static sp_blocked_call pool_call(const sp_blocked_call *conv, const sp_conv_constants *pool)
{
    const sp_blocked_call call = {
        .constants = {.of = *pool, .images = conv->y.images},
        .x = conv->y,
        .y = {conv->y.images, conv->y.channels, pool->out_h * pool->out_w, conv->y.map}};
    return call;
}

/* NaN and infinities reach the windows. */
static void add_specials(float *x, int64_t count, data_random *random)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY, -0.0f};
    for (int i = 0; i < 6; i++) {
        x[conv_pick(random, 0, count - 1)] = specials[conv_pick(random, 0, 3)];
    }
}

typedef struct pooled_case {
    const sp_blocked_call *conv, *pool;
    const sp_conv_pool_constants *constants;
    sp_tiling conv_tiling, tiling;
    uint64_t seed;
} pooled_case;

static sp_tiling one_tile_a_plane(const sp_blocked_call *pool)
{
    const sp_conv_constants *k = &pool->constants.of;
    sp_tiling tiling;
    sp_tiling_cover(&tiling, 0, k->out_h, k->out_h);
    sp_tiling_each(&tiling, 1, sp__channel_blocks(k->groups));
    sp_tiling_each(&tiling, 2, pool->x.images);
    return tiling;
}

static void check_tables(const pooled_case *of, void *const operands[3], data_random *random)
{
    const sp_conv_constants *k = &of->conv->constants.of;
    const size_t bytes = (size_t)sp__image_form_count(&of->pool->y) * sizeof(float);
    float *results = conv_random_floats(random, sp__image_form_count(&of->conv->y));
    float *want = conv_random_floats(random, sp__image_form_count(&of->pool->y));
    float *y = conv_random_floats(random, sp__image_form_count(&of->pool->y));
    void *bindings[4] = {operands[0], operands[1], operands[2]};
    const sp_tiling plane = one_tile_a_plane(of->pool);
    const int out = k->has_bias ? 3 : 2;
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        if (isa == SP_CPU_PORTABLE) {
            void *const pooled[2] = {results, want};
            bindings[out] = results;
            REQUIRE_OK(sp__kernel_run_tiling(&kernels[SP_KERNEL_ID_conv_blocked_f32],
                                             &of->conv_tiling, bindings, &of->conv->constants));
            REQUIRE_OK(sp__kernel_run_tiling(&kernels[SP_KERNEL_ID_max_pool_blocked_f32], &plane,
                                             pooled, &of->pool->constants));
        }
        memset(y, 0x5a, bytes);
        bindings[out] = y;
        conv_run_blocks(&kernels[SP_KERNEL_ID_conv_pool_blocked_f32], &of->tiling, bindings,
                        of->constants, random);
        const bool is_same = conv_is_same(&of->pool->y, y, want);
        CHECK(is_same);
        if (!is_same) test_note("case %llu, table %d", (unsigned long long)of->seed, isa);
    }
    free(results);
    free(want);
    free(y);
}

static void check_case(pooled_case *of, data_random *random)
{
    const sp_blocked_call *call = of->conv;
    const int64_t in = call->constants.is_plain ? call->x.images * call->x.channels * call->x.pixels
                                                : sp__image_form_count(&call->x);
    float *x = conv_random_floats(random, in), *bias = conv_random_floats(random, call->y.channels);
    float *w =
        conv_random_floats(random, (int64_t)(sp__pack_copy_bytes(&call->weights) / sizeof(float)));
    if (conv_pick(random, 0, 1) == 1) add_specials(x, in, random);
    void *const operands[3] = {x, w, bias};
    check_tables(of, operands, random);
    free(x);
    free(bias);
    free(w);
}

/* The results of so many blocks that one of the maxima needs. */
static bool fits_results(const sp_conv_constants *pool, int64_t blocks)
{
    const int64_t span_h = (pool->kernel_h - 1) * pool->dilation_h + 1;
    const int64_t span_w = (pool->kernel_w - 1) * pool->dilation_w + 1;
    return span_h * span_w * blocks * SP_CHANNEL_BLOCK <= SP_POOLED_ELEMENTS;
}

TEST(maxima_of_results_have_the_bits_of_a_convolution_and_a_pool)
{
    const sp_fpenv before = sp_fpenv_enter();
    const uint64_t seeds = test_count(20000, 300);
    uint64_t cases = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        data_random random = {seed};
        sp_conv_constants conv = conv_random(&random);
        sp_conv_constants window;
        sp_blocked_call call;
        sp_conv_pool_constants constants;
        pooled_case of = {.conv = &call, .constants = &constants, .seed = seed};
        if (conv.groups == 1 && seed % 3 == 0) enlarge(&conv, &random);
        if (!sp__blocked_conv(&conv, conv_pick(&random, 1, 3) > 1, &call)) continue;
        if (!random_pool(&call.constants.of, &random, &window)) continue;
        of.conv_tiling = of.tiling = conv_random_tiling(&call, &random);
        if (!fits_results(&window, of.tiling.size[0])) continue;
        const sp_blocked_call pool = pool_call(&call, &window);
        of.pool = &pool;
        if (!sp__blocked_conv_pool(&call.constants, &pool, &constants)) continue;
        sp_tiling_cover(&of.tiling, 1, window.out_h, conv_pick(&random, 1, window.out_h));
        check_case(&of, &random);
        cases++;
    }
    CHECK(cases > seeds / 4);
    sp_fpenv_leave(before);
}

TEST(only_convolutions_of_one_group_without_other_images_are_pooled)
{
    sp_blocked_call pool = {.constants = {.of = {.in_h = 8,
                                                 .in_w = 8,
                                                 .out_h = 4,
                                                 .out_w = 4,
                                                 .kernel_h = 2,
                                                 .kernel_w = 2,
                                                 .stride_h = 2,
                                                 .stride_w = 2,
                                                 .dilation_h = 1,
                                                 .dilation_w = 1}},
                            .x = {.images = 1}};
    sp_blocked_constants conv = {.of = {.channels = 32,
                                        .filters = 32,
                                        .groups = 1,
                                        .in_h = 10,
                                        .in_w = 10,
                                        .out_h = 8,
                                        .out_w = 8,
                                        .kernel_h = 3,
                                        .kernel_w = 3,
                                        .stride_w = 1,
                                        .dilation_h = 1,
                                        .dilation_w = 1,
                                        .segment = 288},
                                 .images = 1};
    sp_conv_pool_constants out;
    sp_tiling tiling;
    CHECK(sp__blocked_conv_pool(&conv, &pool, &out));
    sp__tiling_conv_pool(&out, &tiling);
    CHECK_EQ_U64(tiling.grid[0], 1);
    CHECK_EQ_U64(tiling.grid[1], 1);
    conv.has_other = true;
    CHECK(!sp__blocked_conv_pool(&conv, &pool, &out));
    conv.has_other = false;
    conv.has_offsets = true;
    CHECK(!sp__blocked_conv_pool(&conv, &pool, &out));
    conv.has_offsets = false;
    conv.of.groups = 2;
    CHECK(!sp__blocked_conv_pool(&conv, &pool, &out));
    conv.of.groups = 1;
    conv.of.out_w = 9;
    CHECK(!sp__blocked_conv_pool(&conv, &pool, &out));
    conv.of.out_w = 8;
    /* So cheap that a tile has all filters. */
    conv.of.channels = conv.of.kernel_h = conv.of.kernel_w = 1;
    conv.of.filters = 1600;
    CHECK(sp__blocked_conv_pool(&conv, &pool, &out));
    conv.of.filters = 3200; /* windows of so many channels do not fit */
    CHECK(!sp__blocked_conv_pool(&conv, &pool, &out));
    conv.of.kernel_h = conv.of.kernel_w = 3;
    conv.of.channels = conv.of.filters = 32;
    conv.of.dilation_h = conv.of.dilation_w = 8; /* the input of an output does not fit */
    CHECK(!sp__blocked_conv_pool(&conv, &pool, &out));
    conv.of.dilation_h = conv.of.dilation_w = 1;
    pool.constants.of.kernel_h = 5;
    pool.constants.of.kernel_w = 13; /* too many taps */
    CHECK(!sp__blocked_conv_pool(&conv, &pool, &out));
    pool.constants.of.kernel_w = 12;
    CHECK(sp__blocked_conv_pool(&conv, &pool, &out));
}

TEST(only_results_that_leave_the_caches_are_pooled)
{
    sp_blocked_constants conv = {.of = {.filters = 64, .groups = 1, .out_h = 112, .out_w = 112}};
    CHECK(sp__blocked_conv_pool_pays(&conv));
    conv.of.out_h = 56;
    CHECK(!sp__blocked_conv_pool_pays(&conv));
}

TEST_MAIN
