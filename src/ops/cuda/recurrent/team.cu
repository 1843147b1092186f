/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers by teams. Layers with too many units for chains have the weights of their gates
 * in the shared memory of the blocks, and a thread computes a column of all rows. */

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

/* Products of gates [first, last) of this block's units, in one segment. */
SP_CUDA_FUNCTION void sp_multiply_team(const sp_team_memory &t, int first, int last)
{
    const sp_layer &l = t.l;
    const int columns = sp_team_columns(t);
    const int64_t hidden = l.k.hidden;
    const float4 *lefts = (const float4 *)t.current_left();
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
            const float4 left = lefts[i];
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

template <sp_cell_kind kind> SP_CUDA_FUNCTION void sp_run_team_steps(sp_team_memory &t)
{
    sp_load_team_weights(t);
    __syncthreads();
#pragma unroll 1
    for (int64_t step = 0; step < t.l.k.steps; step++) sp_run_team_step<kind>(t, step);
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
    if (threadIdx.x == 0) sp_open_inbox((sp_inbox *)memory);
    int exchanges = 0;
#pragma unroll 1
    for (int64_t first = team * SP_CUDA_CELL_ROWS; first < k.rows;
         first += teams * SP_CUDA_CELL_ROWS) {
        const sp_layer l = sp_open_layer(bindings, k, blockIdx.y, first, SP_CUDA_CELL_TEAM_THREADS);
        if (rank == 0) sp_check_lengths(bindings, l);
        sp_team_memory t = sp_open_team(l, rank, memory);
        t.exchanges = exchanges;
        sp_load_team_left(t);
        sp_begin_state(t.l);
        sp_cluster_arrive(); /* inboxes are open, and nobody has parts of the rows before */
        sp_cluster_wait();
        if (sp_cuda_has_cell_chains(&k)) {
            sp_run_chains<kind>(t);
        } else {
            sp_run_team_steps<kind>(t);
        }
        sp_end_state(t.l);
        exchanges = t.exchanges;
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
