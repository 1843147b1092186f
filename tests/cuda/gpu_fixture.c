/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_fixture.h"

#include <stdlib.h>
#include <string.h>

bool gpu_is_fake(void)
{
    return getenv("STREAMPOOL_CUDA_DRIVER") != NULL;
}

void gpu_program_begin(sp_gpu_program *program, const char *image, const gpu_fake_kernel *kernels,
                       size_t kernel_count)
{
    if (!gpu_is_fake()) return;
    for (size_t i = 0; i < kernel_count; i++) {
        fake_cuda_register(kernels[i].entry, kernels[i].run);
    }
    program->binary = (const unsigned char *)image;
    program->binary_bytes = strlen(image) + 1;
}

void gpu_run_on_host(const sp_kernel *kernel, const uint32_t grid[3], void **params)
{
    for (uint32_t i = 0; i < grid[0]; i++) {
        const sp_tile tile = {.index = {i, 0, 0},
                              .count = {1, 1, 1},
                              .grid = {grid[0], 1, 1},
                              .bindings = params[0],
                              .constants = params[1]};
        kernel->run(&tile);
    }
}

void gpu_shape_that_fails(const void *constants, sp_launch_shape *out)
{
    (void)constants;
    *out = (sp_launch_shape){.grid = {1, 1, 1}};
}
