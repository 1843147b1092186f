/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum and average over windows of up to three dimensions: small ones over planes by
 * pool_blocks.h; otherwise a row of outputs is computed in blocks, tap by tap, so that neighbouring
 * outputs vectorise. */
#include "ops/cpu/conv/pool_blocks.h"

enum { COLUMNS = SP_LANE_COLUMNS };

/* A block of one output row of one plane. */
typedef struct row_block {
    const sp_window_constants *k;
    const float *plane;     /* input */
    int64_t oz, oy, column; /* first output */
    int64_t width;          /* outputs, at most COLUMNS */
} row_block;

static sp_tap_range clip_window(const sp_window_constants *k, int axis, int64_t index)
{
    return sp_clip_taps(window_start(k, axis, index), k->dilation[axis], k->kernel[axis],
                        k->in[axis]);
}

/* Joins one tap of all outputs of the block to `lane`. Strides of 1 and 2 are compile-time
 * constants, so the loop vectorises. */
static SP_ALWAYS_INLINE void join_taps(float *lane, const float *x, const int64_t stride,
                                       sp_tap_range range, float (*const join)(float, float))
{
    SP_INDEPENDENT for (int64_t c = range.first; c < range.last; c++)
    {
        lane[c] = join(lane[c], x[c * stride]);
    }
}

/* A NaN is kept; of equals the first. */
static SP_ALWAYS_INLINE float first_max(float best, float x)
{
    return x > best || x != x ? x : best;
}

static void tap_max(float *lane, const float *x, int64_t stride, sp_tap_range range)
{
    if (stride == 1) join_taps(lane, x, 1, range, first_max);
    else if (stride == 2) join_taps(lane, x, 2, range, first_max);
    else join_taps(lane, x, stride, range, first_max);
}

static void tap_sum(float *lane, const float *x, int64_t stride, sp_tap_range range)
{
    if (stride == 1) join_taps(lane, x, 1, range, sp_add_f32);
    else if (stride == 2) join_taps(lane, x, 2, range, sp_add_f32);
    else join_taps(lane, x, stride, range, sp_add_f32);
}

/* The lanes that a tap joins, one for each output of the block. */
typedef float *lane_of_tap(void *lanes, int64_t tap);

static float *only_lane(void *lanes, int64_t tap)
{
    (void)tap;
    return lanes;
}

static float *lane_in_turn(void *lanes, int64_t tap)
{
    return (float *)lanes + tap % SP_LANES * COLUMNS;
}

static float *lane_in_levels(void *levels, int64_t tap)
{
    sp_levels_f32 *s = levels;
    sp_levels_enter_f32(s, tap / SP_REDUCTION_BLOCK);
    return lane_in_turn(s->lanes, tap % SP_REDUCTION_BLOCK);
}

/* Every tap of the window in order, except padding. */
static SP_ALWAYS_INLINE void run_taps(const row_block *s, void *lanes, lane_of_tap *const lane,
                                      void (*const tap)(float *, const float *, int64_t,
                                                        sp_tap_range))
{
    const sp_window_constants *k = s->k;
    const sp_tap_range planes = clip_window(k, 0, s->oz), rows = clip_window(k, 1, s->oy);
    const int64_t z0 = window_start(k, 0, s->oz), y0 = window_start(k, 1, s->oy);
    const int64_t x0 = window_start(k, 2, s->column);
    /* Columns of the kernel with an input for some output of the block. */
    const int64_t beyond = (s->width - 1) * k->stride[2];
    const sp_tap_range columns =
        sp_clip_taps(x0 + beyond, k->dilation[2], k->kernel[2], k->in[2] + beyond);
    for (int64_t i = planes.first; i < planes.last; i++) {
        for (int64_t j = rows.first; j < rows.last; j++) {
            const int64_t z = z0 + i * k->dilation[0], y = y0 + j * k->dilation[1];
            const float *row = s->plane + (z * k->in[1] + y) * k->in[2];
            const int64_t first = (i * k->kernel[1] + j) * k->kernel[2];
            for (int64_t t = columns.first; t < columns.last; t++) {
                const int64_t x = x0 + t * k->dilation[2];
                tap(lane(lanes, first + t), row + x, k->stride[2],
                    sp_clip_taps(x, k->stride[2], s->width, k->in[2]));
            }
        }
    }
}

