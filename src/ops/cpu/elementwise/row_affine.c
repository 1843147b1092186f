/* SPDX-License-Identifier: Apache-2.0 */
/* Rows moved by a number and multiplied by another, as a normalisation does once it has both: in
 * the steps that exporters write, each rounded. A NaN stays a NaN in all of them. */
#include "base/macros.h"
#include "ops/cpu/arch/float_functions.h"
#include "ops/cpu/elementwise/elementwise.h"

typedef struct affine_lists {
    const float *scale, *bias;
} affine_lists;

static void move_row(const float *x, float mean, float factor, const affine_lists *lists,
                     int64_t extent, float *y)
{
    const float *scale = lists->scale, *bias = lists->bias;
    if (SP_PLANTED(affine_factor_last)) {
        for (int64_t i = 0; i < extent; i++) {
            y[i] = sp_canonical((x[i] - mean) * factor * scale[i] + bias[i]);
        }
        return;
    }
    SP_INDEPENDENT for (int64_t i = 0; i < extent; i++)
    {
        y[i] = sp_canonical((x[i] - mean) * (factor * scale[i]) + bias[i]);
    }
}

sp_status SP_KERNEL(row_affine_f32)(const sp_tile *tile)
{
    const sp_row_affine_constants *k = tile->constants;
    const float *x = tile->bindings[0], *mean = tile->bindings[1], *factor = tile->bindings[2];
    const affine_lists lists = {tile->bindings[3], tile->bindings[4]};
    float *y = tile->bindings[5];
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->rows);
    for (int64_t row = first; row < last; row++) {
        const int64_t at = row * k->extent;
        move_row(x + at, mean[row], factor[row], &lists, k->extent, y + at);
    }
    return SP_OK;
}
