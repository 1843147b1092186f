/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN after the products of the input (ops/cpu/recurrent/recurrent.c). */

/* ---- activations of gates ---- */

SP_CUDA_FUNCTION sp_f32 sp_activate_gate(const sp_cell_activation &f, sp_f32 x)
{
    const sp_f32 alpha = f.alpha, beta = f.beta;
    switch (f.function) {
    case SP_CELL_SIGMOID:
        return sp_sigmoidf(x);
    case SP_CELL_TANH:
        return sp_tanhf(x);
    case SP_CELL_RELU:
        return sp_reluf(x);
    case SP_CELL_AFFINE:
        return alpha * x + beta;
    case SP_CELL_LEAKY_RELU:
        return sp_leaky_relu(x, alpha, beta);
    case SP_CELL_THRESHOLDED_RELU:
        return sp_thresholded_relu(x, alpha, beta);
    case SP_CELL_SCALED_TANH:
        return alpha * sp_tanhf(beta * x);
    case SP_CELL_HARD_SIGMOID:
        return sp_hard_sigmoid(x, alpha, beta);
    default:
        return sp_softsign(x);
    }
}

SP_CUDA_FUNCTION sp_f32 sp_clip_gate(const sp_layer &l, sp_f32 gate)
{
    const sp_f32 most = l.k.clip;
    if (!l.k.clips) return gate;
    return gate > most ? most : gate < -most ? -most : gate;
}

/* The sum of a gate before the activation: x's product and h's, with their biases. */
SP_CUDA_FUNCTION sp_f32 sp_add_products(const sp_layer &l, sp_f32 x, sp_f32 x_bias, sp_f32 h,
                                        sp_f32 h_bias)
{
    return l.bias ? (x + x_bias) + (h + h_bias) : x + h;
}

/* The same of gate `at`. */
SP_CUDA_FUNCTION sp_f32 sp_add_inputs(const sp_layer &l, const float *x, const float *gates,
                                      int64_t at)
{
    if (!l.bias) return sp_f32(x[at]) + gates[at];
    return sp_add_products(l, x[at], l.bias[at], gates[at], l.bias[l.width + at]);
}

/* ---- cells: x is the row's products at this step ---- */

enum sp_lstm_gates { SP_LSTM_INPUT, SP_LSTM_OUTPUT, SP_LSTM_FORGET, SP_LSTM_CELL };

/* A gate from its sum, but for an output gate with a peephole, which sees the cell's next state:
 * the sum. */
SP_CUDA_FUNCTION void sp_lstm_gate(const sp_layer &l, int row, int gate, int64_t i, sp_f32 sum)
{
    const int64_t at = gate * l.k.hidden + i;
    float *gates = l.row_gates(row);
    if (l.peepholes && gate != SP_LSTM_CELL) {
        if (gate == SP_LSTM_OUTPUT) {
            gates[at] = sum.v;
            return;
        }
        sum = sum + sp_f32(l.peepholes[at]) * sp_f32(l.row_c(row)[i]);
    }
    const sp_cell_activation &f = l.k.functions[l.direction][gate == SP_LSTM_CELL];
    gates[at] = sp_activate_gate(f, sp_clip_gate(l, sum)).v;
}

SP_CUDA_FUNCTION void sp_lstm_cell(const sp_layer &l, int row, int64_t i)
{
    const int64_t n = l.k.hidden;
    const sp_cell_activation *f = l.k.functions[l.direction];
    float *c = l.row_c(row) + i;
    const float *gates = l.row_gates(row) + i;
    const sp_f32 in = gates[SP_LSTM_INPUT * n], cell = gates[SP_LSTM_CELL * n], old = *c;
    sp_f32 forget = gates[SP_LSTM_FORGET * n], out = gates[SP_LSTM_OUTPUT * n];
    if (l.k.couples_gates) forget = sp_f32(1.0f) - in;
    const sp_f32 next = sp_store(forget * old + in * cell);
    if (l.peepholes) {
        out = out + sp_f32(l.peepholes[SP_LSTM_OUTPUT * n + i]) * next;
        out = sp_activate_gate(f[0], sp_clip_gate(l, out));
    }
    *c = next.v;
    l.row_h(row)[i] = sp_store(out * sp_activate_gate(f[2], next));
}

