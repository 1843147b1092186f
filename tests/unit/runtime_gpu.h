/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime fixture's kernels on GPUs: as CUDA C++ for a real one, and the host's own for the
 * driver made of threads. */
#ifndef SP_TESTS_RUNTIME_GPU_H
#define SP_TESTS_RUNTIME_GPU_H

#include "device/gpu_kernel.h"

extern const sp_gpu_kernel runtime_gpu_fail, runtime_gpu_slow_fill, runtime_gpu_slow_copy,
    runtime_gpu_meet, runtime_gpu_quiet_fill, runtime_gpu_two_halves;

/* Before a cuda device is opened. */
void runtime_gpu_begin(void);

#endif
