/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of floats. Included by other templates. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(add)(SP_ELEMENT a, SP_ELEMENT b)
{
    return SP_OF(sp_canonical)(a + b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sub)(SP_ELEMENT a, SP_ELEMENT b)
{
    return SP_OF(sp_canonical)(a - b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(mul)(SP_ELEMENT a, SP_ELEMENT b)
{
    return SP_OF(sp_canonical)(a * b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(div)(SP_ELEMENT a, SP_ELEMENT b)
{
    return SP_OF(sp_canonical)(a / b);
}
