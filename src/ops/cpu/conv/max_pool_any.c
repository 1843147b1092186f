/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum over windows of up to three dimensions, of any type, with optional indices of the maxima.
 * Otherwise as max_pool_f32: padding is less than every element, a NaN is the maximum, of equals
 * the first is taken. A window that is all padding gives the type's least number, and index -1. */
#include "ops/cpu/arch/typed.h"
#include "ops/cpu/conv/tap_range.h"

/* The index of an element in all of x. */
static int64_t element_index(const sp_window_constants *k, int64_t plane, const int64_t at[3])
{
    const int64_t *in = k->in;
    const int64_t first = plane * in[0] * in[1] * in[2];
    if (k->is_column_major) return first + at[0] + in[0] * (at[1] + in[1] * at[2]);
    return first + (at[0] * in[1] + at[1]) * in[2] + at[2];
}

#define FLOAT_BEATS(x, best) ((x) > (best) || ((x) != (x) && (best) == (best)))
#define INT_BEATS(x, best) ((x) > (best))

#define SP_TYPE f32
#define SP_BEATS FLOAT_BEATS
#include "ops/cpu/conv/max_pool_any.inc.h"
#define SP_TYPE f64
#define SP_BEATS FLOAT_BEATS
#include "ops/cpu/conv/max_pool_any.inc.h"
#define SP_TYPE u8
#define SP_BEATS INT_BEATS
#include "ops/cpu/conv/max_pool_any.inc.h"
#define SP_TYPE i8
#define SP_BEATS INT_BEATS
#include "ops/cpu/conv/max_pool_any.inc.h"
