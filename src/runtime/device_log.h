/* SPDX-License-Identifier: Apache-2.0 */
/* Log messages on the life of devices. The log's callback may call the library: no lock is held,
 * and the caller is not inside a sp_once. */
#ifndef SP_RUNTIME_DEVICE_LOG_H
#define SP_RUNTIME_DEVICE_LOG_H

#include "runtime/runtime_state.h"

void sp__log_opened(const sp_rt_device *device);

/* The failures of a stopped device that no call has reported to its submitter; once per device. */
void sp__log_unreported(sp_rt_device *device);

#endif
