/* SPDX-License-Identifier: Apache-2.0 */
/* Pages directly from the system, so that memory that the allocator frees is returned to it. */
#include "device/queue/page_memory.h"

#include "base/error.h"
#include "base/pages.h"

sp_status sp__page_memory_create(sp_dev *device, uint64_t bytes, sp_memory *out)
{
    void *host = sp_pages_map(bytes);
    if (host == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "%s: the system has no memory for %llu bytes",
                        device->limits.name, (unsigned long long)bytes);
    }
    *out = sp__memory_at_host(device, host, bytes);
    return SP_OK;
}

void sp__page_memory_destroy(sp_memory *memory)
{
    sp_pages_unmap(memory->address, memory->bytes);
    *memory = (sp_memory){0};
}

uint64_t sp__page_memory_total(void)
{
    return sp_pages_total_bytes();
}
