/* SPDX-License-Identifier: Apache-2.0 */
/* The table of CUDA kernels. */
#include "ops/cuda/cuda_launch.h"

/* Indices in their programs; the variants have those after them. */
#define INDEX_OF(kernel, constants, launch) INDEX_##kernel,
#define VARIANT_INDEX(name) INDEX_##name,
#define PROGRAM_INDICES(program, kernels) enum { kernels(INDEX_OF) COUNT_OF_##program };
SP_CUDA_PROGRAM_LIST(PROGRAM_INDICES)
enum { LAST_OF_CORE = COUNT_OF_core - 1, SP_CUDA_VARIANT_LIST(VARIANT_INDEX) };
enum { LAST_OF_RECURRENT = COUNT_OF_recurrent - 1, SP_CUDA_CELL_VARIANT_LIST(VARIANT_INDEX) };
enum { LAST_OF_TENSOR = COUNT_OF_tensor - 1, SP_CUDA_TENSOR_VARIANT_LIST(VARIANT_INDEX) };
#undef PROGRAM_INDICES
#undef VARIANT_INDEX
#undef INDEX_OF

#define VARIANT_ENTRY(of, variant)                                                                 \
    const sp_gpu_kernel sp__cuda_variant_##variant = {.program = &sp__cuda_program_##of,           \
                                                      .entry = "sp_" #variant,                     \
                                                      .index = INDEX_##variant,                    \
                                                      .has_shared_memory = true};
#define CORE_VARIANT(variant) VARIANT_ENTRY(core, variant)
#define CELL_VARIANT(variant) VARIANT_ENTRY(recurrent, variant)
#define TENSOR_VARIANT(variant) VARIANT_ENTRY(tensor, variant)
SP_CUDA_VARIANT_LIST(CORE_VARIANT)
SP_CUDA_CELL_VARIANT_LIST(CELL_VARIANT)
SP_CUDA_TENSOR_VARIANT_LIST(TENSOR_VARIANT)
#undef TENSOR_VARIANT
#undef CELL_VARIANT
#undef CORE_VARIANT
#undef VARIANT_ENTRY

