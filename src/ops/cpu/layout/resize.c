/* SPDX-License-Identifier: Apache-2.0 */
/* Resize along one axis. Input coordinates and weights of neighbours are computed in doubles, by
 * operations that round the same on every processor; for f32 the weights are then rounded to float,
 * and an output is one chain over its neighbours in order. */
#include "ops/cpu/arch/typed.h"

/* Neighbours whose weights are computed at a time. */
enum { TAPS = 64 };

static double floor_of(double x)
{
    const double whole = (double)(int64_t)x;
    return whole > x ? whole - 1 : whole;
}

/* Clamps to [-2^52, 2^52], where every integer is a double; NaN becomes the lower end. */
static double clamp_coordinate(double x)
{
    const double limit = 4503599627370496.0;
    return x > limit ? limit : x >= -limit ? x : -limit;
}

/* The input coordinate of output x in a crop. */
static double crop_coordinate(const sp_resize_constants *k, double x)
{
    const double last = (double)(k->in - 1), reach = (k->crop_end - k->crop_start) * last;
    const double step = k->width == 1 ? reach / 2 : x * reach / (k->width - 1);
    return step + k->crop_start * last;
}

/* Numbers that depend on the roi only are rounded to float: with 6 elements a roi of 0.1 begins at
 * 0.5, a tie, not at 0.5 + 2^-27. */
static double crop_coordinate_f32(const sp_resize_constants *k, double x)
{
    const float start = (float)k->crop_start, length = (float)k->crop_end - start;
    const float last = (float)(k->in - 1);
    const double first = (double)(start * last);
    if (k->width == 1) return first + (double)(length * last / 2);
    return x * (double)length * (double)(k->in - 1) / (k->width - 1) + first;
}

/* Output length x in input elements; exact if the result is a double. */
static double to_input(const sp_resize_constants *k, double x)
{
    return x * k->numerator / k->denominator;
}

static double input_coordinate(const sp_resize_constants *k, int64_t at)
{
    const double x = (double)at, last = (double)(k->in - 1);
    switch (k->coordinate) {
    case SP_RESIZE_ALIGN_CORNERS:
        return k->width == 1 ? 0 : x * last / (k->width - 1);
    case SP_RESIZE_ASYMMETRIC:
        return to_input(k, x);
    case SP_RESIZE_TF_HALF_PIXEL:
        return to_input(k, x + 0.5);
    case SP_RESIZE_PYTORCH_HALF_PIXEL:
        return k->out == 1 ? 0 : to_input(k, x + 0.5) - 0.5;
    case SP_RESIZE_HALF_PIXEL_SYMMETRIC: {
        const double offset = (double)k->in / 2 * (1 - (double)k->out / k->width);
        return offset + to_input(k, x + 0.5) - 0.5;
    }
    case SP_RESIZE_CROP:
        return crop_coordinate(k, x);
    case SP_RESIZE_CROP_F32:
        return crop_coordinate_f32(k, x);
    case SP_RESIZE_ASYMMETRIC_F32: {
        const double place = to_input(k, x);
        return place < 0x1p23 ? (double)(float)place : place;
    }
    default:
        return to_input(k, x + 0.5) - 0.5;
    }
}

static bool is_outside(const sp_resize_constants *k, double place)
{
    const bool is_crop = k->coordinate == SP_RESIZE_CROP || k->coordinate == SP_RESIZE_CROP_F32;
    return is_crop && !(place >= 0 && place <= (double)(k->in - 1));
}

static int64_t clamp_index(int64_t index, int64_t size)
{
    return index < 0 ? 0 : index < size ? index : size - 1;
}

/* ---- nearest ---- */

static int64_t nearest_index(const sp_resize_constants *k, double place)
{
    const double low = floor_of(place), part = place - low;
    bool is_up = part > 0;
    if (k->rounding == SP_RESIZE_PREFER_FLOOR) is_up = part > 0.5;
    if (k->rounding == SP_RESIZE_PREFER_CEIL) is_up = part >= 0.5;
    if (k->rounding == SP_RESIZE_FLOOR) is_up = false;
    return clamp_index((int64_t)low + is_up, k->in);
}

static SP_ALWAYS_INLINE void copy_column(const sp_tile *tile, int64_t first, int64_t end,
                                         int64_t at, const int64_t bytes)
{
    const sp_resize_constants *k = tile->constants;
    const double place = clamp_coordinate(input_coordinate(k, at));
    const int64_t from = is_outside(k, place) ? -1 : nearest_index(k, place);
    const int64_t row_bytes = k->inner * bytes;
    for (int64_t o = first; o < end; o++) {
        char *y = (char *)tile->bindings[1] + (o * k->out + at) * row_bytes;
        if (from >= 0) {
            const char *x = (const char *)tile->bindings[0] + (o * k->in + from) * row_bytes;
            if (k->inner == 1) memcpy(y, x, (size_t)bytes);
            else memcpy(y, x, (size_t)row_bytes);
            continue;
        }
        for (int64_t i = 0; i < k->inner; i++) memcpy(y + i * bytes, &k->outside, (size_t)bytes);
    }
}

sp_status SP_KERNEL(resize_nearest)(const sp_tile *tile)
{
    const sp_resize_constants *k = tile->constants;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->outer);
    for (int64_t at = 0; at < k->out; at++) {
        if (k->element_bytes == 4) copy_column(tile, first, end, at, 4);
        else copy_column(tile, first, end, at, k->element_bytes);
    }
    return SP_OK;
}

/* ---- linear and cubic ---- */

/* The filter's value at a distance; cubic with coefficient a. */
static double filter_value(const sp_resize_constants *k, double distance)
{
    const double x = distance < 0 ? -distance : distance;
    if (!k->is_cubic) return x < 1 ? 1 - x : 0;
    const double a = (double)k->cubic;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

/* The neighbours of one coordinate: `count` inputs from `first` on, which may be out of range. */
typedef struct neighbours {
    double place, stretch; /* antialiasing: the filter is wider if the axis becomes shorter */
    double total;          /* divisor of all weights */
    int64_t first, count;
} neighbours;

static double neighbour_weight(const sp_resize_constants *k, const neighbours *n, int64_t index)
{
    if (k->excludes_outside && (index < 0 || index >= k->in)) return 0;
    return filter_value(k, ((double)index - n->place) * n->stretch);
}

static neighbours find_neighbours(const sp_resize_constants *k, double place)
{
    neighbours n = {.place = place, .total = 1, .stretch = 1};
    if (k->is_antialiased && k->scale < 1) n.stretch = k->scale;
    const double reach = clamp_coordinate((k->is_cubic ? 2 : 1) / n.stretch);
    /* The left neighbour is strictly below the coordinate. */
    const int64_t left = -(int64_t)floor_of(-place) - 1;
    const int64_t start = (int64_t)floor_of(-reach) + 1;
    n.first = left + start;
    n.count = 2 - 2 * start;
    if (!k->is_antialiased && !k->excludes_outside) return n;
    n.total = 0;
    for (int64_t i = 0; i < n.count; i++) n.total += neighbour_weight(k, &n, n.first + i);
    return n;
}

/* f32: weights are rounded to float, steps of a chain are fused. f64: products and sums are
 * rounded. */
#define SP_TYPE f32
#include "ops/cpu/layout/resize.inc.h"
#define SP_TYPE f64
#include "ops/cpu/layout/resize.inc.h"
