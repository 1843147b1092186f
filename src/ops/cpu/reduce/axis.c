/* SPDX-License-Identifier: Apache-2.0 */
/* Ops along one dimension that are no plain reductions: ArgMax and ArgMin, Hardmax, CumSum,
 * LpNormalization. And LRN, and what MeanVarianceNormalization does with its statistics. */
#include "ops/cpu/elementwise/pow_f32.h"
#include "ops/cpu/reduce/reduction.h"
#include "ops/cpu/reduce/rows.h"

enum { COLUMNS = SP_LANE_COLUMNS };

/* ---- the place of the extreme; a NaN is beyond everything ---- */

#define FLOAT_IS_NAN(x) ((x) != (x))
#define INT_IS_NAN(x) false

#define ARG_KERNEL(suffix, type, is_nan)                                                           \
    static SP_ALWAYS_INLINE void find_##suffix(const sp_axis_constants *k, const bool takes_least, \
                                               const type *x, int64_t width, int64_t *places)      \
    {                                                                                              \
        type best[COLUMNS];                                                                        \
        for (int64_t c = 0; c < width; c++) {                                                      \
            best[c] = x[c];                                                                        \
            places[c] = 0;                                                                         \
        }                                                                                          \
        for (int64_t i = 1; i < k->extent; i++) {                                                  \
            const type *row = x + i * k->inner;                                                    \
            SP_INDEPENDENT for (int64_t c = 0; c < width; c++)                                     \
            {                                                                                      \
                const type value = row[c], old = best[c];                                          \
                const bool wins = takes_least ? value < old : value > old;                         \
                const bool ties = value == old || (is_nan(value) && is_nan(old));                  \
                const bool better = (wins && !is_nan(old)) || (is_nan(value) && !is_nan(old));     \
                const bool moves = better || (ties && k->takes_last);                              \
                best[c] = moves ? value : old;                                                     \
                places[c] = moves ? i : places[c];                                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    sp_status SP_KERNEL(arg_##suffix)(const sp_tile *tile)                                         \
    {                                                                                              \
        const sp_axis_constants *k = tile->constants;                                              \
        const type *x = tile->bindings[0];                                                         \
        int64_t *y = tile->bindings[1];                                                            \
        if (k->takes_least) {                                                                      \
            SP_FOR_ROWS(k, tile, find_##suffix(k, true, x + first, width, y + at));                \
        } else {                                                                                   \
            SP_FOR_ROWS(k, tile, find_##suffix(k, false, x + first, width, y + at));               \
        }                                                                                          \
        return SP_OK;                                                                              \
    }

ARG_KERNEL(f32, float, FLOAT_IS_NAN)
ARG_KERNEL(f64, double, FLOAT_IS_NAN)
ARG_KERNEL(i32, int32_t, INT_IS_NAN)
ARG_KERNEL(i64, int64_t, INT_IS_NAN)
ARG_KERNEL(i8, int8_t, INT_IS_NAN)
ARG_KERNEL(u8, uint8_t, INT_IS_NAN)

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

/* ---- running sums, one rounded addition after the other from +0 on ---- */

#define INT_ADD(type, unsigned_type, a, b) (type)((unsigned_type)(a) + (unsigned_type)(b))
#define FLOAT_ADD(type, unsigned_type, a, b) (type)((a) + (b))

#define CUMSUM_KERNEL(suffix, type, unsigned_type, add, store)                                     \
    static void accumulate_##suffix(const sp_axis_constants *k, const type *x, int64_t width,      \
                                    type *y)                                                       \
    {                                                                                              \
        type sums[COLUMNS] = {0};                                                                  \
        for (int64_t i = 0; i < k->extent; i++) {                                                  \
            const int64_t at = (k->is_reverse ? k->extent - 1 - i : i) * k->inner;                 \
            SP_INDEPENDENT for (int64_t c = 0; c < width; c++)                                     \
            {                                                                                      \
                const type sum = add(type, unsigned_type, sums[c], x[at + c]);                     \
                y[at + c] = store(k->is_exclusive ? sums[c] : sum);                                \
                sums[c] = sum;                                                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    sp_status SP_KERNEL(cumsum_##suffix)(const sp_tile *tile)                                      \
    {                                                                                              \
        const sp_axis_constants *k = tile->constants;                                              \
        const type *x = tile->bindings[0];                                                         \
        type *y = tile->bindings[1];                                                               \
        SP_FOR_ROWS(k, tile, accumulate_##suffix(k, x + first, width, y + first));                 \
        return SP_OK;                                                                              \
    }

CUMSUM_KERNEL(f32, float, float, FLOAT_ADD, sp_canonical)
CUMSUM_KERNEL(f64, double, double, FLOAT_ADD, sp_canonical_f64)
CUMSUM_KERNEL(i32, int32_t, uint32_t, INT_ADD, SP_PLAIN)
CUMSUM_KERNEL(i64, int64_t, uint64_t, INT_ADD, SP_PLAIN)

/* ---- x / norm; a row whose norm is 0 stays 0 ---- */

SP_REDUCTION(square_f32, float, float, SP_PLAIN, sp_join_square_f32, sp_add_f32)
SP_REDUCTION(size_f32, float, float, SP_PLAIN, sp_join_size_f32, sp_add_f32)

static void divide_by_norm(const sp_axis_constants *k, const float *x, int64_t width, float *y)
{
    float lanes[SP_LANES * COLUMNS] = {0};
    const float none[COLUMNS] = {0};
    const int64_t n = k->extent;
    if (k->inner == 1) {
        if (k->is_square) row_square_f32(lanes, 0, x, n, 0);
        else row_size_f32(lanes, 0, x, n, 0);
        tree_size_f32(lanes, 1, n);
    } else {
        if (k->is_square) columns_square_f32(lanes, 0, x, k->inner, n, width, none);
        else columns_size_f32(lanes, 0, x, k->inner, n, width, none);
        tree_size_f32(lanes, COLUMNS, n);
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

/* y = x / (bias + alpha / size * s)^beta, s the sum of the squares of the channels around, those
 * that there are; the power as Pow's. */
sp_status SP_KERNEL(lrn_f32)(const sp_tile *tile)
{
    const sp_lrn_constants *k = tile->constants;
    const float *x = tile->bindings[0];
    float *y = tile->bindings[1];
    const float factor = k->alpha / (float)k->size, bias = k->bias, beta = k->beta;
    const int64_t begin = tile->index[0] * k->tile_planes;
    const int64_t end = k->planes - begin < k->tile_planes ? k->planes : begin + k->tile_planes;
    const float none[COLUMNS] = {0};
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t c = plane % k->channels, before = (k->size - 1) / 2;
        const int64_t first = c < before ? -c : -before;
        int64_t last = k->size - 1 - before;
        if (c + last >= k->channels) last = k->channels - 1 - c;
        for (int64_t i = 0; i < k->plane; i += COLUMNS) {
            const int64_t width = k->plane - i < COLUMNS ? k->plane - i : COLUMNS;
            const int64_t at = plane * k->plane + i;
            float lanes[SP_LANES * COLUMNS] = {0};
            columns_square_f32(lanes, 0, x + at + first * k->plane, k->plane, last - first + 1,
                               width, none);
            tree_square_f32(lanes, COLUMNS, last - first + 1);
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
    const int64_t first = tile->index[0] * k->tile_count;
    const int64_t last = k->count - first < k->tile_count ? k->count : first + k->tile_count;
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
