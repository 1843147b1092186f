/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel and its constants, as in kernel_constants.h, of products whose operands are views, which
 * plans for the CPU use (docs/decisions/0054-operands-by-strides.md). */
#ifndef SP_OPS_STRIDED_CONSTANTS_H
#define SP_OPS_STRIDED_CONSTANTS_H

#include "ops/kernel_constants.h"

/* Bindings of gemm_f32. */
#define SP_STRIDED_KERNEL_LIST(X) X(gemm_strided_f32)

/* Elements of b that the kernel has on its stack at a time, in panels: the longest depth of a b
 * without neighbouring columns is a part of that. */
#define SP_GEMM_STRIDED_ELEMENTS 8192
#define SP_GEMM_STRIDED_DEPTH (SP_GEMM_STRIDED_ELEMENTS / SP_GEMM_PANEL)

/* As gemm_f32, where a and b begin at an element of their bindings, the columns of b are `b_column`
 * apart (then its depth is consecutive: b_depth is 1), and y has strides. */
typedef struct sp_gemm_strided_constants {
    sp_gemm_constants of;
    int64_t a_first, b_first, b_column;
    int64_t y_row, y_batch[SP_KERNEL_RANK]; /* the columns of y are neighbours */
} sp_gemm_strided_constants;

#define SP_STRIDED_CONSTANTS_LIST(X) X(sp_gemm_strided_constants, 408)

#endif
