/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cpu/recurrent/cell_rows.h"
#include "ops/cpu/tiling.h"

/* Grid (row blocks, directions). */
void sp__tiling_recurrent(const void *constants, sp_tiling *out)
{
    const sp_recurrent_constants *k = constants;
    sp_tiling_line(out, k->rows, SP_CELL_ROWS);
    sp_tiling_each(out, 1, k->directions);
}
