/* SPDX-License-Identifier: Apache-2.0 */
/* Where a coordinate of a GridSample reads along one axis, and with which weights. Computed in
 * double, without fused operations, the nearest pixel in float; the weights are then rounded to
 * float. One text for all devices (math_f32.h); after the constants of ops/copy_constants.h. */
#ifndef SP_OPS_MATH_GRID_SAMPLE_H
#define SP_OPS_MATH_GRID_SAMPLE_H

#define SP_GRID_TAPS 4

/* An index of -1 is outside: it reads 0. */
typedef struct sp_grid_taps {
    int64_t index[SP_GRID_TAPS];
    sp_f32 weight[SP_GRID_TAPS];
    int32_t count;
} sp_grid_taps;

/* Coordinates at whose distance an axis is reflected. */
typedef struct sp_grid_ends {
    sp_f64 low, high;
} sp_grid_ends;

SP_MATH_INLINE sp_f64 sp_grid_floor(sp_f64 x) /* |x| <= 2^53 */
{
    const sp_f64 whole = (double)(int64_t)x;
    return whole > x ? whole - 1.0 : whole;
}

SP_MATH_INLINE bool sp_grid_is_odd(sp_f64 whole)
{
    return whole != 2.0 * sp_grid_floor(whole * 0.5);
}

/* To nearest, ties to even. */
SP_MATH_INLINE sp_f64 sp_grid_round(sp_f64 x)
{
    const sp_f64 low = sp_grid_floor(x), part = x - low;
    const bool is_up = part > 0.5 || (part == 0.5 && sp_grid_is_odd(low));
    return is_up ? low + 1.0 : low;
}

SP_MATH_INLINE sp_grid_ends sp_grid_ends_of(int64_t size, bool align_corners)
{
    const sp_f64 wide = (double)size;
    const sp_f64 half = 0.5;
    sp_grid_ends ends = {0.0, wide - 1.0};
    if (align_corners) return ends;
    ends.low = -half;
    ends.high = wide - half;
    return ends;
}

/* Of a grid's number. */
SP_MATH_INLINE sp_f64 sp_grid_coordinate(sp_f32 number, int64_t size, bool align_corners)
{
    const sp_f64 wide = (double)size;
    const sp_f64 own = (double)number, from = own + 1.0;
    return align_corners ? from * 0.5 * (wide - 1.0) : (from * wide - 1.0) * 0.5;
}

/* The pixel nearest to it. In float, as in PyTorch and ONNX Runtime: grids often have places
 * between two pixels, whose numbers are rounded, and the rounding here decides for one of them. */
SP_MATH_INLINE sp_f64 sp_grid_nearest(sp_f32 number, int64_t size, bool align_corners)
{
    const sp_f32 wide = (float)size, last = (float)(size - 1), from = number + 1.0f;
    return (double)(align_corners ? from * 0.5f * last : (from * wide - 1.0f) * 0.5f);
}

/* Within 2^50; a NaN is far below the axis. */
SP_MATH_INLINE sp_f64 sp_grid_bounded(sp_f64 x)
{
    const sp_f64 far = 1125899906842624.0;
    return x > far ? far : x >= -far ? x : -far;
}

SP_MATH_INLINE sp_f64 sp_grid_reflect(sp_f64 x, sp_grid_ends ends)
{
    const sp_f64 range = ends.high - ends.low;
    if (range <= 0.0) return ends.low;
    if (x >= ends.low && x <= ends.high) return x;
    const bool is_below = x < ends.low;
    const sp_f64 distance = is_below ? ends.low - x : x - ends.high;
    const sp_f64 times = sp_grid_floor(distance / range), rest = distance - times * range;
    return is_below != sp_grid_is_odd(times) ? ends.low + rest : ends.high - rest;
}

SP_MATH_INLINE int64_t sp_grid_clamp(int64_t index, int64_t size)
{
    return index < 0 ? 0 : index < size ? index : size - 1;
}

