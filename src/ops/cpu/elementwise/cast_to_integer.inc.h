/* SPDX-License-Identifier: Apache-2.0 */
/* Casts of one element to an integer type. Parameters: SP_TYPE; SP_ABOVE, the largest value of the
 * type plus 1. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_GLUE(SP_TYPE, from_f)(float x)
{
    if (x >= (float)SP_ABOVE) return (SP_ELEMENT)SP_OF(sp_most);
    if (x <= (float)SP_OF(sp_least)) return (SP_ELEMENT)SP_OF(sp_least);
    return x == x ? (SP_ELEMENT)x : 0;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_GLUE(SP_TYPE, from_d)(double x)
{
    if (x >= (double)SP_ABOVE) return (SP_ELEMENT)SP_OF(sp_most);
    if (x <= (double)SP_OF(sp_least)) return (SP_ELEMENT)SP_OF(sp_least);
    return x == x ? (SP_ELEMENT)x : 0;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_GLUE(SP_TYPE, from_i)(int64_t x)
{
    return (SP_ELEMENT)x;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_GLUE(SP_TYPE, from_u)(uint64_t x)
{
    return (SP_ELEMENT)x;
}

#undef SP_ABOVE
#undef SP_TYPE
