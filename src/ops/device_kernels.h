/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels a device runs. */
#ifndef SP_OPS_DEVICE_KERNELS_H
#define SP_OPS_DEVICE_KERNELS_H

#include "device/device.h"

/* The device's own table, in the order of sp_kernel_id; NULL if it runs kernels of the
 * host. */
const sp_kernel *sp__device_kernels(const sp_dev *device);

/* The same for devices of a kind ("cpu", "null", "cuda"), of which none need be there. Errors:
 * SP_INVALID for NULL, SP_NOT_FOUND for a kind that there is not. */
sp_status sp__device_kind_kernels(const char *kind, const sp_kernel **out);

#endif
