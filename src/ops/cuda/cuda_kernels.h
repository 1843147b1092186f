/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels: the constants and bits of the CPU's, for the first part of its list. Constant
 * data; nothing here needs CUDA at build time or at run time. */
#ifndef SP_OPS_CUDA_CUDA_KERNELS_H
#define SP_OPS_CUDA_CUDA_KERNELS_H

#include "device/gpu_kernel.h"
#include "ops/cpu/arch/kernels.h"

/* How many kernels CUDA has. Their ids are below it, and are their places in the program. */
enum {
#define SP_CUDA_KERNEL_ENUM(name) SP_CUDA_KERNEL_##name,
    SP_CUDA_KERNEL_LIST(SP_CUDA_KERNEL_ENUM)
#undef SP_CUDA_KERNEL_ENUM
        SP_CUDA_KERNEL_COUNT
};

/* SP_KERNEL_COUNT kernels, in the order of sp_kernel_id; those that CUDA does not have are names
 * with nothing behind them. */
const sp_kernel *sp__cuda_kernels(void);

extern const sp_gpu_program sp__cuda_program;

#endif
