/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device_kernels.h"

#include <string.h>

#include "ops/cuda/cuda_kernels.h"

const sp_kernel *sp__device_kernels(const sp_dev *device)
{
    return strcmp(device->vtable->kind, "cuda") == 0 ? sp__cuda_kernels() : NULL;
}
