// SPDX-License-Identifier: Apache-2.0
// LSTM and GRU cells. PyTorch 2 leaves them to the device; 1.13 makes them of elementwise
// operators. Here they are made of these too, behind one call of the dispatcher. A workspace has
// what the backward needs: the gates behind their activations.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "compat.hpp"

namespace streampool_torch
{
namespace
{
using at::Tensor;
using TwoTensors = std::tuple<Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
using FiveTensors = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

Tensor with_bias(const Tensor &gates, const optional<Tensor> &bias)
{
    return bias.has_value() && bias->defined() ? gates + *bias : gates;
}

ThreeTensors lstm_cell(const Tensor &input_gates, const Tensor &hidden_gates, const Tensor &cx,
                       const optional<Tensor> &input_bias, const optional<Tensor> &hidden_bias)
{
    const Tensor gates = with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias);
    const auto parts = gates.chunk(4, 1);
    const Tensor in = parts[0].sigmoid();
    const Tensor forget = parts[1].sigmoid();
    const Tensor cell = parts[2].tanh();
    const Tensor out = parts[3].sigmoid();
    const Tensor cy = forget * cx + in * cell;
    return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

// Of s = sigmoid(x), or of t = tanh(x), times a gradient.
Tensor through_sigmoid(const Tensor &gradient, const Tensor &s)
{
    return gradient * s * (1 - s);
}

Tensor through_tanh(const Tensor &gradient, const Tensor &t)
{
    return gradient * (1 - t * t);
}

ThreeTensors lstm_cell_backward(const optional<Tensor> &given_hy, const optional<Tensor> &given_cy,
                                const Tensor &cx, const Tensor &cy, const Tensor &workspace,
                                bool has_bias)
{
    const bool has_hy = given_hy.has_value() && given_hy->defined();
    const bool has_cy = given_cy.has_value() && given_cy->defined();
    if (!has_hy && !has_cy) return {};
    const auto gates = workspace.chunk(4, 1); // in, forget, cell, out
    const Tensor of_hy = has_hy ? *given_hy : at::zeros_like(cy);
    const Tensor t = cy.tanh();
    Tensor of_cy = through_tanh(of_hy * gates[3], t);
    if (has_cy) of_cy = of_cy + *given_cy;
    const Tensor of_gates =
        at::cat({through_sigmoid(of_cy * gates[2], gates[0]), through_sigmoid(of_cy * cx, gates[1]),
                 through_tanh(of_cy * gates[0], gates[2]), through_sigmoid(of_hy * t, gates[3])},
                1);
    return {of_gates, of_cy * gates[1], has_bias ? of_gates.sum(0) : Tensor()};
}

TwoTensors gru_cell(const Tensor &input_gates, const Tensor &hidden_gates, const Tensor &hx,
                    const optional<Tensor> &input_bias, const optional<Tensor> &hidden_bias)
{
    const auto input = with_bias(input_gates, input_bias).chunk(3, 1);
    const auto hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
    const Tensor reset = (input[0] + hidden[0]).sigmoid();
    const Tensor update = (input[1] + hidden[1]).sigmoid();
    const Tensor made = (input[2] + reset * hidden[2]).tanh();
    return {made + update * (hx - made), at::cat({reset, update, made, hx, hidden[2]}, 1)};
}

FiveTensors gru_cell_backward(const Tensor &gradient, const Tensor &workspace, bool has_bias)
{
    const auto parts = workspace.chunk(5, 1); // reset, update, made, hx, hidden
    const Tensor of_made = through_tanh(gradient * (1 - parts[1]), parts[2]);
    const Tensor of_update = through_sigmoid(gradient * (parts[3] - parts[2]), parts[1]);
    const Tensor of_reset = through_sigmoid(of_made * parts[4], parts[0]);
    const Tensor of_input = at::cat({of_reset, of_update, of_made}, 1);
    const Tensor of_hidden = at::cat({of_reset, of_update, of_made * parts[0]}, 1);
    return {of_input, of_hidden, gradient * parts[1], has_bias ? of_input.sum(0) : Tensor(),
            has_bias ? of_hidden.sum(0) : Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("_thnn_fused_lstm_cell", lstm_cell);
    m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
    m.impl("_thnn_fused_gru_cell", gru_cell);
    m.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
}
} // namespace
} // namespace streampool_torch
