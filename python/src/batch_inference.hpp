/* SPDX-License-Identifier: Apache-2.0 */
/* Many runs of one model, computed as batches, in one call. */
#ifndef SP_PYTHON_BATCH_INFERENCE_HPP
#define SP_PYTHON_BATCH_INFERENCE_HPP

#include <nanobind/nanobind.h>

namespace py
{

void bind_batch_inference(nanobind::module_ &m);

} // namespace py

#endif
