/* SPDX-License-Identifier: Apache-2.0 */
/* A block of device memory. Filled in by the device kind that allocates it, then constant.
 *
 * It has an address for the device's kernels and, if the host can access the same bytes, a host
 * pointer. Engines use `address`. Outside the folders of kinds only the two functions below
 * read `host`: a device may have memory that the host cannot access. */
#ifndef SP_DEVICE_MEMORY_H
#define SP_DEVICE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <streampool/status.h>

#include "base/macros.h"

typedef struct sp_dev sp_dev;

typedef struct sp_memory {
    sp_dev *device;
    uint64_t bytes;
    void *address; /* for kinds that run host kernels, and for host memory, a pointer */
    void *host;    /* NULL: not accessible to the host, or of size 0 */
    void *private; /* of the kind */
} sp_memory;

/* Host memory, for a device that accesses it at the host's address. */
static inline sp_memory sp__memory_at_host(sp_dev *device, const void *data, uint64_t bytes)
{
    void *address = (void *)(uintptr_t)data;
    return (sp_memory){.device = device, .bytes = bytes, .address = address, .host = address};
}

/* SP_UNSUPPORTED, with the message. */
SP_NOINLINE sp_status sp__memory_refuse_host(const sp_memory *memory);

/* The host pointer of the byte at `offset`; NULL for memory of size 0. SP_UNSUPPORTED if the host
 * cannot access the memory. */
static inline sp_status sp__memory_host(const sp_memory *memory, uint64_t offset, void **out)
{
    *out = NULL;
    if (SP_LIKELY(memory->host != NULL)) {
        *out = (char *)memory->host + offset;
        return SP_OK;
    }
    return memory->bytes == 0 ? SP_OK : sp__memory_refuse_host(memory);
}

/* The same without a failure: NULL if the host cannot access the memory. */
static inline void *sp__memory_host_or_null(const sp_memory *memory, uint64_t offset)
{
    return memory->host != NULL ? (char *)memory->host + offset : NULL;
}

#endif
