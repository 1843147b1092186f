/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device_kernels.h"

#include "base/error.h"
#include "ops/cuda/cuda_kernels.h"

static const sp_kernel *kind_kernels(const sp_device_kind *kind)
{
    static const sp_kernel *(*const tables[SP_KERNEL_FORMS])(void) = {
        [SP_KERNEL_FORM_CUDA] = sp__cuda_kernels,
    };
    return tables[kind->kernel_form] != NULL ? tables[kind->kernel_form]() : NULL;
}

const sp_kernel *sp__device_kernels(const sp_dev *device)
{
    return kind_kernels(device->vtable->kind);
}

sp_status sp__device_kind_kernels(const char *kind, const sp_kernel **out)
{
    *out = NULL;
    if (kind == NULL) return sp__fail(SP_INVALID, "kind is NULL");
    const sp_device_kind *found;
    uint32_t ordinal;
    SP_TRY(sp__device_kind_parse(kind, &found, &ordinal));
    *out = kind_kernels(found);
    return SP_OK;
}
