/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution in up to three dimensions. The sum of one output runs over (channel,
 * kernel plane, kernel row, kernel column) in order, in segments, over the taps with an input in
 * range; taps without one keep their place in the order. Then the bias is added, rounded, then the
 * activation is applied.
 *
 * Outputs of a row at a distance of the stride use the same taps and neighbouring inputs: they are
 * computed together. */
#include "base/macros.h"
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/conv/tap_range.h"

enum { COLUMNS = 256 };

/* The taps k of [0, kernel) of padded output coordinate p: those for which (p - k * dilation) /
 * stride is an integer. They are first, first + step, ... */
typedef struct tap_steps {
    int64_t first, step;
    int64_t end; /* no tap from there on has an input */
} tap_steps;

static tap_steps find_taps(const sp_window_constants *w, int axis, int64_t place)
{
    const int64_t stride = w->stride[axis], dilation = w->dilation[axis];
    /* a and b are of_a and of_b dilations, but for whole strides; a becomes the greatest common
     * divisor of both. */
    int64_t a = stride, b = dilation % stride, of_a = 0, of_b = 1;
    while (b != 0) {
        const int64_t times = a / b, rest = a % b, of_rest = of_a - times * of_b;
        a = b;
        b = rest;
        of_a = of_b;
        of_b = of_rest;
    }
    tap_steps taps = {w->kernel[axis], stride / a, w->kernel[axis]};
    if (place % a != 0) return taps;
    if (taps.step <= INT32_MAX) {
        const int64_t each = (of_a % taps.step + taps.step) % taps.step;
        taps.first = place / a % taps.step * each % taps.step;
    } else { /* the product might overflow */
        taps.first = 0;
        while (taps.first < taps.end && (place - taps.first * dilation) % stride != 0) taps.first++;
    }
    return taps;
}

/* The same, without those before the first and behind the last one that has an input: a long kernel
 * has few of them where the input is short. */
static tap_steps find_inside(const sp_window_constants *w, int axis, int64_t place)
{
    tap_steps taps = find_taps(w, axis, place);
    const int64_t stride = w->stride[axis], dilation = w->dilation[axis];
    if (place / dilation < taps.end) taps.end = place / dilation + 1;
    if (w->in[axis] == 0) taps.end = 0;
    if (taps.first >= taps.end) return taps;
    const int64_t past = place - (w->in[axis] - 1) * stride; /* the last input */
    const int64_t least = past < stride ? 0 : (past - stride) / dilation + 1;
    if (least <= taps.first) return taps;
    if (taps.step >= taps.end) taps.first = taps.end; /* the next one is behind the end */
    else taps.first += (least - taps.first + taps.step - 1) / taps.step * taps.step;
    return taps;
}

/* The sums of the outputs of a block. */
typedef struct phase_sums {
    float acc[COLUMNS], sum[COLUMNS]; /* of the segment; of the segments before it */
    int64_t end;                      /* the first tap after the segment */
} phase_sums;

static void sums_add(phase_sums *s, int64_t width)
{
    for (int64_t c = 0; c < width; c++) {
        s->sum[c] += s->acc[c];
        s->acc[c] = 0;
    }
}

/* Outputs first, first + stride, ... of one row. */
typedef struct phase_block {
    const sp_conv_transpose_constants *k;
    const float *x, *w;              /* of the image and group; of the first channel's filter */
    int64_t z, y;                    /* of the row, in the padded output */
    int64_t column, width;           /* in steps of the stride: the first one, how many */
    tap_steps planes, rows, columns; /* taps to compute */
    int64_t phase;                   /* coordinate of column 0 in the padded output */
} phase_block;

/* All outputs of the block through one row of one channel's kernel, which begins at tap `first`. */
static void run_kernel_row(const phase_block *b, const float *row, const float *w, int64_t first,
                           phase_sums *s)
{
    const sp_window_constants *window = &b->k->window;
    float *acc = s->acc;
    for (int64_t t = b->columns.first; t < window->kernel[2]; t += b->columns.step) {
        if (SP_UNLIKELY(first + t >= s->end)) {
            sums_add(s, b->width);
            s->end = ((first + t) / b->k->segment + 1) * b->k->segment;
        }
        const int64_t back = (t * window->dilation[2] - b->phase) / window->stride[2];
        const int64_t start = b->column - back;
        const sp_tap_range range = sp_clip_taps(start, 1, b->width, window->in[2]);
        const float weight = w[t];
        const float *x = row + start;
        SP_INDEPENDENT for (int64_t c = range.first; c < range.last; c++)
        {
            acc[c] = sp_fmaf(weight, x[c], acc[c]);
        }
    }
}

