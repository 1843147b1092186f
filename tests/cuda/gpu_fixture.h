/* SPDX-License-Identifier: Apache-2.0 */
/* What tests share that bring kernels of their own to a GPU: to a real one as CUDA C++, to the
 * driver made of threads as C functions, which run what the host's kernels run. */
#ifndef SP_TESTS_GPU_FIXTURE_H
#define SP_TESTS_GPU_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/gpu_kernel.h"
#include "fake_driver/fake_cuda.h"

/* Is the CUDA driver the one made of threads? */
bool gpu_is_fake(void);

/* The driver made of threads finds `run` under the name `entry`. */
typedef struct gpu_fake_kernel {
    const char *entry;
    fake_cuda_kernel run;
} gpu_fake_kernel;

/* Before a cuda device is opened: gives the driver made of threads these kernels, and `program` the
 * image that names them (see fake_cuda_register), which has to live as long. On a real GPU it does
 * nothing. */
void gpu_program_begin(sp_gpu_program *program, const char *image, const gpu_fake_kernel *kernels,
                       size_t kernel_count);

/* Runs the host's kernel, tile by tile, with what a launch was given. Grids have one dimension. */
void gpu_run_on_host(const sp_kernel *kernel, const uint32_t grid[3], void **params);

/* Defines fake_<name>, a fake_cuda_kernel that runs kernel_<name> on the host. */
#define GPU_FAKE_KERNEL(name)                                                                      \
    static void fake_##name(const uint32_t grid[3], const uint32_t block[3], void **params)        \
    {                                                                                              \
        (void)block;                                                                               \
        gpu_run_on_host(&kernel_##name, grid, params);                                             \
    }

/* The shape of a kernel whose launch fails by itself: no GPU takes a block of no threads. */
void gpu_shape_that_fails(const void *constants, sp_launch_shape *out);

#endif
