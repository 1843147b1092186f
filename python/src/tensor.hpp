/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: arrays of a device. */
#ifndef SP_PYTHON_TENSOR_HPP
#define SP_PYTHON_TENSOR_HPP

#include <nanobind/nanobind.h>

#include <memory>

#include <streampool/tensor.h>

#include "memory.hpp"

namespace py
{

class Tensor
{
  public:
    explicit Tensor(sp_tensor tensor) : handle(tensor) {}
    ~Tensor()
    {
        sp_tensor_release(handle);
    }
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;

    sp_tensor_info info() const;

    const sp_tensor handle;
};

/* A Tensor of Python, by its name in the stubs. */
class TensorObject : public nanobind::object
{
    NB_OBJECT(TensorObject, nanobind::object, "_core.Tensor", nanobind::isinstance<Tensor>)
};

/* The object owns the handle. */
TensorObject tensor_object(sp_tensor handle);

/* A tensor over an output that the library has allocated, without a copy. */
nanobind::object tensor_of_memory(std::unique_ptr<HostMemory> memory);

void bind_tensor(nanobind::module_ &m);

} // namespace py

#endif
