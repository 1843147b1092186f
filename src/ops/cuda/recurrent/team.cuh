/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: each few rows of a recurrent layer by the blocks of a cluster, of which each has all gates
 * of some units. The state of these, and h of all units, is in its shared memory during all steps.
 * A block writes what it has computed of h into the memory of all blocks, its own too, and waits
 * until all of h has come into its own.
 *
 * h is in one of two places by turns: a block computes from one while the others write the next h
 * into the other one. A block that has all of the next h knows that every block has computed, so
 * none reads the place that it writes then. */

/* What a block has in shared memory. */
struct sp_team_memory {
    sp_layer l;
    sp_inbox *inbox;
    float *left;    /* [turn][SP_CUDA_CELL_ROWS * depth]: h of the team's rows, or row_c */
    float *weights; /* [step of the depth][column], if they are not in registers */
    int part;       /* units of a block, at most */
    int depth;      /* of `left` */
    int exchanges;  /* so far */

    __device__ __forceinline__ float *left_of(int turn) const
    {
        return left + turn * SP_CUDA_CELL_ROWS * depth;
    }
    /* What the next product reads. */
    __device__ __forceinline__ const float *current_left() const
    {
        return left_of(exchanges % 2);
    }
    /* Where a product reads unit i of a row: the rows of a unit side by side, or the units of a
     * row. */
    __device__ __forceinline__ int left_at(int row, int i) const
    {
        return sp_cuda_has_cell_chains(&l.k) ? row * depth + i : i * SP_CUDA_CELL_ROWS + row;
    }
};

/* Columns of a block, at most: those of a gate after the other. */
SP_CUDA_FUNCTION int sp_team_columns(const sp_team_memory &t)
{
    return (int)t.l.k.gates * t.part;
}

/* The rows of a team, of which this block has some units. Each block has some: nobody waits for one
 * that gives nothing, so bytes of later exchanges would come to it too early. */
SP_CUDA_FUNCTION sp_team_memory sp_open_team(sp_layer l, int rank, float4 *memory)
{
    const int64_t hidden = l.k.hidden, part = sp_cuda_tiles(hidden, SP_CUDA_TEAM);
    const int64_t unit = rank * hidden / SP_CUDA_TEAM, end = (rank + 1) * hidden / SP_CUDA_TEAM;
    const int depth = (int)sp_cuda_cell_team_depth(&l.k);
    float *left = (float *)(memory + 1), *weights = left + 2 * SP_CUDA_CELL_ROWS * depth;
    l.unit = (int)unit;
    l.units = (int)(end - unit);
    l.scratch = weights + (sp_cuda_has_cell_chains(&l.k) ? 0 : hidden * l.k.gates * part);
    return {l, (sp_inbox *)memory, left, weights, (int)part, depth, 0};
}

/* The first left-hand side: h of all units; zeros behind the last one, in both places. */
SP_CUDA_FUNCTION void sp_load_team_left(const sp_team_memory &t)
{
    const sp_layer &l = t.l;
#pragma unroll 1
    for (int i = threadIdx.x; i < SP_CUDA_CELL_ROWS * t.depth; i += SP_CUDA_CELL_TEAM_THREADS) {
        const int row = i / t.depth, unit = i % t.depth;
        const bool is_there = l.h && row < l.rows && unit < l.k.hidden;
        t.left_of(t.exchanges % 2)[t.left_at(row, unit)] =
            is_there ? l.h[l.state_at(row) + unit] : 0.0f;
        if (unit >= l.k.hidden) t.left_of(1 - t.exchanges % 2)[t.left_at(row, unit)] = 0.0f;
    }
}

/* Gives all blocks a part of the next left-hand side. */
SP_CUDA_FUNCTION void sp_push_left(const sp_team_memory &t, int row, int i, float value)
{
    float *to = t.left_of(1 - t.exchanges % 2) + t.left_at(row, i);
#pragma unroll
    for (int rank = 0; rank < SP_CUDA_TEAM; rank++) {
        sp_push(to, value, rank, t.inbox, t.exchanges % 2);
    }
}

/* The next left-hand side is the current one when all of it has come, and what the block's threads
 * wrote before to its own memory is there, too: its cells, of which other threads read c. */
SP_CUDA_FUNCTION void sp_await_left(sp_team_memory &t)
{
    const int side = t.exchanges % 2;
    __syncthreads(); /* while the bytes are on their way */
    if (threadIdx.x == 0) sp_expect_bytes(t.inbox, side, (int)t.l.k.hidden * t.l.rows * 4);
    sp_await_inbox(t.inbox, side, t.exchanges / 2 % 2);
    t.exchanges++;
}

/* The same, by all threads, with h or row_c of this block's units. */
SP_CUDA_FUNCTION void sp_exchange_left(sp_team_memory &t, bool is_of_h)
{
    sp_each_cell(t.l, [&](int row, int64_t i) {
        sp_push_left(t, row, (int)i, is_of_h ? t.l.row_h(row)[i] : t.l.row_c(row)[i]);
    });
    sp_await_left(t);
}

/* The cells read them behind the product. */
SP_CUDA_FUNCTION void sp_prefetch_inputs(const sp_layer &l, int64_t step)
{
#if defined(__CUDA_ARCH__)
    sp_each_cell(l, [&](int row, int64_t i) {
        if (step >= l.length(row)) return;
        const float *x = l.input_at(row, step) + i;
        for (int64_t gate = 0; gate < l.k.gates; gate++) {
            asm volatile("prefetch.global.L1 [%0];" ::"l"(x + gate * l.k.hidden));
        }
    });
#else
    (void)l;
    (void)step;
#endif
}
