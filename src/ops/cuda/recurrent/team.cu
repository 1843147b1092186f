/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers by teams: each few rows by the blocks of a cluster, of which each has all gates
 * of some units. Their weights, their state and all of h are in its shared memory during all steps,
 * so a step reads no weights from other memory. Behind each step the blocks read each other's part
 * of h.
 *
 * The parts are in one of two places by turns, and between a write and the reads is a barrier of
 * the cluster. So a place is written again only behind a barrier that comes after its reads. */

/* What a block has in shared memory. */
struct sp_team_memory {
    sp_layer l;
    float4 *own, *left; /* [turn][unit], of this block; [unit], of all: h of the team's rows */
    float *weights;     /* [step of the depth][column] */
    int part;           /* units of each block but the last ones */
    int turn;
};

/* Columns of a block: those of a gate after the other. */
SP_CUDA_FUNCTION int sp_team_columns(const sp_team_memory &t)
{
    return (int)t.l.k.gates * t.part;
}

/* The rows of a team, of which this block has some units. */
SP_CUDA_FUNCTION sp_team_memory sp_open_team(sp_layer l, int rank, float4 *memory)
{
    const int64_t hidden = l.k.hidden, part = sp_cuda_tiles(hidden, SP_CUDA_TEAM);
    const int64_t unit = rank * part, rest = hidden - unit;
    float4 *left = memory + 2 * part;
    float *weights = (float *)(left + hidden);
    l.unit = (int)unit;
    l.units = rest < 0 ? 0 : rest < part ? (int)rest : (int)part;
    l.scratch = weights + hidden * l.k.gates * part;
    return {l, memory, left, weights, (int)part, 0};
}

SP_CUDA_FUNCTION void sp_load_team_weights(const sp_team_memory &t)
{
    const sp_layer &l = t.l;
    const int columns = sp_team_columns(t);
    const int64_t hidden = l.k.hidden;
#pragma unroll 1
    for (int at = threadIdx.x; at < columns; at += SP_CUDA_CELL_TEAM_THREADS) {
        const int gate = at / t.part, unit = at % t.part;
        if (unit >= l.units) continue;
        const float *from = l.column_at(l.skip + gate * hidden + l.unit + unit);
#pragma unroll 16
        for (int i = 0; i < hidden; i++) {
            t.weights[i * columns + at] = __ldg(from + i * SP_GEMM_PANEL);
        }
    }
}

/* The first left-hand side: h of all units. */
SP_CUDA_FUNCTION void sp_load_team_left(const sp_team_memory &t)
{
    const sp_layer &l = t.l;
    float *left = (float *)t.left;
#pragma unroll 1
    for (int64_t i = threadIdx.x; i < l.k.hidden * SP_CUDA_CELL_ROWS;
         i += SP_CUDA_CELL_TEAM_THREADS) {
        const int row = (int)(i % SP_CUDA_CELL_ROWS);
        left[i] = l.h && row < l.rows ? l.h[l.state_at(row) + i / SP_CUDA_CELL_ROWS] : 0.0f;
    }
}

/* Gives the others this block's part of h, or of row_c, and takes theirs. */
SP_CUDA_FUNCTION void sp_exchange_left(sp_team_memory &t, bool is_of_h)
{
    const sp_layer &l = t.l;
    float4 *own = t.own + t.turn * t.part;
    sp_each_cell(l, [&](int row, int64_t i) {
        ((float *)(own + (i - l.unit)))[row] = is_of_h ? l.row_h(row)[i] : l.row_c(row)[i];
    });
    sp_cluster_arrive();
    sp_cluster_wait();
#pragma unroll 1
    for (int i = threadIdx.x; i < l.k.hidden; i += SP_CUDA_CELL_TEAM_THREADS) {
        t.left[i] = sp_cluster_read(own + i % t.part, i / t.part);
    }
    __syncthreads();
    t.turn ^= 1;
}

