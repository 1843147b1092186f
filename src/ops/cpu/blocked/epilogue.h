/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the sums of a convolution in blocks of channels: the bias, a batch normalisation,
 * the sum with another image, the activation. Each step is rounded, as in the kernels by
 * themselves. */
#ifndef SP_OPS_CPU_BLOCKED_EPILOGUE_H
#define SP_OPS_CPU_BLOCKED_EPILOGUE_H

#include "ops/cpu/arch/vector_parts.h"
#include "ops/cpu/gemm/activate.h"

/* Computed in registers; loops over outputs are compiled for each sum of these, but HardSwish by
 * itself alone. */
enum {
    SP_EPILOGUE_NORM = 1,
    SP_EPILOGUE_OTHER = 2,
    SP_EPILOGUE_RELU = 4,
    SP_EPILOGUE_HARD_SWISH = 8
};

enum { SP_EPILOGUE_BLOCKS = 8, SP_EPILOGUE_CHANNELS = SP_EPILOGUE_BLOCKS * SP_CHANNEL_BLOCK };

/* The lists, NULL if there are none, from the first channel of the call's group on. */
typedef struct sp_epilogue_lists {
    const float *bias, *scale, *offset, *mean, *variance;
    float epsilon;
} sp_epilogue_lists;

/* Of some channels. */
typedef struct sp_epilogue {
    unsigned kind;      /* of SP_EPILOGUE_NORM and the others: what there is but the bias */
    const float *other; /* NULL, or the image that is added */
    const float *y;     /* the tensor that is written; `other` has its layout */
    uint8_t activation; /* of stored outputs: none, or another one */
    /* Without a bias +0, which changes no sum: none is -0. */
    float bias[SP_EPILOGUE_CHANNELS], mean[SP_EPILOGUE_CHANNELS];
    float factor[SP_EPILOGUE_CHANNELS], offset[SP_EPILOGUE_CHANNELS];
} sp_epilogue;

/* The binding that follows the weights and the offsets. */
static inline uint32_t sp_epilogue_first(const sp_blocked_constants *b)
{
    return b->has_offsets ? 3 : 2;
}

/* The binding that follows the lists. */
static inline uint32_t sp_epilogue_last(const sp_blocked_constants *b)
{
    return sp_epilogue_first(b) + (b->of.has_bias ? 1u : 0) + (b->has_norm ? 4u : 0);
}

static inline sp_epilogue_lists sp_epilogue_find(const sp_tile *tile, int64_t channel)
{
    const sp_blocked_constants *b = tile->constants;
    const uint32_t first = sp_epilogue_first(b), norm = first + (b->of.has_bias ? 1 : 0);
    sp_epilogue_lists lists = {.epsilon = b->epsilon};
    if (b->of.has_bias) lists.bias = (const float *)tile->bindings[first] + channel;
    if (!b->has_norm) return lists;
    lists.scale = (const float *)tile->bindings[norm] + channel;
    lists.offset = (const float *)tile->bindings[norm + 1] + channel;
    lists.mean = (const float *)tile->bindings[norm + 2] + channel;
    lists.variance = (const float *)tile->bindings[norm + 3] + channel;
    return lists;
}

/* The binding that is written. */
static inline float *sp_epilogue_output(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    return tile->bindings[sp_epilogue_last(b) + (b->has_other ? 1u : 0)];
}

/* Sets what is the same for all channels. */
static inline void sp_epilogue_init(sp_epilogue *e, const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    const bool has_relu = b->of.activation == SP_ACTIVATION_RELU;
    const bool is_swish =
        b->of.activation == SP_ACTIVATION_HARD_SWISH && !b->has_norm && !b->has_other;
    e->kind = (b->has_norm ? SP_EPILOGUE_NORM : 0u) | (b->has_other ? SP_EPILOGUE_OTHER : 0u) |
              (has_relu ? SP_EPILOGUE_RELU : 0u) | (is_swish ? SP_EPILOGUE_HARD_SWISH : 0u);
    e->activation = has_relu || is_swish ? SP_ACTIVATION_NONE : b->of.activation;
    e->other = b->has_other ? tile->bindings[sp_epilogue_last(b)] : NULL;
    e->y = sp_epilogue_output(tile);
}

/* scale / sqrt(variance + epsilon) */
static SP_ALWAYS_INLINE sp_vector sp_norm_factor(sp_vector scale, sp_vector variance, float epsilon)
{
    float lanes[SP_VECTOR];
    sp_vector_store(lanes, variance + sp_vector_splat(epsilon));
    for (int64_t i = 0; i < SP_VECTOR; i++) lanes[i] = __builtin_sqrtf(lanes[i]);
    return scale / sp_vector_load(lanes);
}

static SP_ALWAYS_INLINE sp_vector sp_load_channels(const float *list, int64_t first, int64_t count)
{
    return sp_vector_load_part(list + first, sp_vector_range(0, count - first), sp_vector_splat(0));
}

