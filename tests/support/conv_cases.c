/* SPDX-License-Identifier: Apache-2.0 */
#include "support/conv_cases.h"

#include <stdlib.h>
#include <string.h>

#include "ops/lowering.h"
#include "ops/schema/nn/window.h"
#include "support/test.h"

int64_t conv_pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

/* Channels: few, some blocks, or segments. */
static int64_t pick_channels(data_random *random)
{
    const int64_t most[] = {15, 15, 70, 70, 70, 300};
    return conv_pick(random, 1, most[conv_pick(random, 0, 5)]);
}

sp_conv_constants conv_random(data_random *random)
{
    const bool is_row = conv_pick(random, 1, 4) == 1, is_pointwise = conv_pick(random, 1, 3) == 1;
    sp_conv_constants k = {.channels = pick_channels(random),
                           .filters = pick_channels(random),
                           .groups = conv_pick(random, 1, 5) == 1 ? 2 : 1,
                           .out_h = is_row ? 1 : conv_pick(random, 1, 12),
                           .out_w = conv_pick(random, 1, is_row ? 100 : 20),
                           .kernel_h = is_row || is_pointwise ? 1 : conv_pick(random, 1, 4),
                           .kernel_w = is_pointwise ? 1 : conv_pick(random, 1, 4),
                           .stride_h = conv_pick(random, 1, 2),
                           .stride_w = conv_pick(random, 1, 2),
                           .dilation_h = 1,
                           .dilation_w = conv_pick(random, 1, 2),
                           .has_bias = conv_pick(random, 0, 1) == 1};
    if (is_row) k.stride_h = 1;
    if (k.groups > 1) { /* whole blocks */
        k.channels = (k.channels + 15) / 16 * 16;
        k.filters = (k.filters + 15) / 16 * 16;
    }
    k.pad_top = conv_pick(random, 0, k.kernel_h - 1);
    k.pad_left = conv_pick(random, 0, k.kernel_w - 1);
    k.in_h = (k.out_h - 1) * k.stride_h + 1;
    k.in_w = (k.out_w - 1) * k.stride_w + 1;
    k.planes = conv_pick(random, 1, 2) * k.groups * k.filters;
    k.segment = sp__conv_segment(k.kernel_h * k.kernel_w);
    const sp_activation activations[] = {SP_ACTIVATION_NONE, SP_ACTIVATION_RELU,
                                         SP_ACTIVATION_HARD_SWISH};
    k.activation = (uint8_t)activations[conv_pick(random, 0, 2)];
    return k;
}

sp_tiling conv_random_tiling(const sp_blocked_call *call, data_random *random)
{
    const sp_conv_constants *k = &call->constants.of;
    const int64_t blocks = sp__channel_blocks(k->filters);
    const int64_t outputs = k->out_h == 1 ? k->out_w : k->out_h;
    sp_tiling tiling;
    sp_tiling_cover(&tiling, 0, blocks, conv_pick(random, 1, blocks));
    tiling.grid[0] *= (uint32_t)k->groups;
    sp_tiling_cover(&tiling, 1, outputs, conv_pick(random, 1, outputs));
    sp_tiling_each(&tiling, 2, call->x.images);
    return tiling;
}

/* The grid is cut into two until a block is not cut. */
static void run_blocks(const sp_kernel *kernel, const sp_tile *all, data_random *random)
{
    for (int d = 0; d < 2; d++) {
        if (all->count[d] == 1 || conv_pick(random, 1, 3) == 1) continue;
        sp_tile first = *all, second = *all;
        first.count[d] = (uint32_t)conv_pick(random, 1, all->count[d] - 1);
        second.index[d] += first.count[d];
        second.count[d] -= first.count[d];
        run_blocks(kernel, &second, random);
        run_blocks(kernel, &first, random);
        return;
    }
    REQUIRE_OK(kernel->run(all));
}

void conv_run_blocks(const sp_kernel *kernel, const sp_tiling *tiling, void *const *bindings,
                     const void *constants, data_random *random)
{
    const uint32_t *grid = tiling->grid, *size = tiling->size;
    sp_tile all = {.count = {grid[0], grid[1], 1},
                   .grid = {grid[0], grid[1], grid[2]},
                   .size = {size[0], size[1], size[2]},
                   .bindings = bindings,
                   .constants = constants};
    for (all.index[2] = 0; all.index[2] < grid[2]; all.index[2]++) {
        run_blocks(kernel, &all, random);
    }
}

bool conv_is_same(const sp_image_form *form, const float *a, const float *b)
{
    const int64_t blocks = sp__channel_blocks(form->channels), lanes = SP_CHANNEL_BLOCK;
    for (int64_t i = 0; i < form->images * blocks; i++) {
        const int64_t left = form->channels - i % blocks * lanes;
        const size_t bytes = (size_t)(left < lanes ? left : lanes) * sizeof *a;
        for (int64_t p = 0; p < form->pixels; p++, a += lanes, b += lanes) {
            const void *const lanes_a = a, *const lanes_b = b;
            if (memcmp(lanes_a, lanes_b, bytes) != 0) return false;
        }
    }
    return true;
}

float *conv_random_floats(data_random *random, int64_t count)
{
    float *floats = malloc((size_t)count * sizeof *floats);
    if (floats == NULL) abort();
    data_fill(random, floats, (size_t)count);
    return floats;
}
