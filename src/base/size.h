/* SPDX-License-Identifier: Apache-2.0 */
/* Size arithmetic that cannot wrap: where a result may overflow, false is returned then and *out is
 * not written. */
#ifndef SP_BASE_SIZE_H
#define SP_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sp_size_add(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

static inline bool sp_size_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

/* Rounds up to a multiple of `alignment`, a power of two. */
static inline bool sp_size_align(uint64_t size, uint64_t alignment, uint64_t *out)
{
    uint64_t sum;
    if (!sp_size_add(size, alignment - 1, &sum)) return false;
    *out = sum & ~(alignment - 1);
    return true;
}

/* The smaller of two sizes, counts or indices. */
static inline int64_t sp_size_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Whether [offset, offset + bytes) is inside [0, total). */
static inline bool sp_size_in_range(uint64_t offset, uint64_t bytes, uint64_t total)
{
    return offset <= total && bytes <= total - offset;
}

#endif
