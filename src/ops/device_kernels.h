/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel tables of devices. */
#ifndef SP_OPS_DEVICE_KERNELS_H
#define SP_OPS_DEVICE_KERNELS_H

#include "device/device.h"

/* The device's own table, in the order of sp_kernel_id; NULL if it runs the CPU's kernels. */
const sp_kernel *sp__device_kernels(const sp_dev *device);

/* The same for a kind of device ("cpu", "null", "cuda"), which need not be available. Errors:
 * SP_INVALID for NULL, SP_NOT_FOUND for an unknown kind. */
sp_status sp__device_kind_kernels(const char *kind, const sp_kernel **out);

#endif
