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
 * registers hold them. SP_BLOCK_PANELS(rows) is how many panels a block of so many rows has. One
 * row reads each weight once, from the second cache, which gives more to four streams than to
 * eight. */
#if SP_VECTOR == 16
#define SP_BLOCK_MAX_VECTORS 24
#define SP_BLOCK_ROWS 6
#define SP_BLOCK_PANELS(rows) ((rows) == 2 || (rows) == 3 ? 8 : 4)
#define SP_BLOCK_MOST_PANELS 8
#elif SP_VECTOR == 4
#define SP_BLOCK_MAX_VECTORS 24
#define SP_BLOCK_ROWS 6
#define SP_BLOCK_PANELS(rows) ((rows) >= 3 ? 1 : 4 / (rows))
#define SP_BLOCK_MOST_PANELS 4
#elif !SP_HAS_HARDWARE_FMA /* a multiply-add is 30 instructions an element */
#define SP_BLOCK_MAX_VECTORS 8
#define SP_BLOCK_ROWS 2
#define SP_BLOCK_PANELS(rows) 1
#define SP_BLOCK_MOST_PANELS 1
#else
#define SP_BLOCK_MAX_VECTORS 8
#define SP_BLOCK_ROWS 4
#define SP_BLOCK_PANELS(rows) ((rows) >= 3 ? 1 : 4 / (rows))
#define SP_BLOCK_MOST_PANELS 4
#endif

/* Otherwise gcc reads the vector from memory at each use. */
#if defined(__AVX512F__)
#define SP_IN_REGISTER(vector) __asm__("" : "+v"(vector))
#else
#define SP_IN_REGISTER(vector) (void)0
#endif

/* Addresses of rows and panels: each of these is the first of three, which a register and its
 * double reach. There are at most nine. */
enum { SP_BLOCK_BASES = 3 };

/* Continues the chains of one segment. `rows` and `vectors` are constants after inlining, so
 * acc[rows][vectors] is kept in registers. The vectors of b are those of consecutive panels. */
static SP_ALWAYS_INLINE void sp_gemm_block(const int64_t rows, const int64_t vectors,
                                           const float *a, int64_t a_row, int64_t a_depth,
                                           const float *b, int64_t b_depth, int64_t b_panel,
                                           int64_t depth, sp_vector *acc)
{
    const float *left[SP_BLOCK_BASES], *right[SP_BLOCK_BASES];
#pragma GCC unroll 8
    for (int64_t i = 0; i < SP_BLOCK_BASES; i++) {
        left[i] = a + 3 * i * a_row;
        right[i] = b + 3 * i * b_panel;
    }
    for (int64_t k = 0; k < depth; k++) {
        sp_vector weights[SP_BLOCK_MAX_VECTORS];
#pragma GCC unroll 16
        for (int64_t v = 0; v < vectors; v++) {
            const int64_t panel = v / SP_PANEL_VECTORS, at = v % SP_PANEL_VECTORS * SP_VECTOR;
            weights[v] = sp_vector_load(right[panel / 3] + panel % 3 * b_panel + at);
            if (rows > 1) SP_IN_REGISTER(weights[v]);
        }
#pragma GCC unroll 16
        for (int64_t r = 0; r < rows; r++) {
            const sp_vector input = sp_vector_splat(left[r / 3][r % 3 * a_row]);
#pragma GCC unroll 16
            for (int64_t v = 0; v < vectors; v++) {
                acc[r * vectors + v] = sp_vector_fma(input, weights[v], acc[r * vectors + v]);
            }
        }
#pragma GCC unroll 8
        for (int64_t i = 0; i < SP_BLOCK_BASES; i++) {
            if (3 * i < rows) left[i] += a_depth;
            if (3 * i * SP_PANEL_VECTORS < vectors) right[i] += b_depth;
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
    const sp_vector zero = sp_vector_splat(0);
    sp_vector acc[SP_BLOCK_MAX_VECTORS], earlier[SP_BLOCK_MAX_VECTORS];
    for (int64_t k = 0;; k += segment) {
        const int64_t left = depth - k;
        const bool is_first = k == 0, is_last = left <= segment;
#pragma GCC unroll 24
        for (int64_t i = 0; i < rows * vectors; i++) acc[i] = zero;
        sp_gemm_block(rows, vectors, a + k * a_depth, a_row, a_depth, b + k * b_depth, b_depth,
                      b_panel, is_last ? left : segment, acc);
        if (is_first && is_last) { /* never in memory */
#pragma GCC unroll 24
            for (int64_t i = 0; i < rows * vectors; i++) sum[i] = zero + acc[i];
            break;
        }
#pragma GCC unroll 24
        for (int64_t i = 0; i < rows * vectors; i++) {
            earlier[i] = (is_first ? zero : earlier[i]) + acc[i];
        }
        if (!is_last) continue;
#pragma GCC unroll 24
        for (int64_t i = 0; i < rows * vectors; i++) sum[i] = earlier[i];
        break;
    }
}

/* The panels of the next block, of `left`. One alone has too few chains to hide their latency, and
 * blocks of the rest are compiled for each number of rows. */
static SP_ALWAYS_INLINE int64_t sp_gemm_next_panels(const int64_t most, int64_t left)
{
    if (left == 5 && most >= 4) return 3;
    if (left >= most) return most;
    if (left == 3) return 3;
    return left >= 4 ? 4 : left;
}

/* Calls run(of, rows, panels, panel) for blocks of panels [panel, end); `rows` and `panels` are
 * constants after inlining. */
static SP_ALWAYS_INLINE void sp_gemm_each_block(
    const int64_t rows, int64_t panel, int64_t end, const void *of,
    void (*const run)(const void *of, const int64_t rows, const int64_t panels, int64_t panel))
{
    const int64_t most = SP_BLOCK_PANELS(rows);
    for (int64_t panels; panel < end; panel += panels) {
        panels = sp_gemm_next_panels(most, end - panel);
        if (panels == most) run(of, rows, most, panel);
        else if (most > 4 && panels == 4) run(of, rows, most > 4 ? 4 : 1, panel);
        else if (most > 3 && panels == 3) run(of, rows, most > 3 ? 3 : 1, panel);
        else if (most > 2 && panels == 2) run(of, rows, most > 2 ? 2 : 1, panel);
        else run(of, rows, 1, panel);
    }
}

#endif
