// SPDX-License-Identifier: Apache-2.0
// Attention and encoder layers as one operator, which PyTorch 2 calls for inference. Their parts
// are called in C++, without Python in between. With a mask PyTorch's kernel of the host is called.
#include <cmath>

#include <ATen/ATen.h>
#include <torch/library.h>

#include "call.hpp"
#include "compat.hpp"
#include "fallback.hpp"

namespace streampool_torch
{
namespace
{
using at::Tensor;
using TwoTensors = std::tuple<Tensor, Tensor>;

bool is_given(const optional<Tensor> &tensor)
{
    return tensor.has_value() && tensor->defined();
}

bool is_batch(const Tensor &x)
{
    return is_native(x) && x.dim() == 3;
}

// [batch, time, width] as [batch * heads, time, width / heads].
Tensor heads_of(const Tensor &x, int64_t heads)
{
    const int64_t batch = x.size(0);
    const int64_t time = x.size(1);
    const int64_t width = x.size(2) / heads;
    return x.reshape({batch, time, heads, width})
        .transpose(1, 2)
        .reshape({batch * heads, time, width});
}

struct Projections {
    Tensor query, key, value;
};

Projections project(const Tensor &query, const Tensor &key, const Tensor &value,
                    const Tensor &weight, const Tensor &bias)
{
    if (query.is_same(key) && key.is_same(value)) {
        const auto parts = at::linear(query, weight, bias).chunk(3, 2);
        return {parts[0], parts[1], parts[2]};
    }
    const auto weights = weight.chunk(3, 0);
    const auto biases = bias.chunk(3, 0);
    return {at::linear(query, weights[0], biases[0]), at::linear(key, weights[1], biases[1]),
            at::linear(value, weights[2], biases[2])};
}

// The result, and the weights [batch, heads, time, time of the keys].
TwoTensors attend(const Projections &inputs, int64_t heads, const Tensor &weight,
                  const Tensor &bias)
{
    const int64_t batch = inputs.query.size(0);
    const int64_t time = inputs.query.size(1);
    const int64_t width = inputs.query.size(2);
    const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
    const Tensor query = heads_of(inputs.query * scale, heads);
    const Tensor key = heads_of(inputs.key, heads);
    const Tensor weights = at::bmm(query, key.transpose(1, 2)).softmax(-1);
    const Tensor merged = at::bmm(weights, heads_of(inputs.value, heads))
                              .view({batch, heads, time, width / heads})
                              .transpose(1, 2)
                              .reshape({batch, time, width});
    return {at::linear(merged, weight, bias), weights.view({batch, heads, time, key.size(1)})};
}

TwoTensors attention(const Tensor &query, const Tensor &key, const Tensor &value, int64_t width,
                     int64_t heads, const Tensor &qkv_weight, const Tensor &qkv_bias,
                     const Tensor &weight, const Tensor &bias, const optional<Tensor> &mask,
                     bool needs_weights, bool averages, optional<int64_t> mask_type)
{
    const bool is_plain = !is_given(mask) && is_batch(query) && is_batch(key) && is_batch(value) &&
                          query.size(2) == width && width % heads == 0 && is_native(qkv_weight);
    if (!is_plain) {
        return SP_FALLBACK(_native_multi_head_attention)(query, key, value, width, heads,
                                                         qkv_weight, qkv_bias, weight, bias, mask,
                                                         needs_weights, averages, mask_type);
    }
    const auto [y, weights] =
        attend(project(query, key, value, qkv_weight, qkv_bias), heads, weight, bias);
    if (!needs_weights) return {y, Tensor()};
    return {y, averages ? weights.mean(1) : weights};
}

struct Norm {
    const Tensor &weight, &bias;
    double epsilon;

    Tensor operator()(const Tensor &x) const
    {
        return at::layer_norm(x, {x.size(2)}, weight, bias, epsilon);
    }
};

Tensor encoder_layer(const Tensor &x, int64_t width, int64_t heads, const Tensor &qkv_weight,
                     const Tensor &qkv_bias, const Tensor &weight, const Tensor &bias,
                     bool uses_gelu, bool norm_first, double epsilon, const Tensor &weight_1,
                     const Tensor &bias_1, const Tensor &weight_2, const Tensor &bias_2,
                     const Tensor &ffn_weight_1, const Tensor &ffn_bias_1,
                     const Tensor &ffn_weight_2, const Tensor &ffn_bias_2,
                     const optional<Tensor> &mask, optional<int64_t> mask_type)
{
    if (is_given(mask) || !is_batch(x) || width % heads != 0 || !is_native(qkv_weight)) {
        return SP_FALLBACK(_transformer_encoder_layer_fwd)(
            x, width, heads, qkv_weight, qkv_bias, weight, bias, uses_gelu, norm_first, epsilon,
            weight_1, bias_1, weight_2, bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2,
            mask, mask_type);
    }
    const Norm first = {weight_1, bias_1, epsilon};
    const Norm second = {weight_2, bias_2, epsilon};
    const auto attended = [&](const Tensor &in) {
        return std::get<0>(attend(project(in, in, in, qkv_weight, qkv_bias), heads, weight, bias));
    };
    const auto fed_forward = [&](const Tensor &in) {
        const Tensor inner = at::linear(in, ffn_weight_1, ffn_bias_1);
        return at::linear(uses_gelu ? at::gelu(inner) : at::relu(inner), ffn_weight_2, ffn_bias_2);
    };
    if (norm_first) {
        const Tensor middle = x + attended(first(x));
        return middle + fed_forward(second(middle));
    }
    const Tensor middle = first(x + attended(x));
    return second(middle + fed_forward(middle));
}

// Tells an encoder with a padding mask that it cannot go on with nested tensors, which are not
// dense.
bool is_left_aligned(const Tensor &, const Tensor &)
{
    return false;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("_native_multi_head_attention", attention);
    m.impl("_transformer_encoder_layer_fwd", encoder_layer);
    m.impl("_nested_tensor_from_mask_left_aligned", is_left_aligned);
}
} // namespace
} // namespace streampool_torch