/* The gates that do not depend on the reset gate: update and reset. */
SP_CUDA_FUNCTION void sp_gru_gates(const sp_layer &l, int row, int64_t i, const float *x)
{
    const int64_t n = l.k.hidden;
    const sp_cell_activation *f = l.k.functions[l.direction];
    float *gates = l.row_gates(row);
    const sp_f32 update = sp_clip_gate(l, sp_add_inputs(l, x, gates, i));
    const sp_f32 reset = sp_activate_gate(f[0], sp_clip_gate(l, sp_add_inputs(l, x, gates, n + i)));
    gates[i] = update.v;
    l.row_z(row)[i] = sp_activate_gate(f[0], update).v;
    gates[n + i] = reset.v;
    if (l.k.resets_after) {
        sp_f32 product = gates[2 * n + i];
        if (l.bias) product = product + l.bias[l.width + 2 * n + i];
        gates[2 * n + i] = (reset * product).v;
    } else {
        l.row_c(row)[i] = (reset * l.row_h(row)[i]).v;
    }
}

SP_CUDA_FUNCTION void sp_gru_cell(const sp_layer &l, int row, int64_t i, const float *x)
{
    const int64_t n = l.k.hidden, at = 2 * n + i;
    float *h = l.row_h(row) + i, *gates = l.row_gates(row);
    sp_f32 hidden;
    if (l.k.resets_after) {
        const sp_f32 input = l.bias ? sp_f32(x[at]) + l.bias[at] : sp_f32(x[at]);
        hidden = input + gates[at];
    } else {
        hidden = sp_add_inputs(l, x, gates, at);
    }
    hidden = sp_activate_gate(l.k.functions[l.direction][1], sp_clip_gate(l, hidden));
    gates[at] = hidden.v;
    const sp_f32 z = l.row_z(row)[i];
    *h = sp_store((sp_f32(1.0f) - z) * hidden + z * *h);
}

SP_CUDA_FUNCTION void sp_rnn_cell(const sp_layer &l, int row, int64_t i, const float *x)
{
    float *gates = l.row_gates(row);
    const sp_f32 sum = sp_clip_gate(l, sp_add_inputs(l, x, gates, i));
    gates[i] = sp_activate_gate(l.k.functions[l.direction][0], sum).v;
    l.row_h(row)[i] = sp_store(sp_f32(gates[i]));
}

/* ---- the sequence ---- */

enum sp_cell_kind { SP_CELL_LSTM, SP_CELL_GRU, SP_CELL_RNN };

/* Each thread stores the units that it has computed. */
SP_CUDA_FUNCTION void sp_store_unit(const sp_layer &l, int row, int64_t i, int64_t step)
{
    const int64_t length = l.length(row);
    const bool is_over = step >= length; /* zeros after the sequence */
    const int64_t at = is_over || !l.is_backwards ? step : length - 1 - step;
    l.y[at * l.k.y_step + (l.first + row) * l.k.y_row + i] = is_over ? 0.0f : l.row_h(row)[i];
}

/* Does the last product of a GRU's step have another left-hand side, which depends on a gate? */
template <sp_cell_kind kind> SP_CUDA_FUNCTION bool sp_is_late(const sp_layer &l)
{
    return kind == SP_CELL_GRU && !l.k.resets_after;
}

/* The gates that are computed before the cells are. */
template <sp_cell_kind kind> SP_CUDA_FUNCTION void sp_run_gates(const sp_layer &l, int64_t step)
{
    if (kind == SP_CELL_LSTM) {
        sp_each_gate(l, [&](int row, int gate, int64_t i) {
            if (step >= l.length(row)) return;
            const sp_f32 sum =
                sp_add_inputs(l, l.input_at(row, step), l.row_gates(row), gate * l.k.hidden + i);
            sp_lstm_gate(l, row, gate, i, sum);
        });
    }
    if (kind == SP_CELL_GRU) {
        sp_each_cell(l, [&](int row, int64_t i) {
            if (step < l.length(row)) sp_gru_gates(l, row, i, l.input_at(row, step));
        });
    }
    if (kind != SP_CELL_RNN) __syncthreads();
}

