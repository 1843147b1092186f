/* SPDX-License-Identifier: Apache-2.0 */
/* What one block of a CUDA kernel computes: for the host, which sets the grid, and for the kernel.
 * It affects no bit of the results. C and CUDA C++ compile this text, after kernel_constants.h. */
#ifndef SP_OPS_CUDA_ARCH_TILES_H
#define SP_OPS_CUDA_ARCH_TILES_H

#ifndef SP_CUDA_FUNCTION
#define SP_CUDA_FUNCTION static inline
#endif

#define SP_CUDA_THREADS 256
#define SP_CUDA_LANES 32
#define SP_CUDA_WARPS (SP_CUDA_THREADS / SP_CUDA_LANES)
/* Elements that a thread of an elementwise kernel processes at once. */
#define SP_CUDA_ELEMENTS 4
SP_CUDA_FUNCTION int64_t sp_cuda_binary_elements(const sp_binary_constants *k)
{
    return k->rank == 1 ? SP_CUDA_ELEMENTS : 1;
}

/* Bytes that a thread of a kernel that copies contiguous memory processes at once. */
#define SP_CUDA_WORD 16

/* Blocks that fill a large processor; more of them do not run faster. */
#define SP_CUDA_ENOUGH_BLOCKS 128

SP_CUDA_FUNCTION int64_t sp_cuda_tiles(int64_t count, int64_t per_tile)
{
    return count / per_tile + (count % per_tile != 0);
}

/* A block of a product computes SP_CUDA_LANES columns, one per lane, of SP_CUDA_WARPS * R rows, R
 * per warp, R one of 1, 2, 4, 8. A larger R reads less memory, a smaller one gives more blocks. */

/* The R of a matrix product. Independent of the rows, which are often a batch, so a batch of
 * requests uses the same code as each request alone. */
SP_CUDA_FUNCTION int64_t sp_cuda_gemm_rows(const sp_gemm_constants *k)
{
    const int64_t across = sp_cuda_tiles(k->columns, SP_CUDA_LANES);
    if (across / 2 >= SP_CUDA_ENOUGH_BLOCKS) return 8;
    return across * 2 >= SP_CUDA_ENOUGH_BLOCKS ? 4 : 2;
}

/* The R of a convolution, whose rows are filters and whose columns are pixels. Independent of the
 * images, which are a batch. */
SP_CUDA_FUNCTION int64_t sp_cuda_conv_rows(const sp_conv_constants *k)
{
    const int64_t across = sp_cuda_tiles(k->out_h * k->out_w, SP_CUDA_LANES);
    for (int64_t r = 8; r > 1; r /= 2) {
        const int64_t down = sp_cuda_tiles(k->filters, SP_CUDA_WARPS * r);
        const int is_mostly_full = k->filters > SP_CUDA_WARPS * r / 2;
        if (is_mostly_full && across * down * k->groups >= SP_CUDA_ENOUGH_BLOCKS) return r;
    }
    return 1;
}

/* Matrices of the batch. */
SP_CUDA_FUNCTION int64_t sp_cuda_gemm_matrices(const sp_gemm_constants *k)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < k->batch_rank; i++) count *= k->batch_dims[i];
    return count;
}

#endif
