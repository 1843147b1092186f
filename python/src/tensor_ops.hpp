/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of tensors in Python's notation. */
#ifndef SP_PYTHON_TENSOR_OPS_HPP
#define SP_PYTHON_TENSOR_OPS_HPP

#include <nanobind/nanobind.h>

#include "tensor.hpp"

namespace py
{

void bind_tensor_ops(nanobind::class_<Tensor> &c);

} // namespace py

#endif
