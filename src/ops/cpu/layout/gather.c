/* SPDX-License-Identifier: Apache-2.0 */
/* Elements selected by indices from data. Bits are kept. */
#include "ops/cpu/layout/index.h"
#include "ops/cpu/arch/strided.h"

typedef struct span {
    int64_t first, end;
} span;

static span tile_span(const sp_tile *tile, int64_t count)
{
    return (span){sp_tile_first(tile, 0), sp_tile_end(tile, 0, count)};
}

/* For constant row sizes the copies are single moves. */
static SP_ALWAYS_INLINE sp_status gather_rows(const sp_tile *tile, const int64_t bytes)
{
    const sp_gather_constants *k = tile->constants;
    const char *x = tile->bindings[0];
    char *y = tile->bindings[2];
    const span rows = tile_span(tile, k->outer * k->count);
    if (rows.first >= rows.end) return SP_OK;
    int64_t outer = rows.first / k->count, at = rows.first % k->count;
    for (int64_t row = rows.first; row < rows.end; row++) {
        const int64_t given = sp_index_load(tile->bindings[1], at, k->index_bytes);
        const int64_t index = sp_index_wrap(given, k->axis);
        if (!sp_index_is_inside(index, k->axis)) return sp_index_fail(given, k->axis);
        memcpy(y + row * bytes, x + (outer * k->axis + index) * bytes, (size_t)bytes);
        if (++at == k->count) {
            at = 0;
            outer++;
        }
    }
    return SP_OK;
}

sp_status SP_KERNEL(gather)(const sp_tile *tile)
{
    const sp_gather_constants *k = tile->constants;
    switch (k->inner_bytes) {
    case 4:
        return gather_rows(tile, 4);
    case 8:
        return gather_rows(tile, 8);
    default:
        return gather_rows(tile, k->inner_bytes);
    }
}

/* Elements [column, column + n) of a row of indices, to the same location in y. `from` is the row's
 * offset in x without the coordinate along the axis, and without the column. */
static SP_ALWAYS_INLINE sp_status pick_row(const sp_tile *tile, int64_t from, int64_t column,
                                           int64_t at, int64_t n, const int64_t bytes)
{
    const sp_gather_elements_constants *k = tile->constants;
    const char *x = tile->bindings[0];
    char *y = tile->bindings[2];
    const int64_t step = k->x[k->rank - 1];
    for (int64_t i = 0; i < n; i++) {
        const int64_t given = sp_index_load(tile->bindings[1], at + i, k->index_bytes);
        const int64_t index = sp_index_wrap(given, k->axis_size);
        if (!sp_index_is_inside(index, k->axis_size)) return sp_index_fail(given, k->axis_size);
        const int64_t offset = from + (column + i) * step + index * k->axis_stride;
        memcpy(y + (at + i) * bytes, x + offset * bytes, (size_t)bytes);
    }
    return SP_OK;
}

static SP_ALWAYS_INLINE sp_status pick_tile(const sp_tile *tile, const int64_t bytes)
{
    const sp_gather_elements_constants *k = tile->constants;
    const uint32_t last = k->rank - 1;
    const span all = tile_span(tile, k->count);
    if (all.first >= all.end) return SP_OK;
    sp_walk walk;
    sp_walk_init(&walk, k->rank, k->dims, k->x, k->x, all.first / k->dims[last]);
    int64_t at = all.first;
    for (int64_t column = at % k->dims[last]; at < all.end; column = 0, sp_walk_next(&walk)) {
        const int64_t left = k->dims[last] - column;
        const int64_t n = left < all.end - at ? left : all.end - at;
        const sp_status status = pick_row(tile, walk.a, column, at, n, bytes);
        if (status != SP_OK) return status;
        at += n;
    }
    return SP_OK;
}

sp_status SP_KERNEL(gather_elements)(const sp_tile *tile)
{
    const sp_gather_elements_constants *k = tile->constants;
    switch (k->element_bytes) {
    case 1:
        return pick_tile(tile, 1);
    case 2:
        return pick_tile(tile, 2);
    case 4:
        return pick_tile(tile, 4);
    default:
        return pick_tile(tile, 8);
    }
}

