/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution with one input channel and one filter per group. Same sum as conv_f32: over (kernel
 * row, kernel column), in segments, padding taps included, then the bias, then the activation.
 *
 * A block of outputs of one plane is computed as if it were one row. Its padded input is copied,
 * with elements that are a stride apart next to each other: then a tap has a constant distance from
 * its output, and vectors span rows. What they compute between two rows is not used. */
#include "base/macros.h"
#include "ops/cpu/conv/conv_gather.h"
#include "ops/cpu/gemm/activate.h"

enum { INPUT = SP_DEPTHWISE_INPUT, STEP = 64, VECTORS = STEP / SP_VECTOR };

/* The copied input is in parts, one for each pair of remainders that a padded coordinate leaves
 * when it is divided by the strides. */
typedef struct plane_block {
    const sp_conv_constants *k;
    const float *x, *w;          /* of the plane */
    int64_t row, column;         /* the first output */
    int64_t rows, columns;       /* outputs */
    int64_t part_rows, part_row; /* of a part: rows, elements of one */
    float input[INPUT + STEP];   /* [stride_h][stride_w][part_rows][part_row] */
    float outputs[INPUT + STEP]; /* [rows][part_row] */
} plane_block;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the block ---- */

/* Rows of a part beyond those of the outputs, and elements of a row beyond theirs. */
static int64_t more_rows(const sp_conv_constants *k)
{
    return (k->kernel_h - 1) * k->dilation_h / k->stride_h;
}

static int64_t more_columns(const sp_conv_constants *k)
{
    return (k->kernel_w - 1) * k->dilation_w / k->stride_w;
}

/* The most outputs whose input fits: whole rows if possible. The lowering has seen to it that some
 * fit. */
static void choose_block(const sp_conv_constants *k, int64_t *rows, int64_t *columns)
{
    const int64_t parts = k->stride_h * k->stride_w;
    const int64_t row = INPUT / parts / (1 + more_rows(k)); /* elements of a part's row, at most */
    *columns = least(k->out_w, row - more_columns(k));
    *rows = least(k->out_h, INPUT / parts / (*columns + more_columns(k)) - more_rows(k));
}

static void copy_input(plane_block *b)
{
    const sp_conv_constants *k = b->k;
    float *to = b->input;
    for (int64_t p = 0; p < k->stride_h; p++) {
        for (int64_t q = 0; q < k->stride_w; q++) {
            for (int64_t i = 0; i < b->part_rows; i++, to += b->part_row) {
                const int64_t y = (b->row + i) * k->stride_h + p - k->pad_top;
                const int64_t x = b->column * k->stride_w + q - k->pad_left;
                const float *row = y >= 0 && y < k->in_h ? b->x + y * k->in_w : NULL;
                sp_gather_row(row, k->in_w, x, k->stride_w, b->part_row, to);
            }
        }
    }
    memset(to, 0, STEP * sizeof(*to)); /* vectors of the last outputs reach beyond the input */
}

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
    const int64_t part = b->part_rows * b->part_row;
    sp_vector acc[VECTORS] = {0}, sum[VECTORS] = {0};
    int64_t left = k->segment; /* taps of the segment that are to come */
    const float *w = b->w;
    tap_place y = {0, 0};
    for (int64_t i = 0; i < k->kernel_h; i++, next_tap(&y, k->dilation_h, k->stride_h)) {
        const float *row =
            b->input + y.part * k->stride_w * part + y.distance * b->part_row + first;
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
        sp_vector_store(b->outputs + first + v * SP_VECTOR, sum[v]);
    }
}

/* Of 3 x 3 kernels, which most models have, all distances are known at once. */
static SP_ALWAYS_INLINE void run_3x3(const int64_t vectors, plane_block *b, int64_t first)
{
    const int64_t row = b->part_row;
    sp_vector sum[VECTORS] = {0};
#pragma GCC unroll 9
    for (int64_t tap = 0; tap < 9; tap++) {
        const float *taps = b->input + first + tap / 3 * row + tap % 3;
        const sp_vector weight = sp_vector_splat(b->w[tap]);
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; v++) {
            sum[v] = sp_vector_fma(weight, sp_vector_load(taps + v * SP_VECTOR), sum[v]);
        }
    }
#pragma GCC unroll 8
    for (int64_t v = 0; v < vectors; v++) {
        /* As for every sum of a chain: +0 + the chain. */
        sp_vector_store(b->outputs + first + v * SP_VECTOR, sum[v] + sp_vector_splat(0));
    }
}

static bool is_plain_3x3(const sp_conv_constants *k)
{
    return k->kernel_h == 3 && k->kernel_w == 3 && k->stride_h == 1 && k->stride_w == 1 &&
           k->dilation_h == 1 && k->dilation_w == 1;
}

static void run_outputs(plane_block *b)
{
    const int64_t count = (b->rows - 1) * b->part_row + b->columns;
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
    b->part_rows = b->rows + more_rows(k);
    b->part_row = b->columns + more_columns(k);
    copy_input(b);
    run_outputs(b);
    for (int64_t r = 0; r < b->rows; r++) {
        const float *from = b->outputs + r * b->part_row;
        float *to = y + r * k->out_w;
        for (int64_t c = 0; c < b->columns; c++) {
            to[c] = sp_canonical(bias != NULL ? from[c] + *bias : from[c]);
        }
    }
    sp_activate(k->activation, y, b->rows, k->out_w, b->columns);
}

static void run_plane(plane_block *b, const float *bias, float *y)
{
    const sp_conv_constants *k = b->k;
    int64_t rows, columns;
    choose_block(k, &rows, &columns);
    for (b->row = 0; b->row < k->out_h; b->row += rows) {
        b->rows = least(rows, k->out_h - b->row);
        for (b->column = 0; b->column < k->out_w; b->column += columns) {
            b->columns = least(columns, k->out_w - b->column);
            run_block(b, bias, y + b->row * k->out_w + b->column);
        }
    }
}

sp_status SP_KERNEL(conv_depthwise_f32)(const sp_tile *tile)
{
    const sp_conv_constants *k = tile->constants;
    const float *x = tile->bindings[0], *w = tile->bindings[1];
    const float *bias = k->has_bias ? tile->bindings[2] : NULL;
    float *y = tile->bindings[k->has_bias ? 3 : 2];
    const int64_t first = tile->index[0] * k->tile_planes;
    const int64_t last = least(first + k->tile_planes, k->planes);
    plane_block block;
    block.k = k;
    for (int64_t plane = first; plane < last; plane++) {
        const int64_t filter = plane % k->groups;
        block.x = x + plane * k->in_h * k->in_w;
        block.w = w + filter * k->kernel_h * k->kernel_w;
        run_plane(&block, bias != NULL ? bias + filter : NULL, y + plane * k->out_h * k->out_w);
    }
    return SP_OK;
}
