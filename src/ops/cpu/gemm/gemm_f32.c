/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product: y = alpha * a b + beta * c, batched. The sum of one output is that of
 * gemm_block.h; then sum * alpha is rounded, c * beta is rounded, and their sum is rounded. (A
 * factor of 1 changes nothing, so a bias costs one rounded addition, the same as a separate Add.)
 * An activation is applied to a few rows at a time, after they have been stored. */
#include "base/macros.h"
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/gemm/gemm_block.h"
#include "ops/cpu/gemm/gemm_part.h"
#include "ops/cpu/gemm/panel.h"

enum { PANEL = SP_GEMM_PANEL, GROUP = SP_BLOCK_MOST_PANELS };

static const float *panel_address(const sp_gemm_operands *g, int64_t panel)
{
    return g->b + (panel - g->first_panel) * g->b_panel;
}

static float finish_element(const sp_gemm_operands *g, float sum, int64_t row, int64_t column)
{
    float y = sum * g->k->alpha;
    if (g->c) y += g->c[row * g->k->c_row + column * g->k->c_column] * g->k->beta;
    return sp_canonical(y);
}

/* Stores whole panels of several rows. `has_c` and `has_factors`, which is false if alpha and beta
 * are 1, are constants after inlining. */
static SP_ALWAYS_INLINE void finish_vectors(const int64_t rows, const int64_t panels,
                                            const bool has_c, const bool has_factors,
                                            const sp_gemm_operands *g, const sp_vector *sum,
                                            int64_t row, int64_t column)
{
    const sp_gemm_constants *k = g->k;
    const sp_vector alpha = sp_vector_splat(k->alpha), beta = sp_vector_splat(k->beta);
#pragma GCC unroll 12
    for (int64_t r = 0; r < rows; r++) {
        float *y = g->y + (row + r) * g->y_row + column;
        const float *c = has_c ? g->c + (row + r) * k->c_row + column : y;
#pragma GCC unroll 16
        for (int64_t v = 0; v < panels * SP_PANEL_VECTORS; v++) {
            sp_vector out = sum[r * panels * SP_PANEL_VECTORS + v];
            if (has_factors) out *= alpha;
            if (has_c) {
                const sp_vector addend = sp_vector_load(c + v * SP_VECTOR);
                out += has_factors ? addend * beta : addend;
            }
            sp_vector_store(y + v * SP_VECTOR, sp_vector_canonical(out));
        }
    }
}

/* Those of a product whose c, if there is one, has a number for each column. */
static SP_ALWAYS_INLINE void finish_rows(const int64_t rows, const int64_t panels,
                                         const bool has_factors, const sp_gemm_operands *g,
                                         const sp_vector *sum, int64_t row, int64_t column)
{
    if (g->c != NULL) finish_vectors(rows, panels, true, has_factors, g, sum, row, column);
    else finish_vectors(rows, panels, false, has_factors, g, sum, row, column);
}

/* Stores up to PANEL outputs of one row. */
static SP_ALWAYS_INLINE void finish_row(const sp_gemm_operands *g, const sp_vector *sum,
                                        int64_t row, int64_t column)
{
    const sp_gemm_constants *k = g->k;
    const int64_t width = k->columns - column < PANEL ? k->columns - column : PANEL;
    if (width == PANEL && (g->c == NULL || k->c_column == 1)) {
        finish_rows(1, 1, true, g, sum, row, column);
        return;
    }
    float *y = g->y + row * g->y_row + column, values[PANEL];
    memcpy(values, sum, sizeof(values));
    for (int64_t i = 0; i < width; i++) y[i] = finish_element(g, values[i], row, column + i);
}

/* Stores the sums [rows][panels][SP_PANEL_VECTORS] of a block that ends inside a panel, or of a
 * product with factors, or whose c is one number for each row. */
static SP_NOINLINE SP_NOCLONE void finish_any(const sp_gemm_operands *g, const sp_vector *sum,
                                              int64_t rows, int64_t panels, int64_t row,
                                              int64_t column)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t p = 0; p < panels; p++, sum += SP_PANEL_VECTORS) {
            finish_row(g, sum, row + r, column + p * PANEL);
        }
    }
}

