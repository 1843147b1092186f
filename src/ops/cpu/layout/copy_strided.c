/* SPDX-License-Identifier: Apache-2.0 */
/* A copy by strides: in rows, which are the last dimension; where those are short, or columns of
 * what is copied, some rows of a plane at a time. All bits are kept, those of NaNs too. */
#include "base/macros.h"
#include "base/size.h"
#include "ops/cpu/arch/vector_transpose.h"
#include "ops/cpu/layout/copy_row.h"

/* Some rows of the last two dimensions. */
typedef struct copy_plane {
    copy_side from, to; /* the first row */
    int64_t rows, columns, from_row, to_row;
} copy_plane;

enum { SHORT_BYTES = 64, FEW_COLUMNS = 4 };

/* ---- short contiguous rows ---- */

/* `size` bytes each, which is a constant after inlining for some sizes. */
static SP_ALWAYS_INLINE void copy_runs(const size_t size, const copy_plane *p, int64_t element)
{
    const char *x = (const char *)p->from.base + p->from.offset * element;
    char *y = (char *)p->to.base + p->to.offset * element;
    for (int64_t r = 0; r < p->rows; r++, x += p->from_row * element, y += p->to_row * element) {
        memcpy(y, x, size);
    }
}

static void copy_short(const copy_plane *p, int64_t element)
{
    const size_t size = (size_t)(p->columns * element);
    switch (size) {
    case 8:
        copy_runs(8, p, element);
        break;
    case 16:
        copy_runs(16, p, element);
        break;
    case 32:
        copy_runs(32, p, element);
        break;
    case 64:
        copy_runs(64, p, element);
        break;
    default:
        copy_runs(size, p, element);
        break;
    }
}

/* ---- columns become rows ---- */

/* Up to a square of columns that are contiguous in x, of rows that are in y. */
static SP_ALWAYS_INLINE void turn_square(const float *x, int64_t from_column, int64_t rows,
                                         float *y, int64_t to_row, int64_t columns)
{
    const sp_vector_part part = sp_vector_range(0, rows);
    sp_vector square[SP_VECTOR];
#pragma GCC unroll 16
    for (int64_t i = 0; i < SP_VECTOR; i++) {
        square[i] = sp_vector_splat(0);
        if (i >= columns) continue;
        if (part == SP_VECTOR_ALL) square[i] = sp_vector_load(x + i * from_column);
        else square[i] = sp_vector_load_part(x + i * from_column, part, square[i]);
    }
    sp_vector_transpose(square);
    for (int64_t i = 0; i < SP_VECTOR && i < rows; i++) {
        sp_vector_store_first(y + i * to_row, columns, square[i]);
    }
}

static SP_NOINLINE void turn_columns(const copy_plane *p)
{
    const float *x = (const float *)p->from.base + p->from.offset;
    float *y = (float *)p->to.base + p->to.offset;
    for (int64_t r = 0; r < p->rows; r += SP_VECTOR) {
        for (int64_t c = 0; c < p->columns; c += SP_VECTOR) {
            turn_square(x + r + c * p->from.step, p->from.step,
                        sp_size_least(p->rows - r, SP_VECTOR), y + r * p->to_row + c, p->to_row,
                        sp_size_least(p->columns - c, SP_VECTOR));
        }
    }
}

/* ---- planes ---- */

static SP_NOINLINE void copy_one_row(uint32_t element_bytes, copy_side from, copy_side to,
                                     int64_t n)
{
    copy_row(element_bytes, from, to, n);
}

/* A few columns one after the other. */
static void copy_columns(const copy_plane *p, uint32_t element_bytes)
{
    for (int64_t i = 0; i < p->columns; i++) {
        const copy_side from = {p->from.base, p->from.offset + i * p->from.step, p->from_row};
        const copy_side to = {p->to.base, p->to.offset + i * p->to.step, p->to_row};
        copy_one_row(element_bytes, from, to, p->rows);
    }
}

static void copy_rows(const copy_plane *p, uint32_t element_bytes)
{
    if (p->rows == 1) copy_one_row(element_bytes, p->from, p->to, p->columns);
    else if (p->from.step == 1 && p->to.step == 1) copy_short(p, element_bytes);
    else if (p->columns <= FEW_COLUMNS || element_bytes != 4) copy_columns(p, element_bytes);
    else turn_columns(p);
}

/* Are the last two dimensions copied by planes? */
static bool has_planes(const sp_copy_constants *k)
{
    if (k->rank < 2) return false;
    const uint32_t last = k->rank - 1;
    if (k->x[last] == 1 && k->y[last] == 1) {
        return k->dims[last] * (int64_t)k->element_bytes <= SHORT_BYTES;
    }
    /* Columns are rows of x. */
    return k->x[last - 1] == 1 && k->y[last] == 1 && k->dims[last - 1] >= k->dims[last] / 4;
}

/* Elements [at, end) of the copy. */
static SP_NOINLINE void copy_planes(const sp_tile *tile, int64_t at, int64_t end)
{
    const sp_copy_constants *k = tile->constants;
    const uint32_t last = k->rank - 1;
    const int64_t columns = k->dims[last], rows = k->dims[last - 1];
    int64_t row = SP_PLANTED(copy_tile_row) ? 0 : at / columns % rows, column = at % columns;
    sp_walk walk;
    sp_walk_init(&walk, last, k->dims, k->x, k->y, at / columns / rows);
    while (at < end) {
        const bool is_part = column > 0 || end - at < columns;
        copy_plane p = {.rows = is_part ? 1 : sp_size_least(rows - row, (end - at) / columns),
                        .columns = is_part ? sp_size_least(columns - column, end - at) : columns,
                        .from_row = k->x[last - 1],
                        .to_row = k->y[last - 1]};
        p.from =
            (copy_side){tile->bindings[0],
                        k->x_first + walk.a + row * p.from_row + column * k->x[last], k->x[last]};
        p.to = (copy_side){tile->bindings[1],
                           k->y_first + walk.b + row * p.to_row + column * k->y[last], k->y[last]};
        copy_rows(&p, k->element_bytes);
        at += p.rows * p.columns;
        row += p.rows;
        column = 0;
        if (row < rows) continue;
        row = 0;
        sp_walk_next(&walk);
    }
}

sp_status SP_KERNEL(copy_strided)(const sp_tile *tile)
{
    const sp_copy_constants *k = tile->constants;
    const uint32_t last = k->rank - 1;
    int64_t at = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->count);
    if (at >= end) return SP_OK;
    if (has_planes(k)) {
        copy_planes(tile, at, end);
        return SP_OK;
    }
    sp_walk walk;
    sp_walk_init(&walk, k->rank, k->dims, k->x, k->y, at / k->dims[last]);
    for (int64_t column = at % k->dims[last]; at < end; column = 0, sp_walk_next(&walk)) {
        const int64_t left = k->dims[last] - column;
        const int64_t n = left < end - at ? left : end - at;
        const copy_side from = {tile->bindings[0], k->x_first + walk.a + column * k->x[last],
                                k->x[last]};
        const copy_side to = {tile->bindings[1], k->y_first + walk.b + column * k->y[last],
                              k->y[last]};
        copy_row(k->element_bytes, from, to, n);
        at += n;
    }
    return SP_OK;
}
