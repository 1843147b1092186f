/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device_kernels.h"

#include "ops/cuda/cuda_kernels.h"

const sp_kernel *sp__device_kernels(const sp_dev *device)
{
    static const sp_kernel *(*const tables[SP_KERNEL_FORMS])(void) = {
        [SP_KERNEL_FORM_CUDA] = sp__cuda_kernels,
    };
    const sp_kernel_form form = device->vtable->kind->kernel_form;
    return tables[form] != NULL ? tables[form]() : NULL;
}
