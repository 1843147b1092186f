/* SPDX-License-Identifier: Apache-2.0 */
/* Several elementwise steps on images in blocks of channels, one after the other in registers: each
 * operation is rounded as by the kernel of its step. A NaN stays a NaN in all of them, so it is
 * made canonical once, at the end. The lanes of a vector are channels. */
#include "ops/cpu/blocked/epilogue.h"
#include "ops/cpu/blocked/patch.h"

/* Pixels that an operation computes before the next one, so that choosing it costs little; those
 * that are computed before their activation is applied. */
enum { TOGETHER = 8, PIXELS = 64 };

/* What an operation reads, for a vector of channels: a number, or those of its kind. */
typedef struct op_vectors {
    sp_vector a, b, c, d;
} op_vectors;

/* The operations of a block of channels. */
typedef struct chain {
    const sp_channel_chain_constants *k;
    op_vectors of[SP_BLOCK_VECTORS][SP_CHAIN_OPS];
} chain;

/* ---- operands ---- */

static op_vectors load_norm(const sp_chain_op *op, void *const *lists, int64_t channel,
                            int64_t channels)
{
    return (op_vectors){.a = sp_load_channels(lists[2], channel, channels),
                        .b = sp_norm_factor(sp_load_channels(lists[0], channel, channels),
                                            sp_load_channels(lists[3], channel, channels),
                                            op->numbers[0]),
                        .c = sp_load_channels(lists[1], channel, channels)};
}

static op_vectors load_op(const sp_chain_op *op, const sp_tile *tile, void *const *lists,
                          int64_t lane)
{
    const sp_channel_chain_constants *k = tile->constants;
    const int64_t blocks = (k->channels + SP_BLOCK - 1) / SP_BLOCK, block = tile->index[1];
    const float *numbers = op->operand == SP_CHAIN_NOTHING ? NULL : lists[0];
    switch (op->operand) {
    case SP_CHAIN_ONE:
        return (op_vectors){.a = sp_vector_splat(numbers[0])};
    case SP_CHAIN_SHARED:
        return (op_vectors){.a = sp_vector_load(numbers + block * SP_BLOCK + lane)};
    case SP_CHAIN_LIST:
        numbers += (tile->index[2] * blocks + block) * SP_BLOCK;
        return (op_vectors){.a = sp_vector_load(numbers + lane)};
    case SP_CHAIN_NORM_LISTS:
        return load_norm(op, lists, block * SP_BLOCK + lane, k->channels);
    default:
        return (op_vectors){.a = sp_vector_splat(op->numbers[0]),
                            .b = sp_vector_splat(op->numbers[1]),
                            .c = sp_vector_splat(op->numbers[2]),
                            .d = sp_vector_splat(op->numbers[3])};
    }
}

/* ---- operations ---- */

/* Sets each of acc to `result`, of x. */
#define EACH(result)                                                                               \
    _Pragma("GCC unroll 8") for (int64_t i = 0; i < count; i++)                                    \
    {                                                                                              \
        const sp_vector x = acc[i];                                                                \
        acc[i] = (result);                                                                         \
    }

static SP_ALWAYS_INLINE void run_op(const int64_t count, uint8_t kind, const op_vectors *of,
                                    sp_vector *acc)
{
    const op_vectors v = *of;
    switch (kind) {
    case SP_CHANNEL_ADD:
        EACH(x + v.a)
        break;
    case SP_CHANNEL_SUB:
        EACH(x - v.a)
        break;
    case SP_CHANNEL_SUB_FROM:
        EACH(v.a - x)
        break;
    case SP_CHANNEL_MUL:
        EACH(x * v.a)
        break;
    case SP_CHANNEL_DIV:
        EACH(x / v.a)
        break;
    case SP_CHANNEL_DIV_INTO:
        EACH(v.a / x)
        break;
    case SP_CHAIN_NORM:
        if (SP_PLANTED(chain_rounds_once)) {
            EACH(sp_vector_fma(x - v.a, v.b, v.c))
            break;
        }
        EACH((x - v.a) * v.b + v.c)
        break;
    case SP_CHAIN_HARD_SWISH:
        EACH(sp_vector_hard_swish(x))
        break;
    default: /* SP_CHAIN_CLIP_GATE */
        EACH(x * sp_vector_smaller(v.c, sp_vector_larger(v.b, x + v.a)) / v.d)
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
        run_op(count, c->k->ops[n].kind, &c->of[v][n], acc);
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
        binding += sp_chain_bindings(&c->k->ops[n]);
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
