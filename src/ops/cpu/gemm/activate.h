/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of finished outputs, for kernels that have just stored them: they are still in the
 * first-level cache. Each element is computed by the same function as in unary.c and gate.c. */
#ifndef SP_OPS_CPU_GEMM_ACTIVATE_H
#define SP_OPS_CPU_GEMM_ACTIVATE_H

#include "ops/cpu/arch/hard_swish.h"
#include "ops/cpu/arch/math_f32.h"

static SP_ALWAYS_INLINE void sp_activate_rows(float *y, int64_t rows, int64_t stride, int64_t width,
                                              float (*const function)(float x))
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = y + r * stride;
        SP_INDEPENDENT for (int64_t i = 0; i < width; i++) row[i] = sp_canonical(function(row[i]));
    }
}

/* `rows` rows of `width` floats, with a stride of `stride` floats. */
static void sp_activate(uint8_t activation, float *y, int64_t rows, int64_t stride, int64_t width)
{
    switch (activation) {
    case SP_ACTIVATION_RELU:
        sp_activate_rows(y, rows, stride, width, sp_reluf);
        return;
    case SP_ACTIVATION_SIGMOID:
        sp_activate_rows(y, rows, stride, width, sp_sigmoidf);
        return;
    case SP_ACTIVATION_TANH:
        sp_activate_rows(y, rows, stride, width, sp_tanhf);
        return;
    case SP_ACTIVATION_SILU:
        sp_activate_rows(y, rows, stride, width, sp_siluf);
        return;
    case SP_ACTIVATION_HARD_SWISH:
        for (int64_t r = 0; r < rows; r++) {
            sp_hard_swish_list(y + r * stride, width, y + r * stride);
        }
        return;
    default:
        return;
    }
}

#endif
