/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of one type. Parameters: SP_NARROW, its name; SP_NARROW_TYPE, an element;
 * SP_NARROW_ROUND and SP_NARROW_WIDEN, from and to f32. */

#define SP_OF_PASTE_(name, type) name##_##type
#define SP_OF_EXPAND_(name, type) SP_OF_PASTE_(name, type)
#define SP_OF(name) SP_OF_EXPAND_(name, SP_NARROW)
#define STEPS ((int64_t)(SP_NARROW_BYTES / sizeof(SP_NARROW_TYPE)))

/* A rounded operand in chunks. */
typedef struct SP_OF(narrow_matrix) {
    const SP_NARROW_TYPE *at;
    int64_t chunk_stride;
} SP_OF(narrow_matrix);

static SP_OF(narrow_matrix) SP_OF(narrow_matrix_of)(const void *at, int64_t lines)
{
    return (SP_OF(narrow_matrix)){at, (lines + LINES - 1) / LINES * LINES * STEPS};
}

static const SP_NARROW_TYPE *SP_OF(narrow_at)(const SP_OF(narrow_matrix) * m, int64_t line,
                                              int64_t depth)
{
    return m->at + depth / STEPS * m->chunk_stride + line * STEPS + depth % STEPS;
}

/* A step of a row, rounded: of f32, or of a packed matrix. */
static float SP_OF(narrow_left)(const sp_gemm_constants *k, const void *a, bool is_packed,
                                int64_t row, int64_t depth)
{
    if (is_packed) {
        const SP_OF(narrow_matrix) m = SP_OF(narrow_matrix_of)(a, k->rows);
        return SP_NARROW_WIDEN(*SP_OF(narrow_at)(&m, row, depth));
    }
    return SP_NARROW_WIDEN(
        SP_NARROW_ROUND(((const float *)a)[row * k->a_row + depth * k->a_depth]));
}

/* The sums of a row and LINES columns. */
static void SP_OF(narrow_sums)(const sp_gemm_constants *k, const void *a, bool is_packed,
                               const void *b, int64_t row, int64_t column, float *sums)
{
    const SP_OF(narrow_matrix) right = SP_OF(narrow_matrix_of)(b, k->columns);
    for (int64_t i = 0; i < LINES; i++) sums[i] = 0;
    for (int64_t first = 0; first < k->depth; first += STEPS * SP_NARROW_CHUNKS) {
        const int64_t rest = k->depth - first, all = STEPS * SP_NARROW_CHUNKS;
        const int64_t end = first + (rest < all ? rest : all);
        float chain[LINES] = {0};
        for (int64_t d = first; d < end; d++) {
            const float left = SP_OF(narrow_left)(k, a, is_packed, row, d);
            const SP_NARROW_TYPE *at = SP_OF(narrow_at)(&right, column, d);
            for (int64_t i = 0; i < LINES; i++) {
                chain[i] = sp_fmaf(left, SP_NARROW_WIDEN(at[i * STEPS]), chain[i]);
            }
        }
        for (int64_t i = 0; i < LINES; i++) sums[i] += chain[i];
    }
}

static void SP_OF(narrow_row)(const sp_tile *tile, bool is_packed, int64_t row, int64_t first,
                              int64_t end)
{
    const sp_gemm_constants *k = tile->constants;
    const float *c = k->has_c ? tile->bindings[2] : NULL;
    float *y = (float *)tile->bindings[k->has_c ? 3 : 2] + row * k->columns;
    for (int64_t n = first; n < end; n += LINES) {
        float sums[LINES];
        const int64_t count = end - n < LINES ? end - n : LINES;
        SP_OF(narrow_sums)(k, tile->bindings[0], is_packed, tile->bindings[1], row, n, sums);
        for (int64_t i = 0; i < count; i++) {
            float out = sums[i] * k->alpha;
            if (c != NULL) out += c[row * k->c_row + (n + i) * k->c_column] * k->beta;
            y[n + i] = sp_canonical(out);
        }
        sp_activate(k->activation, y + n, 1, k->columns, count);
    }
}

static sp_status SP_OF(narrow_product)(const sp_tile *tile, bool is_packed)
{
    const sp_gemm_constants *k = tile->constants;
    const int64_t row = sp_tile_first(tile, 0), last = sp_tile_end(tile, 0, k->rows);
    const int64_t width = (int64_t)tile->size[1] * SP_GEMM_PANEL;
    const int64_t column = tile->index[1] * width;
    const int64_t end = k->columns - column < width ? k->columns : column + width;
    for (int64_t r = row; r < last; r++) SP_OF(narrow_row)(tile, is_packed, r, column, end);
    return SP_OK;
}

sp_status SP_KERNEL(SP_OF(gemm_narrow))(const sp_tile *tile)
{
    return SP_OF(narrow_product)(tile, false);
}

sp_status SP_KERNEL(SP_OF(gemm_packed))(const sp_tile *tile)
{
    return SP_OF(narrow_product)(tile, true);
}

sp_status SP_KERNEL(SP_OF(narrow_pack))(const sp_tile *tile)
{
    const sp_gemm_pack_constants *k = tile->constants;
    const float *b = tile->bindings[0];
    SP_NARROW_TYPE *to = tile->bindings[1];
    const int64_t columns = (k->columns + LINES - 1) / LINES * LINES;
    for (int64_t first = 0; first < k->depth; first += STEPS) {
        for (int64_t n = 0; n < columns; n++, to += STEPS) {
            const float *from = b + first * k->depth_stride + n * k->column_stride;
            for (int64_t d = 0; d < STEPS; d++) {
                const bool is_there = n < k->columns && first + d < k->depth;
                to[d] = is_there ? SP_NARROW_ROUND(from[d * k->depth_stride]) : 0;
            }
        }
    }
    return SP_OK;
}

#undef STEPS
#undef SP_OF
#undef SP_OF_EXPAND_
#undef SP_OF_PASTE_
#undef SP_NARROW_WIDEN
#undef SP_NARROW_ROUND
#undef SP_NARROW_TYPE
#undef SP_NARROW
