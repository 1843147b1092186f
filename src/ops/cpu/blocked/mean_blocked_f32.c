/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of each channel of images in blocks of channels; the same sum and quotient as
 * reduce_f32. The lanes of a vector are channels. */
#include "ops/cpu/blocked/patch.h"
#include "ops/cpu/reduce/lane_tree.h"

/* Sums of more elements are sums of at most so many blocks' sums (reduce/lanes.h). */
enum { MOST_BLOCKS = SP_MEAN_BLOCKS };

/* The sum of at most SP_REDUCTION_BLOCK elements, `step` floats apart. */
static sp_vector sum_block(const float *x, int64_t step, int64_t count)
{
    sp_vector lanes[SP_LANES];
#pragma GCC unroll 16
    for (int64_t l = 0; l < SP_LANES; l++) lanes[l] = sp_vector_splat(0);
    int64_t i = 0;
    for (; i + SP_LANES <= count; i += SP_LANES, x += SP_LANES * step) {
#pragma GCC unroll 16
        for (int64_t l = 0; l < SP_LANES; l++) lanes[l] += sp_vector_load(x + l * step);
    }
#pragma GCC unroll 16
    for (int64_t l = 0; l < SP_LANES; l++) {
        if (i + l < count) lanes[l] += sp_vector_load(x + l * step);
    }
    return sp_lane_tree_sum(SP_LANES, lanes);
}

static sp_vector sum_pixels(const float *x, int64_t count)
{
    const int64_t most = SP_REDUCTION_BLOCK;
    if (count <= most) return sum_block(x, SP_BLOCK, count);
    float sums[MOST_BLOCKS * SP_VECTOR];
    int64_t blocks = 0;
    for (int64_t first = 0; first < count; first += most, blocks++) {
        const int64_t left = count - first < most ? count - first : most;
        sp_vector_store(sums + blocks * SP_VECTOR, sum_block(x + first * SP_BLOCK, SP_BLOCK, left));
    }
    return sum_block(sums, SP_VECTOR, blocks);
}

sp_status SP_KERNEL(mean_blocked_f32)(const sp_tile *tile)
{
    const sp_channels_constants *k = tile->constants;
    const int64_t blocks = (k->channels + SP_BLOCK - 1) / SP_BLOCK;
    const int64_t block = tile->index[2] * blocks + tile->index[1];
    const float *x = (const float *)tile->bindings[0] + block * k->pixels * SP_BLOCK;
    float *y = (float *)tile->bindings[1] + block * SP_BLOCK;
    const sp_vector count = sp_vector_splat((float)k->pixels);
    for (int64_t v = 0; v < SP_BLOCK; v += SP_VECTOR) {
        sp_vector_store(y + v, sp_vector_canonical(sum_pixels(x + v, k->pixels) / count));
    }
    return SP_OK;
}