/* The rows of a block, from `row` on. */
typedef struct gemm_rows {
    const sp_gemm_operands *g;
    int64_t row;
} gemm_rows;

static SP_ALWAYS_INLINE void run_block(const void *of, const int64_t rows, const int64_t panels,
                                       int64_t panel)
{
    const sp_gemm_operands *g = ((const gemm_rows *)of)->g;
    const int64_t row = ((const gemm_rows *)of)->row;
    const sp_gemm_constants *k = g->k;
    sp_vector sum[SP_BLOCK_MAX_VECTORS];
    sp_gemm_sums(rows, panels, g->a + row * k->a_row, k->a_row, k->a_depth, panel_address(g, panel),
                 g->b_depth, g->b_panel, k->depth, sum);
    const bool has_other_c = g->c != NULL && (k->c_column != 1 || k->beta != 1);
    if ((panel + panels) * PANEL > k->columns || k->alpha != 1 || has_other_c) {
        sp_vector stored[SP_BLOCK_MAX_VECTORS]; /* so that `sum` has no address */
#pragma GCC unroll 24
        for (int64_t i = 0; i < rows * panels * SP_PANEL_VECTORS; i++) stored[i] = sum[i];
        finish_any(g, stored, rows, panels, row, panel * PANEL);
    } else {
        finish_rows(rows, panels, false, g, sum, row, panel * PANEL);
    }
}

/* Applies the activation to stored rows [row, row + rows) of panels [panel, panel_end). Whole rows
 * of y are one: short ones fill no vector. */
static void activate_rows(const sp_gemm_operands *g, int64_t row, int64_t rows, int64_t panel,
                          int64_t panel_end)
{
    const sp_gemm_constants *k = g->k;
    const int64_t column = panel * PANEL;
    const int64_t end = panel_end * PANEL < k->columns ? panel_end * PANEL : k->columns;
    const int64_t width = end - column;
    float *y = g->y + row * g->y_row + column;
    if (width == g->y_row) sp_activate(k->activation, y, 1, 0, rows * width);
    else sp_activate(k->activation, y, rows, g->y_row, width);
}

/* The last panel of an unpadded right-hand side that ends inside it. */
static void run_narrow(const sp_gemm_operands *g, int64_t row, int64_t panel)
{
    const sp_gemm_constants *k = g->k;
    const int64_t width = k->columns - panel * PANEL;
    const float *a = g->a + row * k->a_row;
    const float *b = panel_address(g, panel);
    float sum[PANEL] = {0};
    for (int64_t first = 0; first < k->depth; first += SP_GEMM_SEGMENT) {
        const int64_t end = first + SP_GEMM_SEGMENT < k->depth ? first + SP_GEMM_SEGMENT : k->depth;
        float acc[PANEL] = {0};
        for (int64_t d = first; d < end; d++) {
            const float left = a[d * k->a_depth], *right = b + d * g->b_depth;
            for (int64_t i = 0; i < width; i++) acc[i] = sp_fmaf(left, right[i], acc[i]);
        }
        for (int64_t i = 0; i < width; i++) sum[i] += acc[i];
    }
    for (int64_t i = 0; i < width; i++) {
        g->y[row * g->y_row + panel * PANEL + i] =
            finish_element(g, sum[i], row, panel * PANEL + i);
    }
}

/* One block of `rows` rows, of panels [panel, panel_end), which are full or padded. */
static SP_ALWAYS_INLINE void run_rows(const int64_t rows, const sp_gemm_operands *g, int64_t row,
                                      int64_t panel, int64_t panel_end)
{
    const gemm_rows of = {g, row};
    sp_gemm_each_block(rows, panel, panel_end, &of, run_block);
    activate_rows(g, row, rows, panel, panel_end);
}

/* The next of the blocks of `left` rows. The last two are of about the same size, since each block
 * reads all of the right-hand side. */
