// SPDX-License-Identifier: Apache-2.0
// Tensors of PyTorch as tensors of the library.
#ifndef STREAMPOOL_TORCH_VIEWS_OF_HPP
#define STREAMPOOL_TORCH_VIEWS_OF_HPP

#include <ATen/core/Tensor.h>

#include "errors.hpp"

namespace streampool_torch
{
// Whether the library has tensors of this type and rank; false for one without elements.
bool is_viewable(const at::Tensor &tensor);

// False if two elements of the tensor may share memory.
bool has_distinct_elements(const at::Tensor &tensor);

// An sp_tensor over the elements.
class View
{
  public:
    explicit View(const at::Tensor &tensor) : View(tensor, tensor.sizes(), tensor.strides()) {}
    // With another shape.
    View(const at::Tensor &tensor, at::IntArrayRef sizes, at::IntArrayRef strides);
    ~View()
    {
        (void)sp_tensor_release(handle_);
    }
    View(const View &) = delete;
    View &operator=(const View &) = delete;
    View(View &&other) noexcept : handle_(other.handle_)
    {
        other.handle_ = {0};
    }

    sp_tensor handle() const
    {
        return handle_;
    }

  private:
    sp_tensor handle_;
};
} // namespace streampool_torch

#endif
