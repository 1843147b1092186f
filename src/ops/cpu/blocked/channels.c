/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of images between plain layout and blocks of channels: [channels][pixels] and
 * [blocks][pixels][16]. */
#include "ops/cpu/arch/vector_transpose.h"
#include "ops/cpu/blocked/patch.h"

/* The planes of a block that there are. */
typedef struct channel_block {
    int64_t channels, first, last; /* pixels of the tile */
    const sp_channels_constants *k;
    int64_t plain, blocked; /* floats before the block in the two tensors */
} channel_block;

static channel_block find_block(const sp_tile *tile)
{
    const sp_channels_constants *k = tile->constants;
    const int64_t blocks = (k->channels + SP_BLOCK - 1) / SP_BLOCK;
    const int64_t block = tile->index[1], image = tile->index[2];
    const int64_t first = sp_tile_first(tile, 0);
    return (channel_block){
        .k = k,
        .channels = sp_size_least(k->channels - block * SP_BLOCK, SP_BLOCK),
        .first = first,
        .last = sp_tile_end(tile, 0, k->pixels),
        .plain = (image * k->channels + block * SP_BLOCK) * k->pixels,
        .blocked = (image * blocks + block) * k->pixels * SP_BLOCK,
    };
}

/* ---- a square of channels and pixels ---- */

/* Channels from `channel` on of `count` pixels; those that there are not are +0. */
static SP_ALWAYS_INLINE void block_square(const channel_block *b, const float *x, int64_t channel,
                                          int64_t count, float *y)
{
    const sp_vector_part part = sp_vector_range(0, count);
    sp_vector square[SP_VECTOR];
#pragma GCC unroll 16
    for (int64_t i = 0; i < SP_VECTOR; i++) {
        square[i] = sp_vector_splat(0);
        if (channel + i >= b->channels) continue;
        const float *from = x + (channel + i) * b->k->pixels;
        if (part == SP_VECTOR_ALL) square[i] = sp_vector_load(from);
        else square[i] = sp_vector_load_part(from, part, square[i]);
    }
    sp_vector_transpose(square);
    for (int64_t i = 0; i < count; i++) sp_vector_store(y + i * SP_BLOCK + channel, square[i]);
}

static SP_ALWAYS_INLINE void unblock_square(const channel_block *b, const float *x, int64_t channel,
                                            int64_t count, float *y)
{
    sp_vector square[SP_VECTOR];
#pragma GCC unroll 16
    for (int64_t i = 0; i < SP_VECTOR; i++) {
        square[i] = sp_vector_splat(0);
        if (i < count) square[i] = sp_vector_load(x + i * SP_BLOCK + channel);
    }
    sp_vector_transpose(square);
    for (int64_t i = 0; i < SP_VECTOR && channel + i < b->channels; i++) {
        sp_vector_store_first(y + (channel + i) * b->k->pixels, count, square[i]);
    }
}

/* The squares of a tile. A pixel is x_step floats of x and y_step of y. */
static SP_ALWAYS_INLINE void copy_squares(const channel_block *b, const float *x,
                                          const int64_t x_step, float *y, const int64_t y_step,
                                          void (*const copy)(const channel_block *b, const float *x,
                                                             int64_t channel, int64_t count,
                                                             float *y))
{
    for (int64_t p = b->first; p < b->last; p += SP_VECTOR) {
        const int64_t count = sp_size_least(b->last - p, SP_VECTOR);
        for (int64_t c = 0; c < SP_BLOCK; c += SP_VECTOR) {
            copy(b, x + p * x_step, c, count, y + p * y_step);
        }
    }
}

sp_status SP_KERNEL(channels_block)(const sp_tile *tile)
{
    const channel_block b = find_block(tile);
    copy_squares(&b, (const float *)tile->bindings[0] + b.plain, 1,
                 (float *)tile->bindings[1] + b.blocked, SP_BLOCK, block_square);
    return SP_OK;
}

sp_status SP_KERNEL(channels_unblock)(const sp_tile *tile)
{
    const channel_block b = find_block(tile);
    copy_squares(&b, (const float *)tile->bindings[0] + b.blocked, SP_BLOCK,
                 (float *)tile->bindings[1] + b.plain, 1, unblock_square);
    return SP_OK;
}
