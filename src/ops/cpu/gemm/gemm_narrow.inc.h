/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of one type. Parameters: SP_NARROW, its name; SP_NARROW_TYPE, an element;
 * SP_NARROW_ROUND and SP_NARROW_WIDEN, from and to f32. */

#define SP_OF_PASTE_(name, type) name##_##type
#define SP_OF_EXPAND_(name, type) SP_OF_PASTE_(name, type)
#define SP_OF(name) SP_OF_EXPAND_(name, SP_NARROW)
#define STEPS ((int64_t)(SP_NARROW_BYTES / sizeof(SP_NARROW_TYPE)))
#define PART ((int64_t)(16 / sizeof(SP_NARROW_TYPE)))

/* A rounded operand in chunks. */
typedef struct SP_OF(narrow_matrix) {
    SP_NARROW_TYPE *at;
    int64_t chunk_stride;
} SP_OF(narrow_matrix);

static SP_OF(narrow_matrix) SP_OF(narrow_matrix_of)(const void *at, int64_t lines)
{
    return (SP_OF(narrow_matrix)){(SP_NARROW_TYPE *)(uintptr_t)at,
                                  (lines + LINES - 1) / LINES * LINES * STEPS};
}

static SP_NARROW_TYPE *SP_OF(narrow_at)(const SP_OF(narrow_matrix) * m, int64_t line, int64_t depth)
{
    const int64_t step = depth % STEPS ^ line % LINES * PART;
    return m->at + depth / STEPS * m->chunk_stride + line * STEPS + step;
}

static void SP_OF(narrow_pack_line)(const float *from, int64_t count, void *packed, int64_t lines,
                                    int64_t line, int64_t step)
{
    const SP_OF(narrow_matrix) m = SP_OF(narrow_matrix_of)(packed, lines);
    for (int64_t i = 0; i < count; i++) {
        *SP_OF(narrow_at)(&m, line, step + i) = SP_NARROW_ROUND(from[i]);
    }
}

/* An element of f32, or of the type. */
static float SP_OF(narrow_load)(const void *from, int64_t at, bool is_half)
{
    if (is_half) return SP_NARROW_WIDEN(((const SP_NARROW_TYPE *)from)[at]);
    return ((const float *)from)[at];
}

static void SP_OF(narrow_store)(void *to, int64_t at, bool is_half, float value)
{
    if (is_half) ((SP_NARROW_TYPE *)to)[at] = SP_NARROW_ROUND(value);
    else ((float *)to)[at] = value;
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
            for (int64_t i = 0; i < LINES; i++) {
                const SP_NARROW_TYPE *at = SP_OF(narrow_at)(&right, column + i, d);
                chain[i] = sp_fmaf(left, SP_NARROW_WIDEN(*at), chain[i]);
            }
        }
        for (int64_t i = 0; i < LINES; i++) sums[i] += chain[i];
    }
}