static int64_t next_rows(int64_t left)
{
    if (left <= SP_BLOCK_ROWS) return left;
    return left < (int64_t)2 * SP_BLOCK_ROWS ? (left + 1) / 2 : SP_BLOCK_ROWS;
}

/* The number of rows of a block is a constant in each case. */
#define RUN_CASE(n)                                                                                \
    case n:                                                                                        \
        if ((n) <= SP_BLOCK_ROWS) {                                                                \
            run_rows((n) <= SP_BLOCK_ROWS ? (n) : 1, g, row, panel, panel_end);                    \
        }                                                                                          \
        break

static void run_panels(const sp_gemm_operands *g, int64_t row, int64_t last, int64_t panel,
                       int64_t panel_end)
{
    for (int64_t rows; row < last; row += rows) {
        rows = next_rows(last - row);
        switch (rows) {
            RUN_CASE(8);
            RUN_CASE(7);
            RUN_CASE(6);
            RUN_CASE(5);
            RUN_CASE(4);
            RUN_CASE(3);
            RUN_CASE(2);
            RUN_CASE(1);
        default:
            break;
        }
    }
}

/* ---- tiles ---- */

/* Moves the operands to a batch entry; y has these strides. */
static void select_batch(sp_gemm_operands *g, int64_t batch, const int64_t *y_batch)
{
    const sp_gemm_constants *k = g->k;
    for (uint32_t i = k->batch_rank; i-- > 0;) {
        const int64_t at = batch % k->batch_dims[i];
        batch /= k->batch_dims[i];
        g->a += at * k->a_batch[i];
        g->b += at * k->b_batch[i];
        if (y_batch != NULL) g->y += at * y_batch[i];
    }
}

/* `is_padded`: the last panel of b has all of its columns. */
static sp_gemm_part find_tile(const sp_gemm_constants *k, const sp_tile *tile, bool is_padded)
{
    sp_gemm_part t = {.panels = (k->columns + PANEL - 1) / PANEL};
    t.whole = is_padded ? t.panels : k->columns / PANEL;
    t.first = sp_tile_first(tile, 0);
    t.last = sp_tile_end(tile, 0, k->rows);
    t.panel = sp_tile_first(tile, 1);
    t.end = sp_tile_end(tile, 1, t.panels);
    return t;
}

void SP_KERNEL(gemm_part)(const sp_gemm_operands *g, const sp_gemm_part *t)
{
    /* A few panels at a time remain in the cache for all rows. */
    for (int64_t p = t->panel; p < t->end && p < t->whole; p += GROUP) {
        const int64_t stop = p + GROUP < t->end ? p + GROUP : t->end;
        run_panels(g, t->first, t->last, p, stop < t->whole ? stop : t->whole);
    }
    if (t->whole < t->panels && t->end == t->panels) {
        for (int64_t row = t->first; row < t->last; row++) run_narrow(g, row, t->whole);
        activate_rows(g, t->first, t->last - t->first, t->whole, t->panels);
    }
}

static sp_gemm_operands find_operands(const sp_gemm_constants *k, const sp_tile *tile)
{
    const bool is_packed = k->b_format == SP_PACK_F32;
    return (sp_gemm_operands){.k = k,
                              .a = tile->bindings[0],
                              .b = tile->bindings[1],
                              .c = k->has_c ? tile->bindings[2] : NULL,
                              .y = tile->bindings[k->has_c ? 3 : 2],
                              .y_row = k->columns,
                              .b_depth = is_packed ? PANEL : k->b_depth,
                              .b_panel = is_packed ? PANEL * k->depth : PANEL};
}

/* A planted bug: k runs backwards, so an output's bits depend on the number of rows. */
static void run_backwards(sp_gemm_operands *g, sp_gemm_constants *k)
{
    *k = *g->k;
    g->k = k;
    g->a += (k->depth - 1) * k->a_depth;
    g->b += (k->depth - 1) * g->b_depth;
    k->a_depth = -k->a_depth;
    g->b_depth = -g->b_depth;
}

