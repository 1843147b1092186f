/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of finished outputs, for kernels that have just stored them: the lines are still in
 * the first-level cache, and each element goes through the same function as in unary.c. */
#ifndef SP_OPS_CPU_GEMM_ACTIVATE_H
#define SP_OPS_CPU_GEMM_ACTIVATE_H

#include "ops/cpu/arch/math_f32.h"

#define SP_ACTIVATE_ROWS(function)                                                                 \
    for (int64_t r = 0; r < rows; r++) {                                                           \
        float *row = y + r * stride;                                                               \
        SP_INDEPENDENT for (int64_t i = 0; i < width; i++) row[i] =                                \
            sp_canonical(function(row[i]));                                                        \
    }                                                                                              \
    return

/* `rows` rows of `width` floats, one beginning `stride` floats behind the other. */
static void sp_activate(uint8_t activation, float *y, int64_t rows, int64_t stride, int64_t width)
{
    switch (activation) {
    case SP_ACTIVATION_RELU:
        SP_ACTIVATE_ROWS(sp_reluf);
    case SP_ACTIVATION_SIGMOID:
        SP_ACTIVATE_ROWS(sp_sigmoidf);
    case SP_ACTIVATION_TANH:
        SP_ACTIVATE_ROWS(sp_tanhf);
    case SP_ACTIVATION_SILU:
        SP_ACTIVATE_ROWS(sp_siluf);
    default:
        return;
    }
}

#endif
