/* SPDX-License-Identifier: Apache-2.0 */
/* Joins of an element of a float type with a lane, in the order of lanes.h. The loops over rows and
 * columns are the templates reduction*.inc.h. */
#ifndef SP_OPS_CPU_REDUCE_REDUCTION_H
#define SP_OPS_CPU_REDUCE_REDUCTION_H

#include "ops/cpu/arch/half.h"
#include "ops/cpu/reduce/lanes.h"
#include "ops/cpu/arch/math_f32.h"
#include "ops/cpu/arch/math_f64.h"

/* ---- joins; `shift` is the output's, or 0 ---- */

static SP_ALWAYS_INLINE double sp_add_f64(double a, double b)
{
    return a + b;
}

static SP_ALWAYS_INLINE double sp_max_f64(double a, double b)
{
    const double larger = b > a || b != b ? b : a;
    return a == b ? sp_double_from_bits(sp_double_bits(a) & sp_double_bits(b)) : larger;
}

static SP_ALWAYS_INLINE double sp_min_f64(double a, double b)
{
    const double smaller = b < a || b != b ? b : a;
    return a == b ? sp_double_from_bits(sp_double_bits(a) | sp_double_bits(b)) : smaller;
}

static SP_ALWAYS_INLINE double sp_mul_f64(double a, double b)
{
    return a * b;
}

#define SP_TYPE f64
#define SP_TREE sp_lanes_sum_f64
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/lanes_tree.inc.h"
#include "ops/cpu/reduce/levels.inc.h"
#undef SP_TYPE

#define SP_TYPE f32
#include "ops/cpu/reduce/joins_float.inc.h"
#define SP_TYPE f64
#include "ops/cpu/reduce/joins_float.inc.h"

/* ---- maps ---- */

static SP_ALWAYS_INLINE float sp_map_exp_f32(float x, float shift)
{
    return sp_expf(x - shift);
}

static SP_ALWAYS_INLINE double sp_map_exp_f64(double x, double shift)
{
    return sp_exp(x - shift);
}

static SP_ALWAYS_INLINE float sp_map_exp_f16(uint16_t x, float shift)
{
    return sp_expf(sp_float_of_f16(x) - shift);
}

static SP_ALWAYS_INLINE float sp_map_f16(uint16_t x, float shift)
{
    (void)shift;
    return sp_float_of_f16(x);
}

#endif
