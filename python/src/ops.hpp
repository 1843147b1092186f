/* SPDX-License-Identifier: Apache-2.0 */
/* Eager operators, and the library's table of them. */
#ifndef SP_PYTHON_OPS_HPP
#define SP_PYTHON_OPS_HPP

#include <nanobind/nanobind.h>

namespace py
{

void bind_ops(nanobind::module_ &m);

} // namespace py

#endif
