/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of matrix products and convolutions: a chain acc = fma(a[k], b[k], acc) from +0 for each
 * segment of k, and the sum of the chains from +0, in order. Outputs are independent, so any
 * blocking of rows and columns gives the same bits; the number of outputs computed together only
 * affects speed. */
#ifndef SP_OPS_CPU_GEMM_GEMM_BLOCK_H
#define SP_OPS_CPU_GEMM_GEMM_BLOCK_H

#include "base/macros.h"
#include "ops/cpu/arch/isa.h"

/* Vectors of a panel of the right-hand matrix. */
#define SP_PANEL_VECTORS (SP_GEMM_PANEL / SP_VECTOR)

/* A block has at least as many accumulators as hide the latency of a multiply-add, and the
 * registers hold them. SP_BLOCK_PANELS(rows) is how many panels a block of so many rows has. */
#if SP_VECTOR == 16
#define SP_BLOCK_MAX_VECTORS 24
#define SP_BLOCK_ROWS 8
#define SP_BLOCK_PANELS(rows) ((rows) >= 7 ? 2 : (rows) == 1 ? 8 : 4)
#elif SP_VECTOR == 4
#define SP_BLOCK_MAX_VECTORS 24
#define SP_BLOCK_ROWS 6
#define SP_BLOCK_PANELS(rows) ((rows) >= 3 ? 1 : 4 / (rows))
#elif !SP_HAS_HARDWARE_FMA /* a multiply-add is 30 instructions an element */
#define SP_BLOCK_MAX_VECTORS 8
#define SP_BLOCK_ROWS 2
#define SP_BLOCK_PANELS(rows) 1
#else
#define SP_BLOCK_MAX_VECTORS 8
#define SP_BLOCK_ROWS 4
#define SP_BLOCK_PANELS(rows) ((rows) >= 3 ? 1 : 4 / (rows))
#endif

/* Continues the chains of one segment. `rows` and `vectors` are constants after inlining, so
 * acc[rows][vectors] is kept in registers. The vectors of b are those of consecutive panels. */
static SP_ALWAYS_INLINE void sp_gemm_block(const int64_t rows, const int64_t vectors,
                                           const float *a, int64_t a_row, int64_t a_depth,
                                           const float *b, int64_t b_depth, int64_t b_panel,
                                           int64_t depth, sp_vector *acc)
{
    for (int64_t k = 0; k < depth; k++) {
        sp_vector right[SP_BLOCK_MAX_VECTORS];
#pragma GCC unroll 16
        for (int64_t v = 0; v < vectors; v++) {
            const int64_t at = v / SP_PANEL_VECTORS * b_panel + v % SP_PANEL_VECTORS * SP_VECTOR;
            right[v] = sp_vector_load(b + k * b_depth + at);
        }
#pragma GCC unroll 16
        for (int64_t r = 0; r < rows; r++) {
            const sp_vector left = sp_vector_splat(a[r * a_row + k * a_depth]);
#pragma GCC unroll 16
            for (int64_t v = 0; v < vectors; v++) {
                acc[r * vectors + v] = sp_vector_fma(left, right[v], acc[r * vectors + v]);
            }
        }
    }
}

/* The sums of a matrix product: sum[rows][panels][SP_PANEL_VECTORS] is written. */
static SP_ALWAYS_INLINE void sp_gemm_sums(const int64_t rows, const int64_t panels, const float *a,
                                          int64_t a_row, int64_t a_depth, const float *b,
                                          int64_t b_depth, int64_t b_panel, int64_t depth,
                                          sp_vector *sum)
{
    const int64_t vectors = panels * SP_PANEL_VECTORS;
    const int64_t segment = SP_GEMM_SEGMENT + (SP_PLANTED(segment_off_by_one) ? 1 : 0);
#pragma GCC unroll 24
    for (int64_t i = 0; i < rows * vectors; i++) sum[i] = sp_vector_splat(0);
    for (int64_t k = 0; k < depth; k += segment) {
        const int64_t left = depth - k;
        sp_vector acc[SP_BLOCK_MAX_VECTORS] = {0};
        sp_gemm_block(rows, vectors, a + k * a_depth, a_row, a_depth, b + k * b_depth, b_depth,
                      b_panel, left < segment ? left : segment, acc);
#pragma GCC unroll 24
        for (int64_t i = 0; i < rows * vectors; i++) sum[i] += acc[i];
    }
}

#endif
