/* SPDX-License-Identifier: Apache-2.0 */
/* Channels in other lanes: of images, and of what there is for each channel. */
#include "ops/cpu/arch/vector_transpose.h"
#include "ops/cpu/blocked/patch.h"

/* The lanes of a vector of y that are in one vector of x. */
typedef struct lane_source {
    const float *x; /* of pixel 0 */
    sp_vector_part lanes;
    sp_vector_bits index; /* of those lanes, in x's vector */
} lane_source;

/* Where the lanes of a vector of y are in x; the number of vectors. */
static int64_t find_sources(const float *x, const int64_t *offsets, lane_source *sources)
{
    int64_t count = 0;
    for (int64_t i = 0; i < SP_VECTOR; i++) {
        if (offsets[i] < 0) continue;
        const int64_t lane = offsets[i] % SP_VECTOR;
        const float *from = x + (offsets[i] - lane);
        int64_t s = 0;
        while (s < count && sources[s].x != from) s++;
        if (s == count) sources[count++] = (lane_source){.x = from};
        sources[s].lanes |= (sp_vector_part)1 << i;
        sources[s].index[i] = (int32_t)lane;
    }
    return count;
}

/* One vector of each pixel. */
static void move_lanes(const lane_source *sources, int64_t count, int64_t first, int64_t last,
                       float *y)
{
    for (int64_t p = first; p < last; p++) {
        sp_vector lanes = sp_vector_splat(0);
        for (int64_t s = 0; s < count; s++) {
            const lane_source *from = &sources[s];
            const sp_vector v = sp_vector_load(from->x + p * SP_BLOCK);
            lanes = sp_vector_select(sp_vector_mask_of(from->lanes),
                                     sp_vector_permute(v, from->index), lanes);
        }
        sp_vector_store(y + p * SP_BLOCK, lanes);
    }
}

sp_status SP_KERNEL(channels_move)(const sp_tile *tile)
{
    const sp_channels_move_constants *k = tile->constants;
    const int64_t block = tile->index[1], image = tile->index[2];
    const int64_t *offsets = (const int64_t *)tile->bindings[1] + block * SP_BLOCK;
    const float *x = (const float *)tile->bindings[0] + image * k->x_blocks * k->pixels * SP_BLOCK;
    float *y = (float *)tile->bindings[2] + (image * k->y_blocks + block) * k->pixels * SP_BLOCK;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->pixels);
    for (int64_t v = 0; v < SP_BLOCK; v += SP_VECTOR) {
        lane_source sources[SP_VECTOR];
        const int64_t count = find_sources(x, offsets + v, sources);
        move_lanes(sources, count, first, last, y + v);
    }
    return SP_OK;
}

sp_status SP_KERNEL(channels_pack_f32)(const sp_tile *tile)
{
    const sp_channels_pack_constants *k = tile->constants;
    const float *rows = tile->bindings[0];
    float *to = tile->bindings[1];
    for (int64_t panel = 0; panel < k->panels; panel++) {
        for (int64_t d = 0; d < k->depth; d++) {
            for (int64_t i = 0; i < SP_BLOCK; i++) {
                const int64_t row = k->rows[panel * SP_BLOCK + i];
                *to++ = row < 0 ? 0 : rows[row * k->row_stride + d * k->depth_stride];
            }
        }
    }
    return SP_OK;
}
