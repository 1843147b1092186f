/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product: y = alpha * a b + beta * c, batched. The sum of one output is that of
 * gemm_block.h; then sum * alpha is rounded, c * beta is rounded, and their sum is rounded. (A
 * factor of 1 changes nothing, so a bias costs one rounded addition, the same as a separate Add.)
 * An activation is applied to a few rows at a time, after they have been stored. */
#include "base/macros.h"
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/gemm/gemm_block.h"

enum { PANEL = SP_GEMM_PANEL, GROUP = SP_BLOCK_PANELS(1) };

typedef struct gemm_operands {
    const sp_gemm_constants *k;
    const float *a, *b, *c; /* of this batch entry; c is of the whole tensor, or NULL */
    float *y;
} gemm_operands;

static float finish_element(const gemm_operands *g, float sum, int64_t row, int64_t column)
{
    float y = sum * g->k->alpha;
    if (g->c) y += g->c[row * g->k->c_row + column * g->k->c_column] * g->k->beta;
    return sp_canonical(y);
}

/* Stores up to PANEL outputs of one row. */
static SP_ALWAYS_INLINE void finish_row(const gemm_operands *g, const sp_vector *sum, int64_t row,
                                        int64_t column)
{
    const sp_gemm_constants *k = g->k;
    float *y = g->y + row * k->columns + column;
    const int64_t width = k->columns - column < PANEL ? k->columns - column : PANEL;
    if (width == PANEL && (!g->c || k->c_column == 1)) {
        for (int64_t v = 0; v < SP_PANEL_VECTORS; v++) {
            sp_vector out = sum[v] * sp_vector_splat(k->alpha);
            if (g->c) {
                const float *c = g->c + row * k->c_row + column + v * SP_VECTOR;
                out += sp_vector_load(c) * sp_vector_splat(k->beta);
            }
            sp_vector_store(y + v * SP_VECTOR, sp_vector_canonical(out));
        }
        return;
    }
    float values[PANEL];
    memcpy(values, sum, sizeof(values));
    for (int64_t i = 0; i < width; i++) y[i] = finish_element(g, values[i], row, column + i);
}

static SP_ALWAYS_INLINE void run_block(const int64_t rows, const int64_t panels,
                                       const gemm_operands *g, int64_t row, int64_t panel)
{
    const sp_gemm_constants *k = g->k;
    sp_vector sum[SP_BLOCK_MAX_VECTORS];
    sp_gemm_sums(rows, panels, g->a + row * k->a_row, k->a_row, k->a_depth,
                 g->b + panel * k->b_panel, k->b_depth, k->b_panel, k->depth, sum);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t p = 0; p < panels; p++) {
            finish_row(g, &sum[(r * panels + p) * SP_PANEL_VECTORS], row + r, (panel + p) * PANEL);
        }
    }
}

/* Applies the activation to stored rows [row, row + rows) of panels [panel, panel_end). */
static void activate_rows(const gemm_operands *g, int64_t row, int64_t rows, int64_t panel,
                          int64_t panel_end)
{
    const sp_gemm_constants *k = g->k;
    const int64_t column = panel * PANEL;
    const int64_t end = panel_end * PANEL < k->columns ? panel_end * PANEL : k->columns;
    sp_activate(k->activation, g->y + row * k->columns + column, rows, k->columns, end - column);
}

/* The last panel of an unpadded right-hand side that ends inside it. */
static void run_narrow(const gemm_operands *g, int64_t row, int64_t panel)
{
    const sp_gemm_constants *k = g->k;
    const int64_t width = k->columns - panel * PANEL;
    const float *a = g->a + row * k->a_row;
    const float *b = g->b + panel * k->b_panel;
    float sum[PANEL] = {0};
    for (int64_t first = 0; first < k->depth; first += SP_GEMM_SEGMENT) {
        const int64_t end = first + SP_GEMM_SEGMENT < k->depth ? first + SP_GEMM_SEGMENT : k->depth;
        float acc[PANEL] = {0};
        for (int64_t d = first; d < end; d++) {
            const float left = a[d * k->a_depth], *right = b + d * k->b_depth;
            for (int64_t i = 0; i < width; i++) acc[i] = sp_fmaf(left, right[i], acc[i]);
        }
        for (int64_t i = 0; i < width; i++) sum[i] += acc[i];
    }
    for (int64_t i = 0; i < width; i++) {
        g->y[row * k->columns + panel * PANEL + i] =
            finish_element(g, sum[i], row, panel * PANEL + i);
    }
    activate_rows(g, row, 1, panel, panel + 1);
}

