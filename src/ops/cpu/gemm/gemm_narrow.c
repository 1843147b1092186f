/* SPDX-License-Identifier: Apache-2.0 */
/* Narrow products and convolutions (docs/decisions/0072): the definition up to the order of a
 * chain, which tensor cores choose. Devices that have these cores run them; here they are for steps
 * that a user moves to the cpu, and for tests. */
#include "base/macros.h"
#include "ops/cpu/arch/half.h"
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/gemm/gemm_part.h"

enum { LINES = SP_NARROW_LINES };

/* Where step `depth` is in its column. */
static int64_t pack_step(const sp_pack_constants *k, int64_t depth)
{
    if (k->block == 0) return depth * k->depth_stride;
    return depth / k->block * k->block_stride + depth % k->block * k->depth_stride;
}

/* Columns from `first` on. */
static void scale_columns(const sp_gemm_constants *k, float *x, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int which = first + i < k->scaled[0] ? 0 : first + i < k->scaled[1] ? 1 : 2;
        if (which == 2 || k->scales[which].kind == SP_SCALE_NONE) continue;
        const float number = k->scales[which].number;
        x[i] = k->scales[which].kind == SP_SCALE_DIVIDES ? x[i] / number : x[i] * number;
    }
}

static inline float sp_float_of_tf32(uint32_t bits)
{
    return sp_float_from_bits(bits);
}

#define SP_NARROW f16
#define SP_NARROW_TYPE uint16_t
#define SP_NARROW_ROUND sp_f16_of_float
#define SP_NARROW_WIDEN sp_float_of_f16
#include "ops/cpu/gemm/gemm_narrow.inc.h"
#define SP_NARROW bf16
#define SP_NARROW_TYPE uint16_t
#define SP_NARROW_ROUND sp_bf16_of_float
#define SP_NARROW_WIDEN sp_float_of_bf16
#include "ops/cpu/gemm/gemm_narrow.inc.h"
#define SP_NARROW tf32
#define SP_NARROW_TYPE uint32_t
#define SP_NARROW_ROUND sp_tf32_bits_of_float
#define SP_NARROW_WIDEN sp_float_of_tf32
#include "ops/cpu/gemm/gemm_narrow.inc.h"

void SP_KERNEL(narrow_pack_steps)(sp_pack_format format, const float *from, int64_t count,
                                  void *packed, int64_t lines, int64_t line, int64_t step)
{
    switch (format) {
    case SP_PACK_F16:
        narrow_pack_line_f16(from, count, packed, lines, line, step);
        break;
    case SP_PACK_BF16:
        narrow_pack_line_bf16(from, count, packed, lines, line, step);
        break;
    default:
        narrow_pack_line_tf32(from, count, packed, lines, line, step);
    }
}
