/* SPDX-License-Identifier: Apache-2.0 */
/* Joins of an element with a lane of its own type, by sp_add_, sp_mul_, sp_max_ and sp_min_ of the
 * type. Included by other templates. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_join_sum)(SP_ELEMENT lane, SP_ELEMENT x,
                                                      SP_ELEMENT shift)
{
    (void)shift;
    return SP_OF(sp_add)(lane, x);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_join_prod)(SP_ELEMENT lane, SP_ELEMENT x,
                                                       SP_ELEMENT shift)
{
    (void)shift;
    return SP_OF(sp_mul)(lane, x);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_join_max)(SP_ELEMENT lane, SP_ELEMENT x,
                                                      SP_ELEMENT shift)
{
    (void)shift;
    return SP_OF(sp_max)(lane, x);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_join_min)(SP_ELEMENT lane, SP_ELEMENT x,
                                                      SP_ELEMENT shift)
{
    (void)shift;
    return SP_OF(sp_min)(lane, x);
}
