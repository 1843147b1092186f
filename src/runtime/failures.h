/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of a thread's submissions to a queue, and which of them were reported to the thread: by
 * a synchronize, or by the call that has submitted them and waits for them. See decision 0081. */
#ifndef SP_RUNTIME_FAILURES_H
#define SP_RUNTIME_FAILURES_H

#include <streampool/status.h>

#include "device/timeline.h"

/* The first failure of the calling thread's submissions up to the point, which has passed and has a
 * queue, that was not reported to it; all of them are reported then. Without one, and each time:
 * the loss of the device, if submissions up to the point were lost with it. */
sp_status sp__failures_report(sp_point point);

/* The calling thread returns the failure of the point, which has passed: what it has submitted to
 * the point's queue after the value `after` is reported. Failures before that stay for the next
 * synchronize, and with them the leases' commands on untracked storages fail. */
void sp__failures_returned(sp_point point, uint64_t after);

#endif
