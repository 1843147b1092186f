/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of indexed elements. Several updates of one element are applied in the order of the
 * indices, by one tile, so the result is deterministic. */
#include "ops/cpu/arch/typed.h"
#include "ops/cpu/layout/index.h"

static SP_ALWAYS_INLINE float add_f32(float a, float b)
{
    return sp_canonical(a + b);
}

static SP_ALWAYS_INLINE float mul_f32(float a, float b)
{
    return sp_canonical(a * b);
}

/* Of equals the first is taken; a NaN is the result. */
static SP_ALWAYS_INLINE float max_f32(float a, float b)
{
    return sp_canonical(a != a || a >= b ? a : b);
}

static SP_ALWAYS_INLINE float min_f32(float a, float b)
{
    return sp_canonical(a != a || a <= b ? a : b);
}

static SP_ALWAYS_INLINE double canonical_f64(double x)
{
    const uint64_t bits = 0x7ff8000000000000u;
    double nan;
    memcpy(&nan, &bits, sizeof(nan));
    return x == x ? x : nan;
}

static SP_ALWAYS_INLINE double add_f64(double a, double b)
{
    return canonical_f64(a + b);
}

static SP_ALWAYS_INLINE double mul_f64(double a, double b)
{
    return canonical_f64(a * b);
}

static SP_ALWAYS_INLINE double max_f64(double a, double b)
{
    return canonical_f64(a != a || a >= b ? a : b);
}

static SP_ALWAYS_INLINE double min_f64(double a, double b)
{
    return canonical_f64(a != a || a <= b ? a : b);
}

#define SP_TEXT "ops/cpu/layout/scatter_integer.inc.h"
#include "ops/cpu/arch/each_integer.inc.h"

#define SP_TYPE f32
#include "ops/cpu/layout/scatter_combine.inc.h"
#define SP_TYPE f64
#include "ops/cpu/layout/scatter_combine.inc.h"
#define SP_TEXT "ops/cpu/layout/scatter_combine.inc.h"
#include "ops/cpu/arch/each_integer.inc.h"

typedef void (*combine_fn)(uint32_t reduction, void *to, const void *from, int64_t n);

/* NULL: the update replaces the element. */
static combine_fn find_combine(uint32_t dtype, uint32_t reduction)
{
    if (reduction == SP_SCATTER_NONE) return NULL;
    switch (dtype) {
    case SP_F32:
        return combine_f32;
    case SP_F64:
        return combine_f64;
    case SP_I8:
        return combine_i8;
    case SP_I16:
        return combine_i16;
    case SP_I32:
        return combine_i32;
    case SP_I64:
        return combine_i64;
    case SP_U8:
        return combine_u8;
    case SP_U16:
        return combine_u16;
    case SP_U32:
        return combine_u32;
    default:
        return combine_u64;
    }
}

/* Offsets of line `line` in the updates and in y, without the coordinate along the axis. */
static void find_line(const sp_scatter_elements_constants *k, int64_t line, int64_t *from,
                      int64_t *to)
{
    *from = *to = 0;
    int64_t stride = 1;
    for (uint32_t i = k->rank; i-- > 0;) {
        if (i != k->axis) {
            const int64_t at = line % k->dims[i];
            line /= k->dims[i];
            *from += at * stride;
            *to += at * k->y[i];
        }
        stride *= k->dims[i];
    }
}

sp_status SP_KERNEL(scatter_elements)(const sp_tile *tile)
{
    const sp_scatter_elements_constants *k = tile->constants;
    const combine_fn combine = find_combine(k->dtype, k->reduction);
    const int64_t bytes = (int64_t)sp_dtype_bytes((sp_dtype)k->dtype);
    const char *updates = tile->bindings[1];
    char *y = tile->bindings[2];
    int64_t step = 1; /* along the axis, in the updates */
    for (uint32_t i = k->axis + 1; i < k->rank; i++) step *= k->dims[i];
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->lines);
    for (int64_t line = first; line < end; line++) {
        int64_t from, to;
        find_line(k, line, &from, &to);
        for (int64_t i = 0; i < k->dims[k->axis]; i++, from += step) {
            const int64_t given = sp_index_load(tile->bindings[0], from, k->index_bytes);
            const int64_t index = sp_index_wrap(given, k->axis_size);
            if (!sp_index_is_inside(index, k->axis_size)) return sp_index_fail(given, k->axis_size);
            char *place = y + (to + index * k->y[k->axis]) * bytes;
            if (combine) combine(k->reduction, place, updates + from * bytes, 1);
            else memcpy(place, updates + from * bytes, (size_t)bytes);
        }
    }
    return SP_OK;
}

sp_status SP_KERNEL(scatter_nd)(const sp_tile *tile)
{
    const sp_scatter_nd_constants *k = tile->constants;
    const combine_fn combine = find_combine(k->dtype, k->reduction);
    const int64_t bytes = (int64_t)sp_dtype_bytes((sp_dtype)k->dtype);
    const char *updates = tile->bindings[1];
    char *y = tile->bindings[2];
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t n = sp_tile_end(tile, 0, k->slice) - first;
    for (int64_t i = 0; i < k->count; i++) {
        int64_t offset = 0;
        const sp_status status = sp_index_offset(tile->bindings[0], i * k->depth, k->index_bytes,
                                                 k->depth, k->dims, k->strides, &offset);
        if (status != SP_OK) return status;
        const char *from = updates + (i * k->slice + first) * bytes;
        char *place = y + (offset + first) * bytes;
        if (combine) combine(k->reduction, place, from, n);
        else memcpy(place, from, (size_t)(n * bytes));
    }
    return SP_OK;
}
