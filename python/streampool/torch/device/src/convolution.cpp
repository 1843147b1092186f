// SPDX-License-Identifier: Apache-2.0
// Convolutions. PyTorch leaves them to a device's own kernel, so there is no fallback to call.
#include <algorithm>

#include <ATen/ATen.h>
#include <torch/library.h>

#include "borrow.hpp"
#include "call.hpp"
#include "compat.hpp"
#include "fallback.hpp"

namespace streampool_torch
{
namespace
{
struct Window {
    at::IntArrayRef stride;
    at::IntArrayRef padding;
    at::IntArrayRef dilation;
    bool is_transposed;
    at::IntArrayRef output_padding;
    int64_t groups;
};

at::Tensor on_host(const at::Tensor &x, const at::Tensor &w, const at::Tensor &b,
                   const Window &window)
{
    begin_host_kernel("convolution", {x, w, b});
    Borrow borrow;
    const at::Tensor input = borrow.read(x);
    const at::Tensor weight = borrow.read(w);
    const at::Tensor bias = borrow.read(b);
    borrow.begin();
    at::AutoDispatchBelowADInplaceOrView guard;
    return borrow.give(at::convolution(input, weight, bias, window.stride, window.padding,
                                       window.dilation, window.is_transposed, window.output_padding,
                                       window.groups));
}

std::vector<int64_t> output_size(const at::Tensor &x, const at::Tensor &w, const Window &window)
{
    std::vector<int64_t> size = {x.size(0),
                                 window.is_transposed ? w.size(1) * window.groups : w.size(0)};
    for (int64_t i = 2; i < x.dim(); i++) {
        const auto k = static_cast<size_t>(i - 2);
        const int64_t reach = window.dilation[k] * (w.size(i) - 1);
        if (window.is_transposed) {
            size.push_back((x.size(i) - 1) * window.stride[k] - 2 * window.padding[k] + reach +
                           window.output_padding[k] + 1);
        } else {
            const int64_t room = x.size(i) + 2 * window.padding[k] - reach - 1;
            size.push_back(room < 0 ? 0 : room / window.stride[k] + 1);
        }
    }
    return size;
}

// PyTorch's rule: smaller than the stride or the dilation.
bool has_small_output_padding(const Window &window)
{
    for (size_t k = 0; k < window.output_padding.size(); k++) {
        if (window.output_padding[k] >= std::max(window.stride[k], window.dilation[k]))
            return false;
    }
    return true;
}

bool has_native_kernel(const at::Tensor &x, const at::Tensor &w, const at::Tensor &b,
                       const Window &window)
{
    const auto rank = static_cast<size_t>(x.dim() - 2);
    return is_native(x) && is_native(w) && (!b.defined() || is_native(b)) && x.dim() >= 3 &&
           x.dim() <= 5 && w.dim() == x.dim() && window.stride.size() == rank &&
           window.padding.size() == rank && window.dilation.size() == rank &&
           (!window.is_transposed ||
            (window.output_padding.size() == rank && has_small_output_padding(window) &&
             x.size(1) == w.size(0))) &&
           (window.is_transposed || x.size(1) == w.size(1) * window.groups);
}

at::Tensor convolution(const at::Tensor &x, const at::Tensor &w, const optional<at::Tensor> &given,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                       bool is_transposed, at::IntArrayRef output_padding, int64_t groups)
{
    const at::Tensor b = given.value_or(at::Tensor());
    const Window window = {stride, padding, dilation, is_transposed, output_padding, groups};
    if (!has_native_kernel(x, w, b, window)) return on_host(x, w, b, window);
    const std::vector<int64_t> size = output_size(x, w, window);
    for (const int64_t extent : size) {
        if (extent <= 0) return on_host(x, w, b, window); // which says what is wrong
    }
    at::Tensor y = new_tensor(size);
    std::vector<int64_t> pads = padding.vec();
    pads.insert(pads.end(), padding.begin(), padding.end());
    Call call(is_transposed ? "ConvTranspose" : "Conv");
    call.in(x).in(w);
    if (b.defined()) call.in(b);
    call.set("strides", stride).set("pads", pads).set("dilations", dilation).set("group", groups);
    if (is_transposed) call.set("output_padding", output_padding);
    call.run({y});
    return y;
}

using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

ThreeTensors convolution_backward(const at::Tensor &gradient, const at::Tensor &x,
                                  const at::Tensor &w, at::IntArrayRef stride,
                                  at::IntArrayRef padding, at::IntArrayRef dilation,
                                  bool is_transposed, at::IntArrayRef output_padding,
                                  int64_t groups, std::array<bool, 3> mask)
{
    begin_host_kernel("convolution_backward", {gradient, x, w});
    Borrow borrow;
    const at::Tensor output = borrow.read(gradient);
    const at::Tensor input = borrow.read(x);
    const at::Tensor weight = borrow.read(w);
    const int64_t channels[] = {gradient.size(1)};
    borrow.begin();
    at::AutoDispatchBelowADInplaceOrView guard;
    const auto [of_input, of_weight, of_bias] =
        at::convolution_backward(output, input, weight, at::IntArrayRef(channels), stride, padding,
                                 dilation, is_transposed, output_padding, groups, mask);
    return {borrow.give(of_input), borrow.give(of_weight), borrow.give(of_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("convolution_overrideable", convolution);
    m.impl("convolution_backward_overrideable", convolution_backward);
}
} // namespace
} // namespace streampool_torch
