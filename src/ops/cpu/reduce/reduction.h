/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of reductions, in the order of lanes.h: how an element of a float type joins a
 * lane, and SP_REDUCTION, which makes the loops over neighbours and over columns of it. */
#ifndef SP_OPS_CPU_REDUCE_REDUCTION_H
#define SP_OPS_CPU_REDUCE_REDUCTION_H

#include "ops/cpu/arch/half.h"
#include "ops/cpu/reduce/lanes.h"
#include "ops/cpu/arch/math_f32.h"
#include "ops/cpu/arch/math_f64.h"

/* ---- how an element joins a lane; `shift` is the output's own, 0 without one ---- */

/* By sp_add_, sp_mul_, sp_max_ and sp_min_ of the type, which are defined where it is used. */
#define SP_SUM_JOINS(suffix, type)                                                                 \
    static SP_ALWAYS_INLINE type sp_join_sum_##suffix(type lane, type x, type shift)               \
    {                                                                                              \
        (void)shift;                                                                               \
        return sp_add_##suffix(lane, x);                                                           \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_join_prod_##suffix(type lane, type x, type shift)              \
    {                                                                                              \
        (void)shift;                                                                               \
        return sp_mul_##suffix(lane, x);                                                           \
    }

#define SP_ORDER_JOINS(suffix, type)                                                               \
    static SP_ALWAYS_INLINE type sp_join_max_##suffix(type lane, type x, type shift)               \
    {                                                                                              \
        (void)shift;                                                                               \
        return sp_max_##suffix(lane, x);                                                           \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_join_min_##suffix(type lane, type x, type shift)               \
    {                                                                                              \
        (void)shift;                                                                               \
        return sp_min_##suffix(lane, x);                                                           \
    }

#define SP_FLOAT_JOINS(suffix, type, exponential)                                                  \
    SP_SUM_JOINS(suffix, type)                                                                     \
    SP_ORDER_JOINS(suffix, type)                                                                   \
    static SP_ALWAYS_INLINE type sp_join_square_##suffix(type lane, type x, type shift)            \
    {                                                                                              \
        const type distance = x - shift;                                                           \
        return lane + distance * distance;                                                         \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_join_size_##suffix(type lane, type x, type shift)              \
    {                                                                                              \
        (void)shift;                                                                               \
        return lane + (x < 0 ? -x : x);                                                            \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_join_exp_##suffix(type lane, type x, type shift)               \
    {                                                                                              \
        return lane + exponential(x - shift);                                                      \
    }

static SP_ALWAYS_INLINE double sp_add_f64(double a, double b)
{
    return a + b;
}

static SP_ALWAYS_INLINE double sp_max_f64(double a, double b)
{
    const double larger = b > a || b != b ? b : a;
    return a == b ? sp_double_from_bits(sp_double_bits(a) & sp_double_bits(b)) : larger;
}

static SP_ALWAYS_INLINE double sp_min_f64(double a, double b)
{
    const double smaller = b < a || b != b ? b : a;
    return a == b ? sp_double_from_bits(sp_double_bits(a) | sp_double_bits(b)) : smaller;
}

static SP_ALWAYS_INLINE float sp_mul_f32(float a, float b)
{
    return a * b;
}

static SP_ALWAYS_INLINE double sp_mul_f64(double a, double b)
{
    return a * b;
}

SP_FLOAT_JOINS(f32, float, sp_expf)
SP_FLOAT_JOINS(f64, double, sp_exp)

/* ---- many elements of one output, neighbours in memory; the first joins lane `phase` ---- */

#define SP_ROW(name) static __attribute__((unused)) void row_##name

/* In halves: compilers keep each in a register. */
#define SP_ROW_IN_LANES(name, element, lane_type, load, join)                                      \
    SP_ROW(name)                                                                                   \
    (lane_type * lanes, int64_t phase, const element *x, int64_t n, lane_type shift)               \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i < n && (phase + i) % SP_LANES != 0; i++) {                                        \
            lanes[phase + i] = join(lanes[phase + i], load(x[i]), shift);                          \
        }                                                                                          \
        lane_type low[SP_LANES / 2], high[SP_LANES / 2];                                           \
        memcpy(low, lanes, sizeof(low));                                                           \
        memcpy(high, lanes + SP_LANES / 2, sizeof(high));                                          \
        for (; i + SP_LANES <= n; i += SP_LANES) {                                                 \
            const element *at = x + i;                                                             \
            for (int64_t l = 0; l < SP_LANES / 2; l++) low[l] = join(low[l], load(at[l]), shift);  \
            at += SP_LANES / 2;                                                                    \
            for (int64_t l = 0; l < SP_LANES / 2; l++)                                             \
                high[l] = join(high[l], load(at[l]), shift);                                       \
        }                                                                                          \
        memcpy(lanes, low, sizeof(low));                                                           \
        memcpy(lanes + SP_LANES / 2, high, sizeof(high));                                          \
        for (int64_t l = 0; i < n; i++, l++) lanes[l] = join(lanes[l], load(x[i]), shift);         \
    }

/* For a join that needs no order and may take an element twice: any number of lanes will do. */
#define SP_ROW_IN_ANY_ORDER(name, element, lane_type, load, join)                                  \
    SP_ROW(name)                                                                                   \
    (lane_type * lanes, int64_t phase, const element *x, int64_t n, lane_type shift)               \
    {                                                                                              \
        lane_type wide[SP_LANE_COLUMNS];                                                           \
        int64_t i = 0;                                                                             \
        (void)phase;                                                                               \
        for (int64_t c = 0; c < SP_LANE_COLUMNS; c++) wide[c] = lanes[0];                          \
        for (; i + SP_LANE_COLUMNS <= n; i += SP_LANE_COLUMNS) {                                   \
            for (int64_t c = 0; c < SP_LANE_COLUMNS; c++) {                                        \
                wide[c] = join(wide[c], load(x[i + c]), shift);                                    \
            }                                                                                      \
        }                                                                                          \
        for (int64_t c = 0; c < n - i; c++) wide[c] = join(wide[c], load(x[i + c]), shift);        \
        for (int64_t c = 1; c < SP_LANE_COLUMNS && c < n; c++) {                                   \
            wide[0] = join(wide[0], wide[c], shift);                                               \
        }                                                                                          \
        lanes[0] = wide[0];                                                                        \
    }

/* Elements are mapped, a stretch at a time, and join lanes as `base` says. */
#define SP_ROW_MAPPED(name, element, lane_type, map, base)                                         \
    SP_ROW(name)                                                                                   \
    (lane_type * lanes, int64_t phase, const element *x, int64_t n, lane_type shift)               \
    {                                                                                              \
        lane_type mapped[SP_LANE_COLUMNS];                                                         \
        for (int64_t i = 0; i < n; i += SP_LANE_COLUMNS) {                                         \
            const int64_t count = n - i < SP_LANE_COLUMNS ? n - i : SP_LANE_COLUMNS;               \
            for (int64_t c = 0; c < count; c++) mapped[c] = map(x[i + c], shift);                  \
            row_##base(lanes, (phase + i) % SP_LANES, mapped, count, shift);                       \
        }                                                                                          \
    }

/* ---- many outputs: `n` elements, `stride` apart, of each of `width` that are neighbours ---- */

#define SP_COLUMNS(name, element, lane_type, load, join, combine)                                  \
    static SP_ALWAYS_INLINE void some_columns_##name(lane_type *lanes, int64_t phase,              \
                                                     const element *x, int64_t stride, int64_t n,  \
                                                     const int64_t width, const lane_type *shift)  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            lane_type *acc = lanes + (phase + i) % SP_LANES * SP_LANE_COLUMNS;                     \
            const element *from = x + i * stride;                                                  \
            SP_INDEPENDENT for (int64_t c = 0; c < width; c++)                                     \
            {                                                                                      \
                acc[c] = join(acc[c], load(from[c]), shift[c]);                                    \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static __attribute__((unused)) void columns_##name(                                            \
        lane_type *lanes, int64_t phase, const element *x, int64_t stride, int64_t n,              \
        int64_t width, const lane_type *shift)                                                     \
    {                                                                                              \
        if (width == SP_LANE_COLUMNS) {                                                            \
            some_columns_##name(lanes, phase, x, stride, n, SP_LANE_COLUMNS, shift);               \
        } else {                                                                                   \
            some_columns_##name(lanes, phase, x, stride, n, width, shift);                         \
        }                                                                                          \
    }                                                                                              \
    SP_LANES_TREE(any_tree_##name, lane_type, combine)                                             \
    static                                                                                         \
        __attribute__((unused)) void tree_##name(lane_type *lanes, int64_t width, int64_t extent)  \
    {                                                                                              \
        if (width == 1) any_tree_##name(lanes, 1, extent);                                         \
        else any_tree_##name(lanes, SP_LANE_COLUMNS, extent);                                      \
    }

/* How an element that is of its lane's type is loaded. */
#define SP_PLAIN(x) (x)

#define SP_REDUCTION(name, element, lane_type, load, join, combine)                                \
    SP_ROW_IN_LANES(name, element, lane_type, load, join)                                          \
    SP_COLUMNS(name, element, lane_type, load, join, combine)

#define SP_REDUCTION_IN_ANY_ORDER(name, element, lane_type, load, join, combine)                   \
    SP_ROW_IN_ANY_ORDER(name, element, lane_type, load, join)                                      \
    SP_COLUMNS(name, element, lane_type, load, join, combine)

#define SP_REDUCTION_MAPPED(name, element, lane_type, load, map, base, join, combine)              \
    SP_ROW_MAPPED(name, element, lane_type, map, base)                                             \
    SP_COLUMNS(name, element, lane_type, load, join, combine)

/* ---- maps ---- */

static SP_ALWAYS_INLINE float sp_map_exp_f32(float x, float shift)
{
    return sp_expf(x - shift);
}

static SP_ALWAYS_INLINE double sp_map_exp_f64(double x, double shift)
{
    return sp_exp(x - shift);
}

static SP_ALWAYS_INLINE float sp_map_exp_f16(uint16_t x, float shift)
{
    return sp_expf(sp_float_of_f16(x) - shift);
}

static SP_ALWAYS_INLINE float sp_map_f16(uint16_t x, float shift)
{
    (void)shift;
    return sp_float_of_f16(x);
}

#endif
