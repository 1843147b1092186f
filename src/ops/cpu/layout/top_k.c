/* SPDX-License-Identifier: Apache-2.0 */
/* The first of a line, in order. The places stand in the output of indices from the start: a heap
 * of the best so far with the worst on top, then sorted where it stands. Of equal values the one
 * that comes first is better, so there is one order; a NaN is larger than all numbers. */
#include "ops/cpu/arch/isa.h"

/* One line: element i of x is x[i * stride], place i of the output at[i * stride]. */
typedef struct line {
    const void *x;
    int64_t *at;
    int64_t stride;
    bool is_largest;
} line;

#define IS_MORE_FLOAT(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#define IS_MORE_INT(a, b) ((a) > (b))

/* Does element `a` come before element `b`? */
#define TOP_K(type, IS_MORE)                                                                       \
    static SP_ALWAYS_INLINE bool is_before_##type(const line *l, int64_t a, int64_t b)             \
    {                                                                                              \
        const type x = ((const type *)l->x)[a * l->stride];                                        \
        const type y = ((const type *)l->x)[b * l->stride];                                        \
        const bool is_more = IS_MORE(x, y), is_less = IS_MORE(y, x);                               \
        if (is_more || is_less) return l->is_largest ? is_more : is_less;                          \
        return a < b;                                                                              \
    }                                                                                              \
                                                                                                   \
    /* Puts `place` where it belongs below `root`, in a heap of `n`. */                            \
    static void sift_##type(const line *l, int64_t root, int64_t n, int64_t place)                 \
    {                                                                                              \
        for (int64_t child = 2 * root + 1; child < n; child = 2 * root + 1) {                      \
            const int64_t other = child + 1;                                                       \
            if (other < n &&                                                                       \
                is_before_##type(l, l->at[child * l->stride], l->at[other * l->stride])) {         \
                child = other;                                                                     \
            }                                                                                      \
            if (!is_before_##type(l, place, l->at[child * l->stride])) break;                      \
            l->at[root * l->stride] = l->at[child * l->stride];                                    \
            root = child;                                                                          \
        }                                                                                          \
        l->at[root * l->stride] = place;                                                           \
    }                                                                                              \
                                                                                                   \
    static void run_##type(const line *l, int64_t count, int64_t axis, void *values)               \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) l->at[i * l->stride] = i;                              \
        for (int64_t i = count / 2; i-- > 0;) sift_##type(l, i, count, l->at[i * l->stride]);      \
        for (int64_t i = count; i < axis; i++) {                                                   \
            if (is_before_##type(l, i, l->at[0])) sift_##type(l, 0, count, i);                     \
        }                                                                                          \
        for (int64_t n = count - 1; n > 0; n--) {                                                  \
            const int64_t last = l->at[n * l->stride];                                             \
            l->at[n * l->stride] = l->at[0];                                                       \
            sift_##type(l, 0, n, last);                                                            \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            memcpy((type *)values + i * l->stride,                                                 \
                   (const type *)l->x + l->at[i * l->stride] * l->stride, sizeof(type));           \
        }                                                                                          \
    }

TOP_K(float, IS_MORE_FLOAT)
TOP_K(double, IS_MORE_FLOAT)
TOP_K(int8_t, IS_MORE_INT)
TOP_K(int16_t, IS_MORE_INT)
TOP_K(int32_t, IS_MORE_INT)
TOP_K(int64_t, IS_MORE_INT)
TOP_K(uint8_t, IS_MORE_INT)
TOP_K(uint16_t, IS_MORE_INT)
TOP_K(uint32_t, IS_MORE_INT)
TOP_K(uint64_t, IS_MORE_INT)

#define RUN_CASE(dtype, type)                                                                      \
    case dtype:                                                                                    \
        l.x = (const type *)tile->bindings[0] + from;                                              \
        run_##type(&l, k->count, k->axis, (type *)tile->bindings[1] + to);                         \
        break;

sp_status SP_KERNEL(top_k)(const sp_tile *tile)
{
    const sp_top_k_constants *k = tile->constants;
    const int64_t lines = k->outer * k->inner, first = tile->index[0] * k->tile_lines;
    const int64_t end = lines - first < k->tile_lines ? lines : first + k->tile_lines;
    for (int64_t i = first; i < end; i++) {
        const int64_t outer = i / k->inner, inner = i % k->inner;
        const int64_t from = outer * k->axis * k->inner + inner;
        const int64_t to = outer * k->count * k->inner + inner;
        line l = {.at = (int64_t *)tile->bindings[2] + to,
                  .stride = k->inner,
                  .is_largest = k->is_largest};
        switch (k->dtype) {
            RUN_CASE(SP_F32, float)
            RUN_CASE(SP_F64, double)
            RUN_CASE(SP_I8, int8_t)
            RUN_CASE(SP_I16, int16_t)
            RUN_CASE(SP_I32, int32_t)
            RUN_CASE(SP_I64, int64_t)
            RUN_CASE(SP_U8, uint8_t)
            RUN_CASE(SP_U16, uint16_t)
            RUN_CASE(SP_U32, uint32_t)
            RUN_CASE(SP_U64, uint64_t)
        default:
            break;
        }
    }
    return SP_OK;
}