/* Products of gates [first, last) of this block's units, in one segment. */
SP_CUDA_FUNCTION void sp_multiply_team(const sp_team_memory &t, int first, int last)
{
    const sp_layer &l = t.l;
    const int columns = sp_team_columns(t);
    const int64_t hidden = l.k.hidden;
#pragma unroll 1
    for (int at = first * t.part + threadIdx.x; at < last * t.part;
         at += SP_CUDA_CELL_TEAM_THREADS) {
        const int gate = at / t.part, unit = at % t.part;
        if (unit >= l.units) continue;
        float chain[SP_CUDA_CELL_ROWS] = {};
        const float *weights = t.weights + at;
#pragma unroll 16
        for (int i = 0; i < hidden; i++) {
            const float weight = weights[i * columns];
            const float4 left = t.left[i];
            chain[0] = __fmaf_rn(left.x, weight, chain[0]);
            chain[1] = __fmaf_rn(left.y, weight, chain[1]);
            chain[2] = __fmaf_rn(left.z, weight, chain[2]);
            chain[3] = __fmaf_rn(left.w, weight, chain[3]);
        }
#pragma unroll
        for (int row = 0; row < SP_CUDA_CELL_ROWS; row++) {
            if (row < l.rows) {
                l.row_gates(row)[gate * hidden + l.unit + unit] = __fadd_rn(0.0f, chain[row]);
            }
        }
    }
    __syncthreads();
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

template <sp_cell_kind kind> SP_CUDA_FUNCTION void sp_run_team_step(sp_team_memory &t, int64_t step)
{
    const bool is_late = sp_is_late<kind>(t.l);
    sp_prefetch_inputs(t.l, step);
    sp_multiply_team(t, 0, is_late ? 2 : (int)t.l.k.gates);
    sp_run_gates<kind>(t.l, step);
    if (is_late) {
        sp_exchange_left(t, false);
        sp_multiply_team(t, 2, 3);
    }
    sp_run_cells<kind>(t.l, step);
    if (step + 1 < t.l.k.steps) sp_exchange_left(t, true);
}

/* Blocks: x over teams of rows and the ranks in them, y over the directions. */
template <sp_cell_kind kind>
SP_CUDA_FUNCTION void sp_run_team(const sp_gpu_bindings &bindings, const sp_recurrent_constants &k)
{
    SP_CUDA_SHARED(memory);
    const int rank = blockIdx.x % SP_CUDA_TEAM;
    const int64_t team = blockIdx.x / SP_CUDA_TEAM, teams = gridDim.x / SP_CUDA_TEAM;
    if (!sp_has_clusters()) {
        if (rank == 0) {
            sp_run_layers<kind>(bindings, k, team, teams, SP_CUDA_CELL_TEAM_THREADS);
        }
        return;
    }
#pragma unroll 1
    for (int64_t first = team * SP_CUDA_CELL_ROWS; first < k.rows;
         first += teams * SP_CUDA_CELL_ROWS) {
        const sp_layer l = sp_open_layer(bindings, k, blockIdx.y, first, SP_CUDA_CELL_TEAM_THREADS);
        if (rank == 0) sp_check_lengths(bindings, l);
        sp_team_memory t = sp_open_team(l, rank, memory);
        sp_load_team_weights(t);
        sp_load_team_left(t);
        sp_begin_state(t.l);
        __syncthreads();
#pragma unroll 1
        for (int64_t step = 0; step < k.steps; step++) sp_run_team_step<kind>(t, step);
        sp_end_state(t.l);
        sp_cluster_arrive(); /* shared memory remains until all have read it */
        sp_cluster_wait();
    }
}

#define SP_RECURRENT_TEAM(name, kind)                                                              \
    SP_CUDA_KERNEL_OF_CLUSTERS(name, sp_recurrent_constants, SP_CUDA_CELL_TEAM_THREADS, 1,         \
                               SP_CUDA_TEAM)                                                       \
    {                                                                                              \
        sp_run_team<kind>(bindings, k);                                                            \
    }

SP_RECURRENT_TEAM(lstm_team_f32, SP_CELL_LSTM)
SP_RECURRENT_TEAM(gru_team_f32, SP_CELL_GRU)
SP_RECURRENT_TEAM(rnn_team_f32, SP_CELL_RNN)
