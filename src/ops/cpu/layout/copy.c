/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that copy or repeat elements: all bits are kept, those of NaNs too. */
#include "base/atomic.h"
#include "ops/cpu/layout/copy_row.h"

sp_status SP_KERNEL(copy_bytes)(const sp_tile *tile)
{
    const sp_flat_constants *k = tile->constants;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t n = sp_tile_end(tile, 0, k->count) - first;
    if (n > 0) {
        memcpy((char *)tile->bindings[1] + first, (const char *)tile->bindings[0] + first,
               (size_t)n);
    }
    return SP_OK;
}

/* Contiguous elements. */
static void copy_run(uint32_t element_bytes, void *from, int64_t offset, void *to, int64_t at,
                     int64_t n)
{
    copy_row(element_bytes, (copy_side){from, offset, 1}, (copy_side){to, at, 1}, n);
}

/* One part of short rows: `size` bytes each, which is a constant after inlining for some sizes. */
static SP_ALWAYS_INLINE void copy_column(const size_t size, int64_t rows, char *part, char *piece,
                                         int64_t row_bytes, bool is_split)
{
    for (int64_t row = 0; row < rows; row++, part += size, piece += row_bytes) {
        memcpy(is_split ? part : piece, is_split ? piece : part, size);
    }
}

static void copy_short_rows(const sp_concat_constants *k, int64_t rows, uint32_t i, char *part,
                            char *piece, bool is_split)
{
    switch (k->part_bytes[i]) {
    case 4:
        copy_column(4, rows, part, piece, k->row_bytes, is_split);
        break;
    case 8:
        copy_column(8, rows, part, piece, k->row_bytes, is_split);
        break;
    case 16:
        copy_column(16, rows, part, piece, k->row_bytes, is_split);
        break;
    default:
        copy_column((size_t)k->part_bytes[i], rows, part, piece, k->row_bytes, is_split);
        break;
    }
}

/* Copies each part of each row, to the whole or from it. Parts of short rows are copied one after
 * the other: a call for each of their few bytes takes longer. */
static void copy_parts(const sp_tile *tile, char *whole, void *const *parts, bool is_split)
{
    enum { SHORT_ROW = 256 };
    const sp_concat_constants *k = tile->constants;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->outer);
    const int64_t together = k->row_bytes <= SHORT_ROW ? last - first : 1;
    for (int64_t row = first; row < last; row += together) {
        for (uint32_t i = 0; i < k->parts; i++) {
            if (k->part_bytes[i] == 0) continue;
            char *part = (char *)parts[i] + row * k->part_bytes[i];
            char *piece = whole + row * k->row_bytes + k->part_offset[i];
            if (together > 1) copy_short_rows(k, together, i, part, piece, is_split);
            else memcpy(is_split ? part : piece, is_split ? piece : part, (size_t)k->part_bytes[i]);
        }
    }
}

sp_status SP_KERNEL(concat)(const sp_tile *tile)
{
    const sp_concat_constants *k = tile->constants;
    copy_parts(tile, tile->bindings[k->parts], tile->bindings, false);
    return SP_OK;
}

sp_status SP_KERNEL(split)(const sp_tile *tile)
{
    copy_parts(tile, tile->bindings[0], tile->bindings + 1, true);
    return SP_OK;
}

sp_status SP_KERNEL(move_rows)(const sp_tile *tile)
{
    const sp_rows_constants *k = tile->constants;
    const int64_t *places = tile->bindings[0];
    const int64_t last = sp_tile_end(tile, 0, k->rows);
    for (int64_t row = sp_tile_first(tile, 0); row < last; row++) {
        char *in_row = (char *)((uintptr_t)tile->bindings[1] + (uintptr_t)places[row]);
        char *in_whole = (char *)tile->bindings[2] + row * k->chunk;
        for (int64_t piece = 0; piece < k->outer; piece++) {
            memcpy(k->is_out != 0 ? in_row : in_whole, k->is_out != 0 ? in_whole : in_row,
                   (size_t)k->chunk);
            in_row += k->chunk;
            in_whole += k->rows * k->chunk;
        }
    }
    return SP_OK;
}

/* Where the host takes the part of a GPU, in tests. Pairs with the acquire of whoever looks at the
 * word. */
