/* SPDX-License-Identifier: Apache-2.0 */
/* Products of two computed values whose operands are rounded to f16 or bf16 (docs/decisions/0089):
 * the definition up to the order of a chain, which tensor cores choose, as in gemm_narrow.c. */
#include "base/macros.h"
#include "ops/cpu/arch/half.h"
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/gemm/gemm_part.h"

static float rounded(sp_rounding rounding, float x)
{
    if (rounding == SP_ROUNDING_F16) return sp_float_of_f16(sp_f16_of_float(x));
    return sp_float_of_bf16(sp_bf16_of_float(x));
}

void SP_KERNEL(round_floats)(sp_rounding rounding, float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) x[i] = rounded(rounding, x[i]);
}

float SP_KERNEL(widen_half)(sp_rounding rounding, const void *from, int64_t at)
{
    const uint16_t bits = ((const uint16_t *)from)[at];
    return rounding == SP_ROUNDING_F16 ? sp_float_of_f16(bits) : sp_float_of_bf16(bits);
}

static float right_of(const sp_gemm_operands *g, int64_t at)
{
    if (g->is_b_half) return SP_KERNEL(widen_half)(g->k->rounding, g->b, at);
    return rounded(g->k->rounding, g->b[at]);
}

/* With the column that begins at element `b`. */
static float sum_of(const sp_gemm_operands *g, const float *a, int64_t b)
{
    const sp_gemm_constants *k = g->k;
    float sum = 0;
    for (int64_t first = 0; first < k->depth; first += SP_GEMM_SEGMENT) {
        const int64_t rest = k->depth - first;
        const int64_t end = first + (rest < SP_GEMM_SEGMENT ? rest : SP_GEMM_SEGMENT);
        float chain = 0;
        for (int64_t d = first; d < end; d++) {
            chain = sp_fmaf(rounded(k->rounding, a[d * k->a_depth]),
                            right_of(g, b + d * g->b_depth), chain);
        }
        sum += chain;
    }
    return sum;
}

void SP_KERNEL(gemm_rounded)(const sp_gemm_operands *g, const sp_gemm_part *t, int64_t b_column)
{
    const sp_gemm_constants *k = g->k;
    const int64_t first = t->panel * SP_GEMM_PANEL, most = t->end * SP_GEMM_PANEL;
    const int64_t end = most < k->columns ? most : k->columns;
    for (int64_t row = t->first; row < t->last; row++) {
        float *y = g->y + row * g->y_row;
        for (int64_t n = first; n < end; n++) {
            float out = sum_of(g, g->a + row * k->a_row, n * b_column) * k->alpha;
            if (g->c != NULL) out += g->c[row * k->c_row + n * k->c_column] * k->beta;
            y[n] = sp_canonical(out);
        }
        sp_activate(k->activation, y + first, 1, end - first, end - first);
    }
}