/* One block of `rows` rows, of panels [panel, panel_end), which are full or padded. */
static SP_ALWAYS_INLINE void run_rows(const int64_t rows, const gemm_operands *g, int64_t row,
                                      int64_t panel, int64_t panel_end)
{
    const int64_t panels = SP_BLOCK_PANELS(rows);
    int64_t p = panel;
    for (; p + panels <= panel_end; p += panels) run_block(rows, panels, g, row, p);
    for (; p < panel_end; p++) run_block(rows, 1, g, row, p);
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

static void run_panels(const gemm_operands *g, int64_t row, int64_t last, int64_t panel,
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

static void select_batch(const sp_gemm_constants *k, int64_t batch, gemm_operands *g)
{
    g->y += batch * k->rows * k->columns;
    for (uint32_t i = k->batch_rank; i-- > 0;) {
        const int64_t at = batch % k->batch_dims[i];
        batch /= k->batch_dims[i];
        g->a += at * k->a_batch[i];
        g->b += at * k->b_batch[i];
    }
}

/* A planted bug: k runs backwards, so an output's bits depend on the number of rows. */
static void run_backwards(gemm_operands *g, sp_gemm_constants *k)
{
    *k = *g->k;
    g->k = k;
    g->a += (k->depth - 1) * k->a_depth;
    g->b += (k->depth - 1) * k->b_depth;
    k->a_depth = -k->a_depth;
    k->b_depth = -k->b_depth;
}

sp_status SP_KERNEL(gemm_f32)(const sp_tile *tile)
{
    const sp_gemm_constants *k = tile->constants;
    gemm_operands g = {.k = k,
                       .a = tile->bindings[0],
                       .b = tile->bindings[1],
                       .c = k->has_c ? tile->bindings[2] : NULL,
                       .y = tile->bindings[k->has_c ? 3 : 2]};
    select_batch(k, tile->index[2], &g);
    sp_gemm_constants backwards;
    if (SP_PLANTED(tile_by_batch) && k->rows > 8) run_backwards(&g, &backwards);
    const int64_t panels = (k->columns + PANEL - 1) / PANEL;
    const int64_t whole = k->is_padded ? panels : k->columns / PANEL;
    const int64_t first = tile->index[1] * k->tile_rows;
    const int64_t last = first + k->tile_rows < k->rows ? first + k->tile_rows : k->rows;
    const int64_t panel = tile->index[0] * k->tile_panels;
    const int64_t end = panel + k->tile_panels < panels ? panel + k->tile_panels : panels;
    /* A few panels at a time remain in the cache for all rows. */
    for (int64_t p = panel; p < end && p < whole; p += GROUP) {
        const int64_t stop = p + GROUP < end ? p + GROUP : end;
        run_panels(&g, first, last, p, stop < whole ? stop : whole);
    }
    if (whole < panels && end == panels) {
        for (int64_t row = first; row < last; row++) run_narrow(&g, row, whole);
    }
    return SP_OK;
}

sp_status SP_KERNEL(gemm_pack_f32)(const sp_tile *tile)
{
    const sp_gemm_pack_constants *k = tile->constants;
    const float *b = tile->bindings[0];
    float *to = tile->bindings[1];
    for (int64_t column = 0; column < k->columns; column += PANEL) {
        for (int64_t d = 0; d < k->depth; d++) {
            for (int64_t i = 0; i < PANEL; i++) {
                const bool is_inside = column + i < k->columns;
                *to++ = is_inside ? b[d * k->depth_stride + (column + i) * k->column_stride] : 0;
            }
        }
    }
    return SP_OK;
}
