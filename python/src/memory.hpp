/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the library has allocated for an output, as the owner of an array's bytes. */
#ifndef SP_PYTHON_MEMORY_HPP
#define SP_PYTHON_MEMORY_HPP

#include <nanobind/nanobind.h>

#include <streampool/model.h>

namespace py
{

/* Frees an output that the library has allocated, in every way out of a scope. */
class HostMemory
{
  public:
    explicit HostMemory(const sp_host_tensor &output) : tensor(output) {}
    ~HostMemory()
    {
        sp_host_tensor_free(&tensor);
    }
    HostMemory(const HostMemory &) = delete;
    HostMemory &operator=(const HostMemory &) = delete;

    sp_host_tensor tensor;
};

/* An output in memory of the library as an array that owns it; bf16 as a Tensor. The memory belongs
 * to the array, also on an exception. */
nanobind::object array_of_output(const sp_host_tensor &tensor);

void bind_host_memory(nanobind::module_ &m);

} // namespace py

#endif
