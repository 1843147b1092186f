/* SPDX-License-Identifier: Apache-2.0 */
/* The public face of a device's quirks. */
#include "base/error.h"
#include "runtime/runtime_state.h"

sp_status sp_device_get_quirk(sp_device handle, uint32_t index, sp_device_quirk *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_device_get_quirk needs a place to write to");
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