static const sp_gpu_kernel gpu_table[SP_KERNEL_COUNT] = {
#define GPU_ENTRY(of, kernel)                                                                      \
    [SP_KERNEL_ID_##kernel].program = &sp__cuda_program_##of,                                      \
    [SP_KERNEL_ID_##kernel].entry = "sp_" #kernel, [SP_KERNEL_ID_##kernel].index = INDEX_##kernel
#define SHAPED_ENTRY(of, kernel, launch)                                                           \
    GPU_ENTRY(of, kernel), [SP_KERNEL_ID_##kernel].shape = sp__cuda_shape_##launch,
#define SIZED_ENTRY(of, kernel, launch)                                                            \
    GPU_ENTRY(of, kernel), [SP_KERNEL_ID_##kernel].tiled = sp__cuda_tiled_##launch,
#define SHARING_ENTRY(of, kernel, launch)                                                          \
    SIZED_ENTRY(of, kernel, launch)[SP_KERNEL_ID_##kernel].has_shared_memory = true,
#define TILED_ENTRY(kernel, constants, launch) SHARING_ENTRY(core, kernel, launch)
#define ATTENTION_ENTRY(kernel, constants, launch) SHARING_ENTRY(attention, kernel, launch)
#define CORE_ENTRY(kernel, constants, launch) SHAPED_ENTRY(core, kernel, launch)
#define MATH_ENTRY(kernel, constants, launch) SHAPED_ENTRY(math, kernel, launch)
#define TRIG_ENTRY(kernel, constants, launch) SHAPED_ENTRY(trig, kernel, launch)
#define DOUBLE_ENTRY(kernel, constants, launch) SHAPED_ENTRY(double, kernel, launch)
#define INTEGER_ENTRY(kernel, constants, launch) SHAPED_ENTRY(integer, kernel, launch)
#define CAST_ENTRY(kernel, constants, launch) SHAPED_ENTRY(cast, kernel, launch)
#define REDUCE_ENTRY(kernel, constants, launch) SHAPED_ENTRY(reduce, kernel, launch)
#define NORM_ENTRY(kernel, constants, launch) SHAPED_ENTRY(norm, kernel, launch)
#define MOVE_ENTRY(kernel, constants, launch) SHAPED_ENTRY(move, kernel, launch)
#define WINDOW_ENTRY(kernel, constants, launch) SHAPED_ENTRY(window, kernel, launch)
#define PRODUCT_ENTRY(kernel, constants, launch) SHAPED_ENTRY(product, kernel, launch)
#define NARROW_ENTRY(kernel, constants, launch) SHARING_ENTRY(tensor, kernel, launch)
#define NARROW_PACK_ENTRY(kernel, constants, launch) SHAPED_ENTRY(tensor, kernel, launch)
#define RECURRENT_ENTRY(kernel, constants, launch) SIZED_ENTRY(recurrent, kernel, launch)
    SP_CUDA_TILED_LIST(TILED_ENTRY) SP_CUDA_CORE_LIST(CORE_ENTRY) SP_CUDA_MATH_KERNELS(MATH_ENTRY)
        SP_CUDA_TRIG_KERNELS(TRIG_ENTRY) SP_CUDA_DOUBLE_KERNELS(DOUBLE_ENTRY)
            SP_CUDA_INTEGER_KERNELS(INTEGER_ENTRY) SP_CUDA_CAST_KERNELS(CAST_ENTRY)
                SP_CUDA_REDUCE_KERNELS(REDUCE_ENTRY) SP_CUDA_NORM_KERNELS(NORM_ENTRY)
                    SP_CUDA_MOVE_KERNELS(MOVE_ENTRY) SP_CUDA_WINDOW_KERNELS(WINDOW_ENTRY)
                        SP_CUDA_PRODUCT_KERNELS(PRODUCT_ENTRY) SP_CUDA_RECURRENT_KERNELS(
                            RECURRENT_ENTRY) SP_CUDA_NARROW_LIST(NARROW_ENTRY)
                            SP_CUDA_NARROW_PACK_LIST(NARROW_PACK_ENTRY)
                                SP_CUDA_ATTENTION_KERNELS(ATTENTION_ENTRY)[SP_KERNEL_ID_signal_done]
                                    .signals = true,
#define REPORTS(kernel) [SP_KERNEL_ID_##kernel].reports = true,
    SP_CUDA_REPORTING_LIST(REPORTS)
#undef REPORTS
#undef ATTENTION_ENTRY
#undef RECURRENT_ENTRY
#undef NARROW_PACK_ENTRY
#undef NARROW_ENTRY
#undef PRODUCT_ENTRY
#undef WINDOW_ENTRY
#undef MOVE_ENTRY
#undef NORM_ENTRY
#undef REDUCE_ENTRY
#undef CAST_ENTRY
#undef INTEGER_ENTRY
#undef DOUBLE_ENTRY
#undef MATH_ENTRY
#undef CORE_ENTRY
#undef TILED_ENTRY
#undef SHARING_ENTRY
#undef SIZED_ENTRY
#undef SHAPED_ENTRY
#undef GPU_ENTRY
};

static const sp_kernel table[SP_KERNEL_COUNT] = {
#define TABLE_NAME(kernel) [SP_KERNEL_ID_##kernel].name = #kernel,
    SP_KERNEL_LIST(TABLE_NAME)
#undef TABLE_NAME
#define TABLE_GPU(kernel, constants, launch)                                                       \
    [SP_KERNEL_ID_##kernel].gpu = &gpu_table[SP_KERNEL_ID_##kernel],
        SP_CUDA_KERNEL_LIST(TABLE_GPU)
#undef TABLE_GPU
};

const sp_kernel *sp__cuda_kernels(void)
{
    return table;
}
