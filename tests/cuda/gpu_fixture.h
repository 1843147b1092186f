/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests with their own GPU kernels: CUDA C++ for a real GPU, C functions, which run the
 * host's kernels, for the fake driver. */
#ifndef SP_TESTS_GPU_FIXTURE_H
#define SP_TESTS_GPU_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/gpu_kernel.h"
#include "fake_driver/fake_cuda.h"

/* Whether the CUDA driver is the fake one. */
bool gpu_is_fake(void);

/* Registers `run` in the fake driver under the name `entry`. */
typedef struct gpu_fake_kernel {
    const char *entry;
    fake_cuda_kernel run;
} gpu_fake_kernel;

/* Call before a cuda device is opened. Registers these kernels in the fake driver, and gives
 * `program` `image`, which names them (see fake_cuda_register) and must live as long as `program`.
 * On a real GPU it does nothing. */
void gpu_program_begin(sp_gpu_program *program, const char *image, const gpu_fake_kernel *kernels,
                       size_t kernel_count);

/* Runs the host's kernel, tile by tile, with the parameters of a launch. Grids have one
 * dimension. */
void gpu_run_on_host(const sp_kernel *kernel, const uint32_t grid[3], void **params);

/* Defines fake_<name>, a fake_cuda_kernel that runs kernel_<name> on the host. */
#define GPU_FAKE_KERNEL(name)                                                                      \
    static void fake_##name(const uint32_t grid[3], const uint32_t block[3], void **params)        \
    {                                                                                              \
        (void)block;                                                                               \
        gpu_run_on_host(&kernel_##name, grid, params);                                             \
    }

/* A launch shape that every GPU refuses: blocks of no threads. */
void gpu_shape_that_fails(const void *constants, sp_launch_shape *out);

#endif
