/* SPDX-License-Identifier: Apache-2.0 */
/* Pools over planes, in the blocks of plane_block.h: every tap of a window is a constant distance
 * from its output, so vectors of outputs are computed tap by tap, in window order. */
#ifndef SP_OPS_CPU_CONV_POOL_BLOCKS_H
#define SP_OPS_CPU_CONV_POOL_BLOCKS_H

#include "ops/cpu/conv/plane_block.h"
#include "ops/cpu/reduce/lane_tree.h"

/* Vectors that are computed together, and the most taps of a window. */
enum { SP_POOL_VECTORS = 4, SP_POOL_TAPS = 256 };

/* Distances of the taps of a window in a block's input. One more, equal to the last one, makes
 * their number even. */
typedef struct pool_taps {
    int64_t part_rows, part_row; /* of the block that they are for */
    int64_t count;
    int32_t distances[SP_POOL_TAPS + 1];
} pool_taps;

typedef struct pool_block {
    const sp_window_constants *k;
    sp_plane_block of;
    pool_taps taps;
    int64_t counted;              /* average: the column that the counts begin at; -1 at first */
    float counts[SP_PLANE_INPUT]; /* columns of the window that count */
} pool_block;

/* First coordinate of the window of output `index` along `axis`; may be in the padding. */
static int64_t window_start(const sp_window_constants *k, int axis, int64_t index)
{
    return index * k->stride[axis] - k->pad[axis];
}

/* Number of taps along one axis that an average counts. */
static int64_t count_taps(const sp_window_constants *k, int axis, int64_t index)
{
    const int64_t before = k->counts_padding ? k->pad[axis] : 0;
    const int64_t size = k->in[axis] + before + (k->counts_padding ? k->end[axis] : 0);
    const sp_tap_range range = sp_clip_taps(window_start(k, axis, index) + before,
                                            k->dilation[axis], k->kernel[axis], size);
    return range.last - range.first;
}

/* ---- the window ---- */

/* One dimension: the window is small, and leaves no input out between two outputs, so that no input
 * is copied in vain. */
static bool is_compact(const sp_window_constants *k, int axis)
{
    return k->kernel[axis] <= SP_POOL_TAPS &&
           k->stride[axis] <= (k->kernel[axis] - 1) * k->dilation[axis] + 1;
}

/* Whether blocks of the window have at least 16 outputs. */
static bool fits_blocks(const sp_window_constants *k)
{
    const int64_t rows = k->stride[1] + (k->kernel[1] - 1) * k->dilation[1];
    const int64_t columns = 16 * k->stride[2] + (k->kernel[2] - 1) * k->dilation[2];
    return k->in[0] == 1 && k->kernel[0] == 1 && k->out[0] == 1 && k->pad[0] == 0 &&
           k->end[0] == 0 && is_compact(k, 1) && is_compact(k, 2) &&
           k->kernel[1] * k->kernel[2] <= SP_POOL_TAPS && rows <= SP_PLANE_INPUT &&
           columns <= SP_PLANE_INPUT && rows * columns <= SP_PLANE_INPUT;
}

static sp_plane_window plane_window(const sp_window_constants *k)
{
    return (sp_plane_window){.in_h = k->in[1],
                             .in_w = k->in[2],
                             .out_w = k->out[2],
                             .kernel_h = k->kernel[1],
                             .kernel_w = k->kernel[2],
                             .stride_h = k->stride[1],
                             .stride_w = k->stride[2],
                             .dilation_h = k->dilation[1],
                             .dilation_w = k->dilation[2],
                             .pad_top = k->pad[1],
                             .pad_left = k->pad[2]};
}

static void find_taps(pool_block *b)
{
    const sp_plane_window *w = &b->of.window;
    pool_taps *taps = &b->taps;
    if (taps->part_rows == b->of.part_rows && taps->part_row == b->of.part_row) return;
    taps->part_rows = b->of.part_rows;
    taps->part_row = b->of.part_row;
    taps->count = 0;
    int32_t distance = 0;
    const int64_t part = taps->part_rows * taps->part_row;
    for (int64_t i = 0; i < w->kernel_h; i++) {
        const int64_t y = i * w->dilation_h;
        const int64_t row = y % w->stride_h * w->stride_w * part + y / w->stride_h * taps->part_row;
        for (int64_t j = 0; j < w->kernel_w; j++) {
            const int64_t x = j * w->dilation_w;
            distance = (int32_t)(row + x % w->stride_w * part + x / w->stride_w);
            taps->distances[taps->count++] = distance;
        }
    }
    taps->distances[taps->count] = distance;
}

/* ---- vectors of outputs ---- */

/* Of equals the first; a NaN is found by comparing two taps with each other. A tap that comes twice
 * changes nothing. */
static SP_ALWAYS_INLINE void max_vectors(const int64_t vectors, const pool_taps *taps,
                                         const float *x, float *y)
{
    const sp_vector not_a_number = sp_vector_splat(sp_float_from_bits(0x7fc00000u));
    sp_vector best[SP_POOL_VECTORS];
    sp_vector_mask has_nan[SP_POOL_VECTORS] = {0};
    for (int64_t v = 0; v < vectors; v++) best[v] = sp_vector_splat(-__builtin_inff());
    for (int64_t t = 0; t < taps->count; t += 2) {
        const float *a = x + taps->distances[t], *b = x + taps->distances[t + 1];
#pragma GCC unroll 4
        for (int64_t v = 0; v < vectors; v++) {
            const sp_vector first = sp_vector_load(a + v * SP_VECTOR);
            const sp_vector second = sp_vector_load(b + v * SP_VECTOR);
            has_nan[v] |= sp_vector_unordered(first, second);
            best[v] = sp_vector_larger(second, sp_vector_larger(first, best[v]));
        }
    }
#pragma GCC unroll 4
    for (int64_t v = 0; v < vectors; v++) {
        sp_vector_store(y + v * SP_VECTOR, sp_vector_select(has_nan[v], not_a_number, best[v]));
    }
}

