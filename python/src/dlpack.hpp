/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of other libraries, without a copy. */
#ifndef SP_PYTHON_DLPACK_HPP
#define SP_PYTHON_DLPACK_HPP

#include <nanobind/nanobind.h>

#include "tensor.hpp"

namespace py
{

void bind_dlpack(nanobind::module_ &m, nanobind::class_<Tensor> &c);

} // namespace py

#endif
