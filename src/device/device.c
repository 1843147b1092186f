/* SPDX-License-Identifier: Apache-2.0 */
/* Common to all device kinds: the latch of a lost device. */
#include "device/device.h"

#include "base/backoff.h"
#include "base/error.h"
#include "base/log.h"
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

static void device_log_loss(sp_host_job *job)
{
    sp_dev *device = SP_CONTAINER_OF(job, sp_dev, lost_job);
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    (void)sp__fault_report(sp_load_relaxed(&device->lost));
    SP_LOG(SP_LOG_ERROR, "device %s is lost: %s", device->limits.name, sp_last_error());
    sp__error_put_back(&scope);
    sp_store_release(&device->is_logging, 0);
}

void sp__device_lose(sp_dev *device, sp_fault fault)
{
    sp_fault none = SP_NO_FAULT;
    if (!sp_cas_relaxed(&device->lost, &none, fault)) return;
    device->lost_job = (sp_host_job){.run = device_log_loss};
    /* Relaxed: the executor's lock orders it before the job, and the device's end before deinit. */
    sp_store_relaxed(&device->is_logging, 1);
    if (!sp__host_executor_post(&device->lost_job)) sp_store_relaxed(&device->is_logging, 0);
}

void sp__device_deinit(sp_dev *device)
{
    sp_backoff backoff = {0};
    while (sp_load_acquire(&device->is_logging) != 0) sp_backoff_turn(&backoff);
}
