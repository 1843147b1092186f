/* SPDX-License-Identifier: Apache-2.0 */
/* For builds without the cuda device. */
#include "base/error.h"
#include "device/cuda/cuda.h"

sp_status sp__cuda_open(uint32_t ordinal, sp_dev **out)
{
    (void)ordinal;
    *out = NULL;
    return sp__fail(SP_UNSUPPORTED, "this build of streampool has no CUDA support");
}