/* Of channels [first, first + most) of a group that has `count`. */
static inline void sp_epilogue_load(sp_epilogue *e, const sp_epilogue_lists *lists, int64_t first,
                                    int64_t most, int64_t count)
{
    const bool has_norm = lists->scale != NULL && lists->offset != NULL && lists->mean != NULL &&
                          lists->variance != NULL; /* all or none */
    for (int64_t i = 0; i < most; i += SP_VECTOR) {
        sp_vector bias = sp_vector_splat(0);
        if (lists->bias != NULL) bias = sp_load_channels(lists->bias, first + i, count);
        sp_vector_store(e->bias + i, bias);
        if (!has_norm) continue;
        const sp_vector scale = sp_load_channels(lists->scale, first + i, count);
        const sp_vector variance = sp_load_channels(lists->variance, first + i, count);
        sp_vector_store(e->factor + i, sp_norm_factor(scale, variance, lists->epsilon));
        sp_vector_store(e->mean + i, sp_load_channels(lists->mean, first + i, count));
        sp_vector_store(e->offset + i, sp_load_channels(lists->offset, first + i, count));
    }
}

static SP_ALWAYS_INLINE sp_vector sp_normalize(sp_vector x, sp_vector mean, sp_vector factor,
                                               sp_vector offset)
{
    return sp_vector_canonical((x - mean) * factor + offset);
}

/* The constants of a vector of channels, in registers for a loop over outputs. */
typedef struct sp_epilogue_vectors {
    sp_vector bias, mean, factor, offset;
} sp_epilogue_vectors;

static SP_ALWAYS_INLINE sp_epilogue_vectors sp_epilogue_of(const unsigned kind,
                                                           const sp_epilogue *e, int64_t channel)
{
    sp_epilogue_vectors v = {.bias = sp_vector_load(e->bias + channel)};
    if ((kind & SP_EPILOGUE_NORM) == 0) return v;
    v.mean = sp_vector_load(e->mean + channel);
    v.factor = sp_vector_load(e->factor + channel);
    v.offset = sp_vector_load(e->offset + channel);
    return v;
}

/* What becomes of a vector of sums, without e->activation. `other`: where the other image has it.
 * A NaN stays a NaN to the end, so it becomes the canonical one once. Sums are not -0, nor is what
 * is added to one: only a normalisation may be. */
static SP_ALWAYS_INLINE sp_vector sp_epilogue_apply(const unsigned kind,
                                                    const sp_epilogue_vectors *v, sp_vector sum,
                                                    const float *other)
{
    const sp_vector zeros = sp_vector_splat(0);
    const bool has_norm = (kind & SP_EPILOGUE_NORM) != 0;
    sum = sum + v->bias;
    if (has_norm) sum = (sum - v->mean) * v->factor + v->offset;
    if ((kind & SP_EPILOGUE_OTHER) != 0) sum = sum + sp_vector_load(other);
    if ((kind & SP_EPILOGUE_HARD_SWISH) != 0) sum = sp_vector_hard_swish(sum);
    sum = sp_vector_canonical(sum);
    if ((kind & SP_EPILOGUE_RELU) == 0) return sum;
    sum = sp_vector_larger(zeros, sum); /* of two zeros the second one, of a NaN the NaN */
    return has_norm ? sum + zeros : sum;
}

/* Calls run(kind, ...) with a constant kind; without a fused multiply-add, which is 30 instructions
 * an element then, with the one that it is. */
#if SP_HAS_HARDWARE_FMA
#define SP_EPILOGUE_CASE(kind, run, ...)                                                           \
    case kind:                                                                                     \
        run(kind, __VA_ARGS__);                                                                    \
        break;
#define SP_EPILOGUE_CALL(which, run, ...)                                                          \
    switch (which) {                                                                               \
        SP_EPILOGUE_CASE(0, run, __VA_ARGS__)                                                      \
        SP_EPILOGUE_CASE(1, run, __VA_ARGS__)                                                      \
        SP_EPILOGUE_CASE(2, run, __VA_ARGS__)                                                      \
        SP_EPILOGUE_CASE(3, run, __VA_ARGS__)                                                      \
        SP_EPILOGUE_CASE(4, run, __VA_ARGS__)                                                      \
        SP_EPILOGUE_CASE(5, run, __VA_ARGS__)                                                      \
        SP_EPILOGUE_CASE(6, run, __VA_ARGS__)                                                      \
        SP_EPILOGUE_CASE(SP_EPILOGUE_HARD_SWISH, run, __VA_ARGS__)                                 \
    default:                                                                                       \
        run(7, __VA_ARGS__);                                                                       \
        break;                                                                                     \
    }
#else
#define SP_EPILOGUE_CALL(which, run, ...) run(which, __VA_ARGS__)
#endif

#endif
