/* SPDX-License-Identifier: Apache-2.0 */
/* Joins of an element of a float type with a lane. Parameter: SP_TYPE. */
#include "ops/cpu/reduce/joins.inc.h"

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_join_square)(SP_ELEMENT lane, SP_ELEMENT x,
                                                         SP_ELEMENT shift)
{
    const SP_ELEMENT distance = x - shift;
    return lane + distance * distance;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_join_size)(SP_ELEMENT lane, SP_ELEMENT x,
                                                       SP_ELEMENT shift)
{
    (void)shift;
    return lane + (x < 0 ? -x : x);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_join_exp)(SP_ELEMENT lane, SP_ELEMENT x,
                                                      SP_ELEMENT shift)
{
    return lane + SP_OF(sp_exp)(x - shift);
}

#undef SP_TYPE