/* The input coordinate of tap `t` along `axis`; -1 if out of range. */
static int64_t input_coordinate(const sp_window_constants *w, int axis, int64_t place, int64_t t)
{
    const int64_t distance = place - t * w->dilation[axis];
    if (distance < 0 || distance / w->stride[axis] >= w->in[axis]) return -1;
    return distance / w->stride[axis];
}

static void run_block(const phase_block *b, phase_sums *s)
{
    const sp_window_constants *window = &b->k->window;
    const int64_t *in = window->in, *kernel = window->kernel;
    const int64_t taps = kernel[0] * kernel[1] * kernel[2];
    const int64_t next_w = b->k->filters * taps;
    s->end = b->k->segment;
    for (int64_t channel = 0; channel < b->k->channels; channel++) {
        const float *x = b->x + channel * in[0] * in[1] * in[2];
        const float *w = b->w + channel * next_w;
        for (int64_t i = b->planes.first; i < b->planes.end; i += b->planes.step) {
            const int64_t z = input_coordinate(window, 0, b->z, i);
            for (int64_t j = b->rows.first; z >= 0 && j < b->rows.end; j += b->rows.step) {
                const int64_t y = input_coordinate(window, 1, b->y, j);
                if (y < 0) continue;
                const int64_t first = (i * kernel[1] + j) * kernel[2];
                run_kernel_row(b, x + (z * in[1] + y) * in[2], w + first, channel * taps + first,
                               s);
            }
        }
    }
    sums_add(s, b->width);
}

/* Every `stride`-th output of a row, starting at coordinate `phase` of the padded output. */
static void run_phase(phase_block *b, float bias, float *y)
{
    const sp_window_constants *window = &b->k->window;
    const int64_t stride = window->stride[2], pad = window->pad[2];
    const int64_t first = b->phase < pad ? (pad - b->phase + stride - 1) / stride : 0;
    const int64_t end = window->out[2] + pad - b->phase; /* coordinates from the phase on */
    const int64_t last = end > 0 ? (end + stride - 1) / stride : 0;
    b->columns = find_taps(window, 2, b->phase);
    for (b->column = first; b->column < last; b->column += COLUMNS) {
        phase_sums s = {.end = 0};
        b->width = last - b->column < COLUMNS ? last - b->column : COLUMNS;
        run_block(b, &s);
        float *to = y + b->column * stride + b->phase - pad;
        for (int64_t c = 0; c < b->width; c++) {
            to[c * stride] = sp_canonical(b->k->has_bias ? s.sum[c] + bias : s.sum[c]);
        }
    }
}

sp_status SP_KERNEL(conv_transpose_f32)(const sp_tile *tile)
{
    const sp_conv_transpose_constants *k = tile->constants;
    const sp_window_constants *window = &k->window;
    const float *x = tile->bindings[0], *w = tile->bindings[1];
    const float *bias = k->has_bias ? tile->bindings[2] : NULL;
    float *y = tile->bindings[k->has_bias ? 3 : 2];
    const int64_t rows = window->planes * window->out[0] * window->out[1];
    const int64_t in_plane = window->in[0] * window->in[1] * window->in[2];
    const int64_t taps = window->kernel[0] * window->kernel[1] * window->kernel[2];
    /* Phases with outputs: at most one per output if the stride is longer than the row. */
    const int64_t phases = window->stride[2] < window->out[2] ? window->stride[2] : window->out[2];
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, rows);
    for (int64_t row = first; row < last; row++) {
        const int64_t plane = row / (window->out[0] * window->out[1]);
        const int64_t group = plane / k->filters; /* of all images */
        const int64_t filter = plane % (k->groups * k->filters);
        phase_block b = {
            .k = k,
            .x = x + group * k->channels * in_plane,
            .w = w + (filter / k->filters * k->channels * k->filters + filter % k->filters) * taps,
            .z = row / window->out[1] % window->out[0] + window->pad[0],
            .y = row % window->out[1] + window->pad[1]};
        b.planes = find_inside(window, 0, b.z);
        b.rows = find_inside(window, 1, b.y);
        for (int64_t i = 0; i < phases; i++) {
            b.phase = (window->pad[2] + i) % window->stride[2];
            run_phase(&b, bias ? bias[filter] : 0, y + row * window->out[2]);
        }
        sp_activate(k->activation, y + row * window->out[2], 1, 0, window->out[2]);
    }
    return SP_OK;
}
