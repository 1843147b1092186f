/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture's kernels on GPUs. */
#ifndef SP_TESTS_GPU_KERNELS_H
#define SP_TESTS_GPU_KERNELS_H

#include "device/gpu_kernel.h"

extern const sp_gpu_kernel gpu_add_one, gpu_append, gpu_fail, gpu_slow, gpu_meet;

/* Call before a cuda device is opened. Registers the kernels if the driver is the fake one. */
void gpu_kernels_open(void);

#endif
