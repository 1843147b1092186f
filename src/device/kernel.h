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

/* How a dispatch is cut into tiles. */
typedef struct sp_tiling {
    uint32_t grid[3]; /* tiles along each dimension; none if one of them is 0 */
    uint32_t size[3]; /* for the kernel, in its own units: what one tile computes */
} sp_tiling;

typedef struct sp_tile {
    uint32_t index[3]; /* of this tile in the grid, or of the first one of a block of tiles */
    uint32_t count[3]; /* tiles of the block: 1 in each dimension if the kernel joins none */
    uint32_t grid[3], size[3]; /* of the tiling */
    void *const *bindings;     /* one host address per binding, in the order of the dispatch */
    const void *constants;     /* the dispatch's constants, 16-byte aligned */
} sp_tile;

/* The units [first, end) that a tile computes along a dimension that has `count` of them. */
static inline int64_t sp_tile_first(const sp_tile *tile, uint32_t dimension)
{
    return (int64_t)tile->index[dimension] * tile->size[dimension];
}

static inline int64_t sp_tile_end(const sp_tile *tile, uint32_t dimension, int64_t count)
{
    const int64_t end = sp_tile_first(tile, dimension) + tile->size[dimension];
    return end < count ? end : count;
}

/* Runs a tile, or a block of tiles with the same bits. Uses at most 80 KiB of stack, no lock, no
 * allocation, no libm beyond exact operations; a failure (sp__fail) poisons what the dispatch
 * writes. */
typedef sp_status (*sp_kernel_fn)(const sp_tile *tile);

/* The tiling of a dispatch with these constants, which have the sizes of its operands alone. It
 * does not affect the bits of the result. Called where a command is recorded: it takes a few
 * divisions at most. */
typedef void (*sp_tiling_fn)(const void *constants, sp_tiling *out);

typedef struct sp_kernel {
    const char *name;    /* static; in errors, traces and the checker's reports */
    sp_kernel_fn run;    /* of a host kernel, else NULL */
    sp_tiling_fn tiling; /* of a host kernel; NULL: the command has the grid */
    bool joins_tiles;    /* runs a block of tiles faster than one after the other */
    uint32_t quirk;      /* 0, or the index + 1 of the device's quirk that limits this kernel */
    const struct sp_gpu_kernel *gpu; /* of a GPU kernel, else NULL */
} sp_kernel;

/* Whether the device has the kernel: a table has only the name of a kernel that its device lacks.
 */
static inline bool sp__kernel_is_there(const sp_kernel *kernel)
{
    return kernel->run != NULL || kernel->gpu != NULL;
}

#endif
