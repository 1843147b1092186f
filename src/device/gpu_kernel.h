/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU kernel for the host: an entry of a program, and how to launch it. A program is one source
 * text, compiled ahead of time for known architectures and at run time for others.
 *
 * Every entry has the same two parameters, by value: the addresses of the bindings in the order of
 * the dispatch with the tile of the launch shape, and the constants of the dispatch:
 *
 *     extern "C" __global__ void entry(sp_gpu_bindings bindings, constants_type constants)
 *
 * A kernel whose data may be wrong, such as indices out of range, does not stop: it leaves out what
 * it cannot compute, and *reports*. It has a binding more than its dispatch, the address of an
 * sp_gpu_report in memory that the host can read, or 0 (docs/decisions/0064-reports.md). */
#ifndef SP_DEVICE_GPU_KERNEL_H
#define SP_DEVICE_GPU_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/kernel.h"

/* One of the wrong numbers that the kernel has found, and what it must be below; `most` 0: none.
 * Zeroed by the host before the launch. */
typedef struct sp_gpu_report {
    int64_t number;
    int64_t most; /* the limit + 1 */
} sp_gpu_report;

/* A part of a text, compressed: a deflate stream (RFC 1951). */
typedef struct sp_gpu_text {
    const unsigned char *deflated;
    size_t deflated_bytes;
    size_t bytes; /* of the text */
} sp_gpu_text;

typedef struct sp_gpu_program {
    const char *name; /* in messages and names of cache files */
    /* CUDA C++ without includes: zero-terminated, or NULL and in two parts. */
    const char *source;
    const sp_gpu_text *parts[2];
    const unsigned char *binary; /* a fatbinary, or NULL in a build without nvcc */
    size_t binary_bytes;
    uint32_t kernel_count; /* the indices of its kernels are below */
    /* Its kernels, if compiled for compute capability 9.0 or higher, wait themselves for the kernel
     * before them in a graph (docs/decisions/0068-early-launches.md). */
    bool waits;
} sp_gpu_program;

typedef struct sp_launch_shape {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;               /* of dynamic shared memory */
    uint32_t tile[3];                    /* what the shape tells the kernel, after the addresses */
    const struct sp_gpu_kernel *variant; /* with the same parameters, launched in place of the
                                            kernel; or NULL */
} sp_launch_shape;

/* Does not affect the bits of the result: every element is computed in the same order for any
 * shape. A grid with a 0 launches nothing. */
typedef void (*sp_launch_shape_fn)(const void *constants, sp_launch_shape *out);
/* The same for a kernel whose shape depends on the dynamic shared memory that a block of the device
 * can have. */
typedef void (*sp_launch_tiled_fn)(const void *constants, uint32_t shared_bytes,
                                   sp_launch_shape *out);

typedef struct sp_gpu_kernel {
    const sp_gpu_program *program;
    const char *entry;
    uint32_t index;           /* of the kernel in its program, from 0 */
    bool has_shared_memory;   /* dynamic */
    sp_launch_shape_fn shape; /* without both: one thread for each tile of the dispatch */
    sp_launch_tiled_fn tiled;
    bool reports;
    /* It has two bindings, a counter in the GPU's memory and a word in the host's: it adds its
     * constants, a uint64_t, to the counter when all before it is complete, and writes the sum to
     * the word. The last dispatch of a list may be of such a kernel without bindings: it has those
     * of the device then, which learns by them that the list is done, or is left out. */
    bool signals;
} sp_gpu_kernel;

#endif
