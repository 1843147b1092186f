/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on single elements (ops/element_ops.h), of vectors. A NaN stays a NaN in all of them,
 * and is made canonical where the result is stored. */
#ifndef SP_OPS_CPU_BLOCKED_ELEMENT_VECTORS_H
#define SP_OPS_CPU_BLOCKED_ELEMENT_VECTORS_H

#include "base/macros.h"
#include "ops/cpu/arch/hard_swish.h"
#include "ops/cpu/arch/vector_parts.h"

/* What an operation reads beside x: an operand in `a`, the numbers of the operation, or of a
 * normalisation mean, factor and offset. */
typedef struct sp_element_numbers {
    sp_vector a, b, c, d;
} sp_element_numbers;

/* X(op): those of one operand, and the others. */
#define SP_ELEMENT_BINARY_LIST(X)                                                                  \
    X(SP_ELEMENT_ADD)                                                                              \
    X(SP_ELEMENT_SUB)                                                                              \
    X(SP_ELEMENT_SUB_FROM)                                                                         \
    X(SP_ELEMENT_MUL)                                                                              \
    X(SP_ELEMENT_DIV)                                                                              \
    X(SP_ELEMENT_DIV_INTO)

#define SP_ELEMENT_VECTOR_LIST(X)                                                                  \
    SP_ELEMENT_BINARY_LIST(X)                                                                      \
    X(SP_ELEMENT_NORM)                                                                             \
    X(SP_ELEMENT_CLIP_GATE)                                                                        \
    X(SP_ACTIVATION_HARD_SWISH)

/* `op` is a constant after inlining, one of the list. */
static SP_ALWAYS_INLINE sp_vector sp_element_apply(const uint8_t op, sp_vector x,
                                                   const sp_element_numbers *of)
{
    switch (op) {
    case SP_ELEMENT_ADD:
        return x + of->a;
    case SP_ELEMENT_SUB:
        return x - of->a;
    case SP_ELEMENT_SUB_FROM:
        return of->a - x;
    case SP_ELEMENT_MUL:
        return x * of->a;
    case SP_ELEMENT_DIV:
        return x / of->a;
    case SP_ELEMENT_DIV_INTO:
        return of->a / x;
    case SP_ELEMENT_NORM:
        if (SP_PLANTED(chain_rounds_once)) return sp_vector_fma(x - of->a, of->b, of->c);
        return (x - of->a) * of->b + of->c;
    case SP_ELEMENT_CLIP_GATE:
        return x * sp_vector_smaller(of->c, sp_vector_larger(of->b, x + of->a)) / of->d;
    default: /* SP_ACTIVATION_HARD_SWISH */
        return sp_vector_hard_swish(x);
    }
}

#endif
