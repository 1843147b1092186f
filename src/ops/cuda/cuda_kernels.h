/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels: constants and bits of the CPU's, for part of its list. Constant data; nothing
 * here needs CUDA at build time or at run time. */
#ifndef SP_OPS_CUDA_CUDA_KERNELS_H
#define SP_OPS_CUDA_CUDA_KERNELS_H

#include "device/gpu_kernel.h"
#include "ops/cpu/kernels.h"

/* SP_KERNEL_COUNT kernels, in the order of sp_kernel_id. */
const sp_kernel *sp__cuda_kernels(void);

extern const sp_gpu_program sp__cuda_program;

#endif
