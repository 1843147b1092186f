// SPDX-License-Identifier: Apache-2.0
// Calls of the library's operators on tensors of PyTorch.
//
//     Call("Softmax").in(x).set("axis", dim).run({y});
#ifndef STREAMPOOL_TORCH_CALL_HPP
#define STREAMPOOL_TORCH_CALL_HPP

#include <initializer_list>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "views_of.hpp"

namespace streampool_torch
{
// Whether kernels of ours take the tensor: float32, on the device, not empty, not lazily negated.
bool is_native(const at::Tensor &tensor);

// A new tensor of float32.
at::Tensor new_tensor(at::IntArrayRef size);

// A tensor of no dimensions with this value, which is filled in stream order.
at::Tensor scalar_tensor(double value);

// Arguments are borrowed until the end of run.
class Call
{
  public:
    // The newest version of the operator, or that of an opset.
    explicit Call(const char *op, uint32_t opset = 0) : op_(op), opset_(opset) {}

    Call &in(const at::Tensor &tensor)
    {
        views_.emplace_back(tensor);
        inputs_.push_back(views_.back().handle());
        return *this;
    }
    // With another shape.
    Call &in(const at::Tensor &tensor, at::IntArrayRef sizes, at::IntArrayRef strides)
    {
        views_.emplace_back(tensor, sizes, strides);
        inputs_.push_back(views_.back().handle());
        return *this;
    }
    // An optional input that is not given.
    Call &without()
    {
        inputs_.push_back({0});
        return *this;
    }
    Call &in_or_without(const at::Tensor &tensor)
    {
        return tensor.defined() ? in(tensor) : without();
    }

    Call &set(const char *name, int64_t value)
    {
        add(name, SP_OP_INT).i = value;
        return *this;
    }
    Call &set(const char *name, double value)
    {
        add(name, SP_OP_FLOAT).f = static_cast<float>(value);
        return *this;
    }
    Call &set(const char *name, const char *value)
    {
        add(name, SP_OP_STRING).s = value;
        return *this;
    }
    Call &set(const char *name, at::IntArrayRef values)
    {
        sp_op_attribute &attribute = add(name, SP_OP_INTS);
        attribute.ints = values.data();
        attribute.count = static_cast<uint32_t>(values.size());
        return *this;
    }

    // Writes the outputs, which have the operator's shapes, on the current stream.
    void run(std::initializer_list<at::Tensor> outputs);

  private:
    sp_op_attribute &add(const char *name, sp_op_attribute_type type);

    const char *op_;
    uint32_t opset_;
    c10::SmallVector<View, 4> views_;
    c10::SmallVector<sp_tensor, 4> inputs_;
    c10::SmallVector<sp_op_attribute, 4> attributes_;
};
} // namespace streampool_torch

#endif
