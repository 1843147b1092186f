/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/upload.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/size.h"

#define ALIGNMENT 256u

static sp_status upload_bytes(const sp_weight *weights, uint32_t count, uint64_t *out)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (weights[i].is_only_packed) continue;
        if (!sp_size_add(bytes, weights[i].bytes, &bytes) ||
            !sp_size_add(bytes, ALIGNMENT, &bytes)) {
            return sp__fail(SP_EXHAUSTED, "the size of the weights overflows");
        }
    }
    *out = bytes;
    return SP_OK;
}

/* The host copies, so it must be able to access the device's memory. */
static sp_status weights_copy(sp_rt_device *device, const sp_weight *weights, uint32_t count,
                              sp_upload *out)
{
    uint64_t bytes = 0;
    SP_TRY(upload_bytes(weights, count, &bytes));
    if (bytes == 0) return SP_OK;
    SP_TRY(sp__allocator_acquire(&device->allocator, bytes, NULL, &out->block));
    const sp_memory *memory = &out->block->slab->memory;
    uint64_t at = out->block->offset;
    for (uint32_t i = 0; i < count; i++) {
        if (weights[i].is_only_packed) continue;
        sp_memory *copy = &out->memories[i];
        SP_TRY(sp__memory_host(memory, at, &copy->host));
        copy->address = (char *)memory->address + at;
        if (copy->host != NULL && weights[i].bytes > 0)
            memcpy(copy->host, weights[i].data, weights[i].bytes);
        at += (weights[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return SP_OK;
}

sp_status sp__upload_init(sp_rt_device *device, const sp_weight *weights, uint32_t count,
                          sp_upload *out)
{
    *out = (sp_upload){.memories = sp_calloc(count, sizeof *out->memories)};
    if (out->memories == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a model");
    const bool is_shared = device->dev->vtable->staging_create == NULL;
    for (uint32_t i = 0; i < count; i++) {
        const void *data = is_shared ? weights[i].data : NULL;
        out->memories[i] = sp__memory_at_host(device->dev, data, weights[i].bytes);
    }
    if (is_shared) return SP_OK;
    const sp_status status = weights_copy(device, weights, count, out);
    if (status != SP_OK) sp__upload_deinit(device, out);
    return status;
}

void sp__upload_deinit(sp_rt_device *device, sp_upload *upload)
{
    if (upload->block != NULL) sp__allocator_release(&device->allocator, upload->block);
    sp_free(upload->memories);
    *upload = (sp_upload){0};
}
