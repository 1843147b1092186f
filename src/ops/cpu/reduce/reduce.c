/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of any set of dimensions, in the order of lanes.h. Where the elements of one output
 * are neighbours in memory the lanes are what runs side by side; elsewhere the outputs are, with
 * the same lanes for each, so that the layout of x cannot reach a bit. */
#include "ops/cpu/reduce/reduction.h"
#include "ops/cpu/arch/strided.h"

enum { COLUMNS = SP_LANE_COLUMNS };

/* Integers wrap, which unsigned arithmetic does by definition. */
#define INT_JOINS(suffix, type, unsigned_type)                                                     \
    static SP_ALWAYS_INLINE type sp_add_##suffix(type a, type b)                                   \
    {                                                                                              \
        return (type)((unsigned_type)a + (unsigned_type)b);                                        \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_mul_##suffix(type a, type b)                                   \
    {                                                                                              \
        return (type)((unsigned_type)a * (unsigned_type)b);                                        \
    }                                                                                              \
    SP_SUM_JOINS(suffix, type)                                                                     \
    static SP_ALWAYS_INLINE type sp_join_square_##suffix(type lane, type x, type shift)            \
    {                                                                                              \
        (void)shift;                                                                               \
        return sp_add_##suffix(lane, sp_mul_##suffix(x, x));                                       \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_join_size_##suffix(type lane, type x, type shift)              \
    {                                                                                              \
        (void)shift;                                                                               \
        return sp_add_##suffix(lane, x < 0 ? sp_mul_##suffix(x, (type) - 1) : x);                  \
    }

#define INT_ORDER_JOINS(suffix, type)                                                              \
    static SP_ALWAYS_INLINE type sp_max_##suffix(type a, type b)                                   \
    {                                                                                              \
        return b > a ? b : a;                                                                      \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_min_##suffix(type a, type b)                                   \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    SP_ORDER_JOINS(suffix, type)

INT_JOINS(i32, int32_t, uint32_t)
INT_JOINS(i64, int64_t, uint64_t)
INT_ORDER_JOINS(i32, int32_t)
INT_ORDER_JOINS(i64, int64_t)
INT_ORDER_JOINS(i8, int8_t)
INT_ORDER_JOINS(u8, uint8_t)

#define NUMBER_REDUCTIONS(suffix, type)                                                            \
    SP_REDUCTION(sum_##suffix, type, type, SP_PLAIN, sp_join_sum_##suffix, sp_add_##suffix)        \
    SP_REDUCTION(prod_##suffix, type, type, SP_PLAIN, sp_join_prod_##suffix, sp_mul_##suffix)      \
    SP_REDUCTION(square_##suffix, type, type, SP_PLAIN, sp_join_square_##suffix, sp_add_##suffix)  \
    SP_REDUCTION(size_##suffix, type, type, SP_PLAIN, sp_join_size_##suffix, sp_add_##suffix)

#define ORDER_REDUCTIONS(suffix, type)                                                             \
    SP_REDUCTION_IN_ANY_ORDER(max_##suffix, type, type, SP_PLAIN, sp_join_max_##suffix,            \
                              sp_max_##suffix)                                                     \
    SP_REDUCTION_IN_ANY_ORDER(min_##suffix, type, type, SP_PLAIN, sp_join_min_##suffix,            \
                              sp_min_##suffix)

#define HALF_REDUCTION(name, combine)                                                              \
    SP_REDUCTION_MAPPED(name##_f16, uint16_t, float, sp_float_of_f16, sp_map_f16, name##_f32,      \
                        sp_join_##name##_f32, combine)

NUMBER_REDUCTIONS(f32, float)
NUMBER_REDUCTIONS(f64, double)
NUMBER_REDUCTIONS(i32, int32_t)
NUMBER_REDUCTIONS(i64, int64_t)
ORDER_REDUCTIONS(f32, float)
ORDER_REDUCTIONS(f64, double)
ORDER_REDUCTIONS(i32, int32_t)
ORDER_REDUCTIONS(i64, int64_t)
ORDER_REDUCTIONS(i8, int8_t)
ORDER_REDUCTIONS(u8, uint8_t)
HALF_REDUCTION(sum, sp_add_f32)
HALF_REDUCTION(prod, sp_mul_f32)
HALF_REDUCTION(square, sp_add_f32)
HALF_REDUCTION(size, sp_add_f32)
HALF_REDUCTION(max, sp_max_f32)
HALF_REDUCTION(min, sp_min_f32)
SP_REDUCTION_MAPPED(exp_f32, float, float, SP_PLAIN, sp_map_exp_f32, sum_f32, sp_join_exp_f32,
                    sp_add_f32)
SP_REDUCTION_MAPPED(exp_f64, double, double, SP_PLAIN, sp_map_exp_f64, sum_f64, sp_join_exp_f64,
                    sp_add_f64)
SP_REDUCTION_MAPPED(exp_f16, uint16_t, float, sp_float_of_f16, sp_map_exp_f16, sum_f32,
                    sp_join_exp_f32, sp_add_f32)

/* ---- what becomes of the sum of an output ---- */

#define FLOAT_FINISH(suffix, type, root, logarithm, infinity)                                      \
    static type finish_##suffix(const sp_reduce_constants *k, type sum, type shift)                \
    {                                                                                              \
        switch ((sp_reduction)k->reduction) {                                                      \
        case SP_REDUCE_MEAN:                                                                       \
        case SP_REDUCE_VARIANCE:                                                                   \
            return sum / (type)k->extent;                                                          \
        case SP_REDUCE_L2:                                                                         \
            return root(sum);                                                                      \
        case SP_REDUCE_LOG_SUM:                                                                    \
            return logarithm(sum);                                                                 \
        case SP_REDUCE_LOG_SUM_EXP:                                                                \
            return logarithm(sum) + shift;                                                         \
        case SP_REDUCE_FINITE_MAX:                                                                 \
            return sum < infinity && sum > -infinity ? sum : 0;                                    \
        default:                                                                                   \
            return sum;                                                                            \
        }                                                                                          \
    }

FLOAT_FINISH(f32, float, __builtin_sqrtf, sp_logf, __builtin_inff())
FLOAT_FINISH(f64, double, __builtin_sqrt, sp_log, __builtin_inf())

/* A mean of integers is rounded towards 0. */
#define INT_FINISH(suffix, type)                                                                   \
    static type finish_##suffix(const sp_reduce_constants *k, type sum, type shift)                \
    {                                                                                              \
        (void)shift;                                                                               \
        return k->reduction == SP_REDUCE_MEAN ? (type)(sum / k->extent) : sum;                     \
    }

INT_FINISH(i32, int32_t)
INT_FINISH(i64, int64_t)
INT_FINISH(i8, int8_t)
INT_FINISH(u8, uint8_t)

/* ---- kernels ---- */

#define STEP(reduction, name, start)                                                               \
    [SP_REDUCE_##reduction] = {start, row_##name, columns_##name, tree_##name}
#define ORDER_STEPS(suffix, least, most)                                                           \
    STEP(MAX, max_##suffix, least), STEP(MIN, min_##suffix, most)
#define NUMBER_STEPS(suffix)                                                                       \
    STEP(SUM, sum_##suffix, 0), STEP(MEAN, sum_##suffix, 0), STEP(PROD, prod_##suffix, 1),         \
        STEP(SUM_SQUARE, square_##suffix, 0), STEP(L1, size_##suffix, 0)
#define FLOAT_STEPS(suffix)                                                                        \
    NUMBER_STEPS(suffix), ORDER_STEPS(suffix, -__builtin_inff(), __builtin_inff()),                \
        STEP(L2, square_##suffix, 0), STEP(LOG_SUM, sum_##suffix, 0),                              \
        STEP(LOG_SUM_EXP, exp_##suffix, 0), STEP(VARIANCE, square_##suffix, 0),                    \
        STEP(FINITE_MAX, max_##suffix, -__builtin_inff())

/* Rows: one output after the other. Columns: stretches of outputs along the last kept dimension. */
#define REDUCE_KERNEL(suffix, element, lane_type, load, store, arithmetic, ...)                    \
    typedef struct steps_##suffix {                                                                \
        lane_type start;                                                                           \
        void (*row)(lane_type * lanes, int64_t phase, const element *x, int64_t n,                 \
                    lane_type shift);                                                              \
        void (*columns)(lane_type * lanes, int64_t phase, const element *x, int64_t stride,        \
                        int64_t n, int64_t width, const lane_type *shift);                         \
        void (*tree)(lane_type * lanes, int64_t width, int64_t extent);                            \
    } steps_##suffix;                                                                              \
    static const steps_##suffix table_##suffix[] = {__VA_ARGS__};                                  \
                                                                                                   \
    static void reduce_rows_##suffix(const sp_reduce_constants *k, const element *x,               \
                                     const element *shifts, element *y, int64_t first,             \
                                     int64_t last)                                                 \
    {                                                                                              \
        const steps_##suffix *steps = &table_##suffix[k->reduction];                               \
        const int64_t n = k->dims[k->reduced_rank - 1];                                            \
        sp_walk kept, rows;                                                                        \
        sp_walk_init(&kept, k->kept_rank + 1, k->kept_dims, k->kept_strides, k->kept_strides,      \
                     first);                                                                       \
        for (int64_t at = first; at < last; at++, sp_walk_next(&kept)) {                           \
            lane_type lanes[SP_LANES];                                                             \
            const lane_type shift = shifts ? load(shifts[at]) : 0;                                 \
            for (int64_t l = 0; l < SP_LANES; l++) lanes[l] = steps->start;                        \
            sp_walk_init(&rows, k->reduced_rank, k->dims, k->strides, k->strides, 0);              \
            for (int64_t i = 0; i < k->extent; i += n, sp_walk_next(&rows)) {                      \
                steps->row(lanes, i % SP_LANES, x + kept.a + rows.a, n, shift);                    \
            }                                                                                      \
            steps->tree(lanes, 1, k->extent);                                                      \
            y[at] = store(finish_##arithmetic(k, lanes[0], shift));                                \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void reduce_columns_##suffix(const sp_reduce_constants *k, const element *x,            \
                                        const element *shifts, element *y, int64_t width)          \
    {                                                                                              \
        const steps_##suffix *steps = &table_##suffix[k->reduction];                               \
        lane_type shift[COLUMNS] = {0};                                                            \
        for (int64_t c = 0; shifts && c < width; c++) shift[c] = load(shifts[c]);                  \
        const int64_t n = k->dims[k->reduced_rank - 1];                                            \
        lane_type lanes[SP_LANES * COLUMNS];                                                       \
        const int64_t used = k->extent < SP_LANES ? k->extent : SP_LANES;                          \
        for (int64_t l = 0; l < used * COLUMNS || l < COLUMNS; l++) lanes[l] = steps->start;       \
        sp_walk rows;                                                                              \
        sp_walk_init(&rows, k->reduced_rank, k->dims, k->strides, k->strides, 0);                  \
        for (int64_t i = 0; i < k->extent; i += n, sp_walk_next(&rows)) {                          \
            steps->columns(lanes, i % SP_LANES, x + rows.a, k->strides[k->reduced_rank - 1], n,    \
                           width, shift);                                                          \
        }                                                                                          \
        steps->tree(lanes, COLUMNS, k->extent);                                                    \
        for (int64_t c = 0; c < width; c++) {                                                      \
            y[c] = store(finish_##arithmetic(k, lanes[c], shift[c]));                              \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    sp_status SP_KERNEL(reduce_##suffix)(const sp_tile *tile)                                      \
    {                                                                                              \
        const sp_reduce_constants *k = tile->constants;                                            \
        const element *x = tile->bindings[0];                                                      \
        const element *shifts = k->has_shift ? tile->bindings[1] : NULL;                           \
        element *y = tile->bindings[k->has_shift ? 2 : 1];                                         \
        int64_t at = tile->index[0] * k->tile_count;                                               \
        const int64_t end = k->count - at < k->tile_count ? k->count : at + k->tile_count;         \
        if (at >= end) return SP_OK;                                                               \
        if (!k->is_columns) {                                                                      \
            reduce_rows_##suffix(k, x, shifts, y, at, end);                                        \
            return SP_OK;                                                                          \
        }                                                                                          \
        const int64_t columns = k->kept_dims[k->kept_rank - 1];                                    \
        sp_walk kept;                                                                              \
        sp_walk_init(&kept, k->kept_rank, k->kept_dims, k->kept_strides, k->kept_strides,          \
                     at / columns);                                                                \
        for (int64_t column = at % columns; at < end;) {                                           \
            int64_t width = columns - column < COLUMNS ? columns - column : COLUMNS;               \
            if (end - at < width) width = end - at;                                                \
            reduce_columns_##suffix(k, x + kept.a + column, shifts ? shifts + at : NULL, y + at,   \
                                    width);                                                        \
            at += width;                                                                           \
            column += width;                                                                       \
            if (column < columns) continue;                                                        \
            column = 0;                                                                            \
            sp_walk_next(&kept);                                                                   \
        }                                                                                          \
        return SP_OK;                                                                              \
    }

REDUCE_KERNEL(f32, float, float, SP_PLAIN, sp_canonical, f32, FLOAT_STEPS(f32))
REDUCE_KERNEL(f64, double, double, SP_PLAIN, sp_canonical_f64, f64, FLOAT_STEPS(f64))
REDUCE_KERNEL(f16, uint16_t, float, sp_float_of_f16, sp_f16_of_float, f32, FLOAT_STEPS(f16))
REDUCE_KERNEL(i32, int32_t, int32_t, SP_PLAIN, SP_PLAIN, i32, NUMBER_STEPS(i32),
              ORDER_STEPS(i32, INT32_MIN, INT32_MAX))
REDUCE_KERNEL(i64, int64_t, int64_t, SP_PLAIN, SP_PLAIN, i64, NUMBER_STEPS(i64),
              ORDER_STEPS(i64, INT64_MIN, INT64_MAX))
REDUCE_KERNEL(i8, int8_t, int8_t, SP_PLAIN, SP_PLAIN, i8, ORDER_STEPS(i8, INT8_MIN, INT8_MAX))
REDUCE_KERNEL(u8, uint8_t, uint8_t, SP_PLAIN, SP_PLAIN, u8, ORDER_STEPS(u8, 0, UINT8_MAX))
