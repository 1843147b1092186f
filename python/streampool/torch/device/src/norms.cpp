// SPDX-License-Identifier: Apache-2.0
// Softmax, norms and concatenation.
#include <cmath>

#include <ATen/ATen.h>
#include <torch/library.h>

#include "borrow.hpp"
#include "call.hpp"
#include "compat.hpp"
#include "fallback.hpp"

#if SP_TORCH_HAS_SAFE_SOFTMAX
#include <ATen/ops/_safe_softmax_native.h>
#endif

namespace streampool_torch
{
namespace
{
at::Tensor softmax(const char *op, const at::Tensor &x, int64_t dim)
{
    at::Tensor y = new_tensor(x.sizes());
    Call(op).in(x).set("axis", dim).run({y});
    return y;
}

bool is_softmax(const at::Tensor &x, int64_t dim, bool half_to_float)
{
    return is_native(x) && x.dim() > 0 && !half_to_float && dim >= -x.dim() && dim < x.dim();
}

at::Tensor softmax_kernel(const at::Tensor &x, int64_t dim, bool half_to_float)
{
    if (is_softmax(x, dim, half_to_float)) return softmax("Softmax", x, dim);
    return SP_FALLBACK(_softmax)(x, dim, half_to_float);
}

at::Tensor log_softmax_kernel(const at::Tensor &x, int64_t dim, bool half_to_float)
{
    if (is_softmax(x, dim, half_to_float)) return softmax("LogSoftmax", x, dim);
    return SP_FALLBACK(_log_softmax)(x, dim, half_to_float);
}

#if SP_TORCH_HAS_SAFE_SOFTMAX
at::Tensor safe_softmax_kernel(const at::Tensor &x, int64_t dim, optional<c10::ScalarType> dtype)
{
    const bool is_float = dtype.value_or(c10::ScalarType::Float) == c10::ScalarType::Float;
    if (!is_float || !is_softmax(x, dim, false)) return at::native::_safe_softmax(x, dim, dtype);
    const int64_t axis = dim < 0 ? dim + x.dim() : dim;
    std::vector<int64_t> size = x.sizes().vec();
    size[static_cast<size_t>(axis)] = 1;
    at::Tensor largest = new_tensor(size);
    at::Tensor is_masked = at::empty(size, x.options().dtype(c10::ScalarType::Bool));
    at::Tensor y = softmax("Softmax", x, axis);
    constexpr uint32_t with_attribute = 13; // later ReduceMax has its axes as an input
    Call("ReduceMax", with_attribute).in(x).set("axes", at::IntArrayRef(axis)).run({largest});
    Call("Equal").in(largest).in(scalar_tensor(-INFINITY)).run({is_masked});
    Call("Where").in(is_masked).in(scalar_tensor(0)).in(y).run({y});
    return y;
}
#endif

using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// The operator is made of others where a device has no kernel, so the fallback does not know it.
ThreeTensors layer_norm_on_host(const at::Tensor &x, at::IntArrayRef shape, const at::Tensor &scale,
                                const at::Tensor &bias, double epsilon)
{
    begin_host_kernel("native_layer_norm", {x, scale, bias});
    Borrow borrow;
    const at::Tensor input = borrow.read(x);
    const at::Tensor weight = borrow.read(scale);
    const at::Tensor offset = borrow.read(bias);
    borrow.begin();
    at::AutoDispatchBelowADInplaceOrView guard;
    const auto [y, mean, deviation] = at::native_layer_norm(input, shape, weight, offset, epsilon);
    return {borrow.give(y), borrow.give(mean), borrow.give(deviation)};
}

bool is_layer_norm(const at::Tensor &x, at::IntArrayRef shape, const at::Tensor &scale,
                   const at::Tensor &bias)
{
    const auto rank = static_cast<int64_t>(shape.size());
    return is_native(x) && rank > 0 && rank <= x.dim() &&
           x.sizes().slice(x.dim() - rank) == shape && is_native(scale) && scale.sizes() == shape &&
           (!bias.defined() || (is_native(bias) && bias.sizes() == shape));
}

ThreeTensors layer_norm_kernel(const at::Tensor &x, at::IntArrayRef shape,
                               const optional<at::Tensor> &given_scale,
                               const optional<at::Tensor> &given_bias, double epsilon)
{
    const at::Tensor scale = given_scale.value_or(at::Tensor());
    const at::Tensor bias = given_bias.value_or(at::Tensor());
    if (!is_layer_norm(x, shape, scale, bias)) {
        return layer_norm_on_host(x, shape, scale, bias, epsilon);
    }
    const auto axis = x.dim() - static_cast<int64_t>(shape.size());
    std::vector<int64_t> outer = x.sizes().vec();
    std::fill(outer.begin() + axis, outer.end(), 1);
    at::Tensor y = new_tensor(x.sizes());
    at::Tensor mean = new_tensor(outer);
    at::Tensor deviation = new_tensor(outer);
    Call call("LayerNormalization");
    call.in(x).in(scale).in_or_without(bias);
    call.set("axis", axis).set("epsilon", epsilon).run({y, mean, deviation});
    return {y, mean, deviation};
}

// PyTorch makes it of a batch norm for a device without a kernel, which divides by a batch of 0.
ThreeTensors group_norm_kernel(const at::Tensor &x, const optional<at::Tensor> &scale,
                               const optional<at::Tensor> &bias, int64_t batch, int64_t channels,
                               int64_t pixels, int64_t groups, double epsilon)
{
    const at::Tensor w = scale.value_or(at::Tensor());
    const at::Tensor b = bias.value_or(at::Tensor());
    begin_host_kernel("native_group_norm", {x, w, b});
    Borrow borrow;
    const at::Tensor input = borrow.read(x);
    const at::Tensor weight = borrow.read(w);
    const at::Tensor offset = borrow.read(b);
    borrow.begin();
    at::AutoDispatchBelowADInplaceOrView guard;
    const auto [y, mean, deviation] =
        at::native_group_norm(input, weight, offset, batch, channels, pixels, groups, epsilon);
    return {borrow.give(y), borrow.give(mean), borrow.give(deviation)};
}

bool is_native_cat(const at::MaterializedITensorListRef &tensors, int64_t dim)
{
    const at::Tensor &first = tensors[0];
    if (!is_native(first) || first.dim() == 0 || dim < -first.dim() || dim >= first.dim())
        return false;
    const int64_t axis = dim < 0 ? dim + first.dim() : dim;
    for (const at::Tensor &tensor : tensors) {
        if (!is_native(tensor) || tensor.dim() != first.dim()) return false;
        for (int64_t i = 0; i < first.dim(); i++) {
            if (i != axis && tensor.size(i) != first.size(i)) return false;
        }
    }
    return true;
}

at::Tensor cat_kernel(const at::ITensorListRef &list, int64_t dim)
{
    const auto tensors = list.materialize();
    if (tensors.empty() || !is_native_cat(tensors, dim)) return SP_FALLBACK(cat)(list, dim);
    std::vector<int64_t> size = tensors[0].get().sizes().vec();
    const auto axis = static_cast<size_t>(dim < 0 ? dim + tensors[0].get().dim() : dim);
    size[axis] = 0;
    Call call("Concat");
    for (const at::Tensor &tensor : tensors) {
        size[axis] += tensor.size(static_cast<int64_t>(axis));
        call.in(tensor);
    }
    at::Tensor y = new_tensor(size);
    call.set("axis", static_cast<int64_t>(axis)).run({y});
    return y;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("_softmax", softmax_kernel);
    m.impl("_log_softmax", log_softmax_kernel);
#if SP_TORCH_HAS_SAFE_SOFTMAX
    m.impl("_safe_softmax", safe_softmax_kernel);
#endif
    m.impl("native_layer_norm", layer_norm_kernel);
    m.impl("native_group_norm", group_norm_kernel);
    m.impl("cat", cat_kernel);
}
} // namespace
} // namespace streampool_torch
