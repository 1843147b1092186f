/* SPDX-License-Identifier: Apache-2.0 */
/* The first elements of a line, in order. Heap sort of indices in the output of indices: a heap of
 * the best elements so far with the worst on top, then sorted in place. Of equal values the one
 * with the lower index comes first, so the order is unique; a NaN is larger than all numbers. */
#include "ops/cpu/arch/typed.h"

/* One line: element i of x is x[i * stride], element i of the output at[i * stride]. */
typedef struct line {
    const void *x;
    int64_t *at;
    int64_t stride;
    bool is_largest;
} line;

#define IS_MORE_FLOAT(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#define IS_MORE_INT(a, b) ((a) > (b))

#define SP_TYPE f32
#define SP_IS_MORE IS_MORE_FLOAT
#include "ops/cpu/layout/top_k.inc.h"
#define SP_TYPE f64
#define SP_IS_MORE IS_MORE_FLOAT
#include "ops/cpu/layout/top_k.inc.h"
#define SP_TYPE i8
#define SP_IS_MORE IS_MORE_INT
#include "ops/cpu/layout/top_k.inc.h"
#define SP_TYPE i16
#define SP_IS_MORE IS_MORE_INT
#include "ops/cpu/layout/top_k.inc.h"
#define SP_TYPE i32
#define SP_IS_MORE IS_MORE_INT
#include "ops/cpu/layout/top_k.inc.h"
#define SP_TYPE i64
#define SP_IS_MORE IS_MORE_INT
#include "ops/cpu/layout/top_k.inc.h"
#define SP_TYPE u8
#define SP_IS_MORE IS_MORE_INT
#include "ops/cpu/layout/top_k.inc.h"
#define SP_TYPE u16
#define SP_IS_MORE IS_MORE_INT
#include "ops/cpu/layout/top_k.inc.h"
#define SP_TYPE u32
#define SP_IS_MORE IS_MORE_INT
#include "ops/cpu/layout/top_k.inc.h"
#define SP_TYPE u64
#define SP_IS_MORE IS_MORE_INT
#include "ops/cpu/layout/top_k.inc.h"

#define RUN_CASE(dtype, type)                                                                      \
    case dtype:                                                                                    \
        l.x = (const sp_element_##type *)tile->bindings[0] + from;                                 \
        run_##type(&l, k->count, k->axis, (sp_element_##type *)tile->bindings[1] + to);            \
        break;

sp_status SP_KERNEL(top_k)(const sp_tile *tile)
{
    const sp_top_k_constants *k = tile->constants;
    const int64_t lines = k->outer * k->inner, first = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, lines);
    for (int64_t i = first; i < end; i++) {
        const int64_t outer = i / k->inner, inner = i % k->inner;
        const int64_t from = outer * k->axis * k->inner + inner;
        const int64_t to = outer * k->count * k->inner + inner;
        line l = {.at = (int64_t *)tile->bindings[2] + to,
                  .stride = k->inner,
                  .is_largest = k->is_largest};
        switch (k->dtype) {
            RUN_CASE(SP_F32, f32)
            RUN_CASE(SP_F64, f64)
            RUN_CASE(SP_I8, i8)
            RUN_CASE(SP_I16, i16)
            RUN_CASE(SP_I32, i32)
            RUN_CASE(SP_I64, i64)
            RUN_CASE(SP_U8, u8)
            RUN_CASE(SP_U16, u16)
            RUN_CASE(SP_U32, u32)
            RUN_CASE(SP_U64, u64)
        default:
            break;
        }
    }
    return SP_OK;
}
