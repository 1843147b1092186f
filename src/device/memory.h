/* SPDX-License-Identifier: Apache-2.0 */
/* A block of device memory, as its kind allocates it. Filled in by the kind, then constant.
 *
 * It has an address for the device's kernels and, where the host reaches the same bytes, a host
 * pointer. Engines use `address`. Outside the folders of kinds `host` is read by sp__memory_host
 * alone: a device may have memory that the host cannot reach. */
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
    void *address; /* of kinds that run host kernels, and of memory of the host, a pointer */
    void *host;    /* NULL: the host cannot reach it, or there are no bytes */
    void *private; /* the kind's own */
} sp_memory;

/* Memory of the host, for a device that reaches it at the host's address. */
static inline sp_memory sp__memory_at_host(sp_dev *device, const void *data, uint64_t bytes)
{
    void *address = (void *)(uintptr_t)data;
    return (sp_memory){.device = device, .bytes = bytes, .address = address, .host = address};
}

/* SP_UNSUPPORTED, with the message. */
SP_NOINLINE sp_status sp__memory_refuse_host(const sp_memory *memory);

/* The host pointer of the byte at `offset`; NULL of memory without bytes. SP_UNSUPPORTED if the
 * host cannot reach the memory. */
static inline sp_status sp__memory_host(const sp_memory *memory, uint64_t offset, void **out)
{
    *out = NULL;
    if (SP_LIKELY(memory->host != NULL)) {
        *out = (char *)memory->host + offset;
        return SP_OK;
    }
    return memory->bytes == 0 ? SP_OK : sp__memory_refuse_host(memory);
}

#endif
