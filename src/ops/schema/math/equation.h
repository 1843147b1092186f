/* SPDX-License-Identifier: Apache-2.0 */
/* The equation of an Einsum, read for the shapes of a call. An axis has a label: a letter, or a
 * place of the ellipsis, counted from its end. */
#ifndef SP_OPS_SCHEMA_MATH_EQUATION_H
#define SP_OPS_SCHEMA_MATH_EQUATION_H

#include "ops/op.h"

enum {
    SP_EQUATION_LETTERS = 52, /* A-Z, a-z: in the order of implicit outputs */
    SP_EQUATION_LABELS = SP_EQUATION_LETTERS + SP_MAX_RANK,
    SP_EQUATION_OPERANDS = 2
};

typedef struct sp_equation_operand {
    uint8_t labels[SP_MAX_RANK]; /* of each axis */
    uint32_t rank;
    bool has[SP_EQUATION_LABELS];
    /* In elements; of a letter with several axes, which is their diagonal, the sum of theirs. 0
     * where an axis of size 1 is repeated, and of labels that the operand does not have. */
    int64_t strides[SP_EQUATION_LABELS];
} sp_equation_operand;

typedef struct sp_equation {
    sp_equation_operand operands[SP_EQUATION_OPERANDS]; /* those beyond the call's have no axis */
    uint8_t output[SP_MAX_RANK];
    uint32_t output_rank;
    int64_t sizes[SP_EQUATION_LABELS];
} sp_equation;

/* Errors: SP_CORRUPT for a text that is no equation of so many inputs, SP_MISMATCH for shapes that
 * do not fit it, SP_UNSUPPORTED for more than SP_MAX_RANK axes of the output. */
sp_status sp__equation_read(const sp_op_call *call, sp_equation *out);

/* Place of a label in the output; output_rank if it is summed over. */
uint32_t sp__equation_place(const sp_equation *equation, uint8_t label);

#endif
