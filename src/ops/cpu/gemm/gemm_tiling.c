/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of products. */
#include "ops/cpu/tiling.h"
#include "ops/ops.h"

/* Fewer rows than that take the time in which b is read, whose bytes bound the tile then. */
#define FEW_ROWS 16

/* Grid (rows, panels, batch): all rows of some panels, then the next panels, since b is larger than
 * a few rows of a. Sizes are multiples of 4, which the kernel computes at once. */
void sp__tiling_gemm(const void *constants, sp_tiling *out)
{
    const sp_gemm_constants *k = constants;
    const int64_t panels = (k->columns + SP_GEMM_PANEL - 1) / SP_GEMM_PANEL;
    const int64_t budget = SP_TILE_PRODUCTS / ((k->depth > 0 ? k->depth : 1) * SP_GEMM_PANEL) + 1;
    const int64_t rows = k->rows < FEW_ROWS ? FEW_ROWS : k->rows < 32 ? k->rows : 32;
    int64_t tile_panels = budget / rows / 4 * 4;
    if (tile_panels < 4) tile_panels = 4;
    if (tile_panels > panels) tile_panels = panels > 0 ? panels : 1;
    const int64_t tile_rows = budget / tile_panels / 4 * 4;
    sp_tiling_cover(out, 0, k->rows, tile_rows < 4 ? 4 : tile_rows);
    sp_tiling_cover(out, 1, panels, tile_panels);
    sp_tiling_each(out, 2, sp__gemm_batch(k));
}

/* Grid (rows, 1, batch). */
void sp__tiling_gemm_any(const void *constants, sp_tiling *out)
{
    const sp_gemm_constants *k = &((const sp_gemm_any_constants *)constants)->gemm;
    const int64_t row = (k->depth > 0 ? k->depth : 1) * k->columns;
    sp_tiling_line(out, k->rows, SP_TILE_PRODUCTS / (row > 0 ? row : 1) + 1);
    sp_tiling_each(out, 2, sp__gemm_batch(k));
}

/* What the softmax of a score takes, in multiply-adds. */
#define SOFTMAX_PRODUCTS 20
/* Of a block of a product: so many panels are computed at a time. */
#define BLOCK_PANELS 4

/* Grid (queries, 1, batch). The second size is the panels of queries that are computed at a time:
 * those of a block, or as many as fit the kernel's stack. */
void sp__tiling_attention(const void *constants, sp_tiling *out)
{
    const sp_attention_constants *k = constants;
    const int64_t row = k->keys * (k->depth + k->columns + SOFTMAX_PRODUCTS);
    int64_t panels = BLOCK_PANELS, batch = 1;
    while (panels > 1 && panels * k->depth > SP_ATTENTION_DEPTH) panels--;
    while (panels > 1 && panels * k->keys > SP_ATTENTION_KEYS) panels--;
    const int64_t part = panels * SP_GEMM_PANEL, parts = SP_TILE_PRODUCTS / (row * part);
    for (uint32_t i = 0; i < k->batch_rank; i++) batch *= k->batch_dims[i];
    sp_tiling_line(out, k->rows, (parts > 0 ? parts : 1) * part);
    sp_tiling_each(out, 2, batch);
    out->size[1] = (uint32_t)panels;
}

void sp__tiling_look_up(const void *constants, sp_tiling *out)
{
    const sp_look_up_constants *k = constants;
    sp_tiling_line(out, k->rows, SP_TILE_ELEMENTS / k->columns + 1);
}
