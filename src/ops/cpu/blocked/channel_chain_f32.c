/* SPDX-License-Identifier: Apache-2.0 */
/* Several elementwise steps on images in blocks of channels, one after the other in registers: each
 * operation is rounded as by the kernel of its step. A NaN stays a NaN in all of them, so it is
 * made canonical once, at the end. The lanes of a vector are channels. */
#include "ops/cpu/blocked/element_vectors.h"
#include "ops/cpu/blocked/epilogue.h"
#include "ops/cpu/blocked/patch.h"

/* Pixels that an operation computes before the next one, so that choosing it costs little; those
 * that are computed before their activation is applied. */
enum { TOGETHER = 8, PIXELS = 64 };

/* The operations of a block of channels. */
typedef struct chain {
    const sp_channel_chain_constants *k;
    sp_element_numbers of[SP_BLOCK_VECTORS][SP_ELEMENT_STEPS];
} chain;

/* ---- operands ---- */

static sp_element_numbers load_norm(const sp_element_step *op, void *const *lists, int64_t channel,
                                    int64_t channels)
{
    return (sp_element_numbers){.a = sp_load_channels(lists[2], channel, channels),
                                .b = sp_norm_factor(sp_load_channels(lists[0], channel, channels),
                                                    sp_load_channels(lists[3], channel, channels),
                                                    op->numbers[0]),
                                .c = sp_load_channels(lists[1], channel, channels)};
}

static sp_element_numbers load_op(const sp_element_step *op, const sp_tile *tile,
                                  void *const *lists, int64_t lane)
{
    const sp_channel_chain_constants *k = tile->constants;
    const int64_t blocks = (k->channels + SP_BLOCK - 1) / SP_BLOCK, block = tile->index[1];
    const float *numbers = op->operand == SP_ELEMENT_READS_NOTHING ? NULL : lists[0];
    switch (op->operand) {
    case SP_ELEMENT_READS_ONE:
        return (sp_element_numbers){.a = sp_vector_splat(numbers[0])};
    case SP_ELEMENT_READS_SHARED:
        return (sp_element_numbers){.a = sp_vector_load(numbers + block * SP_BLOCK + lane)};
    case SP_ELEMENT_READS_LIST:
        numbers += (tile->index[2] * blocks + block) * SP_BLOCK;
        return (sp_element_numbers){.a = sp_vector_load(numbers + lane)};
    case SP_ELEMENT_READS_NORM:
        return load_norm(op, lists, block * SP_BLOCK + lane, k->channels);
    default:
        return (sp_element_numbers){.a = sp_vector_splat(op->numbers[0]),
                                    .b = sp_vector_splat(op->numbers[1]),
                                    .c = sp_vector_splat(op->numbers[2]),
                                    .d = sp_vector_splat(op->numbers[3])};
    }
}

/* ---- operations ---- */

/* `count` and `op` are constants after inlining. */
static SP_ALWAYS_INLINE void apply_op(const int64_t count, const uint8_t op, sp_element_numbers of,
                                      sp_vector *acc)
{
#pragma GCC unroll 8
    for (int64_t i = 0; i < count; i++) acc[i] = sp_element_apply(op, acc[i], &of);
}

static SP_ALWAYS_INLINE void run_op(const int64_t count, uint8_t op, const sp_element_numbers *of,
                                    sp_vector *acc)
{
    switch (op) {
#define CASE(op)                                                                                   \
    case op:                                                                                       \
        apply_op(count, op, *of, acc);                                                             \
        break;
        SP_ELEMENT_VECTOR_LIST(CASE)
#undef CASE
    default:
        break;
    }
}

/* Of `count` pixels, which is a constant after inlining, vector v of their channels. */
static SP_ALWAYS_INLINE void run_pixels(const int64_t count, const chain *c, int64_t v,
                                        const float *x, float *y)
{
    const sp_vector zeros = sp_vector_splat(0);
    sp_vector acc[TOGETHER];
#pragma GCC unroll 8
    for (int64_t i = 0; i < count; i++) acc[i] = sp_vector_load(x + i * SP_BLOCK);
    for (uint32_t n = 0; n < c->k->count; n++) {
        run_op(count, c->k->ops[n].op, &c->of[v][n], acc);
        if (!c->k->ops[n].has_relu) continue;
#pragma GCC unroll 8
        for (int64_t i = 0; i < count; i++) {
            acc[i] = sp_vector_larger(zeros, acc[i]) + zeros; /* of two zeros +0 */
        }
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < count; i++) {
        sp_vector_store(y + i * SP_BLOCK, sp_vector_canonical(acc[i]));
    }
}

static void run_chain(const chain *c, int64_t v, const float *x, int64_t pixels, float *y)
{
    int64_t p = 0;
    for (; p + TOGETHER <= pixels; p += TOGETHER) {
        run_pixels(TOGETHER, c, v, x + p * SP_BLOCK, y + p * SP_BLOCK);
    }
    for (; p < pixels; p++) run_pixels(1, c, v, x + p * SP_BLOCK, y + p * SP_BLOCK);
}

/* Returns the binding that is written. */
static uint32_t chain_init(chain *c, const sp_tile *tile)
{
    uint32_t binding = 1;
    c->k = tile->constants;
    for (uint32_t n = 0; n < c->k->count; n++) {
        for (int64_t v = 0; v < SP_BLOCK_VECTORS; v++) {
            c->of[v][n] = load_op(&c->k->ops[n], tile, tile->bindings + binding, v * SP_VECTOR);
        }
        binding += sp_element_bindings(&c->k->ops[n]);
    }
    return binding;
}

sp_status SP_KERNEL(channel_chain_f32)(const sp_tile *tile)
{
    const sp_channel_chain_constants *k = tile->constants;
    const int64_t blocks = (k->channels + SP_BLOCK - 1) / SP_BLOCK;
    const int64_t plane = (tile->index[2] * blocks + tile->index[1]) * k->pixels * SP_BLOCK;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->pixels);
    chain c;
    float *y = (float *)tile->bindings[chain_init(&c, tile)] + plane;
    const float *x = (const float *)tile->bindings[0] + plane;
    for (int64_t p = first; p < last; p += PIXELS) {
        const int64_t at = p * SP_BLOCK, count = sp_size_least(PIXELS, last - p);
        for (int64_t v = 0; v < SP_BLOCK_VECTORS; v++) {
            run_chain(&c, v, x + at + v * SP_VECTOR, count, y + at + v * SP_VECTOR);
        }
        sp_activate(k->activation, y + at, 1, 0, count * SP_BLOCK);
    }
    return SP_OK;
}
