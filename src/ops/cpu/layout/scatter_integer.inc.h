/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of integers, computed in 64 bits: narrow types wrap and nothing overflows. Parameter:
 * SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(add)(SP_ELEMENT a, SP_ELEMENT b)
{
    return (SP_ELEMENT)((uint64_t)a + (uint64_t)b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(mul)(SP_ELEMENT a, SP_ELEMENT b)
{
    return (SP_ELEMENT)((uint64_t)a * (uint64_t)b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(max)(SP_ELEMENT a, SP_ELEMENT b)
{
    return a >= b ? a : b;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(min)(SP_ELEMENT a, SP_ELEMENT b)
{
    return a <= b ? a : b;
}

#undef SP_TYPE
