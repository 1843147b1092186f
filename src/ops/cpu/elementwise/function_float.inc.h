/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with parameters of f32 and f64. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(leaky_relu)(SP_ELEMENT x, SP_ELEMENT alpha,
                                                     SP_ELEMENT beta)
{
    return SP_OF(sp_leaky_relu)(x, alpha, beta);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(hard_sigmoid)(SP_ELEMENT x, SP_ELEMENT alpha,
                                                       SP_ELEMENT beta)
{
    return SP_OF(sp_hard_sigmoid)(x, alpha, beta);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(thresholded_relu)(SP_ELEMENT x, SP_ELEMENT alpha,
                                                           SP_ELEMENT beta)
{
    return SP_OF(sp_thresholded_relu)(x, alpha, beta);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(clip)(SP_ELEMENT x, SP_ELEMENT alpha, SP_ELEMENT beta)
{
    return SP_OF(sp_canonical)(SP_OF(sp_clip)(x, alpha, beta));
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(divide)(SP_ELEMENT x, SP_ELEMENT alpha, SP_ELEMENT beta)
{
    (void)beta;
    return SP_OF(sp_canonical)(x / alpha);
}

static SP_ALWAYS_INLINE uint8_t SP_OF(is_nan)(SP_ELEMENT x, SP_ELEMENT alpha, SP_ELEMENT beta)
{
    (void)alpha, (void)beta;
    return x != x;
}

/* alpha: does +inf count; beta: does -inf? */
static SP_ALWAYS_INLINE uint8_t SP_OF(is_inf)(SP_ELEMENT x, SP_ELEMENT alpha, SP_ELEMENT beta)
{
    return ((x == SP_OF(sp_most)) & (alpha != 0)) | ((x == SP_OF(sp_least)) & (beta != 0));
}

#define SP_RESULT SP_ELEMENT
#define SP_NAME SP_OF(leaky_relu)
#include "ops/cpu/elementwise/function.inc.h"
#define SP_NAME SP_OF(hard_sigmoid)
#include "ops/cpu/elementwise/function.inc.h"
#define SP_NAME SP_OF(thresholded_relu)
#include "ops/cpu/elementwise/function.inc.h"
#define SP_NAME SP_OF(clip)
#include "ops/cpu/elementwise/function.inc.h"
#define SP_NAME SP_OF(divide)
#include "ops/cpu/elementwise/function.inc.h"
#undef SP_RESULT

#define SP_RESULT uint8_t
#define SP_NAME SP_OF(is_nan)
#include "ops/cpu/elementwise/function.inc.h"
#define SP_NAME SP_OF(is_inf)
#include "ops/cpu/elementwise/function.inc.h"

#undef SP_RESULT
#undef SP_TYPE