static void max_row_block(const row_block *s, float *y)
{
    float best[COLUMNS];
    for (int64_t c = 0; c < COLUMNS; c++) best[c] = -__builtin_inff();
    run_taps(s, best, only_lane, tap_max);
    for (int64_t c = 0; c < s->width; c++) y[c] = sp_canonical(best[c]);
}

/* Sums over windows of more than SP_REDUCTION_BLOCK taps. */
static SP_NOINLINE void sum_long_windows(const row_block *s, float *sums)
{
    float lanes[SP_LEVEL_LANES * COLUMNS];
    sp_levels_f32 levels;
    sp_levels_begin_f32(&levels, lanes, COLUMNS, false);
    run_taps(s, &levels, lane_in_levels, tap_sum);
    memcpy(sums, sp_levels_end_f32(&levels), COLUMNS * sizeof(*sums));
}

/* Afterwards lanes[c] is the sum of output c. */
static void sum_windows(const row_block *s, int64_t taps, float *lanes)
{
    const int64_t used = taps < SP_LANES ? taps : SP_LANES;
    memset(lanes, 0, (size_t)(used * COLUMNS) * sizeof(*lanes));
    run_taps(s, lanes, lane_in_turn, tap_sum);
    sp_lanes_sum_f32(lanes, COLUMNS, taps);
}

static void average_row_block(const row_block *s, float *y)
{
    const sp_window_constants *k = s->k;
    const int64_t taps = k->kernel[0] * k->kernel[1] * k->kernel[2];
    float lanes[SP_LANES * COLUMNS];
    if (taps > SP_REDUCTION_BLOCK) sum_long_windows(s, lanes);
    else sum_windows(s, taps, lanes);
    const int64_t outside = count_taps(k, 0, s->oz) * count_taps(k, 1, s->oy);
    for (int64_t c = 0; c < s->width; c++) {
        const int64_t count = outside * count_taps(k, 2, s->column + c);
        y[c] = sp_canonical(lanes[c] / (float)count);
    }
}

/* Row number `row` of the whole output. */
static SP_ALWAYS_INLINE void run_row(const sp_window_constants *k, const float *x, int64_t row,
                                     float *y, void (*const run)(const row_block *, float *))
{
    const int64_t plane = row / (k->out[0] * k->out[1]);
    row_block s = {.k = k,
                   .plane = x + plane * k->in[0] * k->in[1] * k->in[2],
                   .oz = row / k->out[1] % k->out[0],
                   .oy = row % k->out[1]};
    /* Outputs without common inputs are computed one by one, since any amount of padding may be
     * between them. */
    const int64_t most = k->stride[2] < k->in[2] ? COLUMNS : 1;
    for (s.column = 0; s.column < k->out[2]; s.column += most) {
        s.width = k->out[2] - s.column < most ? k->out[2] - s.column : most;
        run(&s, y + row * k->out[2] + s.column);
    }
}

sp_status SP_KERNEL(average_pool_f32)(const sp_tile *tile)
{
    const sp_window_constants *k = tile->constants;
    const int64_t rows = k->planes * k->out[0] * k->out[1];
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, rows);
    if (fits_blocks(k)) {
        average_blocks(k, tile->bindings[0], tile->bindings[1], first, last);
        return SP_OK;
    }
    for (int64_t row = first; row < last; row++) {
        run_row(k, tile->bindings[0], row, tile->bindings[1], average_row_block);
    }
    return SP_OK;
}

/* Maximum over windows of one or two spatial dimensions. Padding counts as -inf, a window that is
 * all padding gives -inf. A NaN in the window gives the canonical NaN; of +0 and -0 the first in
 * window order is taken. */
sp_status SP_KERNEL(max_pool_f32)(const sp_tile *tile)
{
    const sp_pool_constants *k = tile->constants;
    const sp_window_constants window = {
        .in = {1, k->in_h, k->in_w},
        .out = {1, k->out_h, k->out_w},
        .kernel = {1, k->kernel_h, k->kernel_w},
        .stride = {1, k->stride_h, k->stride_w},
        .dilation = {1, k->dilation_h, k->dilation_w},
        .pad = {0, k->pad_top, k->pad_left},
    };
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->planes);
    if (fits_blocks(&window)) {
        max_blocks(&window, tile->bindings[0], tile->bindings[1], first * k->out_h,
                   last * k->out_h);
        return SP_OK;
    }
    for (int64_t row = first * k->out_h; row < last * k->out_h; row++) {
        run_row(&window, tile->bindings[0], row, tile->bindings[1], max_row_block);
    }
    return SP_OK;
}
