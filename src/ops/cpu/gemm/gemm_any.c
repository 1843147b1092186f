/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product of types other than f32, without blocking. The sum is that of gemm_f32. f16
 * and bf16 compute in f32, fused, and are rounded once more when stored, so they have the bits of
 * the rounded f32 product; f64 rounds products and sums; integers wrap. */
#include "base/macros.h"
#include "ops/cpu/arch/typed.h"

enum { STRIP = 16 };

/* Offsets of the operands of a batch entry, in elements. */
static void select_batch(const sp_gemm_constants *k, int64_t batch, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (uint32_t i = k->batch_rank; i-- > 0;) {
        const int64_t at = batch % k->batch_dims[i];
        batch /= k->batch_dims[i];
        *a += at * k->a_batch[i];
        *b += at * k->b_batch[i];
    }
}

#define SCALE(x, factor) ((x) * (factor))
/* Integers are not scaled: their op has no factors. */
#define NO_SCALE(x, factor) (x)

#define SP_TYPE f64
#define SP_SCALE SCALE
#include "ops/cpu/gemm/gemm_any.inc.h"
#define SP_TYPE f16
#define SP_SCALE SCALE
#include "ops/cpu/gemm/gemm_any.inc.h"
#define SP_TYPE bf16
#define SP_SCALE SCALE
#include "ops/cpu/gemm/gemm_any.inc.h"
#define SP_TYPE i32
#define SP_SCALE NO_SCALE
#include "ops/cpu/gemm/gemm_any.inc.h"
#define SP_TYPE i64
#define SP_SCALE NO_SCALE
#include "ops/cpu/gemm/gemm_any.inc.h"
#define SP_TYPE u32
#define SP_SCALE NO_SCALE
#include "ops/cpu/gemm/gemm_any.inc.h"
#define SP_TYPE u64
#define SP_SCALE NO_SCALE
#include "ops/cpu/gemm/gemm_any.inc.h"
