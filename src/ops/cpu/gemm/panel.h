/* SPDX-License-Identifier: Apache-2.0 */
/* Panels of the right-hand side of a product, from memory where each column is consecutive. */
#ifndef SP_OPS_CPU_GEMM_PANEL_H
#define SP_OPS_CPU_GEMM_PANEL_H

#include "ops/cpu/arch/vector_transpose.h"

/* to[d][i] is element d of column i, for `depth` elements and SP_GEMM_PANEL columns, which are
 * `stride` apart; zeros from column `count` on. */
static inline void sp_panel_transpose(const float *from, int64_t stride, int64_t count,
                                      int64_t depth, float *to)
{
    for (int64_t d = 0; d < depth; d += SP_VECTOR) {
        const int64_t left = depth - d < SP_VECTOR ? depth - d : SP_VECTOR;
        const sp_vector_part part = sp_vector_range(0, left);
        for (int64_t c = 0; c < SP_GEMM_PANEL; c += SP_VECTOR) {
            sp_vector square[SP_VECTOR];
#pragma GCC unroll 16
            for (int64_t i = 0; i < SP_VECTOR; i++) {
                square[i] = sp_vector_splat(0);
                if (c + i >= count) continue;
                const float *column = from + (c + i) * stride + d;
                square[i] = part == SP_VECTOR_ALL ? sp_vector_load(column)
                                                  : sp_vector_load_part(column, part, square[i]);
            }
            sp_vector_transpose(square);
            float *out = to + d * SP_GEMM_PANEL + c;
            for (int64_t i = 0; i < left; i++) sp_vector_store(out + i * SP_GEMM_PANEL, square[i]);
        }
    }
}

#endif
