/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU kernel for the host: an entry of a program, and how to launch it. A program is one source
 * text, compiled ahead of time for known architectures and at run time for others.
 *
 * Every entry has the same two parameters, by value: the addresses of the bindings in the order of
 * the dispatch, and the constants of the dispatch:
 *
 *     extern "C" __global__ void entry(sp_gpu_bindings bindings, constants_type constants) */
#ifndef SP_DEVICE_GPU_KERNEL_H
#define SP_DEVICE_GPU_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "device/kernel.h"

typedef struct sp_gpu_program {
    const char *name;            /* in messages and names of cache files */
    const char *source;          /* CUDA C++, one zero-terminated text without includes */
    const unsigned char *binary; /* a fatbinary, or NULL in a build without nvcc */
    size_t binary_bytes;
} sp_gpu_program;

typedef struct sp_launch_shape {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* of dynamic shared memory */
} sp_launch_shape;

/* Does not affect the bits of the result: shapes depend on constants alone, and every element is
 * computed in the same order for any shape. A grid with a 0 launches nothing. */
typedef void (*sp_launch_shape_fn)(const void *constants, sp_launch_shape *out);

typedef struct sp_gpu_kernel {
    const sp_gpu_program *program;
    const char *entry;
    uint32_t index;           /* of the kernel in its program, from 0 */
    sp_launch_shape_fn shape; /* NULL: one thread for each tile of the dispatch */
} sp_gpu_kernel;

#define SP_GPU_MAX_KERNELS 64 /* of one program */

#endif