/* The sum of lanes.h. A tap in the padding joins no lane; to add 0, which it is here, is the same,
 * since no lane is -0. `count` is a constant after inlining where it is below 16. */
static SP_ALWAYS_INLINE void sum_vector(const int64_t count, const pool_taps *taps, const float *x,
                                        float *y)
{
    sp_vector lanes[SP_LANES] = {0};
#pragma GCC unroll 9
    for (int64_t t = 0; t < count; t++) {
        lanes[t % SP_LANES] += sp_vector_load(x + taps->distances[t]);
    }
    sp_vector_store(y, sp_lane_tree_sum(count, lanes));
}

/* ---- blocks ---- */

static int64_t output_count(const pool_block *b)
{
    return (b->of.rows - 1) * b->of.part_row + b->of.columns;
}

static void max_block(pool_block *b, float *y)
{
    enum { STEP = SP_POOL_VECTORS * SP_VECTOR };
    const int64_t count = output_count(b);
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        max_vectors(SP_POOL_VECTORS, &b->taps, b->of.input + i, b->of.outputs + i);
    }
    for (; i < count; i += SP_VECTOR) {
        max_vectors(1, &b->taps, b->of.input + i, b->of.outputs + i);
    }
    for (int64_t r = 0; r < b->of.rows; r++, y += b->of.window.out_w) {
        const float *from = b->of.outputs + r * b->of.part_row;
        for (int64_t c = 0; c < b->of.columns; c += SP_VECTOR) {
            sp_vector_store_first(y + c, b->of.columns - c, sp_vector_load(from + c));
        }
    }
}

static void count_columns(pool_block *b)
{
    if (b->counted == b->of.column) return;
    b->counted = b->of.column;
    for (int64_t c = 0; c < b->of.columns; c++) {
        b->counts[c] = (float)count_taps(b->k, 2, b->of.column + c);
    }
}

static void average_block(pool_block *b, float *y)
{
    const int64_t count = output_count(b);
    for (int64_t i = 0; i < count; i += SP_VECTOR) {
        const float *x = b->of.input + i;
        float *sums = b->of.outputs + i;
        if (b->taps.count == 9) sum_vector(9, &b->taps, x, sums);
        else if (b->taps.count == 4) sum_vector(4, &b->taps, x, sums);
        else sum_vector(b->taps.count, &b->taps, x, sums);
    }
    count_columns(b);
    for (int64_t r = 0; r < b->of.rows; r++, y += b->of.window.out_w) {
        const float *sums = b->of.outputs + r * b->of.part_row;
        /* Products of numbers of taps are exact. */
        const float rows = (float)count_taps(b->k, 1, b->of.row + r);
        for (int64_t c = 0; c < b->of.columns; c += SP_VECTOR) {
            const sp_vector taps = sp_vector_splat(rows) * sp_vector_load(b->counts + c);
            sp_vector_store_first(y + c, b->of.columns - c,
                                  sp_vector_canonical(sp_vector_load(sums + c) / taps));
        }
    }
}

/* ---- planes ---- */

/* Rows [first, last) of the outputs of plane x; y is the plane's. */
static SP_ALWAYS_INLINE void run_plane_rows(pool_block *b, const float *x, float *y, int64_t first,
                                            int64_t last, const float padding,
                                            void (*const run)(pool_block *, float *))
{
    sp_plane_block *of = &b->of;
    int64_t rows, columns;
    sp_plane_choose(&of->window, last - first, &rows, &columns);
    for (of->row = first; of->row < last; of->row += rows) {
        of->rows = sp_size_least(rows, last - of->row);
        for (of->column = 0; of->column < of->window.out_w; of->column += columns) {
            of->columns = sp_size_least(columns, of->window.out_w - of->column);
            sp_plane_copy(of, x, padding);
            find_taps(b);
            run(b, y + of->row * of->window.out_w + of->column);
        }
    }
}

/* Rows [first, last) of all outputs. */
static SP_ALWAYS_INLINE void run_blocks(const sp_window_constants *k, const float *x, float *y,
                                        int64_t first, int64_t last, const float padding,
                                        void (*const run)(pool_block *, float *))
{
    const int64_t out_h = k->out[1];
    pool_block block;
    block.k = k;
    block.of.window = plane_window(k);
    block.taps.part_rows = block.taps.part_row = block.taps.count = 0;
    block.counted = -1;
    while (first < last) {
        const int64_t plane = first / out_h, begin = plane * out_h;
        const int64_t end = sp_size_least(last, begin + out_h);
        run_plane_rows(&block, x + plane * k->in[1] * k->in[2], y + plane * out_h * k->out[2],
                       first - begin, end - begin, padding, run);
        first = end;
    }
}

static SP_NOINLINE void max_blocks(const sp_window_constants *k, const float *x, float *y,
                                   int64_t first, int64_t last)
{
    run_blocks(k, x, y, first, last, -__builtin_inff(), max_block);
}

static SP_NOINLINE void average_blocks(const sp_window_constants *k, const float *x, float *y,
                                       int64_t first, int64_t last)
{
    run_blocks(k, x, y, first, last, 0, average_block);
}

#endif