sp_status SP_KERNEL(gemm_f32)(const sp_tile *tile)
{
    const sp_gemm_constants *k = tile->constants;
    sp_gemm_operands g = find_operands(k, tile);
    const sp_gemm_part t = find_tile(k, tile, k->b_format == SP_PACK_F32);
    select_batch(&g, tile->index[2], NULL);
    g.y += tile->index[2] * k->rows * k->columns;
    sp_gemm_constants backwards;
    if (SP_PLANTED(tile_by_batch) && k->rows > 8) run_backwards(&g, &backwards);
    if (k->rounding != SP_ROUNDING_NONE) SP_KERNEL(gemm_rounded)(&g, &t, 1);
    else SP_KERNEL(gemm_part)(&g, &t);
    return SP_OK;
}

/* ---- operands by strides ---- */

/* Some panels at a time are transposed to the stack, for all rows of the tile. */
static void run_transposed(const sp_gemm_operands *of, const sp_gemm_part *t,
                           const sp_gemm_strided_constants *k)
{
    float panels[SP_GEMM_STRIDED_ELEMENTS];
    sp_gemm_operands g = *of;
    int64_t group = k->of.depth > 0 ? SP_GEMM_STRIDED_DEPTH / k->of.depth : GROUP;
    if (group > GROUP) group = GROUP;
    g.b = panels;
    g.b_depth = PANEL;
    g.b_panel = PANEL * k->of.depth;
    for (int64_t p = t->panel; p < t->end; p += group) {
        const int64_t stop = p + group < t->end ? p + group : t->end;
        for (int64_t i = p; i < stop; i++) {
            sp_panel_transpose(of->b + i * PANEL * k->b_column, k->b_column,
                               k->of.columns - i * PANEL, k->of.depth,
                               panels + (i - p) * g.b_panel);
        }
        g.first_panel = p;
        run_panels(&g, t->first, t->last, p, stop);
    }
}

sp_status SP_KERNEL(gemm_strided_f32)(const sp_tile *tile)
{
    const sp_gemm_strided_constants *k = tile->constants;
    sp_gemm_operands g = find_operands(&k->of, tile);
    const bool is_transposed = k->b_column != 1;
    const sp_gemm_part t = find_tile(&k->of, tile, is_transposed || k->of.b_format == SP_PACK_F32);
    g.a += k->a_first;
    g.b += k->b_first;
    g.y_row = k->y_row;
    select_batch(&g, tile->index[2], k->y_batch);
    if (k->of.rounding != SP_ROUNDING_NONE) SP_KERNEL(gemm_rounded)(&g, &t, k->b_column);
    else if (is_transposed) run_transposed(&g, &t, k);
    else SP_KERNEL(gemm_part)(&g, &t);
    return SP_OK;
}

/* ---- packing ---- */

/* to[d][i] is from[d * depth_stride + i * column_stride], and 0 from column `count` on. */
static void pack_panel(const sp_pack_constants *k, const float *from, int64_t count, float *to)
{
    for (int64_t d = 0; d < k->depth; d++, from += k->depth_stride, to += PANEL) {
        if (k->column_stride == 1 && count == PANEL) {
            memcpy(to, from, PANEL * sizeof *to);
            continue;
        }
        for (int64_t i = 0; i < PANEL; i++) to[i] = i < count ? from[i * k->column_stride] : 0;
    }
}

sp_status SP_KERNEL(gemm_pack_f32)(const sp_tile *tile)
{
    const sp_pack_constants *k = tile->constants;
    const float *b = tile->bindings[0];
    float *to = tile->bindings[1];
    for (int64_t column = 0; column < k->columns; column += PANEL, to += PANEL * k->depth) {
        const float *from = b + column * k->column_stride;
        const int64_t left = k->columns - column, count = left < PANEL ? left : PANEL;
        if (k->depth_stride == 1) sp_panel_transpose(from, k->column_stride, count, k->depth, to);
        else pack_panel(k, from, count, to);
    }
    return SP_OK;
}
