/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of elements in order. */
#include "ops/cpu/tiling.h"

/* Of sp_flat_constants, sp_function_constants, sp_cast_constants and sp_gate_constants. */
static int64_t flat_count(const void *constants)
{
    return ((const sp_flat_constants *)constants)->count;
}

_Static_assert(offsetof(sp_function_constants, count) == 0 &&
                   offsetof(sp_cast_constants, count) == 0 &&
                   offsetof(sp_gate_constants, count) == 0 &&
                   offsetof(sp_flat_constants, count) == 0,
               "they begin with the number of elements");

void sp__tiling_flat(const void *constants, sp_tiling *out)
{
    sp_tiling_line(out, flat_count(constants), SP_TILE_ELEMENTS);
}

void sp__tiling_evaluated(const void *constants, sp_tiling *out)
{
    sp_tiling_line(out, flat_count(constants), SP_TILE_EVALUATIONS);
}

void sp__tiling_binary(const void *constants, sp_tiling *out)
{
    const sp_binary_constants *k = constants;
    sp_tiling_line(out, k->count, SP_TILE_ELEMENTS);
}

void sp__tiling_binary_evaluated(const void *constants, sp_tiling *out)
{
    const sp_binary_constants *k = constants;
    sp_tiling_line(out, k->count, SP_TILE_EVALUATIONS);
}

void sp__tiling_select(const void *constants, sp_tiling *out)
{
    const sp_select_constants *k = constants;
    sp_tiling_line(out, k->count, SP_TILE_ELEMENTS);
}

void sp__tiling_row_affine(const void *constants, sp_tiling *out)
{
    const sp_row_affine_constants *k = constants;
    sp_tiling_line(out, k->rows, SP_TILE_ELEMENTS / k->extent + 1);
}
