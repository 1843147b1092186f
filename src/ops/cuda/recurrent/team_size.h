/* SPDX-License-Identifier: Apache-2.0 */
/* Which recurrent layers teams of blocks compute: for the host, which chooses them, and for the
 * kernel. C and CUDA C++ compile this text. */
#ifndef SP_OPS_CUDA_RECURRENT_TEAM_SIZE_H
#define SP_OPS_CUDA_RECURRENT_TEAM_SIZE_H

/* Shared memory of a block: its part of h in two places, all of h, the weights of its units' gates,
 * and the state of its rows. */
SP_CUDA_FUNCTION int64_t sp_cuda_cell_team_bytes(const sp_recurrent_constants *k)
{
    const int64_t part = sp_cuda_tiles(k->hidden, SP_CUDA_TEAM);
    return (2 * part + k->hidden) * SP_CUDA_CELL_ROWS * 4 +
           (k->hidden * k->gates * part + SP_CUDA_CELL_ROWS * k->scratch_row) * 4;
}

/* One segment of the depth, of which each block has some units. */
SP_CUDA_FUNCTION bool sp_cuda_has_cell_team(const sp_recurrent_constants *k, uint32_t shared_bytes)
{
    return shared_bytes >= SP_CUDA_CLUSTER_BYTES && k->hidden >= (int64_t)2 * SP_CUDA_TEAM &&
           k->hidden <= SP_GEMM_SEGMENT && sp_cuda_cell_team_bytes(k) <= (int64_t)shared_bytes;
}

#endif
