/* SPDX-License-Identifier: Apache-2.0 */
/* Where: copies elements by their size, bit for bit. PRelu: positive numbers and zeros are
 * unchanged, others are multiplied by their slope, rounded once; integers wrap. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"

#define SP_TYPE u8
#define SP_NAME where_8
#include "ops/cpu/elementwise/where.inc.h"
#define SP_TYPE u16
#define SP_NAME where_16
#include "ops/cpu/elementwise/where.inc.h"
#define SP_TYPE u32
#define SP_NAME where_32
#include "ops/cpu/elementwise/where.inc.h"
#define SP_TYPE u64
#define SP_NAME where_64
#include "ops/cpu/elementwise/where.inc.h"

static SP_ALWAYS_INLINE float prelu_f32(float x, float slope)
{
    return sp_canonical(x < 0 ? slope * x : x);
}
static SP_ALWAYS_INLINE double prelu_f64(double x, double slope)
{
    return sp_canonical_f64(x < 0 ? slope * x : x);
}
static SP_ALWAYS_INLINE int32_t prelu_i32(int32_t x, int32_t slope)
{
    return x < 0 ? (int32_t)((uint32_t)slope * (uint32_t)x) : x;
}
static SP_ALWAYS_INLINE int64_t prelu_i64(int64_t x, int64_t slope)
{
    return x < 0 ? (int64_t)((uint64_t)slope * (uint64_t)x) : x;
}

#define SP_TYPE f32
#define SP_NAME prelu_f32
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
#define SP_TYPE f64
#define SP_NAME prelu_f64
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
#define SP_TYPE i32
#define SP_NAME prelu_i32
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
#define SP_TYPE i64
#define SP_NAME prelu_i64
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
