/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of models on tensors of their device. */
#ifndef SP_PYTHON_MODEL_TENSORS_HPP
#define SP_PYTHON_MODEL_TENSORS_HPP

#include <nanobind/nanobind.h>

namespace py
{

void bind_model_tensors(nanobind::module_ &m);

} // namespace py

#endif
