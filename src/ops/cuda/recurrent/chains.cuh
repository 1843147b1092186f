/* SPDX-License-Identifier: Apache-2.0 */
/* Teams whose threads each have one chain of a step's product: that of one column and one row, with
 * the weights in registers during all steps. */

/* What a thread computes: a gate of a unit, of one row. The threads of a warp have one gate, so
 * they activate it in the same way, as far as there are units enough. */
struct sp_chain {
    int row, gate;
    int64_t unit;
    bool is_there;
    sp_f32 x_bias, h_bias;
    float weights[SP_CUDA_CHAIN_DEPTH]; /* zeros behind the last unit */
};

static_assert(4 * SP_CUDA_CHAIN_DEPTH / SP_CUDA_TEAM * SP_CUDA_CELL_ROWS <=
                  SP_CUDA_CELL_TEAM_THREADS,
              "a thread for each chain of a block: 4 gates are the most");

SP_CUDA_FUNCTION void sp_open_chain(const sp_team_memory &t, sp_chain &c)
{
    const sp_layer &l = t.l;
    const int cells = SP_CUDA_CELL_ROWS * t.part, cell = (int)threadIdx.x % cells;
    const int unit = cell % t.part;
    c.gate = (int)threadIdx.x / cells;
    c.row = cell / t.part;
    c.unit = l.unit + unit;
    c.is_there = c.gate < l.k.gates && c.row < l.rows && unit < l.units;
    const int64_t at = c.is_there ? c.gate * l.k.hidden + c.unit : 0;
    const bool has_bias = l.bias && c.is_there;
    c.x_bias = has_bias ? l.bias[at] : 0.0f;
    c.h_bias = has_bias ? l.bias[l.width + at] : 0.0f;
    const float *from = l.column_at(l.skip + at);
#pragma unroll
    for (int i = 0; i < SP_CUDA_CHAIN_DEPTH; i++) {
        const bool has_weight = c.is_there && i < l.k.hidden;
        c.weights[i] = has_weight ? __ldg(from + i * SP_GEMM_PANEL) : 0.0f;
    }
}

/* Steps of 32, as far as there are units. Products of zeros behind the last one add nothing. */
SP_CUDA_FUNCTION float sp_multiply_chain(const sp_team_memory &t, const sp_chain &c)
{
    const float4 *left = (const float4 *)(t.current_left() + c.row * SP_CUDA_CHAIN_DEPTH);
    float chain = 0.0f;
#pragma unroll
    for (int begin = 0; begin < SP_CUDA_CHAIN_DEPTH; begin += 32) {
        if (begin >= t.l.k.hidden) break;
#pragma unroll
        for (int i = begin; i < begin + 32; i += 4) {
            const float4 h = left[i / 4];
            chain = __fmaf_rn(h.x, c.weights[i], chain);
            chain = __fmaf_rn(h.y, c.weights[i + 1], chain);
            chain = __fmaf_rn(h.z, c.weights[i + 2], chain);
            chain = __fmaf_rn(h.w, c.weights[i + 3], chain);
        }
    }
    return __fadd_rn(0.0f, chain);
}

/* Products of gates [first, last). */
SP_CUDA_FUNCTION void sp_store_chains(const sp_team_memory &t, const sp_chain &c, int first,
                                      int last)
{
    if (c.is_there && c.gate >= first && c.gate < last) {
        t.l.row_gates(c.row)[c.gate * t.l.k.hidden + c.unit] = sp_multiply_chain(t, c);
    }
    __syncthreads();
}

/* All gates of an LSTM, activated. */
SP_CUDA_FUNCTION void sp_run_lstm_chains(const sp_team_memory &t, const sp_chain &c, int64_t step)
{
    const sp_layer &l = t.l;
    if (c.is_there && step < l.length(c.row)) {
        const float x = l.input_at(c.row, step)[c.gate * l.k.hidden + c.unit];
        const float h = sp_multiply_chain(t, c);
        sp_lstm_gate(l, c.row, c.gate, c.unit, sp_add_products(l, x, c.x_bias, h, c.h_bias));
    }
    __syncthreads();
}

template <sp_cell_kind kind>
SP_CUDA_FUNCTION void sp_run_chain_step(sp_team_memory &t, const sp_chain &c, int64_t step)
{
    if (kind == SP_CELL_LSTM) {
        sp_run_lstm_chains(t, c, step);
    } else {
        const bool is_late = sp_is_late<kind>(t.l);
        sp_prefetch_inputs(t.l, step);
        sp_store_chains(t, c, 0, is_late ? 2 : (int)t.l.k.gates);
        sp_run_gates<kind>(t.l, step);
        if (is_late) {
            sp_exchange_left(t, false);
            sp_store_chains(t, c, 2, 3);
        }
    }
    const bool is_last = step + 1 == t.l.k.steps;
    sp_each_cell(t.l, [&](int row, int64_t i) {
        sp_run_cell<kind>(t.l, row, i, step);
        if (!is_last) sp_push_left(t, row, (int)i, t.l.row_h(row)[i]);
    });
    if (!is_last) sp_await_left(t);
}

template <sp_cell_kind kind> SP_CUDA_FUNCTION void sp_run_chains(sp_team_memory &t)
{
    sp_chain c;
    sp_open_chain(t, c);
#pragma unroll 1
    for (int64_t step = 0; step < t.l.k.steps; step++) sp_run_chain_step<kind>(t, c, step);
}
