/* SPDX-License-Identifier: Apache-2.0 */
/* What all device kinds share: the latch of a lost device. */
#include "device/device.h"

#include "base/error.h"
#include "base/option.h"

uint32_t sp__quirk_limit(const sp_quirk *quirk)
{
    return sp_option_bool(SP_OPTION_FORCE_SAFE_PATHS) ? 1 : quirk->limit;
}

sp_status sp__device_check(sp_dev *device)
{
    const sp_fault fault = sp_load_relaxed(&device->lost);
    return SP_LIKELY(fault == SP_NO_FAULT) ? SP_OK : sp__fault_report(fault);
}

void sp__device_lose(sp_dev *device, sp_fault fault)
{
    sp_fault none = SP_NO_FAULT;
    sp_cas_relaxed(&device->lost, &none, fault);
}
