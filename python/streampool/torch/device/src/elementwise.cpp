// SPDX-License-Identifier: Apache-2.0
// Operators on each element by itself, of float32. A number is a tensor of no dimensions on the
// host.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "call.hpp"
#include "fallback.hpp"

namespace streampool_torch
{
namespace
{
// A tensor that a kernel may write in place.
bool is_writable(const at::Tensor &tensor)
{
    return is_native(tensor) && has_distinct_elements(tensor);
}

at::Tensor unary(const char *op, const at::Tensor &x)
{
    at::Tensor y = new_tensor(x.sizes());
    Call(op).in(x).run({y});
    return y;
}

at::Tensor &unary_in_place(const char *op, at::Tensor &x)
{
    Call(op).in(x).run({x});
    return x;
}

// The second operand of a binary operator, times a factor: an undefined tensor if no kernel of ours
// takes the two.
at::Tensor second_operand(const at::Tensor &a, const at::Tensor &b, double factor)
{
    if (!is_native(a) || !b.defined()) return {};
    if (is_native(b)) return factor == 1 ? b : at::Tensor();
    const bool is_number = b.device().is_cpu() && b.dim() == 0 && !b.is_complex() &&
                           at::result_type(a, b) == c10::ScalarType::Float;
    return is_number ? scalar_tensor(factor * b.item().toDouble()) : at::Tensor();
}

bool broadcasts(const at::Tensor &a, const at::Tensor &b)
{
    for (int64_t i = 1; i <= std::min(a.dim(), b.dim()); i++) {
        const int64_t one = a.size(-i);
        const int64_t other = b.size(-i);
        if (one != other && one != 1 && other != 1) return false;
    }
    return true;
}

// An undefined tensor if no kernel of ours takes the arguments.
at::Tensor binary(const char *op, const at::Tensor &a, const at::Tensor &b, double factor)
{
    const at::Tensor other = second_operand(a, b, factor);
    if (!other.defined() || !broadcasts(a, other)) return {};
    at::Tensor y = new_tensor(at::infer_size(a.sizes(), other.sizes()));
    Call(op).in(a).in(other).run({y});
    return y;
}

// PyTorch refuses other factors of a sum of floats.
bool is_factor(const at::Scalar &alpha)
{
    return !alpha.isComplex() && !alpha.isBoolean();
}

bool binary_in_place(const char *op, at::Tensor &a, const at::Tensor &b, double factor)
{
    if (!is_writable(a)) return false;
    const at::Tensor other = second_operand(a, b, factor);
    if (!other.defined() || !at::is_expandable_to(other.sizes(), a.sizes())) return false;
    Call(op).in(a).in(other).run({a});
    return true;
}

#define SP_UNARY(name, op)                                                                         \
    at::Tensor name##_kernel(const at::Tensor &x)                                                  \
    {                                                                                              \
        return is_native(x) ? unary(op, x) : SP_FALLBACK(name)(x);                                 \
    }                                                                                              \
    at::Tensor &name##_in_place(at::Tensor &x)                                                     \
    {                                                                                              \
        return is_writable(x) ? unary_in_place(op, x) : SP_FALLBACK(name##_)(x);                   \
    }

SP_UNARY(relu, "Relu")
SP_UNARY(sigmoid, "Sigmoid")
SP_UNARY(tanh, "Tanh")

at::Tensor gelu_kernel(const at::Tensor &x, c10::string_view approximate)
{
    const bool is_tanh = approximate == "tanh";
    const bool is_known = is_tanh || approximate == "none";
    if (!is_native(x) || !is_known) return SP_FALLBACK(gelu)(x, approximate);
    at::Tensor y = new_tensor(x.sizes());
    Call("Gelu").set("approximate", is_tanh ? "tanh" : "none").in(x).run({y});
    return y;
}

at::Tensor add_kernel(const at::Tensor &a, const at::Tensor &b, const at::Scalar &alpha)
{
    at::Tensor y;
    if (is_factor(alpha)) y = binary("Add", a, b, alpha.toDouble());
    return y.defined() ? y : SP_FALLBACK(add_Tensor)(a, b, alpha);
}

at::Tensor &add_in_place(at::Tensor &a, const at::Tensor &b, const at::Scalar &alpha)
{
    if (is_factor(alpha) && binary_in_place("Add", a, b, alpha.toDouble())) return a;
    return SP_FALLBACK(add__Tensor)(a, b, alpha);
}

at::Tensor sub_kernel(const at::Tensor &a, const at::Tensor &b, const at::Scalar &alpha)
{
    const bool is_difference = is_factor(alpha) && b.scalar_type() != c10::ScalarType::Bool;
    at::Tensor y;
    if (is_difference) y = binary("Sub", a, b, alpha.toDouble());
    return y.defined() ? y : SP_FALLBACK(sub_Tensor)(a, b, alpha);
}

at::Tensor mul_kernel(const at::Tensor &a, const at::Tensor &b)
{
    at::Tensor y = binary("Mul", a, b, 1);
    if (!y.defined()) y = binary("Mul", b, a, 1);
    return y.defined() ? y : SP_FALLBACK(mul_Tensor)(a, b);
}

at::Tensor &mul_in_place(at::Tensor &a, const at::Tensor &b)
{
    return binary_in_place("Mul", a, b, 1) ? a : SP_FALLBACK(mul__Tensor)(a, b);
}

at::Tensor div_kernel(const at::Tensor &a, const at::Tensor &b)
{
    at::Tensor y = binary("Div", a, b, 1);
    return y.defined() ? y : SP_FALLBACK(div_Tensor)(a, b);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("relu", relu_kernel);
    m.impl("relu_", relu_in_place);
    m.impl("sigmoid", sigmoid_kernel);
    m.impl("sigmoid_", sigmoid_in_place);
    m.impl("tanh", tanh_kernel);
    m.impl("tanh_", tanh_in_place);
    m.impl("gelu", gelu_kernel);
    m.impl("add.Tensor", add_kernel);
    m.impl("add_.Tensor", add_in_place);
    m.impl("sub.Tensor", sub_kernel);
    m.impl("mul.Tensor", mul_kernel);
    m.impl("mul_.Tensor", mul_in_place);
    m.impl("div.Tensor", div_kernel);
}
} // namespace
} // namespace streampool_torch
