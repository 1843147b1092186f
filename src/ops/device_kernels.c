/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device_kernels.h"

#include <string.h>

#include "base/error.h"
#include "ops/cuda/cuda_kernels.h"

const sp_kernel *sp__device_kernels(const sp_dev *device)
{
    return strcmp(device->vtable->kind, "cuda") == 0 ? sp__cuda_kernels() : NULL;
}

sp_status sp__device_kind_kernels(const char *kind, const sp_kernel **out)
{
    *out = NULL;
    if (kind == NULL) return sp__fail(SP_INVALID, "no kind of device was given");
    if (strcmp(kind, "cpu") == 0 || strcmp(kind, "null") == 0) return SP_OK;
    if (strcmp(kind, "cuda") != 0) {
        return sp__fail(SP_NOT_FOUND, "there is no kind of device '%s'; there are: cpu, null, cuda",
                        kind);
    }
    *out = sp__cuda_kernels();
    return SP_OK;
}
