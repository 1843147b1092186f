/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a matrix product, for the kernels that compute products among other things. */
#ifndef SP_OPS_CPU_GEMM_GEMM_PART_H
#define SP_OPS_CPU_GEMM_GEMM_PART_H

#include "ops/cpu/arch/isa.h"

typedef struct sp_gemm_operands {
    const sp_gemm_constants *k;
    const float *a, *b, *c; /* of this batch entry; c is of the whole tensor, or NULL */
    float *y;
    int64_t y_row;
    int64_t b_depth, b_panel; /* strides of b */
    int64_t first_panel;      /* of b */
    bool is_b_half;           /* of gemm_rounded: b has the type of the constants' rounding */
} sp_gemm_operands;

/* Panels [panel, end), of which those before `whole` are full or padded, of rows [first, last). The
 * product has `panels`. */
typedef struct sp_gemm_part {
    int64_t panel, end, whole, panels, first, last;
} sp_gemm_part;

/* Computes and stores the outputs of a part (gemm_f32.c). Of the constants, tiles and the batch are
 * not read. */
void SP_KERNEL(gemm_part)(const sp_gemm_operands *g, const sp_gemm_part *t);

/* The same of operands that are rounded (gemm_rounded.c); the columns of b are `b_column` apart. */
void SP_KERNEL(gemm_rounded)(const sp_gemm_operands *g, const sp_gemm_part *t, int64_t b_column);
/* Element `at` of f16 or bf16. */
float SP_KERNEL(widen_half)(sp_rounding rounding, const void *from, int64_t at);
/* Rounds `count` floats to f16 or bf16. */
void SP_KERNEL(round_floats)(sp_rounding rounding, float *x, int64_t count);

/* Rounds `count` steps of a line, from `step` on, into a matrix of `lines` in a narrow format
 * (gemm_narrow.c). */
void SP_KERNEL(narrow_pack_steps)(sp_pack_format format, const float *from, int64_t count,
                                  void *packed, int64_t lines, int64_t line, int64_t step);

#endif
