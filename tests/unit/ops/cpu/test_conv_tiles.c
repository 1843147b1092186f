/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution in blocks of channels by blocks of tiles: the bits of its tiles one by one, with
 * every instruction set, and the same with all of them; those of whole blocks of filters, however
 * many lanes of the last one are used; those with taps in the padding if these are left out. */
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "ops/ops.h"
#include "ops/schema/nn/window.h"
#include "support/conv_cases.h"
#include "support/test.h"

/* Blocks of tiles compute what the tiles of `reference` do one by one: by the same instruction set,
 * or by the portable kernels for all. */
static void check_blocks(const sp_blocked_call *call, const sp_tiling *tiling,
                         const sp_blocked_constants *reference, bool has_same_isa,
                         data_random *random, uint64_t seed)
{
    const int64_t count = sp__image_form_count(&call->y);
    const size_t bytes = (size_t)count * sizeof(float);
    const int64_t in = call->constants.is_plain ? call->x.images * call->x.channels * call->x.pixels
                                                : sp__image_form_count(&call->x);
    const int64_t groups = call->constants.of.groups, filters = reference->of.filters;
    float *x = conv_random_floats(random, in), *bias = conv_random_floats(random, groups * filters);
    float *w =
        conv_random_floats(random, (int64_t)(sp__pack_copy_bytes(&call->weights) / sizeof(float)));
    float *want = conv_random_floats(random, count), *y = conv_random_floats(random, count);
    void *bindings[4] = {x, w, bias, want};
    const int out = call->constants.of.has_bias ? 3 : 2;
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        const sp_kernel *kernel = &kernels[SP_KERNEL_ID_conv_blocked_f32];
        bindings[out] = want;
        if (has_same_isa || isa == SP_CPU_PORTABLE) {
            REQUIRE_OK(sp__kernel_run_tiling(kernel, tiling, bindings, reference));
        }
        memset(y, 0x5a, bytes);
        bindings[out] = y;
        conv_run_blocks(kernel, tiling, bindings, &call->constants, random);
        const bool is_same = conv_is_same(&call->y, y, want);
        CHECK(is_same);
        if (!is_same) test_note("convolution %llu, table %d", (unsigned long long)seed, isa);
    }
    free(x);
    free(bias);
    free(w);
    free(want);
    free(y);
}

TEST(blocks_of_tiles_have_the_bits_of_tiles)
{
    const sp_fpenv before = sp_fpenv_enter();
    const uint64_t seeds = test_count(20000, 200);
    uint64_t calls = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        data_random random = {seed};
        const sp_conv_constants conv = conv_random(&random);
        sp_blocked_call call;
        if (!sp__blocked_conv(&conv, conv_pick(&random, 1, 3) > 1, &call)) continue;
        const sp_tiling tiling = conv_random_tiling(&call, &random);
        check_blocks(&call, &tiling, &call.constants, false, &random, seed);
        calls++;
    }
    CHECK(calls > seeds / 4);
    sp_fpenv_leave(before);
}

/* ---- half a block ---- */

static void check_half(const sp_blocked_call *call, const sp_tiling *tiling, data_random *random,
                       uint64_t seed)
{
    sp_blocked_constants whole = call->constants;
    whole.of.filters = sp__channel_blocks(whole.of.filters) * SP_CHANNEL_BLOCK;
    check_blocks(call, tiling, &whole, true, random, seed);
}

/* The filters of a last block are computed by halves if they are 8 or fewer. */
TEST(a_last_block_of_some_filters_has_the_bits_of_a_whole_one)
{
    const sp_fpenv before = sp_fpenv_enter();
    const uint64_t seeds = test_count(20000, 300);
    uint64_t halves = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        data_random random = {seed};
        sp_conv_constants conv = conv_random(&random);
        if (conv.groups > 1) continue;
        const int64_t images = conv.planes / conv.filters, rest = conv_pick(&random, 1, 12);
        conv.filters = conv_pick(&random, 0, 7) * SP_CHANNEL_BLOCK + rest;
        conv.planes = images * conv.filters;
        sp_blocked_call call;
        if (!sp__blocked_conv(&conv, conv_pick(&random, 1, 3) > 1, &call)) continue;
        sp_tiling tiling;
        sp__tiling_conv_blocked(&call.constants, &tiling);
        if (conv_pick(&random, 0, 1) == 1) tiling = conv_random_tiling(&call, &random);
        check_half(&call, &tiling, &random, seed);
        halves += rest <= 8;
    }
    CHECK(halves > seeds / 4);
    sp_fpenv_leave(before);
}

static bool is_blocked(int64_t filters, int64_t kernel, int64_t side)
{
    const sp_conv_constants conv = {.planes = filters,
                                    .groups = 1,
                                    .channels = 32,
                                    .filters = filters,
                                    .in_h = side,
                                    .in_w = side,
                                    .out_h = side,
                                    .out_w = side,
                                    .kernel_h = kernel,
                                    .kernel_w = kernel,
                                    .stride_h = 1,
                                    .stride_w = 1,
                                    .dilation_h = 1,
                                    .dilation_w = 1,
                                    .pad_top = kernel / 2,
                                    .pad_left = kernel / 2,
                                    .segment = sp__conv_segment(kernel * kernel)};
    sp_blocked_call call;
    return sp__blocked_conv(&conv, true, &call);
}

/* Since half of a last block is computed, two thirds of the lanes are used by more than 16 filters.
 * That is enough for pointwise convolutions and small images; others fill three quarters of whole
 * blocks. */
TEST(filters_that_fill_half_a_last_block_are_blocked_where_that_pays)
{
    for (int64_t filters = 17; filters <= 64; filters++) {
        CHECK(is_blocked(filters, 1, 40));
        CHECK(is_blocked(filters, 3, 8));
        const bool fills = filters * 4 >= sp__channel_blocks(filters) * SP_CHANNEL_BLOCK * 3;
        CHECK(is_blocked(filters, 3, 9) == fills);
    }
    CHECK(!is_blocked(17, 3, 9) && !is_blocked(23, 3, 9) && is_blocked(24, 3, 9));
    CHECK(is_blocked(12, 1, 40) && is_blocked(12, 3, 8));
    CHECK(!is_blocked(11, 1, 40) && !is_blocked(11, 3, 8)); /* one block is computed whole */
}

/* ---- padding ---- */

/* A convolution may leave out taps in the padding if its weights are finite: at the first and the
 * last rows and columns, of images that are smaller than the kernel, and where all taps are. */
TEST(taps_of_padding_change_no_bit)
{
    const sp_fpenv before = sp_fpenv_enter();
    const uint64_t seeds = test_count(20000, 100);
    uint64_t padded = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        data_random random = {seed};
        sp_conv_constants conv = conv_random(&random);
        conv.dilation_h = conv.kernel_h > 1 ? conv_pick(&random, 1, 2) : 1;
        if (conv.kernel_h > 1) conv.pad_top = conv_pick(&random, 0, 2 * conv.kernel_h);
        sp_blocked_call call;
        if (!sp__blocked_conv(&conv, conv_pick(&random, 1, 6) > 1, &call)) continue;
        if (!sp__blocked_has_padding(&call.constants.of)) continue;
        const sp_tiling tiling = conv_random_tiling(&call, &random);
        const sp_blocked_constants reference = call.constants;
        call.constants.skips_padding = true;
        check_blocks(&call, &tiling, &reference, false, &random, seed);
        padded++;
    }
    CHECK(padded > seeds / 4);
    sp_fpenv_leave(before);
}

TEST_MAIN
