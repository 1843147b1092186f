/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of kernels that move, select and generate elements. */
#include "ops/cpu/tiling.h"

/* Bytes of a tile of copies of neighbours, and of rows. */
#define COPY_BYTES (1 << 20)
#define ROW_BYTES (INT64_C(4) * SP_TILE_ELEMENTS)

void sp__tiling_one(const void *constants, sp_tiling *out)
{
    (void)constants;
    *out = SP_TILING_ONE;
}

void sp__tiling_bytes(const void *constants, sp_tiling *out)
{
    const sp_flat_constants *k = constants;
    sp_tiling_line(out, k->count, COPY_BYTES);
}

void sp__tiling_copy(const void *constants, sp_tiling *out)
{
    const sp_copy_constants *k = constants;
    sp_tiling_line(out, k->count, SP_TILE_ELEMENTS);
}

void sp__tiling_concat(const void *constants, sp_tiling *out)
{
    const sp_concat_constants *k = constants;
    sp_tiling_line(out, k->outer, k->row_bytes > 0 ? sp_tiling_share(ROW_BYTES, k->row_bytes) : 1);
}

void sp__tiling_rows(const void *constants, sp_tiling *out)
{
    const sp_rows_constants *k = constants;
    sp_tiling_line(out, k->rows, 1);
}

void sp__tiling_pad(const void *constants, sp_tiling *out)
{
    const sp_pad_constants *k = constants;
    sp_tiling_line(out, k->rows, sp_tiling_share(SP_TILE_ELEMENTS, k->out[k->rank - 1]));
}

void sp__tiling_fill(const void *constants, sp_tiling *out)
{
    const sp_fill_constants *k = constants;
    sp_tiling_line(out, k->count, SP_TILE_ELEMENTS);
}

/* ---- by indices ---- */

/* A row of a few bytes costs as much as one of 8. */
static int64_t gathered_rows(int64_t bytes)
{
    return sp_tiling_share(ROW_BYTES, bytes > 8 ? bytes : 8);
}

void sp__tiling_gather(const void *constants, sp_tiling *out)
{
    const sp_gather_constants *k = constants;
    sp_tiling_line(out, k->outer * k->count, gathered_rows(k->inner_bytes));
}

void sp__tiling_gather_elements(const void *constants, sp_tiling *out)
{
    const sp_gather_elements_constants *k = constants;
    sp_tiling_line(out, k->count, SP_TILE_ELEMENTS / 2);
}

void sp__tiling_gather_nd(const void *constants, sp_tiling *out)
{
    const sp_gather_nd_constants *k = constants;
    sp_tiling_line(out, k->rows, gathered_rows(k->slice_bytes));
}

void sp__tiling_scatter_elements(const void *constants, sp_tiling *out)
{
    const sp_scatter_elements_constants *k = constants;
    sp_tiling_line(out, k->lines, sp_tiling_share(SP_TILE_ELEMENTS / 4, k->dims[k->axis]));
}

/* All updates of an element are in one tile: tiles split the slices, not their number. */
void sp__tiling_scatter_nd(const void *constants, sp_tiling *out)
{
    const sp_scatter_nd_constants *k = constants;
    const int64_t part = k->count > 0 ? SP_TILE_ELEMENTS / k->count : SP_TILE_ELEMENTS;
    sp_tiling_line(out, k->slice, part > 256 ? part : 256);
}

void sp__tiling_one_hot(const void *constants, sp_tiling *out)
{
    const sp_one_hot_constants *k = constants;
    sp_tiling_line(out, k->outer, sp_tiling_share(SP_TILE_ELEMENTS, k->depth * k->inner));
}

/* A line costs its length 8 times. */
void sp__tiling_top_k(const void *constants, sp_tiling *out)
{
    const sp_top_k_constants *k = constants;
    sp_tiling_line(out, k->outer * k->inner, sp_tiling_share(SP_TILE_ELEMENTS, k->axis * 8));
}

/* ---- generated and interpolated elements ---- */

void sp__tiling_range(const void *constants, sp_tiling *out)
{
    const sp_range_constants *k = constants;
    sp_tiling_line(out, k->count, SP_TILE_ELEMENTS);
}

void sp__tiling_diagonal(const void *constants, sp_tiling *out)
{
    const sp_diagonal_constants *k = constants;
    sp_tiling_line(out, k->rows, sp_tiling_share(SP_TILE_ELEMENTS, k->columns));
}

void sp__tiling_resize_nearest(const void *constants, sp_tiling *out)
{
    const sp_resize_constants *k = constants;
    const int64_t rows = sp_tiling_share(SP_TILE_ELEMENTS, k->out * k->inner / k->lanes);
    sp_tiling_line(out, k->outer, (rows + k->lanes - 1) / k->lanes);
}

/* A sum of several elements costs as much as 4. */
void sp__tiling_resize(const void *constants, sp_tiling *out)
{
    const sp_resize_constants *k = constants;
    sp_tiling_line(out, k->outer, sp_tiling_share(SP_TILE_ELEMENTS, k->out * k->inner * 4));
}

void sp__tiling_grid_sample(const void *constants, sp_tiling *out)
{
    const sp_grid_sample_constants *k = constants;
    const int64_t taps = k->mode == SP_GRID_CUBIC ? 16 : k->mode == SP_GRID_LINEAR ? 4 : 1;
    sp_tiling_line(out, k->count, SP_TILE_EVALUATIONS / (k->channels * taps) + 1);
}
