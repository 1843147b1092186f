/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of float_functions.h of one type. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_softsign)(SP_ELEMENT x)
{
    return SP_OF(sp_canonical)(x / (1 + SP_OF(sp_abs)(x)));
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_leaky_relu)(SP_ELEMENT x, SP_ELEMENT alpha,
                                                        SP_ELEMENT beta)
{
    (void)beta;
    return SP_OF(sp_canonical)(x < 0 ? alpha * x : x);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_hard_sigmoid)(SP_ELEMENT x, SP_ELEMENT alpha,
                                                          SP_ELEMENT beta)
{
    SP_ELEMENT y = alpha * x + beta;
    y = y < 0 ? 0 : y;
    return SP_OF(sp_canonical)(y > 1 ? 1 : y);
}

/* As Max with alpha, then Min with beta; a NaN stays any NaN. */
static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_clip)(SP_ELEMENT x, SP_ELEMENT alpha, SP_ELEMENT beta)
{
    const SP_ELEMENT above = ((alpha > x) | (alpha != alpha)) ? alpha : x;
    return ((beta < above) | (beta != beta)) ? beta : above;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_thresholded_relu)(SP_ELEMENT x, SP_ELEMENT alpha,
                                                              SP_ELEMENT beta)
{
    (void)beta;
    return x > alpha ? x : 0;
}

#undef SP_TYPE
