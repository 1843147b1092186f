/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of types other than f32 in one to three spatial dimensions, without blocking. The
 * sum is that of conv_f32: over channel and taps in order, in segments, taps in the padding with an
 * input of 0; then the bias. f16 and bf16 compute in f32, fused, and are rounded once more when
 * stored; f64 rounds products and sums. */
#include "ops/cpu/arch/typed.h"

typedef struct conv_sizes {
    int64_t in, out; /* elements of one channel */
    int64_t taps;    /* of one filter */
} conv_sizes;

static conv_sizes get_conv_sizes(const sp_conv_3d_constants *d)
{
    const sp_conv_constants *k = &d->plane;
    return (conv_sizes){d->in_d * k->in_h * k->in_w, d->out_d * k->out_h * k->out_w,
                        k->channels * d->kernel_d * k->kernel_h * k->kernel_w};
}

/* The index in x of the input of a tap, or -1 in the padding. */
static int64_t input_index(const sp_conv_3d_constants *d, int64_t pixel, int64_t tap)
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

#define SP_TYPE f64
#include "ops/cpu/conv/conv_any.inc.h"
#define SP_TYPE f16
#include "ops/cpu/conv/conv_any.inc.h"
#define SP_TYPE bf16
#include "ops/cpu/conv/conv_any.inc.h"
