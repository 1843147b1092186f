/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of types other than f32, plain, in one to three spatial dimensions. A chain as
 * conv_f32 has it: from 0, over channel and taps in order, taps in the padding with an input of 0;
 * then the bias. f16 and bf16 compute in f32, fused, and round once more when they are stored; f64
 * rounds products and sums. */
#include "ops/cpu/arch/half.h"
#include "ops/cpu/arch/isa.h"

typedef struct conv_sizes {
    int64_t in, out; /* elements of one channel */
    int64_t taps;    /* of one filter */
} conv_sizes;

static conv_sizes sizes_of(const sp_conv_3d_constants *d)
{
    const sp_conv_constants *k = &d->plane;
    return (conv_sizes){d->in_d * k->in_h * k->in_w, d->out_d * k->out_h * k->out_w,
                        k->channels * d->kernel_d * k->kernel_h * k->kernel_w};
}

/* The input behind a tap of an output: its place in x, or -1 in the padding. */
static int64_t place_of(const sp_conv_3d_constants *d, int64_t pixel, int64_t tap)
{
    const sp_conv_constants *k = &d->plane;
    const int64_t x =
        pixel % k->out_w * k->stride_w - k->pad_left + tap % k->kernel_w * k->dilation_w;
    pixel /= k->out_w;
    tap /= k->kernel_w;
    const int64_t y =
        pixel % k->out_h * k->stride_h - k->pad_top + tap % k->kernel_h * k->dilation_h;
    pixel /= k->out_h;
    tap /= k->kernel_h;
    const int64_t z = pixel * d->stride_d - d->pad_front + tap % d->kernel_d * d->dilation_d;
    const int64_t channel = tap / d->kernel_d;
    if (x < 0 || y < 0 || z < 0 || x >= k->in_w || y >= k->in_h || z >= d->in_d) return -1;
    return ((channel * d->in_d + z) * k->in_h + y) * k->in_w + x;
}

#define PLAIN(x) (x)
#define PLAIN_STEP(chain, a, b) ((chain) + (a) * (b))
#define FUSED_STEP(chain, a, b) sp_fmaf(a, b, chain)

/* `wide` is what a chain is computed in. */
#define CONV_KERNEL(suffix, type, wide, load, step, store)                                         \
    static wide chain_##suffix(const sp_conv_3d_constants *d, const type *x, const type *w,        \
                               int64_t taps, int64_t pixel)                                        \
    {                                                                                              \
        wide chain = 0;                                                                            \
        for (int64_t tap = 0; tap < taps; tap++) {                                                 \
            const int64_t place = place_of(d, pixel, tap);                                         \
            const wide value = place < 0 ? 0 : (wide)load(x[place]);                               \
            chain = step(chain, (wide)load(w[tap]), value);                                        \
        }                                                                                          \
        return chain;                                                                              \
    }                                                                                              \
                                                                                                   \
    sp_status SP_KERNEL(conv_any_##suffix)(const sp_tile *tile)                                    \
    {                                                                                              \
        const sp_conv_3d_constants *d = tile->constants;                                           \
        const sp_conv_constants *k = &d->plane;                                                    \
        const conv_sizes sizes = sizes_of(d);                                                      \
        const int64_t group = tile->index[1];                                                      \
        const int64_t index = tile->index[2] * k->groups + group;                                  \
        const type *x = (const type *)tile->bindings[0] + index * k->channels * sizes.in;          \
        const type *w = (const type *)tile->bindings[1] + group * k->filters * sizes.taps;         \
        const type *bias =                                                                         \
            k->has_bias ? (const type *)tile->bindings[2] + group * k->filters : NULL;             \
        type *y = (type *)tile->bindings[k->has_bias ? 3 : 2] + index * k->filters * sizes.out;    \
        const int64_t first = tile->index[0] * k->tile_pixels;                                     \
        const int64_t left = sizes.out - first;                                                    \
        const int64_t last = left < k->tile_pixels ? sizes.out : first + k->tile_pixels;           \
        for (int64_t f = 0; f < k->filters; f++) {                                                 \
            for (int64_t pixel = first; pixel < last; pixel++) {                                   \
                wide out = chain_##suffix(d, x, w + f * sizes.taps, sizes.taps, pixel);            \
                if (bias) out += (wide)load(bias[f]);                                              \
                y[f * sizes.out + pixel] = store(out);                                             \
            }                                                                                      \
        }                                                                                          \
        return SP_OK;                                                                              \
    }

CONV_KERNEL(f64, double, double, PLAIN, PLAIN_STEP, sp_canonical_f64)
CONV_KERNEL(f16, uint16_t, float, sp_float_of_f16, FUSED_STEP, sp_f16_of_float)
CONV_KERNEL(bf16, uint16_t, float, sp_float_of_bf16, FUSED_STEP, sp_bf16_of_float)
