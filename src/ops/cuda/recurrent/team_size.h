/* SPDX-License-Identifier: Apache-2.0 */
/* Which recurrent layers teams of blocks compute: for the host, which chooses them, and for the
 * kernel. C and CUDA C++ compile this text. */
#ifndef SP_OPS_CUDA_RECURRENT_TEAM_SIZE_H
#define SP_OPS_CUDA_RECURRENT_TEAM_SIZE_H

/* With so many units at most, each thread of a team has the weights of its column in registers. */
#define SP_CUDA_CHAIN_DEPTH 128

SP_CUDA_FUNCTION bool sp_cuda_has_cell_chains(const sp_recurrent_constants *k)
{
    return k->hidden <= SP_CUDA_CHAIN_DEPTH;
}

/* Floats of h of a row that a block has. */
SP_CUDA_FUNCTION int64_t sp_cuda_cell_team_depth(const sp_recurrent_constants *k)
{
    return sp_cuda_has_cell_chains(k) ? SP_CUDA_CHAIN_DEPTH : k->hidden;
}

/* Shared memory of a block: its inbox, h of its rows in two places, the weights of its units' gates
 * if they are not in registers, and the state of its rows. */
SP_CUDA_FUNCTION int64_t sp_cuda_cell_team_bytes(const sp_recurrent_constants *k)
{
    const int64_t part = sp_cuda_tiles(k->hidden, SP_CUDA_TEAM);
    const int64_t left = (int64_t)2 * SP_CUDA_CELL_ROWS * sp_cuda_cell_team_depth(k);
    const int64_t weights = sp_cuda_has_cell_chains(k) ? 0 : k->hidden * k->gates * part;
    return 16 + (left + weights + SP_CUDA_CELL_ROWS * k->scratch_row) * 4;
}

/* One segment of the depth, of which each block has some units. */
SP_CUDA_FUNCTION bool sp_cuda_has_cell_team(const sp_recurrent_constants *k, uint32_t shared_bytes)
{
    return shared_bytes >= SP_CUDA_CLUSTER_BYTES && k->hidden >= (int64_t)2 * SP_CUDA_TEAM &&
           k->hidden <= SP_GEMM_SEGMENT && sp_cuda_cell_team_bytes(k) <= (int64_t)shared_bytes;
}

#endif