sp_status SP_KERNEL(signal_done)(const sp_tile *tile)
{
    const sp_flat_constants *k = tile->constants;
    uint64_t *counter = tile->bindings[0];
    sp_atomic_u64 *word = tile->bindings[1];
    *counter += (uint64_t)k->count;
    sp_store_release(word, *counter);
    return SP_OK;
}

static void fill_elements(void *to, int64_t at, int64_t n, uint64_t value, uint32_t element_bytes)
{
    switch (element_bytes) {
    case 1:
        memset((uint8_t *)to + at, (int)(value & 0xff), (size_t)n);
        break;
    case 2:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)to)[at + i] = (uint16_t)value;
        break;
    case 4:
        for (int64_t i = 0; i < n; i++) ((uint32_t *)to)[at + i] = (uint32_t)value;
        break;
    default:
        for (int64_t i = 0; i < n; i++) ((uint64_t *)to)[at + i] = value;
        break;
    }
}

sp_status SP_KERNEL(fill)(const sp_tile *tile)
{
    const sp_fill_constants *k = tile->constants;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t n = sp_tile_end(tile, 0, k->count) - first;
    if (n > 0) fill_elements(tile->bindings[0], first, n, k->value, k->element_bytes);
    return SP_OK;
}

/* The input coordinate that output coordinate `at` copies, or -1 for the constant. */
static int64_t pad_source(const sp_pad_constants *k, int64_t at, uint32_t dim)
{
    const int64_t size = k->in[dim];
    int64_t from = at - k->lead[dim];
    if (from >= 0 && from < size) return from;
    if (k->mode == SP_PAD_CONSTANT) return -1;
    if (k->mode == SP_PAD_EDGE) return from < 0 ? 0 : size - 1;
    if (k->mode == SP_PAD_WRAP) {
        from %= size;
        return from < 0 ? from + size : from;
    }
    /* Mirrored at the outermost elements, repeatedly if the padding is longer than the input. */
    const int64_t period = 2 * (size - 1);
    if (period == 0) return 0;
    from %= period;
    if (from < 0) from += period;
    return from < size ? from : period - from;
}

/* Offset of the input row of output row `row`, or -1 if that whole row is the constant. */
static int64_t pad_row(const sp_pad_constants *k, int64_t row)
{
    int64_t offset = 0;
    int64_t stride = k->in[k->rank - 1];
    for (uint32_t i = k->rank - 1; i-- > 0;) {
        const int64_t from = pad_source(k, row % k->out[i], i);
        if (from < 0) return -1;
        offset += from * stride;
        stride *= k->in[i];
        row /= k->out[i];
    }
    return offset;
}

/* Elements [from, to) of the output row at `at`, which are before or after the input's row. */
static void pad_side(const sp_pad_constants *k, void *x, int64_t offset, void *y, int64_t at,
                     int64_t from, int64_t to, uint64_t value)
{
    for (int64_t i = from; i < to; i++) {
        const int64_t source = pad_source(k, i, k->rank - 1);
        if (source < 0) fill_elements(y, at + i, 1, value, k->element_bytes);
        else copy_run(k->element_bytes, x, offset + source, y, at + i, 1);
    }
}

sp_status SP_KERNEL(pad)(const sp_tile *tile)
{
    const sp_pad_constants *k = tile->constants;
    const uint32_t last = k->rank - 1;
    const int64_t width = k->out[last];
    void *y = tile->bindings[k->has_value ? 2 : 1];
    uint64_t value = k->value;
    if (k->has_value) memcpy(&value, tile->bindings[1], k->element_bytes);
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->rows);
    /* The part of the row that the input's row covers. */
    const int64_t begin = k->lead[last] > 0 ? (k->lead[last] < width ? k->lead[last] : width) : 0;
    int64_t stop = k->lead[last] + k->in[last];
    stop = stop < begin ? begin : stop > width ? width : stop;
    for (int64_t row = first; row < end; row++) {
        const int64_t offset = pad_row(k, row);
        const int64_t at = row * width;
        if (offset < 0) {
            fill_elements(y, at, width, value, k->element_bytes);
            continue;
        }
        pad_side(k, tile->bindings[0], offset, y, at, 0, begin, value);
        if (stop > begin) {
            copy_run(k->element_bytes, tile->bindings[0], offset + begin - k->lead[last], y,
                     at + begin, stop - begin);
        }
        pad_side(k, tile->bindings[0], offset, y, at, stop, width, value);
    }
    return SP_OK;
}
