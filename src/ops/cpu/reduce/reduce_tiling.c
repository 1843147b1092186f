/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of reductions and normalisations. */
#include "ops/cpu/tiling.h"

/* Rows of `extent` elements, or of none. */
static int64_t rows_of(int64_t elements, int64_t extent)
{
    return elements / (extent > 0 ? extent : 1) + 1;
}

/* Outputs that the kernel computes together. */
#define TOGETHER 64

void sp__tiling_reduce(const void *constants, sp_tiling *out)
{
    const sp_reduce_constants *k = constants;
    int64_t size = k->extent < SP_TILE_ELEMENTS ? SP_TILE_ELEMENTS / (k->extent + 1) + 1 : 1;
    if (k->extent == 0) size = SP_TILE_ELEMENTS; /* outputs are filled */
    if (k->is_columns) size = (size + TOGETHER - 1) / TOGETHER * TOGETHER;
    sp_tiling_line(out, k->count, size);
}

void sp__tiling_axis(const void *constants, sp_tiling *out)
{
    const sp_axis_constants *k = constants;
    sp_tiling_line(out, k->rows, rows_of(SP_TILE_ELEMENTS, k->extent));
}

void sp__tiling_softmax(const void *constants, sp_tiling *out)
{
    const sp_axis_constants *k = constants;
    sp_tiling_line(out, k->rows, rows_of(SP_TILE_EVALUATIONS, k->extent));
}

void sp__tiling_batch_norm(const void *constants, sp_tiling *out)
{
    const sp_batch_norm_constants *k = constants;
    sp_tiling_line(out, k->planes, rows_of(SP_TILE_ELEMENTS, k->plane));
}

void sp__tiling_norm(const void *constants, sp_tiling *out)
{
    const sp_norm_constants *k = constants;
    sp_tiling_line(out, k->rows, rows_of(SP_TILE_ELEMENTS / 2, k->extent));
}

void sp__tiling_row_norm(const void *constants, sp_tiling *out)
{
    const sp_row_norm_constants *k = constants;
    sp_tiling_line(out, k->rows, rows_of(SP_TILE_ELEMENTS / 2, k->extent));
}

void sp__tiling_lrn(const void *constants, sp_tiling *out)
{
    const sp_lrn_constants *k = constants;
    sp_tiling_line(out, k->planes, SP_TILE_EVALUATIONS / k->plane / 8 + 1);
}
