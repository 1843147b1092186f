/* SPDX-License-Identifier: Apache-2.0 */
/* y = a op b with broadcasting; y may be the memory of an operand that has y's shape. Floats: one
 * rounded operation, NaNs canonical, then the activation. Integers wrap; a division by 0 gives 0
 * and the smallest number divided by -1 itself, on every processor. */
#include "ops/cpu/activate.h"
#include "ops/cpu/strided.h"

/* Elements after which an activation follows: what they take stays in the first-level cache. */
enum { STRETCH = 2048 };

static SP_ALWAYS_INLINE float add_f32(float a, float b)
{
    return sp_canonical(a + b);
}
static SP_ALWAYS_INLINE float sub_f32(float a, float b)
{
    return sp_canonical(a - b);
}
static SP_ALWAYS_INLINE float mul_f32(float a, float b)
{
    return sp_canonical(a * b);
}
static SP_ALWAYS_INLINE float div_f32(float a, float b)
{
    return sp_canonical(a / b);
}

/* Unsigned arithmetic wraps by definition. */
#define INT_OPS(suffix, type, unsigned_type)                                                       \
    static SP_ALWAYS_INLINE type add_##suffix(type a, type b)                                      \
    {                                                                                              \
        return (type)((unsigned_type)a + (unsigned_type)b);                                        \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sub_##suffix(type a, type b)                                      \
    {                                                                                              \
        return (type)((unsigned_type)a - (unsigned_type)b);                                        \
    }                                                                                              \
    static SP_ALWAYS_INLINE type mul_##suffix(type a, type b)                                      \
    {                                                                                              \
        return (type)((unsigned_type)a * (unsigned_type)b);                                        \
    }                                                                                              \
    static SP_ALWAYS_INLINE type div_##suffix(type a, type b)                                      \
    {                                                                                              \
        if (b == 0) return 0;                                                                      \
        return b == -1 ? sub_##suffix(0, a) : (type)(a / b);                                       \
    }

INT_OPS(i32, int32_t, uint32_t)
INT_OPS(i64, int64_t, uint64_t)

/* One stretch of a row, whose last strides are 0 or 1: the loop is written for each case so that it
 * vectorises. */
#define BINARY_ROW(name, type)                                                                     \
    static void row_##name(const type *a, int64_t a_step, const type *b, int64_t b_step, type *y,  \
                           int64_t n)                                                              \
    {                                                                                              \
        const type a0 = a[0], b0 = b[0];                                                           \
        if (a_step == 1 && b_step == 1) {                                                          \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = name(a[i], b[i]);                \
        } else if (a_step == 1) {                                                                  \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = name(a[i], b0);                  \
        } else if (b_step == 1) {                                                                  \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = name(a0, b[i]);                  \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) y[i] = name(a0, b0);                                   \
        }                                                                                          \
    }

#define FINISH_FLOATS(k, y, n) sp_activate((k)->activation, y, 1, 0, n)
#define FINISH_INTS(k, y, n) ((void)0)

#define BINARY_KERNEL(name, type, finish)                                                          \
    BINARY_ROW(name, type)                                                                         \
    sp_status SP_KERNEL(name)(const sp_tile *tile)                                                 \
    {                                                                                              \
        const sp_binary_constants *k = tile->constants;                                            \
        const type *a = tile->bindings[0], *b = tile->bindings[1];                                 \
        type *y = tile->bindings[2];                                                               \
        const uint32_t last = k->rank - 1;                                                         \
        int64_t at = tile->index[0] * k->tile_count;                                               \
        const int64_t end = k->count - at < k->tile_count ? k->count : at + k->tile_count;         \
        if (at >= end) return SP_OK;                                                               \
        sp_walk walk;                                                                              \
        sp_walk_init(&walk, k->rank, k->dims, k->a, k->b, at / k->dims[last]);                     \
        int64_t column = at % k->dims[last];                                                       \
        while (at < end) {                                                                         \
            int64_t n = k->dims[last] - column;                                                    \
            if (n > end - at) n = end - at;                                                        \
            if (n > STRETCH) n = STRETCH;                                                          \
            row_##name(a + walk.a + column * k->a[last], k->a[last],                               \
                       b + walk.b + column * k->b[last], k->b[last], y + at, n);                   \
            finish(k, y + at, n);                                                                  \
            at += n;                                                                               \
            column += n;                                                                           \
            if (column < k->dims[last]) continue;                                                  \
            column = 0;                                                                            \
            sp_walk_next(&walk);                                                                   \
        }                                                                                          \
        return SP_OK;                                                                              \
    }

#define BINARY_KERNELS(suffix, type, finish)                                                       \
    BINARY_KERNEL(add_##suffix, type, finish)                                                      \
    BINARY_KERNEL(sub_##suffix, type, finish)                                                      \
    BINARY_KERNEL(mul_##suffix, type, finish)                                                      \
    BINARY_KERNEL(div_##suffix, type, finish)

BINARY_KERNELS(f32, float, FINISH_FLOATS)
BINARY_KERNELS(i32, int32_t, FINISH_INTS)
BINARY_KERNELS(i64, int64_t, FINISH_INTS)
