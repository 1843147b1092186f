/* SPDX-License-Identifier: Apache-2.0 */
/* Ops along one dimension other than reductions: ArgMax and ArgMin, Hardmax, CumSum,
 * LpNormalization; LRN; and the last step of MeanVarianceNormalization. */
#include "ops/cpu/reduce/reduction.h"
#include "ops/cpu/reduce/rows.h"
#include "ops/math/pow_f32.h"

enum { COLUMNS = SP_LANE_COLUMNS };

/* ---- index of the maximum or minimum; a NaN precedes all numbers ---- */

#define FLOAT_IS_NAN(x) ((x) != (x))
#define INT_IS_NAN(x) false

#define SP_TYPE f32
#define SP_IS_NAN FLOAT_IS_NAN
#include "ops/cpu/reduce/arg.inc.h"
#define SP_TYPE f64
#define SP_IS_NAN FLOAT_IS_NAN
#include "ops/cpu/reduce/arg.inc.h"
#define SP_TYPE i32
#define SP_IS_NAN INT_IS_NAN
#include "ops/cpu/reduce/arg.inc.h"
#define SP_TYPE i64
#define SP_IS_NAN INT_IS_NAN
#include "ops/cpu/reduce/arg.inc.h"
#define SP_TYPE i8
#define SP_IS_NAN INT_IS_NAN
#include "ops/cpu/reduce/arg.inc.h"
#define SP_TYPE u8
#define SP_IS_NAN INT_IS_NAN
#include "ops/cpu/reduce/arg.inc.h"

/* 1 at the first maximum, 0 elsewhere. */
static void hardmax(const sp_axis_constants *k, const float *x, int64_t width, float *y)
{
    int64_t places[COLUMNS];
    find_f32(k, false, x, width, places);
    for (int64_t i = 0; i < k->extent; i++) {
        for (int64_t c = 0; c < width; c++) y[i * k->inner + c] = places[c] == i ? 1.0f : 0.0f;
    }
}

sp_status SP_KERNEL(hardmax_f32)(const sp_tile *tile)
{
    const sp_axis_constants *k = tile->constants;
    const float *x = tile->bindings[0];
    float *y = tile->bindings[1];
    SP_FOR_ROWS(k, tile, hardmax(k, x + first, width, y + first));
    return SP_OK;
}

/* ---- running sums: rounded additions in order, from +0 ---- */

#define SP_TYPE f32
#include "ops/cpu/reduce/cumsum.inc.h"
#define SP_TYPE f64
#include "ops/cpu/reduce/cumsum.inc.h"
#define SP_TYPE i32
#include "ops/cpu/reduce/cumsum.inc.h"
#define SP_TYPE i64
#include "ops/cpu/reduce/cumsum.inc.h"

/* ---- x / norm; 0 for rows with a norm of 0 ---- */

#define SP_TYPE f32
#define SP_REDUCTION square
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction.inc.h"
#define SP_REDUCTION size
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction.inc.h"
#include "ops/cpu/reduce/sums.inc.h"
#undef SP_TYPE

static void divide_by_norm(const sp_axis_constants *k, const float *x, int64_t width, float *y)
{
    float lanes[SP_LANES * COLUMNS];
    const float none[COLUMNS] = {0};
    const int64_t n = k->extent;
    if (k->inner == 1) {
        if (k->is_square) lanes[0] = sum_row_f32(row_square_f32, x, n, 0);
        else lanes[0] = sum_row_f32(row_size_f32, x, n, 0);
    } else {
        if (k->is_square) sum_columns_f32(lanes, columns_square_f32, x, k->inner, n, width, none);
        else sum_columns_f32(lanes, columns_size_f32, x, k->inner, n, width, none);
    }
    for (int64_t c = 0; c < width; c++) {
        const float norm = k->is_square ? __builtin_sqrtf(lanes[c]) : lanes[c];
        lanes[c] = norm == 0 ? 1.0f : norm;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i * k->inner;
        SP_INDEPENDENT for (int64_t c = 0; c < width; c++)
        {
            y[at + c] = sp_canonical(x[at + c] / lanes[c]);
        }
    }
}

sp_status SP_KERNEL(lp_norm_f32)(const sp_tile *tile)
{
    const sp_axis_constants *k = tile->constants;
    const float *x = tile->bindings[0];
    float *y = tile->bindings[1];
    SP_FOR_ROWS(k, tile, divide_by_norm(k, x + first, width, y + first));
    return SP_OK;
}

/* ---- neighbouring channels ---- */

/* y = x / (bias + alpha / size * s)^beta, s the sum of the squares of the neighbouring channels
 * that exist; the power is Pow's. */
sp_status SP_KERNEL(lrn_f32)(const sp_tile *tile)
{
    const sp_lrn_constants *k = tile->constants;
    const float *x = tile->bindings[0];
    float *y = tile->bindings[1];
    const float factor = k->alpha / (float)k->size, bias = k->bias, beta = k->beta;
    const int64_t begin = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->planes);
    const float none[COLUMNS] = {0};
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t c = plane % k->channels, before = (k->size - 1) / 2;
        const int64_t first = c < before ? -c : -before;
        int64_t last = k->size - 1 - before;
        if (c + last >= k->channels) last = k->channels - 1 - c;
        for (int64_t i = 0; i < k->plane; i += COLUMNS) {
            const int64_t width = k->plane - i < COLUMNS ? k->plane - i : COLUMNS;
            const int64_t at = plane * k->plane + i;
            float lanes[SP_LANES * COLUMNS];
            sum_columns_f32(lanes, columns_square_f32, x + at + first * k->plane, k->plane,
                            last - first + 1, width, none);
            for (int64_t j = 0; j < width; j++) {
                const float power = sp_powf(bias + factor * lanes[j], -beta);
                y[at + j] = sp_canonical(x[at + j] * power);
            }
        }
    }
    return SP_OK;
}

/* ---- statistics that are broadcast ---- */

/* y = (x - mean) / (sqrt(variance) + 1e-9); mean and variance have b's strides. */
sp_status SP_KERNEL(standardize_f32)(const sp_tile *tile)
{
    const sp_binary_constants *k = tile->constants;
    const float *x = tile->bindings[0], *mean = tile->bindings[1], *variance = tile->bindings[2];
    float *y = tile->bindings[3];
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->count);
    for (int64_t i = first; i < last; i++) {
        int64_t b = 0, rest = i;
        for (uint32_t d = k->rank; d-- > 0;) {
            b += rest % k->dims[d] * k->b[d];
            rest /= k->dims[d];
        }
        y[i] = sp_canonical((x[i] - mean[b]) / (__builtin_sqrtf(variance[b]) + 1e-9f));
    }
    return SP_OK;
}
