/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation of images in blocks of channels; the same steps as batch_norm_f32. The lanes
 * of a vector are channels. */
#include "ops/cpu/blocked/epilogue.h"
#include "ops/cpu/blocked/patch.h"
#include "ops/cpu/gemm/activate.h"

/* Elements that are computed before their activation is applied. */
enum { PIXELS = 64 };

sp_status SP_KERNEL(norm_blocked_f32)(const sp_tile *tile)
{
    const sp_norm_blocked_constants *k = tile->constants;
    const int64_t blocks = (k->channels + SP_BLOCK - 1) / SP_BLOCK, block = tile->index[1];
    const int64_t plane = (tile->index[2] * blocks + block) * k->pixels;
    const float *x = (const float *)tile->bindings[0] + plane * SP_BLOCK;
    float *y = (float *)tile->bindings[5] + plane * SP_BLOCK;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->pixels);
    sp_vector factors[SP_BLOCK_VECTORS], means[SP_BLOCK_VECTORS], offsets[SP_BLOCK_VECTORS];
    for (int64_t v = 0; v < SP_BLOCK_VECTORS; v++) {
        const int64_t channel = block * SP_BLOCK + v * SP_VECTOR;
        factors[v] =
            sp_norm_factor(sp_load_channels(tile->bindings[1], channel, k->channels),
                           sp_load_channels(tile->bindings[4], channel, k->channels), k->epsilon);
        offsets[v] = sp_load_channels(tile->bindings[2], channel, k->channels);
        means[v] = sp_load_channels(tile->bindings[3], channel, k->channels);
    }
    for (int64_t p = first; p < last; p += PIXELS) {
        const int64_t end = sp_size_least(p + PIXELS, last);
        for (int64_t i = p; i < end; i++) {
            for (int64_t v = 0; v < SP_BLOCK_VECTORS; v++) {
                const int64_t at = i * SP_BLOCK + v * SP_VECTOR;
                sp_vector_store(
                    y + at, sp_normalize(sp_vector_load(x + at), means[v], factors[v], offsets[v]));
            }
        }
        sp_activate(k->activation, y + p * SP_BLOCK, 1, 0, (end - p) * SP_BLOCK);
    }
    return SP_OK;
}
