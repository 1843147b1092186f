/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of matrix products and convolutions: acc = fma(a[k], b[k], acc) for k in order, one
 * chain per output. Chains are independent, so any blocking of rows and columns gives the same
 * bits; the number of chains computed together only affects speed. */
#ifndef SP_OPS_CPU_GEMM_GEMM_BLOCK_H
#define SP_OPS_CPU_GEMM_GEMM_BLOCK_H

#include "ops/cpu/arch/isa.h"

#define SP_BLOCK_MAX_VECTORS 8

/* `rows` and `vectors` are constants after inlining, so acc[rows][vectors] is kept in registers.
 * Vector v of b starts at b + (v / 2) * b_panel + (v % 2) * 8. */
static SP_ALWAYS_INLINE void sp_gemm_block(const int64_t rows, const int64_t vectors,
                                           const float *a, int64_t a_row, int64_t a_depth,
                                           const float *b, int64_t b_depth, int64_t b_panel,
                                           int64_t depth, sp_v8 *acc)
{
    for (int64_t k = 0; k < depth; k++) {
        sp_v8 right[SP_BLOCK_MAX_VECTORS];
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; v++) {
            right[v] = sp_v8_load(b + k * b_depth + (v / 2) * b_panel + (v % 2) * 8);
        }
#pragma GCC unroll 8
        for (int64_t r = 0; r < rows; r++) {
            const sp_v8 left = sp_v8_splat(a[r * a_row + k * a_depth]);
#pragma GCC unroll 8
            for (int64_t v = 0; v < vectors; v++) {
                acc[r * vectors + v] = sp_v8_fma(left, right[v], acc[r * vectors + v]);
            }
        }
    }
}

#endif
