/* SPDX-License-Identifier: Apache-2.0 */
/* The device kind `cuda`: an NVIDIA GPU through the driver API. */
#ifndef SP_DEVICE_CUDA_H
#define SP_DEVICE_CUDA_H

#include "device/device.h"

extern const sp_device_kind sp__cuda_kind;

/* Opens the GPU with the driver's number `ordinal`. Slow; the first call also loads the driver. No
 * lock may be held. SP_UNSUPPORTED, with the reason, without a driver or a GPU; SP_NOT_FOUND for a
 * number that is too large. */
sp_status sp__cuda_open(uint32_t ordinal, sp_dev **out);

#endif
