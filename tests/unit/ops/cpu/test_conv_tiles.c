/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution in blocks of channels by blocks of tiles: the bits of its tiles one by one, with
 * every instruction set, and the same with all of them. */
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "ops/blocked.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/schema/nn/window.h"
#include "support/model_data.h"
#include "support/test.h"

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

/* Channels: few, some blocks, or segments. */
static int64_t pick_channels(data_random *random)
{
    const int64_t most[] = {15, 15, 70, 70, 70, 300};
    return pick(random, 1, most[pick(random, 0, 5)]);
}

static sp_conv_constants random_conv(data_random *random)
{
    const bool is_row = pick(random, 1, 4) == 1, is_pointwise = pick(random, 1, 3) == 1;
    sp_conv_constants k = {.channels = pick_channels(random),
                           .filters = pick_channels(random),
                           .groups = pick(random, 1, 5) == 1 ? 2 : 1,
                           .out_h = is_row ? 1 : pick(random, 1, 12),
                           .out_w = pick(random, 1, is_row ? 100 : 20),
                           .kernel_h = is_row || is_pointwise ? 1 : pick(random, 1, 4),
                           .kernel_w = is_pointwise ? 1 : pick(random, 1, 4),
                           .stride_h = pick(random, 1, 2),
                           .stride_w = pick(random, 1, 2),
                           .dilation_h = 1,
                           .dilation_w = pick(random, 1, 2),
                           .has_bias = pick(random, 0, 1) == 1};
    if (is_row) k.stride_h = 1;
    if (k.groups > 1) { /* whole blocks */
        k.channels = (k.channels + 15) / 16 * 16;
        k.filters = (k.filters + 15) / 16 * 16;
    }
    k.pad_top = pick(random, 0, k.kernel_h - 1);
    k.pad_left = pick(random, 0, k.kernel_w - 1);
    k.in_h = (k.out_h - 1) * k.stride_h + 1;
    k.in_w = (k.out_w - 1) * k.stride_w + 1;
    k.planes = pick(random, 1, 2) * k.groups * k.filters;
    k.segment = sp__conv_segment(k.kernel_h * k.kernel_w);
    k.activation = pick(random, 0, 1) == 1 ? SP_ACTIVATION_RELU : SP_ACTIVATION_NONE;
    return k;
}

/* Tiles smaller than those of the lowering, which have many outputs. */
static void choose_tiles(sp_blocked_call *call, data_random *random)
{
    sp_blocked_constants *b = &call->constants;
    const sp_conv_constants *k = &b->of;
    const int64_t blocks = sp__channel_blocks(k->filters);
    b->tile_blocks = pick(random, 1, blocks);
    if (k->out_h == 1) b->tile_columns = pick(random, 1, k->out_w);
    else b->tile_rows = pick(random, 1, k->out_h);
    const uint64_t splits = sp__lower_tiles((uint64_t)blocks, (uint64_t)b->tile_blocks);
    call->grid[0] = (uint32_t)((uint64_t)k->groups * splits);
    call->grid[1] =
        (uint32_t)(k->out_h == 1 ? sp__lower_tiles((uint64_t)k->out_w, (uint64_t)b->tile_columns)
                                 : sp__lower_tiles((uint64_t)k->out_h, (uint64_t)b->tile_rows));
}

/* In random blocks of tiles: the grid is cut into two until a block is not cut. */
static void run_blocks(const sp_kernel *kernel, const sp_tile *all, data_random *random)
{
    for (int d = 0; d < 2; d++) {
        if (all->count[d] == 1 || pick(random, 1, 3) == 1) continue;
        sp_tile first = *all, second = *all;
        first.count[d] = (uint32_t)pick(random, 1, all->count[d] - 1);
        second.index[d] += first.count[d];
        second.count[d] -= first.count[d];
        run_blocks(kernel, &second, random);
        run_blocks(kernel, &first, random);
        return;
    }
    REQUIRE_OK(kernel->run(all));
}

static float *random_floats(data_random *random, int64_t count)
{
    float *floats = malloc((size_t)count * sizeof *floats);
    if (floats == NULL) abort();
    data_fill(random, floats, (size_t)count);
    return floats;
}

static void check_call(const sp_blocked_call *call, data_random *random, uint64_t seed)
{
    const int64_t count = sp__image_form_count(&call->y);
    const size_t bytes = (size_t)count * sizeof(float);
    const int64_t in = call->constants.is_plain ? call->x.images * call->x.channels * call->x.pixels
                                                : sp__image_form_count(&call->x);
    float *x = random_floats(random, in), *bias = random_floats(random, call->y.channels);
    float *w = random_floats(random, (int64_t)(call->packed_bytes / sizeof(float)));
    float *want = random_floats(random, count), *y = random_floats(random, count);
    void *bindings[4] = {x, w, bias, want};
    const int out = call->constants.of.has_bias ? 3 : 2;
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        const sp_kernel *kernel = &kernels[SP_KERNEL_ID_conv_blocked_f32];
        bindings[out] = want;
        if (isa == SP_CPU_PORTABLE) {
            REQUIRE_OK(sp__kernel_run_grid(kernel, call->grid, bindings, &call->constants));
        }
        memset(y, 0x5a, bytes);
        bindings[out] = y;
        sp_tile all = {.count = {call->grid[0], call->grid[1], 1},
                       .grid = {call->grid[0], call->grid[1], call->grid[2]},
                       .bindings = bindings,
                       .constants = &call->constants};
        for (all.index[2] = 0; all.index[2] < call->grid[2]; all.index[2]++) {
            run_blocks(kernel, &all, random);
        }
        const bool is_same = memcmp(y, want, bytes) == 0;
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
        const sp_conv_constants conv = random_conv(&random);
        sp_blocked_call call;
        if (!sp__blocked_conv(&conv, pick(&random, 1, 3) > 1, &call)) continue;
        choose_tiles(&call, &random);
        check_call(&call, &random, seed);
        calls++;
    }
    CHECK(calls > seeds / 4);
    sp_fpenv_leave(before);
}

TEST_MAIN
