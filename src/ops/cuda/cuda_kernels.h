/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels: the first kernels of the CPU's list, with the same constants and bits. Constant
 * data; needs no CUDA at build time or run time. */
#ifndef SP_OPS_CUDA_CUDA_KERNELS_H
#define SP_OPS_CUDA_CUDA_KERNELS_H

#include "device/gpu_kernel.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/cuda/arch/tiles.h"

/* The number of kernels that CUDA has. Their ids are below it and are their indices in the
 * program. */
enum {
#define SP_CUDA_KERNEL_ENUM(name) SP_CUDA_KERNEL_##name,
    SP_CUDA_KERNEL_LIST(SP_CUDA_KERNEL_ENUM)
#undef SP_CUDA_KERNEL_ENUM
        SP_CUDA_KERNEL_COUNT
};

/* Their variants have the indices after them. */
enum {
    SP_CUDA_LAST_KERNEL = SP_CUDA_KERNEL_COUNT - 1,
#define SP_CUDA_VARIANT_ENUM(name) SP_CUDA_VARIANT_##name,
    SP_CUDA_VARIANT_LIST(SP_CUDA_VARIANT_ENUM)
#undef SP_CUDA_VARIANT_ENUM
        SP_CUDA_ENTRY_COUNT
};

/* SP_KERNEL_COUNT kernels, in the order of sp_kernel_id; those that CUDA does not have have a name
 * only. */
const sp_kernel *sp__cuda_kernels(void);

extern const sp_gpu_program sp__cuda_program;

#endif
