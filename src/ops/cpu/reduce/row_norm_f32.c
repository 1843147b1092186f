/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of rows with each rounding of the steps that exporters write for it: mean and
 * difference (or none: then the mean is +0, whose difference from x is x), square, mean, sum,
 * square root, quotient (or reciprocal and product), product, sum. A NaN stays a NaN in all of
 * them, so it is made canonical once, at the end.
 *
 * The sums are those of lanes.h. Each is a chain of dependent additions, so some rows are summed
 * side by side. */
#include <string.h>

#include "base/macros.h"
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/gemm/gemm_part.h"
#include "ops/cpu/reduce/lane_vectors.h"
#include "ops/cpu/reduce/row_sums_f32.h"

enum { ROWS = 4 }; /* which are computed together */

/* The squared distances from `shift`, or the elements themselves. */
static SP_ALWAYS_INLINE sp_vector element_of(sp_vector x, const bool is_square, float shift)
{
    if (!is_square) return x;
    const sp_vector distance = x - sp_vector_splat(shift);
    return distance * distance;
}

/* The sums of `rows` rows of at most one block. */
static SP_ALWAYS_INLINE void sum_rows(const float *x, int64_t n, const int rows,
                                      const bool is_square, const float *shift, float *sums)
{
    sp_vector sum[ROWS][SP_LANE_VECTORS] = {0};
    int64_t i = 0;
    for (; i + SP_LANES <= n; i += SP_LANES) {
        for (int r = 0; r < rows; r++) {
            for (int64_t p = 0; p < SP_LANE_VECTORS; p++) {
                const sp_vector v = sp_vector_load(x + r * n + i + p * SP_VECTOR);
                sum[r][p] += element_of(v, is_square, shift[r]);
            }
        }
    }
    for (int64_t p = 0; p < SP_LANE_VECTORS && i + p * SP_VECTOR < n; p++) {
        const int64_t at = i + p * SP_VECTOR;
        const sp_vector_part part = sp_vector_range(0, n - at);
        const sp_vector zero = sp_vector_splat(0);
        for (int r = 0; r < rows; r++) {
            const sp_vector v = sp_vector_load_part(x + r * n + at, part, zero);
            const sp_vector element = element_of(v, is_square, shift[r]);
            sum[r][p] += sp_vector_select(sp_vector_mask_of(part), element, zero);
        }
    }
    for (int r = 0; r < rows; r++) sums[r] = sp_lane_vectors_sum(sum[r]);
}

/* The means of the rows, or of the squared distances from `shift`. */
static SP_ALWAYS_INLINE void mean_rows(const float *x, int64_t n, const int rows,
                                       const bool is_square, const float *shift, float *means)
{
    if (n <= SP_REDUCTION_BLOCK) {
        sum_rows(x, n, rows, is_square, shift, means);
    } else {
        for (int r = 0; r < rows; r++) {
            means[r] = is_square ? sum_long_row_f32(row_square_f32, x + r * n, n, shift[r])
                                 : sum_long_row_f32(row_sum_f32, x + r * n, n, 0);
        }
    }
    for (int r = 0; r < rows; r++) means[r] /= (float)n;
}

/* The distance in units of the deviation, of which `by_reciprocal` is the reciprocal. */
static SP_ALWAYS_INLINE sp_vector in_units(sp_vector distance, sp_vector unit,
                                           const bool by_reciprocal)
{
    if (by_reciprocal) return SP_PLANTED(norm_divides) ? distance / (1 / unit) : distance * unit;
    return SP_PLANTED(norm_by_reciprocal) ? distance * (1 / unit) : distance / unit;
}

/* Scale and bias may be NULL. */
static SP_ALWAYS_INLINE void normalize_row(const float *x, int64_t n, float mean, float deviation,
                                           const bool by_reciprocal, const float *scale,
                                           const float *bias, float *y)
{
    const sp_vector middle = sp_vector_splat(mean);
    const sp_vector unit = sp_vector_splat(by_reciprocal ? 1 / deviation : deviation);
    for (int64_t i = 0; i < n; i += SP_VECTOR) {
        const sp_vector_part part = sp_vector_range(0, n - i);
        const sp_vector distance = sp_vector_load_part(x + i, part, middle) - middle;
        sp_vector v = in_units(distance, unit, by_reciprocal);
        if (scale) v *= sp_vector_load_part(scale + i, part, unit);
        if (bias) v += sp_vector_load_part(bias + i, part, unit);
        sp_vector_store_first(y + i, n - i, sp_vector_canonical(v));
    }
}

typedef struct norm_call {
    const sp_row_norm_constants *constants;
    const float *scale, *bias, *addend; /* or NULL */
    float epsilon;
} norm_call;