SP_MATH_INLINE int64_t sp_grid_index(sp_f64 whole, int64_t size, uint32_t padding,
                                     sp_grid_ends ends)
{
    const int64_t index = (int64_t)whole;
    if (padding == SP_GRID_ZEROS) return index >= 0 && index < size ? index : -1;
    if (padding == SP_GRID_BORDER) return sp_grid_clamp(index, size);
    return sp_grid_clamp((int64_t)sp_grid_reflect(whole, ends), size);
}

/* The weight of the cubic convolution with a = -0.75, at a distance below 1, and from 1 to 2. */
SP_MATH_INLINE sp_f64 sp_grid_cubic_near(sp_f64 d)
{
    return (1.25 * d - 2.25) * d * d + 1.0;
}

SP_MATH_INLINE sp_f64 sp_grid_cubic_far(sp_f64 d)
{
    return ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0;
}

SP_MATH_INLINE sp_grid_taps sp_grid_taps_of(sp_f32 number, int64_t size,
                                            const sp_grid_sample_constants *k)
{
    const sp_grid_ends ends = sp_grid_ends_of(size, k->align_corners);
    const sp_f64 last = (double)(size - 1);
    const bool is_nearest = k->mode == SP_GRID_NEAREST;
    sp_f64 x = sp_grid_bounded(is_nearest ? sp_grid_nearest(number, size, k->align_corners)
                                          : sp_grid_coordinate(number, size, k->align_corners));
    if (is_nearest) x = sp_grid_round(x);
    /* The taps of a cubic are clamped each. */
    const bool is_clamped = k->padding == SP_GRID_BORDER && k->mode != SP_GRID_CUBIC;
    if (is_clamped) x = x < 0.0 ? 0.0 : x > last ? last : x;
    if (k->padding == SP_GRID_REFLECTION) x = sp_grid_reflect(x, ends);
    sp_f64 low = is_nearest ? sp_grid_round(x) : sp_grid_floor(x);
    const sp_f64 part = x - low;
    sp_grid_taps taps;
    taps.count = 1;
    taps.weight[0] = 1.0f;
    if (k->mode == SP_GRID_LINEAR) {
        taps.count = 2;
        taps.weight[0] = (float)(1.0 - part);
        taps.weight[1] = (float)part;
    } else if (k->mode == SP_GRID_CUBIC) {
        taps.count = 4;
        taps.weight[0] = (float)sp_grid_cubic_far(part + 1.0);
        taps.weight[1] = (float)sp_grid_cubic_near(part);
        taps.weight[2] = (float)sp_grid_cubic_near(1.0 - part);
        taps.weight[3] = (float)sp_grid_cubic_far(2.0 - part);
        low = low - 1.0;
    }
    for (int32_t i = 0; i < taps.count; i++) {
        taps.index[i] = sp_grid_index(low + (double)i, size, k->padding, ends);
    }
    return taps;
}

/* The value at rows `h` and columns `w` of a plane: a chain over the columns of each row, and one
 * over the rows; an element by itself is as it is. */
SP_MATH_INLINE sp_f32 sp_grid_value(const float *plane, int64_t width, const sp_grid_taps *h,
                                    const sp_grid_taps *w)
{
    if (h->count == 1) {
        const bool is_inside = h->index[0] >= 0 && w->index[0] >= 0;
        return is_inside ? plane[h->index[0] * width + w->index[0]] : 0.0f;
    }
    sp_f32 sum = 0.0f;
    for (int32_t i = 0; i < h->count; i++) {
        sp_f32 row = 0.0f;
        for (int32_t j = 0; j < w->count; j++) {
            const bool is_inside = h->index[i] >= 0 && w->index[j] >= 0;
            const sp_f32 x = is_inside ? plane[h->index[i] * width + w->index[j]] : 0.0f;
            row = sp_fmaf(w->weight[j], x, row);
        }
        sum = sp_fmaf(h->weight[i], row, sum);
    }
    return sum;
}

#endif
