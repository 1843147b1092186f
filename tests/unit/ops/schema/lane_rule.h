/* SPDX-License-Identifier: Apache-2.0 */
/* The rule for reductions (docs/decisions/0022-reductions.md) in plain loops, and elements of any
 * float type, for tests that compare bits with it. */
#ifndef SP_TESTS_UNIT_LANE_RULE_H
#define SP_TESTS_UNIT_LANE_RULE_H

#define SP_ISA portable
#include "ops/cpu/arch/half.h"
#include "ops/cpu/arch/math_f32.h"
#include "ops/cpu/arch/math_f64.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

typedef enum reduction { SUM, MEAN, MAX, MIN, PROD, SUM_SQUARE, L1, L2, LOG_SUM, LSE } reduction;
/* ---- the rule ---- */

enum { BLOCK = 4096, LONGEST = 17 * BLOCK };

/* Extents around the ends of blocks, and one of more blocks than lanes. */
static const int64_t long_extents[] = {BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5, 16 * BLOCK + 7};

/* Columns of such an extent: once more than kernels compute together. */
static inline int64_t long_columns(int64_t extent)
{
    return extent == BLOCK + 1 ? 67 : 3;
}

static inline double larger(double a, double b)
{
    if (a != a || b != b) return NAN;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

#define RULE(suffix, type, exponential, logarithm)                                                 \
    static inline type combine_##suffix(reduction how, type a, type b)                             \
    {                                                                                              \
        if (how == MAX) return (type)larger((double)a, (double)b);                                 \
        if (how == MIN) return (type) - larger(-(double)a, -(double)b);                            \
        return how == PROD ? a * b : a + b;                                                        \
    }                                                                                              \
    static inline type block_##suffix(reduction how, const type *x, int64_t n, type shift)         \
    {                                                                                              \
        type lanes[16];                                                                            \
        for (int l = 0; l < 16; l++) {                                                             \
            lanes[l] = how == MAX    ? (type) - INFINITY                                           \
                       : how == MIN  ? (type)INFINITY                                              \
                       : how == PROD ? 1                                                           \
                                     : 0;                                                          \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type value = x[i];                                                                     \
            if (how == SUM_SQUARE || how == L2) value = value * value;                             \
            if (how == L1) value = value < 0 ? -value : value;                                     \
            if (how == LSE) value = exponential(value - shift);                                    \
            lanes[i % 16] = combine_##suffix(how, lanes[i % 16], value);                           \
        }                                                                                          \
        for (int step = 8; step > 0; step /= 2) {                                                  \
            for (int l = 0; l < step; l++) {                                                       \
                lanes[l] = combine_##suffix(how, lanes[l], lanes[l + step]);                       \
            }                                                                                      \
        }                                                                                          \
        return lanes[0];                                                                           \
    }                                                                                              \
    static inline type lanes_##suffix(reduction how, const type *x, int64_t n, type shift)         \
    {                                                                                              \
        if (n <= BLOCK) return block_##suffix(how, x, n, shift);                                   \
        const int64_t count = (n + BLOCK - 1) / BLOCK;                                             \
        type *results = malloc((size_t)count * sizeof(*results));                                  \
        if (results == NULL) abort();                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const int64_t left = n - i * BLOCK;                                                    \
            results[i] = block_##suffix(how, x + i * BLOCK, left < BLOCK ? left : BLOCK, shift);   \
        }                                                                                          \
        const bool has_own_join = how == MAX || how == MIN || how == PROD;                         \
        const type y = lanes_##suffix(has_own_join ? how : SUM, results, count, 0);                \
        free(results);                                                                             \
        return y;                                                                                  \
    }                                                                                              \
    static inline type rule_##suffix(reduction how, const type *x, int64_t n)                      \
    {                                                                                              \
        type shift = 0;                                                                            \
        if (how == LSE) shift = lanes_##suffix(MAX, x, n, 0);                                      \
        if (!isfinite(shift)) shift = 0;                                                           \
        const type y = lanes_##suffix(how, x, n, shift);                                           \
        if (how == MEAN) return y / (type)n;                                                       \
        if (how == L2) return sizeof(type) == 4 ? (type)sqrtf((float)y) : (type)sqrt((double)y);   \
        if (how == LOG_SUM) return logarithm(y);                                                   \
        return how == LSE ? logarithm(y) + shift : y;                                              \
    }

RULE(f32, float, sp_expf, sp_logf)
RULE(f64, double, sp_exp, sp_log)

/* ---- elements of any type ---- */

static inline bool is_float(sp_dtype dtype)
{
    return dtype == SP_F32 || dtype == SP_F64 || dtype == SP_F16;
}

static inline double get_float(const sp_array *a, uint64_t i)
{
    if (a->dtype == SP_F64) return ((const double *)a->data)[i];
    if (a->dtype == SP_F16) return (double)sp_float_of_f16(((const uint16_t *)a->data)[i]);
    return (double)((const float *)a->data)[i];
}

static inline void put_float(sp_array *a, uint64_t i, double value)
{
    if (a->dtype == SP_F64) ((double *)a->data)[i] = value;
    else if (a->dtype == SP_F16) ((uint16_t *)a->data)[i] = sp_f16_of_float((float)value);
    else ((float *)a->data)[i] = (float)value;
}

static inline sp_array random_array(data_random *random, sp_dtype dtype, const sp_shape *shape)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, 65504.0};
    sp_array a = {0};
    CHECK_OK(sp__array_init(&a, dtype, shape));
    const bool is_special = data_next(random) % 8 == 0;
    for (uint64_t i = 0; i < sp__shape_count(shape); i++) {
        const uint64_t bits = data_next(random);
        if (is_float(dtype)) {
            double value = (double)data_next_float(random) * 4.0;
            if (is_special && bits % 4 == 0) value = special[bits / 4 % SP_COUNT_OF(special)];
            put_float(&a, i, value);
        } else {
            const int64_t value = dtype == SP_BOOL ? (int64_t)(bits & 1) : (int64_t)bits >> 20;
            memcpy((char *)a.data + i * sp_dtype_bytes(dtype), &value, sp_dtype_bytes(dtype));
        }
    }
    return a;
}

/* Numbers from `least` to `least + range`. */
static inline sp_array array_in_range(data_random *random, sp_dtype dtype, const sp_shape *shape,
                                      double least, double range)
{
    sp_array a = {0};
    CHECK_OK(sp__array_init(&a, dtype, shape));
    for (uint64_t i = 0; i < sp__shape_count(shape); i++) {
        put_float(&a, i, least + range * ((double)data_next_float(random) + 1.0) / 2.0);
    }
    return a;
}

/* Bitwise equality; a NaN must be the canonical one. */
static inline bool is_wanted(const sp_array *got, uint64_t i, double want)
{
    sp_array one = {.dtype = got->dtype, .data = &(uint64_t){0}};
    put_float(&one, 0, want);
    const size_t bytes = sp_dtype_bytes(got->dtype);
    const char *at = (const char *)got->data + i * bytes;
    if (!isnan(want)) return memcmp(at, one.data, bytes) == 0;
    const uint64_t nan = got->dtype == SP_F64   ? UINT64_C(0x7ff8000000000000)
                         : got->dtype == SP_F16 ? 0x7e00
                                                : 0x7fc00000;
    return memcmp(at, &nan, bytes) == 0;
}

#endif
