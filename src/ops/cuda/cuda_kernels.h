/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels: kernels of the CPU's list, with the same constants and bits. Constant data;
 * needs no CUDA at build time or run time. */
#ifndef SP_OPS_CUDA_CUDA_KERNELS_H
#define SP_OPS_CUDA_CUDA_KERNELS_H

#include "device/gpu_kernel.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/cuda/arch/tiles.h"
#include "ops/cuda/cuda_list.h"

/* SP_KERNEL_COUNT kernels, in the order of sp_kernel_id; those that CUDA does not have have a name
 * only. */
const sp_kernel *sp__cuda_kernels(void);

/* A program for each family of kernels: one is loaded, or compiled, when a model first needs it. */
#define SP_CUDA_PROGRAM_DECLARE(name, kernels) extern const sp_gpu_program sp__cuda_program_##name;
SP_CUDA_PROGRAM_LIST(SP_CUDA_PROGRAM_DECLARE)
#undef SP_CUDA_PROGRAM_DECLARE

#define SP_CUDA_VARIANT_DECLARE(name) extern const sp_gpu_kernel sp__cuda_variant_##name;
SP_CUDA_VARIANT_LIST(SP_CUDA_VARIANT_DECLARE)
SP_CUDA_CELL_VARIANT_LIST(SP_CUDA_VARIANT_DECLARE)
SP_CUDA_TENSOR_VARIANT_LIST(SP_CUDA_VARIANT_DECLARE)
#undef SP_CUDA_VARIANT_DECLARE

/* What all programs' texts begin with. */
extern const sp_gpu_text sp__cuda_prologue;

#endif
