/* SPDX-License-Identifier: Apache-2.0 */
/* Indices from data: each is checked, so no access is out of bounds. */
#ifndef SP_OPS_CPU_LAYOUT_INDEX_H
#define SP_OPS_CPU_LAYOUT_INDEX_H

#include <inttypes.h>

#include "base/error.h"
#include "ops/cpu/arch/isa.h"

static inline int64_t sp_index_load(const void *indices, int64_t at, uint32_t index_bytes)
{
    return index_bytes == 4 ? ((const int32_t *)indices)[at] : ((const int64_t *)indices)[at];
}

/* A negative index counts from the end. The result is out of range if it is not in [0, size). */
static inline int64_t sp_index_wrap(int64_t index, int64_t size)
{
    return index < 0 ? index + size : index;
}

static inline bool sp_index_is_inside(int64_t index, int64_t size)
{
    return (uint64_t)index < (uint64_t)size;
}

static __attribute__((noinline, cold, unused)) sp_status sp_index_fail(int64_t index, int64_t size)
{
    return sp__fail(SP_INVALID, "index %" PRId64 " is out of range for a dimension of %" PRId64,
                    index, size);
}

/* The offset of an index of `depth` numbers; strides in any unit. */
static inline sp_status sp_index_offset(const void *indices, int64_t at, uint32_t index_bytes,
                                        uint32_t depth, const int64_t *dims, const int64_t *strides,
                                        int64_t *out)
{
    int64_t offset = 0;
    for (uint32_t i = 0; i < depth; i++) {
        const int64_t given = sp_index_load(indices, at + i, index_bytes);
        const int64_t index = sp_index_wrap(given, dims[i]);
        if (!sp_index_is_inside(index, dims[i])) return sp_index_fail(given, dims[i]);
        offset += index * strides[i];
    }
    *out = offset;
    return SP_OK;
}

#endif