sp_status SP_KERNEL(gather_nd)(const sp_tile *tile)
{
    const sp_gather_nd_constants *k = tile->constants;
    const char *x = tile->bindings[0];
    char *y = tile->bindings[2];
    const span rows = tile_span(tile, k->rows);
    for (int64_t row = rows.first; row < rows.end; row++) {
        int64_t offset = 0;
        const sp_status status = sp_index_offset(tile->bindings[1], row * k->depth, k->index_bytes,
                                                 k->depth, k->dims, k->strides, &offset);
        if (status != SP_OK) return status;
        offset += row / k->batch_rows * k->batch_bytes;
        memcpy(y + row * k->slice_bytes, x + offset, (size_t)k->slice_bytes);
    }
    return SP_OK;
}

/* The index as an integer; a float outside of its range gives one that is always out of range. */
static int64_t load_number(const void *indices, int64_t at, uint32_t dtype)
{
    switch (dtype) {
    case SP_I32:
        return ((const int32_t *)indices)[at];
    case SP_I64:
        return ((const int64_t *)indices)[at];
    default:
        break;
    }
    const float number = ((const float *)indices)[at];
    return number > -1e18f && number < 1e18f ? (int64_t)number : INT64_MIN;
}

static SP_ALWAYS_INLINE void one_hot_tile(const sp_tile *tile, const int64_t bytes)
{
    const sp_one_hot_constants *k = tile->constants;
    const char *values = tile->bindings[1];
    char *y = tile->bindings[2];
    const span rows = tile_span(tile, k->outer);
    const int64_t block = k->depth * k->inner;
    for (int64_t row = rows.first; row < rows.end; row++) {
        char *to = y + row * block * bytes;
        for (int64_t i = 0; i < block; i++) memcpy(to + i * bytes, values, (size_t)bytes);
        for (int64_t i = 0; i < k->inner; i++) {
            const int64_t given = load_number(tile->bindings[0], row * k->inner + i, k->index_type);
            const int64_t index = sp_index_wrap(given, k->depth);
            if (!sp_index_is_inside(index, k->depth)) continue;
            memcpy(to + (index * k->inner + i) * bytes, values + bytes, (size_t)bytes);
        }
    }
}

sp_status SP_KERNEL(one_hot)(const sp_tile *tile)
{
    const sp_one_hot_constants *k = tile->constants;
    switch (k->element_bytes) {
    case 1:
        one_hot_tile(tile, 1);
        break;
    case 2:
        one_hot_tile(tile, 2);
        break;
    case 4:
        one_hot_tile(tile, 4);
        break;
    default:
        one_hot_tile(tile, 8);
        break;
    }
    return SP_OK;
}

#define RANGE_FLOATS(type)                                                                         \
    for (int64_t i = all.first; i < all.end; i++) {                                                \
        ((type *)y)[i] = (type)k->start + (type)i * (type)k->step;                                 \
    }                                                                                              \
    break

/* Integers wrap. */
#define RANGE_INTS(type)                                                                           \
    for (int64_t i = all.first; i < all.end; i++) {                                                \
        ((type *)y)[i] = (type)((uint64_t)k->start_int + (uint64_t)i * (uint64_t)k->step_int);     \
    }                                                                                              \
    break

sp_status SP_KERNEL(range)(const sp_tile *tile)
{
    const sp_range_constants *k = tile->constants;
    const span all = tile_span(tile, k->count);
    void *y = tile->bindings[0];
    switch (k->dtype) {
    case SP_F32:
        RANGE_FLOATS(float);
    case SP_F64:
        RANGE_FLOATS(double);
    case SP_I16:
        RANGE_INTS(int16_t);
    case SP_I32:
        RANGE_INTS(int32_t);
    default:
        RANGE_INTS(int64_t);
    }
    return SP_OK;
}
