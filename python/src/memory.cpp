/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.hpp"

#include <cstring>
#include <memory>

#include "dtypes.hpp"
#include "errors.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

/* Below this an array of NumPy's own memory and a copy take less time than an owner. */
constexpr uint64_t copied_bytes = 16384;

int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    HostMemory *memory = nb::inst_ptr<HostMemory>(self);
    const auto bytes = static_cast<Py_ssize_t>(memory->tensor.bytes);
    return PyBuffer_FillInfo(view, self, memory->tensor.data, bytes, 0, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(get_buffer)}, {0, nullptr}};

nb::object copied(const sp_host_tensor &tensor, nb::handle shape)
{
    nb::object array = numpy_empty(shape, tensor.dtype);
    if (tensor.bytes == 0) return array;
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE) != 0) throw nb::python_error();
    memcpy(view.buf, tensor.data, tensor.bytes);
    PyBuffer_Release(&view);
    return array;
}

nb::object empty_tensor(const sp_host_tensor &tensor)
{
    sp_tensor handle;
    check(sp_tensor_create({}, tensor.dtype, tensor.rank, tensor.shape, &handle));
    return tensor_object(handle);
}

} // namespace

nb::object array_of_output(const sp_host_tensor &tensor)
{
    auto memory = std::make_unique<HostMemory>(tensor);
    if (tensor.dtype == SP_BF16 && tensor.bytes > 0) return tensor_of_memory(std::move(memory));
    if (tensor.dtype == SP_BF16) return empty_tensor(tensor);
    const nb::object shape = shape_tuple(tensor.shape, tensor.rank);
    if (tensor.bytes <= copied_bytes) return copied(tensor, shape);
    const nb::object owner = nb::cast(memory.release(), nb::rv_policy::take_ownership);
    return numpy_ndarray(shape, tensor.dtype, owner);
}

void bind_host_memory(nb::module_ &m)
{
    nb::class_<HostMemory>(m, "HostMemory", nb::type_slots(slots),
                           "Owner of an array's bytes that the library has allocated.");
}

} // namespace py
