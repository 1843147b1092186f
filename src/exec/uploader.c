/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/uploader.h"

#include <string.h>

#include "base/error.h"

#define HALF_BYTES ((uint64_t)2 << 20)

static sp_binding half_binding(const sp_uploader *uploader)
{
    return (sp_binding){.memory = &uploader->block->slab->memory,
                        .offset = uploader->block->offset + uploader->half * uploader->half_bytes,
                        .bytes = uploader->filled};
}

/* Waits until the half may be filled. */
static sp_status half_reclaim(const sp_uploader *uploader)
{
    return sp__transfer_wait(uploader->copied[uploader->half]);
}

static sp_status half_submit(sp_uploader *uploader)
{
    if (uploader->filled == 0) return SP_OK;
    const sp_binding to = {
        .memory = uploader->memory, .offset = uploader->offset, .bytes = uploader->filled};
    SP_TRY(sp__transfer_submit(uploader->device, SP_TRANSFER_TO_DEVICE, to, half_binding(uploader),
                               &uploader->copied[uploader->half]));
    uploader->offset += uploader->filled;
    uploader->filled = 0;
    uploader->half = 1 - uploader->half;
    return half_reclaim(uploader);
}

sp_status sp__uploader_begin(sp_uploader *uploader, sp_rt_device *device, const sp_memory *memory,
                             uint64_t offset, uint64_t bytes)
{
    *uploader = (sp_uploader){.device = device, .memory = memory, .offset = offset};
    uploader->half_bytes = bytes < HALF_BYTES ? (bytes + 63) / 64 * 64 : HALF_BYTES;
    const uint64_t pinned = bytes <= HALF_BYTES ? uploader->half_bytes : 2 * HALF_BYTES;
    void *host;
    SP_TRY(sp__allocator_acquire(&device->staging, pinned, NULL, &uploader->block));
    SP_TRY(sp__block_host(uploader->block, &host));
    uploader->host = host;
    return SP_OK;
}

sp_status sp__uploader_write(sp_uploader *uploader, const void *data, uint64_t bytes)
{
    const unsigned char *from = data;
    while (bytes > 0) {
        const uint64_t room = uploader->half_bytes - uploader->filled;
        const uint64_t count = bytes < room ? bytes : room;
        unsigned char *to =
            uploader->host + uploader->half * uploader->half_bytes + uploader->filled;
        if (from != NULL) memcpy(to, from, count);
        else memset(to, 0, count);
        uploader->filled += count;
        bytes -= count;
        if (from != NULL) from += count;
        if (uploader->filled == uploader->half_bytes) SP_TRY(half_submit(uploader));
    }
    return SP_OK;
}

sp_status sp__uploader_end(sp_uploader *uploader, sp_status status)
{
    if (status == SP_OK) status = half_submit(uploader);
    sp_error_scope scope;
    for (uint32_t i = 0; i < 2; i++) {
        if (status == SP_OK) {
            status = sp__transfer_wait(uploader->copied[i]);
            continue;
        }
        sp__error_set_aside(&scope);
        (void)sp__transfer_wait(uploader->copied[i]);
        sp__error_put_back(&scope);
    }
    if (uploader->block != NULL) sp__allocator_release(&uploader->device->staging, uploader->block);
    *uploader = (sp_uploader){0};
    return status;
}