static void SP_OF(narrow_row)(const sp_tile *tile, bool is_packed, int64_t row, int64_t first,
                              int64_t end)
{
    const sp_gemm_constants *k = tile->constants;
    const void *c = k->has_c ? tile->bindings[2] : NULL;
    void *y = tile->bindings[k->has_c ? 3 : 2];
    for (int64_t n = first; n < end; n += LINES) {
        float sums[LINES];
        const int64_t count = end - n < LINES ? end - n : LINES;
        SP_OF(narrow_sums)(k, tile->bindings[0], is_packed, tile->bindings[1], row, n, sums);
        for (int64_t i = 0; i < count; i++) {
            float out = sums[i] * k->alpha;
            if (c != NULL) {
                const int64_t at = row * k->c_row + (n + i) * k->c_column;
                out += SP_OF(narrow_load)(c, at, k->is_half) * k->beta;
            }
            sums[i] = sp_canonical(out);
        }
        sp_activate(k->activation, sums, 1, LINES, count);
        if (k->y_format != SP_PACK_NONE) {
            SP_OF(narrow_pack_line)(sums, count, y, k->rows, row, n);
            continue;
        }
        if (k->is_y_half) scale_columns(k, sums, n, count);
        for (int64_t i = 0; i < count; i++) {
            SP_OF(narrow_store)(y, row * k->columns + n + i, k->is_half || k->is_y_half, sums[i]);
        }
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

/* An element of b in the type: of one that has it already, all bits. */
static SP_NARROW_TYPE SP_OF(narrow_rounded)(const sp_pack_constants *k, const void *b, int64_t at)
{
    if (k->is_half) return ((const SP_NARROW_TYPE *)b)[at];
    return SP_NARROW_ROUND(((const float *)b)[at]);
}

sp_status SP_KERNEL(SP_OF(narrow_pack))(const sp_tile *tile)
{
    const sp_pack_constants *k = tile->constants;
    SP_NARROW_TYPE *to = tile->bindings[1];
    const int64_t columns = (k->columns + LINES - 1) / LINES * LINES;
    for (int64_t first = 0; first < k->depth; first += STEPS) {
        for (int64_t n = 0; n < columns; n++, to += STEPS) {
            for (int64_t d = first; d < first + STEPS; d++) {
                const bool is_there = n < k->columns && d < k->depth;
                const int64_t at = pack_step(k, d) + n * k->column_stride;
                to[(d - first) ^ n % LINES * PART] =
                    is_there ? SP_OF(narrow_rounded)(k, tile->bindings[0], at) : 0;
            }
        }
    }
    return SP_OK;
}

/* ---- convolutions ---- */

/* Step `depth` of a pixel's window, rounded; 0 in the padding. */
static float SP_OF(conv_step)(const sp_conv_constants *k, const float *image, int64_t pixel,
                              int64_t depth)
{
    const int64_t tap = depth / k->channels, channel = depth % k->channels;
    const int64_t y = pixel / k->out_w * k->stride_h + tap / k->kernel_w * k->dilation_h;
    const int64_t x = pixel % k->out_w * k->stride_w + tap % k->kernel_w * k->dilation_w;
    const int64_t row = y - k->pad_top, column = x - k->pad_left;
    if (row < 0 || row >= k->in_h || column < 0 || column >= k->in_w) return 0;
    return SP_NARROW_WIDEN(SP_NARROW_ROUND(image[(channel * k->in_h + row) * k->in_w + column]));
}

/* The sums of a pixel and LINES filters. */
static void SP_OF(conv_sums)(const sp_conv_constants *k, const float *image, const void *w,
                             int64_t pixel, int64_t filter, float *sums)
{
    const SP_OF(narrow_matrix) weights = SP_OF(narrow_matrix_of)(w, k->filters);
    const int64_t depth = k->channels * k->kernel_h * k->kernel_w;
    for (int64_t i = 0; i < LINES; i++) sums[i] = 0;
    for (int64_t first = 0; first < depth; first += STEPS * SP_NARROW_CHUNKS) {
        const int64_t rest = depth - first, all = STEPS * SP_NARROW_CHUNKS;
        const int64_t end = first + (rest < all ? rest : all);
        float chain[LINES] = {0};
        for (int64_t d = first; d < end; d++) {
            const float left = SP_OF(conv_step)(k, image, pixel, d);
            for (int64_t i = 0; i < LINES; i++) {
                const SP_NARROW_TYPE *at = SP_OF(narrow_at)(&weights, filter + i, d);
                chain[i] = sp_fmaf(left, SP_NARROW_WIDEN(*at), chain[i]);
            }
        }
        for (int64_t i = 0; i < LINES; i++) sums[i] += chain[i];
    }
}

sp_status SP_KERNEL(SP_OF(conv_narrow))(const sp_tile *tile)
{
    const sp_conv_constants *k = tile->constants;
    const int64_t image = tile->index[2], pixels = k->out_h * k->out_w;
    const float *x = (const float *)tile->bindings[0] + image * k->channels * k->in_h * k->in_w;
    const void *bias = k->has_bias ? tile->bindings[2] : NULL;
    const int64_t first = sp_tile_first(tile, 0), last = sp_tile_end(tile, 0, pixels);
    for (int64_t f = 0; f < k->filters; f += LINES) {
        const int64_t count = k->filters - f < LINES ? k->filters - f : LINES;
        for (int64_t pixel = first; pixel < last; pixel++) {
            float sums[LINES];
            SP_OF(conv_sums)(k, x, tile->bindings[1], pixel, f, sums);
            for (int64_t i = 0; i < count; i++) {
                if (bias != NULL) sums[i] += SP_OF(narrow_load)(bias, f + i, k->is_half);
                sums[i] = sp_canonical(sums[i]);
            }
            sp_activate(k->activation, sums, 1, LINES, count);
            for (int64_t i = 0; i < count; i++) {
                SP_OF(narrow_store)
                (tile->bindings[bias != NULL ? 3 : 2],
                 (image * k->filters + f + i) * pixels + pixel, k->is_half, sums[i]);
            }
        }
    }
    return SP_OK;
}

#undef PART
#undef STEPS
#undef SP_OF
#undef SP_OF_EXPAND_
#undef SP_OF_PASTE_
#undef SP_NARROW_WIDEN
#undef SP_NARROW_ROUND
#undef SP_NARROW_TYPE
#undef SP_NARROW
