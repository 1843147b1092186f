/* SPDX-License-Identifier: Apache-2.0 */
/* What NonZero's shape rule counts and its kernel finds. */
#ifndef SP_OPS_SCHEMA_INDEX_NON_ZERO_H
#define SP_OPS_SCHEMA_INDEX_NON_ZERO_H

#include <string.h>

#include "ops/cpu/arch/kernels.h"

/* Is element `i` of x other than 0? */
static inline bool sp_is_non_zero(const sp_non_zero_constants *k, const void *x, int64_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)x + i * k->element_bytes, k->element_bytes);
    return (bits & k->mask) != 0;
}

#endif