template <sp_cell_kind kind>
SP_CUDA_FUNCTION void sp_run_cell(const sp_layer &l, int row, int64_t i, int64_t step)
{
    if (step < l.length(row)) {
        const float *x = l.input_at(row, step);
        if (kind == SP_CELL_LSTM) sp_lstm_cell(l, row, i);
        if (kind == SP_CELL_GRU) sp_gru_cell(l, row, i, x);
        if (kind == SP_CELL_RNN) sp_rnn_cell(l, row, i, x);
    }
    sp_store_unit(l, row, i, step);
}

template <sp_cell_kind kind> SP_CUDA_FUNCTION void sp_run_cells(const sp_layer &l, int64_t step)
{
    sp_each_cell(l, [&](int row, int64_t i) { sp_run_cell<kind>(l, row, i, step); });
}

template <sp_cell_kind kind>
SP_CUDA_FUNCTION void sp_run_step(const sp_layer &l, int64_t step, sp_cell_tile &tile)
{
    const int64_t n = l.k.hidden;
    const bool is_late = sp_is_late<kind>(l);
    sp_multiply_gates(l, true, 0, is_late ? 2 * n : l.width, tile);
    sp_run_gates<kind>(l, step);
    if (is_late) sp_multiply_gates(l, false, 2 * n, 3 * n, tile);
    sp_run_cells<kind>(l, step);
    __syncthreads();
}

/* The limit of a length is the number of steps + 1. */
SP_CUDA_FUNCTION void sp_check_lengths(const sp_gpu_bindings &bindings, const sp_layer &l)
{
    const int row = threadIdx.x;
    if (row >= l.rows || l.has_length(row)) return;
    sp_report(bindings, l.bindings, l.lengths[l.first + row], l.k.steps + 1);
}

SP_CUDA_FUNCTION void sp_begin_state(const sp_layer &l)
{
    sp_each_cell(l, [&](int row, int64_t i) {
        const int64_t at = l.state_at(row) + i;
        l.row_h(row)[i] = l.h ? l.h[at] : 0.0f;
        l.row_c(row)[i] = l.c ? l.c[at] : 0.0f;
    });
}

SP_CUDA_FUNCTION void sp_end_state(const sp_layer &l)
{
    sp_each_cell(l, [&](int row, int64_t i) {
        const int64_t at = l.state_at(row) + i;
        if (l.last_h) l.last_h[at] = l.row_h(row)[i];
        if (l.last_c) l.last_c[at] = l.row_c(row)[i];
    });
}

/* Blocks: x over the rows, y over the directions. `block` and `blocks` are those along x. */
template <sp_cell_kind kind>
SP_CUDA_FUNCTION void sp_run_layers(const sp_gpu_bindings &bindings,
                                    const sp_recurrent_constants &k, int64_t block, int64_t blocks,
                                    int threads)
{
    __shared__ sp_cell_tile tile;
#pragma unroll 1
    for (int64_t first = block * SP_CUDA_CELL_ROWS; first < k.rows;
         first += blocks * SP_CUDA_CELL_ROWS) {
        const sp_layer l = sp_open_layer(bindings, k, blockIdx.y, first, threads);
        sp_check_lengths(bindings, l);
        sp_begin_state(l);
        __syncthreads();
#pragma unroll 1
        for (int64_t step = 0; step < k.steps; step++) sp_run_step<kind>(l, step, tile);
        sp_end_state(l);
    }
}

#define SP_RECURRENT_KERNEL(name, kind)                                                            \
    SP_CUDA_KERNEL_OF(name, sp_recurrent_constants, SP_CUDA_CELL_THREADS, 1)                       \
    {                                                                                              \
        sp_run_layers<kind>(bindings, k, blockIdx.x, gridDim.x, SP_CUDA_CELL_THREADS);             \
    }

SP_RECURRENT_KERNEL(lstm_f32, SP_CELL_LSTM)
SP_RECURRENT_KERNEL(gru_f32, SP_CELL_GRU)
SP_RECURRENT_KERNEL(rnn_f32, SP_CELL_RNN)
