/* SPDX-License-Identifier: Apache-2.0 */
/* The kind's row, also in builds without the cuda device. */
#include <streampool/dlpack.h>

#include "device/cuda/cuda.h"

static sp_status cuda_open_kind(const sp_device_open_options *options, sp_dev **out)
{
    return sp__cuda_open(options->ordinal, out);
}

const sp_device_kind sp__cuda_kind = {
    .name = "cuda",
    .numbering = SP_DEVICE_BY_ORDINAL,
    .kernel_form = SP_KERNEL_FORM_CUDA,
    .dlpack_type = SP_DLPACK_CUDA,
    .open = cuda_open_kind,
};
