/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels. For device kinds that run on the CPU a kernel is a function; GPU kernels are described
 * in gpu_kernel.h. A dispatch launches a host kernel over a grid of tiles; tiles of one dispatch
 * run in any order, on any threads, at the same time, so a tile writes only bytes that no other
 * tile of the dispatch accesses. */
#ifndef SP_DEVICE_KERNEL_H
#define SP_DEVICE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/status.h>

#define SP_MAX_BINDINGS 16
#define SP_MAX_CONSTANT_BYTES 512

typedef struct sp_tile {
    uint32_t index[3]; /* of this tile in the grid, or of the first one of a block of tiles */
    uint32_t count[3]; /* tiles of the block: 1 in each dimension if the kernel joins none */
    uint32_t grid[3];
    void *const *bindings; /* one host address per binding, in the order of the dispatch */
    const void *constants; /* the dispatch's constants, 16-byte aligned */
} sp_tile;

/* Runs a tile, or a block of tiles with the same bits. Uses at most 80 KiB of stack, no lock, no
 * allocation, no libm beyond exact operations; a failure (sp__fail) poisons what the dispatch
 * writes. */
typedef sp_status (*sp_kernel_fn)(const sp_tile *tile);

typedef struct sp_kernel {
    const char *name; /* static; in errors, traces and the checker's reports */
    sp_kernel_fn run; /* of a host kernel, else NULL */
    bool joins_tiles; /* runs a block of tiles faster than one after the other */
    uint32_t quirk;   /* 0, or the index + 1 of the device's quirk that limits this kernel */
    const struct sp_gpu_kernel *gpu; /* of a GPU kernel, else NULL */
} sp_kernel;

/* Whether the device has the kernel: a table has only the name of a kernel that its device lacks.
 */
static inline bool sp__kernel_is_there(const sp_kernel *kernel)
{
    return kernel->run != NULL || kernel->gpu != NULL;
}

#endif
