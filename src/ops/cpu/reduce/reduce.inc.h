/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of one type. Rows: one output at a time. Columns: several outputs along the last kept
 * dimension at a time. Included by other templates; parameter SP_STEPS, the steps of each
 * reduction. */

typedef struct SP_OF(steps) {
    SP_WIDE start;
    void (*row)(SP_WIDE *lanes, int64_t phase, const SP_ELEMENT *x, int64_t n, SP_WIDE shift);
    void (*columns)(SP_WIDE *lanes, int64_t phase, const SP_ELEMENT *x, int64_t stride, int64_t n,
                    int64_t width, const SP_WIDE *shift);
    void (*tree)(SP_WIDE *lanes, int64_t width, int64_t extent);
} SP_OF(steps);
static const SP_OF(steps) SP_OF(table)[] = {SP_STEPS};

static void SP_OF(reduce_rows)(const sp_reduce_constants *k, const SP_ELEMENT *x,
                               const SP_ELEMENT *shifts, SP_ELEMENT *y, int64_t first, int64_t last)
{
    const SP_OF(steps) *steps = &SP_OF(table)[k->reduction];
    const int64_t n = k->dims[k->reduced_rank - 1];
    sp_walk kept, rows;
    sp_walk_init(&kept, k->kept_rank + 1, k->kept_dims, k->kept_strides, k->kept_strides, first);
    for (int64_t at = first; at < last; at++, sp_walk_next(&kept)) {
        SP_WIDE lanes[SP_LANES];
        const SP_WIDE shift = shifts ? SP_LOAD(shifts[at]) : 0;
        for (int64_t l = 0; l < SP_LANES; l++) lanes[l] = steps->start;
        sp_walk_init(&rows, k->reduced_rank, k->dims, k->strides, k->strides, 0);
        for (int64_t i = 0; i < k->extent; i += n, sp_walk_next(&rows)) {
            steps->row(lanes, i % SP_LANES, x + kept.a + rows.a, n, shift);
        }
        steps->tree(lanes, 1, k->extent);
        y[at] = SP_STORE(SP_WIDE_OF(finish)(k, lanes[0], shift));
    }
}

static void SP_OF(reduce_columns)(const sp_reduce_constants *k, const SP_ELEMENT *x,
                                  const SP_ELEMENT *shifts, SP_ELEMENT *y, int64_t width)
{
    const SP_OF(steps) *steps = &SP_OF(table)[k->reduction];
    SP_WIDE shift[COLUMNS] = {0};
    for (int64_t c = 0; shifts && c < width; c++) shift[c] = SP_LOAD(shifts[c]);
    const int64_t n = k->dims[k->reduced_rank - 1];
    SP_WIDE lanes[SP_LANES * COLUMNS];
    const int64_t used = k->extent < SP_LANES ? k->extent : SP_LANES;
    for (int64_t l = 0; l < used * COLUMNS || l < COLUMNS; l++) lanes[l] = steps->start;
    sp_walk rows;
    sp_walk_init(&rows, k->reduced_rank, k->dims, k->strides, k->strides, 0);
    for (int64_t i = 0; i < k->extent; i += n, sp_walk_next(&rows)) {
        steps->columns(lanes, i % SP_LANES, x + rows.a, k->strides[k->reduced_rank - 1], n, width,
                       shift);
    }
    steps->tree(lanes, COLUMNS, k->extent);
    for (int64_t c = 0; c < width; c++) {
        y[c] = SP_STORE(SP_WIDE_OF(finish)(k, lanes[c], shift[c]));
    }
}

sp_status SP_KERNEL(SP_OF(reduce))(const sp_tile *tile)
{
    const sp_reduce_constants *k = tile->constants;
    const SP_ELEMENT *x = tile->bindings[0];
    const SP_ELEMENT *shifts = k->has_shift ? tile->bindings[1] : NULL;
    SP_ELEMENT *y = tile->bindings[k->has_shift ? 2 : 1];
    int64_t at = tile->index[0] * k->tile_count;
    const int64_t end = k->count - at < k->tile_count ? k->count : at + k->tile_count;
    if (at >= end) return SP_OK;
    if (!k->is_columns) {
        SP_OF(reduce_rows)(k, x, shifts, y, at, end);
        return SP_OK;
    }
    const int64_t columns = k->kept_dims[k->kept_rank - 1];
    sp_walk kept;
    sp_walk_init(&kept, k->kept_rank, k->kept_dims, k->kept_strides, k->kept_strides, at / columns);
    for (int64_t column = at % columns; at < end;) {
        int64_t width = columns - column < COLUMNS ? columns - column : COLUMNS;
        if (end - at < width) width = end - at;
        SP_OF(reduce_columns)(k, x + kept.a + column, shifts ? shifts + at : NULL, y + at, width);
        at += width;
        column += width;
        if (column < columns) continue;
        column = 0;
        sp_walk_next(&kept);
    }
    return SP_OK;
}

#undef SP_STEPS
