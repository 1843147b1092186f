/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of elementwise kernels around a static inline function of one or two elements. Each is
 * written so that it vectorises; y may be the memory of an operand that has y's shape and size. */
#ifndef SP_OPS_CPU_ELEMENTWISE_ELEMENTWISE_H
#define SP_OPS_CPU_ELEMENTWISE_ELEMENTWISE_H

#include "ops/cpu/arch/strided.h"

/* One stretch of a row, whose last strides are 0 or 1. */
#define SP_BINARY_ROW(name, function, type, result)                                                \
    static void row_##name(const type *a, int64_t a_step, const type *b, int64_t b_step,           \
                           result *y, int64_t n)                                                   \
    {                                                                                              \
        const type a0 = a[0], b0 = b[0];                                                           \
        if (a_step == 1 && b_step == 1) {                                                          \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = function(a[i], b[i]);            \
        } else if (a_step == 1) {                                                                  \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = function(a[i], b0);              \
        } else if (b_step == 1) {                                                                  \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = function(a0, b[i]);              \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) y[i] = function(a0, b0);                               \
        }                                                                                          \
    }

/* Elements after which a kernel may do more with its results: they are still in the first-level
 * cache. */
enum { SP_STRETCH = 2048 };

/* finish(constants, y, n) follows each stretch of n results. */
#define SP_BINARY_KERNEL_OF_ROWS(name, type, result, finish)                                       \
    sp_status SP_KERNEL(name)(const sp_tile *tile)                                                 \
    {                                                                                              \
        const sp_binary_constants *k = tile->constants;                                            \
        const type *a = tile->bindings[0], *b = tile->bindings[1];                                 \
        result *y = tile->bindings[2];                                                             \
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
            if (n > SP_STRETCH) n = SP_STRETCH;                                                    \
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

#define SP_FINISH_NOTHING(k, y, n) ((void)0)

#define SP_BINARY_KERNEL(name, function, type, result)                                             \
    SP_BINARY_ROW(name, function, type, result)                                                    \
    SP_BINARY_KERNEL_OF_ROWS(name, type, result, SP_FINISH_NOTHING)

/* The elements of a flat tile: `first`, `n`. */
#define SP_FLAT_TILE(constants_type)                                                               \
    const constants_type *k = tile->constants;                                                     \
    const int64_t first = tile->index[0] * k->tile_count;                                          \
    const int64_t left = k->count - first;                                                         \
    const int64_t n = left < k->tile_count ? left : k->tile_count;

#define SP_UNARY_KERNEL(name, function, type)                                                      \
    sp_status SP_KERNEL(name)(const sp_tile *tile)                                                 \
    {                                                                                              \
        SP_FLAT_TILE(sp_flat_constants)                                                            \
        const type *x = (const type *)tile->bindings[0] + first;                                   \
        type *y = (type *)tile->bindings[1] + first;                                               \
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = function(x[i]);                      \
        return SP_OK;                                                                              \
    }

/* function(x, alpha, beta), with the parameters in the type of x. */
#define SP_FUNCTION_KERNEL(name, function, type, result)                                           \
    sp_status SP_KERNEL(name)(const sp_tile *tile)                                                 \
    {                                                                                              \
        SP_FLAT_TILE(sp_function_constants)                                                        \
        const type *x = (const type *)tile->bindings[0] + first;                                   \
        result *y = (result *)tile->bindings[1] + first;                                           \
        const type alpha = (type)k->alpha, beta = (type)k->beta;                                   \
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = function(x[i], alpha, beta);         \
        return SP_OK;                                                                              \
    }

#endif
