/* SPDX-License-Identifier: Apache-2.0 */
/* y[i] = f(x[i]); x and y may be one memory. A NaN gives the canonical NaN. */
#include "ops/cpu/math_f32.h"

#define UNARY_KERNEL(name, function)                                                               \
    sp_status SP_KERNEL(name)(const sp_tile *tile)                                                 \
    {                                                                                              \
        const sp_flat_constants *k = tile->constants;                                              \
        const int64_t first = tile->index[0] * k->tile_count;                                      \
        const int64_t left = k->count - first;                                                     \
        const int64_t n = left < k->tile_count ? left : k->tile_count;                             \
        const float *x = (const float *)tile->bindings[0] + first;                                 \
        float *y = (float *)tile->bindings[1] + first;                                             \
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = sp_canonical(function(x[i]));        \
        return SP_OK;                                                                              \
    }

UNARY_KERNEL(relu_f32, sp_reluf)
UNARY_KERNEL(sigmoid_f32, sp_sigmoidf)
UNARY_KERNEL(tanh_f32, sp_tanhf)
UNARY_KERNEL(exp_f32, sp_expf)
