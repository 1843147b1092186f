/* SPDX-License-Identifier: Apache-2.0 */
/* A dispatch in the driver's form, for streams and for graphs. */
#ifndef SP_DEVICE_CUDA_COMMAND_H
#define SP_DEVICE_CUDA_COMMAND_H

#include "device/cuda/cuda_device.h"
#include "device/gpu_kernel.h"

/* The first parameter of every kernel; see gpu_kernel.h. */
typedef struct sp_cuda_bindings {
    CUdeviceptr at[SP_MAX_BINDINGS];
    uint32_t tile[3];
} sp_cuda_bindings;

/* Points into itself: must not be copied. */
typedef struct sp_cuda_launch {
    CUfunction function;
    bool waits; /* for the kernel before it, if compiled for what its program says */
    sp_launch_shape shape;
    sp_cuda_bindings bindings;
    void *params[2];
} sp_cuda_launch;

/* The kernel's function, loaded if needed, and its parameters. `constants` is borrowed for the life
 * of *out. */
sp_status sp__cuda_launch_make(sp_cuda_device *device, const sp_kernel *kernel,
                               const uint32_t grid[3], const sp_binding *bindings, uint32_t count,
                               const void *constants, sp_cuda_launch *out);

static inline CUdeviceptr sp__cuda_address(const sp_binding *binding)
{
    return (CUdeviceptr)(uintptr_t)binding->memory->address + binding->offset;
}

/* Whether the dispatch tells that its list is done, with bindings of the device. */
static inline bool sp__cuda_signals(const sp_kernel *kernel, uint32_t binding_count)
{
    return kernel->gpu != NULL && kernel->gpu->signals && binding_count == 0;
}

static inline bool sp__cuda_launch_is_empty(const sp_cuda_launch *launch)
{
    return launch->shape.grid[0] == 0 || launch->shape.grid[1] == 0 || launch->shape.grid[2] == 0;
}

#endif