static SP_ALWAYS_INLINE void finish_row(const norm_call *call, const float *x, float mean,
                                        float deviation, float *y)
{
    const sp_row_norm_constants *k = call->constants;
    const float *scale = call->scale, *bias = call->bias;
    if (k->by_reciprocal) {
        normalize_row(x, k->extent, mean, deviation, true, scale, bias, y);
    } else if (scale != NULL && bias != NULL) {
        normalize_row(x, k->extent, mean, deviation, false, scale, bias, y);
    } else if (scale != NULL) {
        normalize_row(x, k->extent, mean, deviation, false, scale, NULL, y);
    } else {
        normalize_row(x, k->extent, mean, deviation, false, NULL, bias, y);
    }
}

static SP_ALWAYS_INLINE void norm_rows(const norm_call *call, const float *x, const int rows,
                                       float *y)
{
    const int64_t n = call->constants->extent;
    float mean[ROWS] = {0}, variance[ROWS];
    if (call->constants->is_centred) mean_rows(x, n, rows, false, mean, mean);
    mean_rows(x, n, rows, true, mean, variance);
    for (int r = 0; r < rows; r++) {
        const float deviation = __builtin_sqrtf(variance[r] + call->epsilon);
        finish_row(call, x + r * n, mean[r], deviation, y + r * n);
    }
    sp_activate(call->constants->activation, y, 1, 0, rows * n);
}

/* The sums of rows from `row` on, in y. */
static void add_rows(const norm_call *call, const float *x, int64_t row, int64_t rows, float *y)
{
    const sp_row_norm_constants *k = call->constants;
    const int64_t n = k->extent;
    const sp_vector none = sp_vector_splat(0);
    for (int64_t r = row; r < row + rows; r++, x += n, y += n) {
        const float *addend = call->addend + r / k->addend_block * k->addend_outer +
                              r % k->addend_block * k->addend_inner;
        for (int64_t i = 0; i < n; i += SP_VECTOR) {
            const sp_vector_part part = sp_vector_range(0, n - i);
            const sp_vector a = sp_vector_load_part(x + i, part, none);
            sp_vector_store_first(y + i, n - i, a + sp_vector_load_part(addend + i, part, none));
        }
    }
}

/* Rows of x, or of sums, which are normalised where they are added, from `row` on, to y. */
static SP_ALWAYS_INLINE void norm_rows_at(const norm_call *call, const float *x, int64_t row,
                                          const int rows, float *y)
{
    const float *from = x + row * call->constants->extent;
    if (call->addend == NULL) {
        norm_rows(call, from, rows, y);
        return;
    }
    add_rows(call, from, row, rows, y);
    norm_rows(call, y, rows, y);
}

/* Rows that are packed, too, or only: then y is NULL. */
static SP_NOINLINE void pack_rows(const norm_call *call, const float *x, int64_t first,
                                  int64_t last, float *y, void *packed)
{
    float normed[SP_NORM_PACKED_EXTENT];
    const sp_row_norm_constants *k = call->constants;
    for (int64_t row = first; row < last; row++) {
        const int64_t line =
            row / k->line_block * k->line_outer + row % k->line_block * k->line_inner;
        norm_rows_at(call, x, row, 1, normed);
        SP_KERNEL(narrow_pack_steps)(k->y_format, normed, k->extent, packed, k->rows, line, 0);
        if (y == NULL) continue;
        memcpy(y + row * k->extent, normed, (size_t)k->extent * sizeof *y);
    }
}

sp_status SP_KERNEL(row_norm_f32)(const sp_tile *tile)
{
    const sp_row_norm_constants *k = tile->constants;
    const float *x = tile->bindings[0];
    uint32_t next = 2;
    norm_call call = {.constants = k, .epsilon = *(const float *)tile->bindings[1]};
    if (k->has_scale) call.scale = tile->bindings[next++];
    if (k->has_bias) call.bias = tile->bindings[next++];
    if (k->has_addend) call.addend = tile->bindings[next++];
    int64_t row = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->rows);
    if (k->y_format != SP_PACK_NONE) {
        float *rows = k->is_only_packed ? NULL : tile->bindings[next++];
        pack_rows(&call, x, row, last, rows, tile->bindings[next]);
        return SP_OK;
    }
    float *y = tile->bindings[next];
    for (; row + ROWS <= last; row += ROWS) {
        norm_rows_at(&call, x, row, ROWS, y + row * k->extent);
    }
    for (; row < last; row++) norm_rows_at(&call, x, row, 1, y + row * k->extent);
    return SP_OK;
}
