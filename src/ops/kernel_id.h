/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel ids. Lowerings and plans name kernels by id; compiling for a device looks the id up in the
 * device's table. */
#ifndef SP_OPS_KERNEL_ID_H
#define SP_OPS_KERNEL_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/kernel_list.h"

typedef enum sp_kernel_id {
#define SP_KERNEL_ENUM(name) SP_KERNEL_ID_##name,
    SP_KERNEL_LIST(SP_KERNEL_ENUM)
#undef SP_KERNEL_ENUM
        SP_KERNEL_COUNT,
    SP_NO_KERNEL = SP_KERNEL_COUNT
} sp_kernel_id;

/* Is it a product of matrices whose sums have the order of a processor's tensor cores? */
static inline bool sp__kernel_is_narrow_gemm(sp_kernel_id kernel)
{
    return kernel == SP_KERNEL_ID_gemm_narrow_tf32 || kernel == SP_KERNEL_ID_gemm_narrow_f16 ||
           kernel == SP_KERNEL_ID_gemm_narrow_bf16 || kernel == SP_KERNEL_ID_gemm_packed_tf32 ||
           kernel == SP_KERNEL_ID_gemm_packed_f16 || kernel == SP_KERNEL_ID_gemm_packed_bf16;
}

/* Such a product, or a convolution. */
static inline bool sp__kernel_is_narrow(sp_kernel_id kernel)
{
    return sp__kernel_is_narrow_gemm(kernel) || kernel == SP_KERNEL_ID_conv_narrow_tf32 ||
           kernel == SP_KERNEL_ID_conv_narrow_f16 || kernel == SP_KERNEL_ID_conv_narrow_bf16;
}

#endif
