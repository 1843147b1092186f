/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on faults of the null device. */
#include <streampool/null_device.h>

#include "base/error.h"
#include "device/null/null.h"
#include "runtime/runtime_state.h"

static sp_status find_null(sp_device handle, sp_dev **out)
{
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    *out = device->dev;
    return sp__null_check(device->dev);
}

static sp_status fault_set(sp_device device, void (*setter)(sp_dev *dev, uint64_t value),
                           uint64_t value)
{
    sp_dev *dev;
    SP_TRY(find_null(device, &dev));
    setter(dev, value);
    return SP_OK;
}

sp_status sp_null_fail_allocation(sp_device device, uint64_t skip)
{
    return fault_set(device, sp__null_fail_allocation, skip);
}

sp_status sp_null_fail_command(sp_device device, uint64_t skip)
{
    return fault_set(device, sp__null_fail_command, skip);
}

sp_status sp_null_set_latency(sp_device device, uint64_t ns)
{
    return fault_set(device, sp__null_set_latency, ns);
}

sp_status sp_null_fail_randomly(sp_device device, uint32_t per_mille, uint64_t seed)
{
    sp_dev *dev;
    SP_TRY(find_null(device, &dev));
    if (per_mille > 1000) {
        return sp__fail(SP_INVALID,
                        "sp_null_fail_randomly: per_mille is %u; at most 1000 is allowed",
                        per_mille);
    }
    sp__null_fail_randomly(dev, per_mille, seed);
    return SP_OK;
}

sp_status sp_null_lose(sp_device device)
{
    sp_dev *dev;
    SP_TRY(find_null(device, &dev));
    sp__null_lose(dev);
    return SP_OK;
}
