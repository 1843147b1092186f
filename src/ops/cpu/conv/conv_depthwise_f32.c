/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution with one input channel per group. Same sum as conv_f32: over (kernel row, kernel
 * column), in segments, padding taps included, then the bias, then the activation. One row of one
 * output plane at a time, up to SP_DEPTHWISE_COLUMNS of its outputs together. */
#include "base/macros.h"
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/conv/conv_gather.h"

enum { COLUMNS = SP_DEPTHWISE_COLUMNS };

/* A block of one output row of one plane. */
typedef struct row_block {
    const sp_conv_constants *k;
    const float *plane, *w; /* input plane, kernel */
    int64_t row, column;    /* first output */
    int64_t width;          /* outputs, at most COLUMNS */
} row_block;

/* Input columns that the block reads through one kernel row. */
static int64_t row_length(const sp_conv_constants *k, int64_t width)
{
    return (width - 1) * k->stride_w + (k->kernel_w - 1) * k->dilation_w + 1;
}

/* The end of a segment. */
static SP_ALWAYS_INLINE void add_chains(const int64_t vectors, sp_vector *acc, sp_vector *sum)
{
#pragma GCC unroll 8
    for (int64_t v = 0; v < vectors; v++) {
        sum[v] += acc[v];
        acc[v] = sp_vector_splat(0);
    }
}

/* `vectors` is a constant after inlining. Lanes beyond the block's width compute outputs that are
 * not used. */
static SP_ALWAYS_INLINE void run_vectors(const int64_t vectors, const row_block *s, float *out)
{
    const sp_conv_constants *k = s->k;
    float buffer[SP_DEPTHWISE_ROW];
    sp_vector acc[COLUMNS / SP_VECTOR] = {0}, sum[COLUMNS / SP_VECTOR] = {0};
    int64_t left = k->segment; /* taps of the segment that are to come */
    const int64_t x = s->column * k->stride_w - k->pad_left;
    for (int64_t i = 0; i < k->kernel_h; i++) {
        const int64_t y = s->row * k->stride_h - k->pad_top + i * k->dilation_h;
        const float *row = y >= 0 && y < k->in_h ? s->plane + y * k->in_w : NULL;
        if (k->stride_w == 1) {
            sp_gather_row(row, k->in_w, x, 1, row_length(k, vectors * SP_VECTOR), buffer);
        }
        for (int64_t j = 0; j < k->kernel_w; j++) {
            const float *taps = buffer;
            if (k->stride_w == 1) {
                taps += j * k->dilation_w;
            } else {
                sp_gather_row(row, k->in_w, x + j * k->dilation_w, k->stride_w, vectors * SP_VECTOR,
                              buffer);
            }
            if (SP_UNLIKELY(left-- == 0)) {
                add_chains(vectors, acc, sum);
                left = k->segment - 1;
            }
            const sp_vector w = sp_vector_splat(s->w[i * k->kernel_w + j]);
#pragma GCC unroll 8
            for (int64_t v = 0; v < vectors; v++) {
                acc[v] = sp_vector_fma(w, sp_vector_load(taps + v * SP_VECTOR), acc[v]);
            }
        }
    }
    add_chains(vectors, acc, sum);
#pragma GCC unroll 8
    for (int64_t v = 0; v < vectors; v++) sp_vector_store(out + v * SP_VECTOR, sum[v]);
}

static void run_row_block(const row_block *s, float bias, bool has_bias, float *y)
{
    float out[COLUMNS];
    if (s->width <= SP_VECTOR) run_vectors(1, s, out);
    else if (s->width <= 2 * SP_VECTOR) run_vectors(2, s, out);
    else if (s->width <= 4 * SP_VECTOR) run_vectors(4, s, out);
    else run_vectors(COLUMNS / SP_VECTOR, s, out);
    for (int64_t i = 0; i < s->width; i++) y[i] = sp_canonical(has_bias ? out[i] + bias : out[i]);
    sp_activate(s->k->activation, y, 1, 0, s->width);
}

sp_status SP_KERNEL(conv_depthwise_f32)(const sp_tile *tile)
{
    const sp_conv_constants *k = tile->constants;
    const float *x = tile->bindings[0], *w = tile->bindings[1];
    const float *bias = k->has_bias ? tile->bindings[2] : NULL;
    float *y = tile->bindings[k->has_bias ? 3 : 2];
    const int64_t first = tile->index[0] * k->tile_planes;
    const int64_t last = first + k->tile_planes < k->planes ? first + k->tile_planes : k->planes;
    for (int64_t plane = first; plane < last; plane++) {
        const int64_t filter = plane % (k->groups * k->filters);
        row_block s = {.k = k,
                       .plane = x + plane / k->filters * k->in_h * k->in_w,
                       .w = w + filter * k->kernel_h * k->kernel_w};
        for (s.row = 0; s.row < k->out_h; s.row++) {
            for (s.column = 0; s.column < k->out_w; s.column += COLUMNS) {
                s.width = k->out_w - s.column < COLUMNS ? k->out_w - s.column : COLUMNS;
                run_row_block(&s, bias ? bias[filter] : 0, bias != NULL,
                              y + (plane * k->out_h + s.row) * k->out_w + s.column);
            }
        }
    }
    return SP_OK;
}
