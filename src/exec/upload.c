/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/upload.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/size.h"
#include "exec/uploader.h"

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

static uint64_t padding_of(const sp_weight *weight)
{
    return (ALIGNMENT - weight->bytes % ALIGNMENT) % ALIGNMENT;
}

/* One after the other in the block. */
static sp_status weights_write(const sp_weight *weights, uint32_t count, sp_uploader *uploader,
                               sp_upload *out)
{
    const sp_memory *memory = &out->block->slab->memory;
    uint64_t at = out->block->offset;
    for (uint32_t i = 0; i < count; i++) {
        if (weights[i].is_only_packed) continue;
        const uint64_t padding = padding_of(&weights[i]);
        out->memories[i].address = (char *)memory->address + at;
        SP_TRY(sp__uploader_write(uploader, weights[i].data, weights[i].bytes));
        SP_TRY(sp__uploader_write(uploader, NULL, padding));
        at += weights[i].bytes + padding;
    }
    return SP_OK;
}

static sp_status weights_copy(sp_rt_device *device, const sp_weight *weights, uint32_t count,
                              sp_upload *out)
{
    uint64_t bytes = 0;
    sp_uploader uploader;
    SP_TRY(upload_bytes(weights, count, &bytes));
    if (bytes == 0) return SP_OK;
    SP_TRY(sp__allocator_acquire(&device->allocator, bytes, NULL, &out->block));
    sp_status status =
        sp__uploader_begin(&uploader, device, &out->block->slab->memory, out->block->offset, bytes);
    if (status == SP_OK) status = weights_write(weights, count, &uploader, out);
    return sp__uploader_end(&uploader, status);
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
