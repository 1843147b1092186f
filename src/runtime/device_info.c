/* SPDX-License-Identifier: Apache-2.0 */
/* Device information and settings: facts, quirks, the limits of its memory. */
#include <stdio.h>

#include "base/error.h"
#include "runtime/runtime_state.h"

sp_status sp_device_get_info(sp_device handle, sp_device_info *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_device_get_info: out is NULL");
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    const sp_device_limits *limits = &device->dev->limits;
    *out = (sp_device_info){.memory_bytes = limits->memory_bytes,
                            .width = limits->width,
                            .run_slots = limits->run_slots,
                            .stream_count = device->pool.count};
    snprintf(out->name, sizeof out->name, "%s", limits->name);
    snprintf(out->kind, sizeof out->kind, "%s", device->dev->vtable->kind->name);
    return SP_OK;
}

sp_status sp_device_get_quirk(sp_device handle, uint32_t index, sp_device_quirk *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_device_get_quirk: out is NULL");
    *out = (sp_device_quirk){0};
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    const sp_device_limits *limits = &device->dev->limits;
    if (index >= limits->quirk_count) {
        return sp__fail(SP_NOT_FOUND, "device %s has %u quirks", limits->name, limits->quirk_count);
    }
    const sp_quirk *quirk = &limits->quirks[index];
    *out = (sp_device_quirk){.name = quirk->name,
                             .since = quirk->since,
                             .measure = quirk->measure,
                             .limit = sp__quirk_limit(quirk)};
    return SP_OK;
}

/* ---- memory ---- */

sp_status sp_device_get_memory_stats(sp_device handle, sp_memory_stats *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_device_get_memory_stats: out is NULL");
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    sp__allocator_stats(&device->allocator, out);
    out->pinned_bytes = sp_load_relaxed(&device->staging.reserved_bytes);
    return SP_OK;
}

sp_status sp_device_empty_cache(sp_device handle)
{
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    sp__workspaces_trim(&device->workspaces);
    sp__allocator_trim(&device->allocator, UINT64_MAX, true);
    sp__allocator_trim(&device->staging, UINT64_MAX, true);
    return SP_OK;
}

sp_status sp_device_reset_peak_memory(sp_device handle)
{
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    sp__allocator_reset_peak(&device->allocator);
    return SP_OK;
}

sp_status sp_device_set_memory_limit(sp_device handle, uint64_t bytes)
{
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    sp__allocator_set_limit(&device->allocator, bytes);
    return SP_OK;
}

sp_status sp_device_set_cache_watermarks(sp_device handle, uint64_t low_bytes, uint64_t high_bytes)
{
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    if (low_bytes > high_bytes) {
        return sp__fail(SP_INVALID, "the low watermark, %llu, is above the high one, %llu",
                        (unsigned long long)low_bytes, (unsigned long long)high_bytes);
    }
    sp__allocator_set_watermarks(&device->allocator, low_bytes, high_bytes);
    sp__allocator_set_watermarks(&device->staging, low_bytes, high_bytes);
    return SP_OK;
}
