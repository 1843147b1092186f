/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum over windows of up to three dimensions, of any type, with the place of each maximum if
 * that is wanted. Otherwise as max_pool_f32: padding is less than everything, a NaN wins, of equals
 * the first. A window that is all padding gives the type's least number, and place -1. */
#include "ops/cpu/arch/typed.h"
#include "ops/cpu/conv/tap_range.h"

/* The place of an element among all of x. */
static int64_t place_of(const sp_window_constants *k, int64_t plane, const int64_t at[3])
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
