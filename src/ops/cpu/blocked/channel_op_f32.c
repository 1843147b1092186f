/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and products of images in blocks of channels and one number for each channel; the
 * same steps as add_f32 and its like. The lanes of a vector are channels. */
#include "ops/cpu/blocked/element_vectors.h"
#include "ops/cpu/blocked/patch.h"
#include "ops/cpu/gemm/activate.h"

/* Pixels that are computed before their activation is applied. */
enum { PIXELS = 64 };

/* `op` is a constant after inlining. */
static SP_ALWAYS_INLINE void run_op(const uint8_t op, const float *x, const float *numbers,
                                    int64_t pixels, float *y)
{
    for (int64_t v = 0; v < SP_BLOCK; v += SP_VECTOR) {
        const sp_element_numbers of = {.a = sp_vector_load(numbers + v)};
        for (int64_t i = v; i < pixels * SP_BLOCK; i += SP_BLOCK) {
            const sp_vector result = sp_element_apply(op, sp_vector_load(x + i), &of);
            sp_vector_store(y + i, sp_vector_canonical(result));
        }
    }
}

static void run_pixels(uint8_t op, const float *x, const float *numbers, int64_t pixels, float *y)
{
    switch (op) {
#define CASE(op)                                                                                   \
    case op:                                                                                       \
        run_op(op, x, numbers, pixels, y);                                                         \
        return;
        SP_ELEMENT_BINARY_LIST(CASE)
#undef CASE
    default:
        return;
    }
}

sp_status SP_KERNEL(channel_op_f32)(const sp_tile *tile)
{
    const sp_channel_op_constants *k = tile->constants;
    const int64_t blocks = (k->channels + SP_BLOCK - 1) / SP_BLOCK;
    const int64_t block = tile->index[2] * blocks + tile->index[1];
    const float *x = (const float *)tile->bindings[0] + block * k->pixels * SP_BLOCK;
    const int64_t list = k->is_shared ? tile->index[1] : block;
    const float *numbers = (const float *)tile->bindings[1] + list * SP_BLOCK;
    float *y = (float *)tile->bindings[2] + block * k->pixels * SP_BLOCK;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->pixels);
    for (int64_t p = first; p < last; p += PIXELS) {
        const int64_t at = p * SP_BLOCK, count = sp_size_least(PIXELS, last - p);
        run_pixels(k->op, x + at, numbers, count, y + at);
        sp_activate(k->activation, y + at, 1, 0, count * SP_BLOCK);
    }
    return SP_OK;
}
