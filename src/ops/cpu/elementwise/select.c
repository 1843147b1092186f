/* SPDX-License-Identifier: Apache-2.0 */
/* Where: moves elements by their size, bits untouched. PRelu: positive numbers and zeros stay,
 * others are multiplied by their slope, rounded once; integers wrap. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"

/* The last strides are 0 or 1. */
#define SELECT_ROW(bits, type)                                                                     \
    static void select_row_##bits(const uint8_t *c, int64_t c_step, const type *x, int64_t x_step, \
                                  const type *y, int64_t y_step, type *out, int64_t n)             \
    {                                                                                              \
        if (c_step == 1 && x_step == 1 && y_step == 1) {                                           \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] = c[i] ? x[i] : y[i];            \
        } else {                                                                                   \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++)                                         \
            {                                                                                      \
                out[i] = c[i * c_step] ? x[i * x_step] : y[i * y_step];                            \
            }                                                                                      \
        }                                                                                          \
    }

/* Two walks side by side: the walk knows two operands. */
#define SELECT_KERNEL(bits, type)                                                                  \
    SELECT_ROW(bits, type)                                                                         \
    sp_status SP_KERNEL(where_##bits)(const sp_tile *tile)                                         \
    {                                                                                              \
        const sp_select_constants *k = tile->constants;                                            \
        const uint8_t *c = tile->bindings[0];                                                      \
        const type *x = tile->bindings[1], *y = tile->bindings[2];                                 \
        type *out = tile->bindings[3];                                                             \
        const uint32_t last = k->rank - 1;                                                         \
        int64_t at = tile->index[0] * k->tile_count;                                               \
        const int64_t end = k->count - at < k->tile_count ? k->count : at + k->tile_count;         \
        if (at >= end) return SP_OK;                                                               \
        sp_walk sides, conditions;                                                                 \
        sp_walk_init(&sides, k->rank, k->dims, k->x, k->y, at / k->dims[last]);                    \
        sp_walk_init(&conditions, k->rank, k->dims, k->condition, k->condition,                    \
                     at / k->dims[last]);                                                          \
        for (int64_t column = at % k->dims[last]; at < end; column = 0) {                          \
            const int64_t left = k->dims[last] - column;                                           \
            const int64_t n = left < end - at ? left : end - at;                                   \
            select_row_##bits(c + conditions.a + column * k->condition[last], k->condition[last],  \
                              x + sides.a + column * k->x[last], k->x[last],                       \
                              y + sides.b + column * k->y[last], k->y[last], out + at, n);         \
            at += n;                                                                               \
            sp_walk_next(&sides);                                                                  \
            sp_walk_next(&conditions);                                                             \
        }                                                                                          \
        return SP_OK;                                                                              \
    }

SELECT_KERNEL(8, uint8_t)
SELECT_KERNEL(16, uint16_t)
SELECT_KERNEL(32, uint32_t)
SELECT_KERNEL(64, uint64_t)

static SP_ALWAYS_INLINE float prelu_f32(float x, float slope)
{
    return sp_canonical(x < 0 ? slope * x : x);
}
static SP_ALWAYS_INLINE double prelu_f64(double x, double slope)
{
    return sp_canonical_f64(x < 0 ? slope * x : x);
}
static SP_ALWAYS_INLINE int32_t prelu_i32(int32_t x, int32_t slope)
{
    return x < 0 ? (int32_t)((uint32_t)slope * (uint32_t)x) : x;
}
static SP_ALWAYS_INLINE int64_t prelu_i64(int64_t x, int64_t slope)
{
    return x < 0 ? (int64_t)((uint64_t)slope * (uint64_t)x) : x;
}

SP_BINARY_KERNEL(prelu_f32, prelu_f32, float, float)
SP_BINARY_KERNEL(prelu_f64, prelu_f64, double, double)
SP_BINARY_KERNEL(prelu_i32, prelu_i32, int32_t, int32_t)
SP_BINARY_KERNEL(prelu_i64, prelu_i64, int64_t, int64_t)
