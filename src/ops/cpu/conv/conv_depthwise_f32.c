/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution with one input channel and one filter per group. Same sum as conv_f32: over (kernel
 * row, kernel column), in segments, padding taps included, then the bias, then the activation. The
 * outputs of a plane are computed in the blocks of plane_block.h. */
#include "base/macros.h"
#include "ops/cpu/conv/plane_block.h"
#include "ops/cpu/gemm/activate.h"

enum { STEP = SP_PLANE_STEP, VECTORS = STEP / SP_VECTOR };

typedef struct plane_block {
    const sp_conv_constants *k;
    const float *x, *w; /* of the plane */
    sp_plane_block of;
} plane_block;

/* ---- sums ---- */

/* A tap along one dimension: the part, and the distance in it. */
typedef struct tap_place {
    int64_t part, distance;
} tap_place;

static SP_ALWAYS_INLINE void next_tap(tap_place *at, int64_t dilation, int64_t stride)
{
    at->part += dilation % stride;
    at->distance += dilation / stride;
    if (at->part < stride) return;
    at->part -= stride;
    at->distance++;
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

/* Outputs from `first` on; `vectors` is a constant after inlining. */
static SP_ALWAYS_INLINE void run_vectors(const int64_t vectors, plane_block *b, int64_t first)
{
    const sp_conv_constants *k = b->k;
    const int64_t part = b->of.part_rows * b->of.part_row;
    sp_vector acc[VECTORS] = {0}, sum[VECTORS] = {0};
    int64_t left = k->segment; /* taps of the segment that are to come */
    const float *w = b->w;
    tap_place y = {0, 0};
    for (int64_t i = 0; i < k->kernel_h; i++, next_tap(&y, k->dilation_h, k->stride_h)) {
        const float *row =
            b->of.input + y.part * k->stride_w * part + y.distance * b->of.part_row + first;
        tap_place x = {0, 0};
        for (int64_t j = 0; j < k->kernel_w; j++, next_tap(&x, k->dilation_w, k->stride_w)) {
            if (SP_UNLIKELY(left-- == 0)) {
                add_chains(vectors, acc, sum);
                left = k->segment - 1;
            }
            const float *taps = row + x.part * part + x.distance;
            const sp_vector weight = sp_vector_splat(*w++);
#pragma GCC unroll 8
            for (int64_t v = 0; v < vectors; v++) {
                acc[v] = sp_vector_fma(weight, sp_vector_load(taps + v * SP_VECTOR), acc[v]);
            }
        }
    }
    add_chains(vectors, acc, sum);
#pragma GCC unroll 8
    for (int64_t v = 0; v < vectors; v++) {
        sp_vector_store(b->of.outputs + first + v * SP_VECTOR, sum[v]);
    }
}

/* Of 3 x 3 kernels, which most models have, all distances are known at once. */
static SP_ALWAYS_INLINE void run_3x3(const int64_t vectors, plane_block *b, int64_t first)
{
    const int64_t row = b->of.part_row;
    sp_vector sum[VECTORS] = {0};
#pragma GCC unroll 9
    for (int64_t tap = 0; tap < 9; tap++) {
        const float *taps = b->of.input + first + tap / 3 * row + tap % 3;
        const sp_vector weight = sp_vector_splat(b->w[tap]);
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; v++) {
            sum[v] = sp_vector_fma(weight, sp_vector_load(taps + v * SP_VECTOR), sum[v]);
        }
    }
#pragma GCC unroll 8
    for (int64_t v = 0; v < vectors; v++) {
        /* As for every sum of a chain: +0 + the chain. */
        sp_vector_store(b->of.outputs + first + v * SP_VECTOR, sum[v] + sp_vector_splat(0));
    }
}

static bool is_plain_3x3(const sp_conv_constants *k)
{
    return k->kernel_h == 3 && k->kernel_w == 3 && k->stride_h == 1 && k->stride_w == 1 &&
           k->dilation_h == 1 && k->dilation_w == 1;
}

static void run_outputs(plane_block *b)
{
    const int64_t count = (b->of.rows - 1) * b->of.part_row + b->of.columns;
    const bool is_plain = is_plain_3x3(b->k);
    int64_t i = 0;
    do { /* there is an output */
        const int64_t left = count - i;
        if (is_plain && left > STEP / 2) run_3x3(VECTORS, b, i);
        else if (is_plain) run_3x3(VECTORS / 2, b, i);
        else if (left > STEP / 2) run_vectors(VECTORS, b, i);
        else if (left > SP_VECTOR) run_vectors(VECTORS / 2, b, i);
        else run_vectors(1, b, i);
        i += STEP;
    } while (i < count);
}

/* ---- the plane ---- */

static void run_block(plane_block *b, const float *bias, float *y)
{
    const sp_conv_constants *k = b->k;
    const sp_plane_block *of = &b->of;
    sp_plane_copy(&b->of, b->x, 0);
    run_outputs(b);
    for (int64_t r = 0; r < of->rows; r++) {
        const float *from = of->outputs + r * of->part_row;
        float *to = y + r * k->out_w;
        for (int64_t c = 0; c < of->columns; c += SP_VECTOR) {
            sp_vector v = sp_vector_load(from + c);
            if (bias != NULL) v += sp_vector_splat(*bias);
            sp_vector_store_first(to + c, of->columns - c, sp_vector_canonical(v));
        }
    }
    sp_activate(k->activation, y, of->rows, k->out_w, of->columns);
}

static void run_plane(plane_block *b, const float *bias, float *y)
{
    const sp_conv_constants *k = b->k;
    sp_plane_block *of = &b->of;
    int64_t rows, columns;
    sp_plane_choose(&of->window, k->out_h, &rows, &columns);
    for (of->row = 0; of->row < k->out_h; of->row += rows) {
        of->rows = sp_size_least(rows, k->out_h - of->row);
        for (of->column = 0; of->column < k->out_w; of->column += columns) {
            of->columns = sp_size_least(columns, k->out_w - of->column);
            run_block(b, bias, y + of->row * k->out_w + of->column);
        }
    }
}

sp_status SP_KERNEL(conv_depthwise_f32)(const sp_tile *tile)
{
    const sp_conv_constants *k = tile->constants;
    const float *x = tile->bindings[0], *w = tile->bindings[1];
    const float *bias = k->has_bias ? tile->bindings[2] : NULL;
    float *y = tile->bindings[k->has_bias ? 3 : 2];
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->planes);
    plane_block block;
    block.k = k;
    block.of.window = (sp_plane_window)SP_PLANE_WINDOW(k);
    for (int64_t plane = first; plane < last; plane++) {
        const int64_t filter = plane % k->groups;
        block.x = x + plane * k->in_h * k->in_w;
        block.w = w + filter * k->kernel_h * k->kernel_w;
        run_plane(&block, bias != NULL ? bias + filter : NULL, y + plane * k->out_h * k->out_w);
    }
    return SP_OK;
}
