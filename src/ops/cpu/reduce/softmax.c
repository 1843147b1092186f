/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax: m = max(x), e = exp(x - m), s = sum(e) in the order of lanes.h, y = e / s; the logarithm
 * of it: (x - m) - log(s). The same rounded steps as the ops ReduceMax, Sub, Exp, ReduceSum, Div
 * and Log would take. y may be the memory of x. */
#include "ops/cpu/reduce/reduction.h"
#include "ops/cpu/reduce/rows.h"

enum { COLUMNS = SP_LANE_COLUMNS, ALL_LANES = SP_LANES * COLUMNS };

#define FLOAT_REDUCTIONS(suffix, type)                                                             \
    SP_REDUCTION_IN_ANY_ORDER(max_##suffix, type, type, SP_PLAIN, sp_join_max_##suffix,            \
                              sp_max_##suffix)                                                     \
    SP_REDUCTION(sum_##suffix, type, type, SP_PLAIN, sp_join_sum_##suffix, sp_add_##suffix)        \
    SP_REDUCTION_MAPPED(exp_##suffix, type, type, SP_PLAIN, sp_map_exp_##suffix, sum_##suffix,     \
                        sp_join_exp_##suffix, sp_add_##suffix)

#define HALF_REDUCTION(name, map, base, combine)                                                   \
    SP_REDUCTION_MAPPED(name##_f16, uint16_t, float, sp_float_of_f16, map, base,                   \
                        sp_join_##name##_f32, combine)

FLOAT_REDUCTIONS(f32, float)
FLOAT_REDUCTIONS(f64, double)
HALF_REDUCTION(max, sp_map_f16, max_f32, sp_max_f32)
HALF_REDUCTION(sum, sp_map_f16, sum_f32, sp_add_f32)
HALF_REDUCTION(exp, sp_map_exp_f16, sum_f32, sp_add_f32)

/* The exponentials wait in y between the passes, unless y is too narrow or still read as x. */
#define SOFTMAX_KERNEL(suffix, element, type, load, store, exponential, logarithm)                 \
    static void row_softmax_##suffix(const sp_axis_constants *k, const element *x, element *y)     \
    {                                                                                              \
        const int64_t n = k->extent;                                                               \
        const bool keeps = sizeof(element) == sizeof(type) && !k->is_log;                          \
        type lanes[SP_LANES];                                                                      \
        for (int64_t l = 0; l < SP_LANES; l++) lanes[l] = -(type)__builtin_inff();                 \
        row_max_##suffix(lanes, 0, x, n, 0);                                                       \
        tree_max_##suffix(lanes, 1, n);                                                            \
        const type most = lanes[0];                                                                \
        for (int64_t l = 0; l < SP_LANES; l++) lanes[l] = 0;                                       \
        if (keeps) {                                                                               \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++)                                         \
            {                                                                                      \
                y[i] = store(exponential(load(x[i]) - most));                                      \
            }                                                                                      \
            row_sum_##suffix(lanes, 0, y, n, 0);                                                   \
        } else {                                                                                   \
            row_exp_##suffix(lanes, 0, x, n, most);                                                \
        }                                                                                          \
        tree_sum_##suffix(lanes, 1, n);                                                            \
        const type sum = lanes[0];                                                                 \
        if (keeps) {                                                                               \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = store(load(y[i]) / sum);         \
        } else if (!k->is_log) {                                                                   \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++)                                         \
            {                                                                                      \
                y[i] = store(exponential(load(x[i]) - most) / sum);                                \
            }                                                                                      \
        } else {                                                                                   \
            const type base = logarithm(sum);                                                      \
            SP_INDEPENDENT for (int64_t i = 0; i < n; i++)                                         \
            {                                                                                      \
                y[i] = store((load(x[i]) - most) - base);                                          \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* `width` rows side by side, whose elements are k->inner apart. */                            \
    static void columns_softmax_##suffix(const sp_axis_constants *k, const element *x, element *y, \
                                         int64_t width)                                            \
    {                                                                                              \
        const int64_t n = k->extent;                                                               \
        const bool keeps = sizeof(element) == sizeof(type) && !k->is_log;                          \
        type lanes[ALL_LANES], most[COLUMNS] = {0};                                                \
        for (int64_t l = 0; l < ALL_LANES; l++) lanes[l] = -(type)__builtin_inff();                \
        columns_max_##suffix(lanes, 0, x, k->inner, n, width, most);                               \
        tree_max_##suffix(lanes, COLUMNS, n);                                                      \
        memcpy(most, lanes, sizeof(most));                                                         \
        for (int64_t l = 0; l < ALL_LANES; l++) lanes[l] = 0;                                      \
        for (int64_t i = 0; keeps && i < n; i++) {                                                 \
            const element *from = x + i * k->inner;                                                \
            element *to = y + i * k->inner;                                                        \
            SP_INDEPENDENT for (int64_t c = 0; c < width; c++)                                     \
            {                                                                                      \
                to[c] = store(exponential(load(from[c]) - most[c]));                               \
            }                                                                                      \
        }                                                                                          \
        if (keeps) columns_sum_##suffix(lanes, 0, y, k->inner, n, width, most);                    \
        else columns_exp_##suffix(lanes, 0, x, k->inner, n, width, most);                          \
        tree_sum_##suffix(lanes, COLUMNS, n);                                                      \
        for (int64_t c = 0; k->is_log && c < width; c++) lanes[c] = logarithm(lanes[c]);           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const element *from = x + i * k->inner;                                                \
            element *to = y + i * k->inner;                                                        \
            if (keeps) {                                                                           \
                SP_INDEPENDENT for (int64_t c = 0; c < width; c++)                                 \
                {                                                                                  \
                    to[c] = store(load(to[c]) / lanes[c]);                                         \
                }                                                                                  \
            } else if (!k->is_log) {                                                               \
                SP_INDEPENDENT for (int64_t c = 0; c < width; c++)                                 \
                {                                                                                  \
                    to[c] = store(exponential(load(from[c]) - most[c]) / lanes[c]);                \
                }                                                                                  \
            } else {                                                                               \
                SP_INDEPENDENT for (int64_t c = 0; c < width; c++)                                 \
                {                                                                                  \
                    to[c] = store((load(from[c]) - most[c]) - lanes[c]);                           \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    sp_status SP_KERNEL(softmax_##suffix)(const sp_tile *tile)                                     \
    {                                                                                              \
        const sp_axis_constants *k = tile->constants;                                              \
        const element *x = tile->bindings[0];                                                      \
        element *y = tile->bindings[1];                                                            \
        if (k->inner == 1) {                                                                       \
            SP_FOR_ROWS(k, tile, row_softmax_##suffix(k, x + first, y + first));                   \
        } else {                                                                                   \
            SP_FOR_ROWS(k, tile, columns_softmax_##suffix(k, x + first, y + first, width));        \
        }                                                                                          \
        return SP_OK;                                                                              \
    }

SOFTMAX_KERNEL(f32, float, float, SP_PLAIN, sp_canonical, sp_expf, sp_logf)
SOFTMAX_KERNEL(f64, double, double, SP_PLAIN, sp_canonical_f64, sp_exp, sp_log)
SOFTMAX_KERNEL(f16, uint16_t, float, sp_float_of_f16, sp_f16_of_float, sp_expf, sp_logf)
