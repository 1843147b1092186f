/* SPDX-License-Identifier: Apache-2.0 */
/* The failure that a GPU kernel has reported (device/gpu_kernel.h), in the words of the CPU's
 * kernel. */
#ifndef SP_OPS_REPORT_H
#define SP_OPS_REPORT_H

#include <streampool/status.h>

#include "device/gpu_kernel.h"
#include "ops/kernel_id.h"

/* SP_INVALID. `report` is one that has been made. */
sp_status sp__report_fail(sp_kernel_id kernel, const sp_gpu_report *report);

#endif
