/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor.hpp"

#include <vector>

#include <streampool/ops.h>

#include "arguments.hpp"
#include "device.hpp"
#include "dlpack.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "tensor_ops.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

/* Frees the memory of an output on a thread of the library. */
void release_memory(void *ctx, void *data)
{
    (void)data;
    delete static_cast<HostMemory *>(ctx);
}

struct Sizes {
    int64_t values[SP_MAX_RANK];
    uint32_t count;
};

Sizes sizes_of(const nb::args &arguments)
{
    Sizes sizes = {};
    /* t.reshape(2, 3) or t.reshape((2, 3)) */
    const bool is_one = arguments.size() == 1 && PySequence_Check(nb::object(arguments[0]).ptr());
    const nb::object sequence = is_one ? nb::object(arguments[0]) : nb::object(arguments);
    const size_t count = nb::len(sequence);
    if (count > SP_MAX_RANK)
        raise_value("%zu sizes or axes are given; a tensor has 8 dimensions at most", count);
    for (const nb::handle size : sequence) {
        /* Again: __len__ of a class may tell another number. */
        if (sizes.count == SP_MAX_RANK) raise_value("a tensor has 8 dimensions at most");
        sizes.values[sizes.count++] = integer_of(size, "a size or an axis");
    }
    return sizes;
}

using SizesObject = nb::typed<nb::tuple, int, nb::ellipsis>;

SizesObject sizes_object(const int64_t *sizes, uint32_t rank)
{
    return nb::borrow<SizesObject>(shape_tuple(sizes, rank));
}

TensorObject axis_view(const Tensor &tensor, sp_status (*make)(sp_tensor, int64_t, sp_tensor *),
                       const IntArgument &axis)
{
    sp_tensor handle;
    check(make(tensor.handle, integer_of(axis, "axis"), &handle));
    return tensor_object(handle);
}

/* A copy of a contiguous buffer; `dtype` is the tensor's, of the buffer's size of element. */
TensorObject tensor_of_buffer(nb::handle array, nb::handle name, nb::handle device)
{
    Py_buffer buffer;
    sp_tensor handle;
    const sp_dtype dtype = dtype_of(name);
    const sp_device chosen = device_of(device);
    if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        throw nb::python_error();
    }
    Sizes sizes = {};
    for (; sizes.count < SP_MAX_RANK && static_cast<int>(sizes.count) < buffer.ndim;
         sizes.count++) {
        sizes.values[sizes.count] = buffer.shape[sizes.count];
    }
    sp_status status = SP_MISMATCH;
    const bool fits =
        buffer.ndim <= SP_MAX_RANK && static_cast<size_t>(buffer.itemsize) == sp_dtype_bytes(dtype);
    if (fits) {
        status = unlocked_wait([&] {
            return sp_tensor_from_host(chosen, dtype, sizes.count, sizes.values, buffer.buf,
                                       static_cast<uint64_t>(buffer.len), &handle);
        });
    }
    PyBuffer_Release(&buffer);
    if (!fits) raise_value("array has more than 8 dimensions, or elements of another size");
    check(status);
    return tensor_object(handle);
}

/* A copy of the elements; of bf16 as uint16. */
nb::any read(const Tensor &tensor)
{
    const sp_tensor_info info = tensor.info();
    const sp_dtype dtype = info.dtype == SP_BF16 ? SP_U16 : info.dtype;
    nb::object array = numpy_empty(shape_tuple(info.shape, info.rank), dtype);
    Py_buffer buffer;
    if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_WRITABLE) != 0) throw nb::python_error();
    const sp_status status = unlocked_wait([&] {
        return sp_tensor_read(tensor.handle, buffer.buf, static_cast<uint64_t>(buffer.len));
    });
    PyBuffer_Release(&buffer);
    check(status);
    return nb::borrow<nb::any>(array);
}

/* The same with the elements of bf16 as float32, which has their values. */
nb::any read_numbers(const Tensor &tensor)
{
    if (tensor.info().dtype != SP_BF16) return read(tensor);
    sp_tensor handle;
    check(unlocked_wait([&] { return sp_cast(tensor.handle, SP_F32, &handle); }));
    return read(nb::cast<const Tensor &>(tensor_object(handle)));
}

/* start, count, step, as of range(). */
TensorObject axis_slice(const Tensor &tensor, const IntArgument &axis, const IntArgument &start,
                        const IntArgument &count, const IntArgument &step)
{
    sp_tensor handle;
    check(sp_tensor_slice(tensor.handle, integer_of(axis, "axis"), integer_of(start, "start"),
                          integer_of(count, "count"), integer_of(step, "step"), &handle));
    return tensor_object(handle);
}

void bind_views(nb::class_<Tensor> &c)
{
    c.def(
        "reshape",
        [](const Tensor &t, const nb::args &shape) {
            sp_tensor handle;
            const Sizes sizes = sizes_of(shape);
            check(sp_tensor_reshape(t.handle, sizes.count, sizes.values, &handle));
            return tensor_object(handle);
        },
        "A view with another shape; one size may be -1. ValueError if no view has that shape.");
    c.def(
        "expand",
        [](const Tensor &t, const nb::args &shape) {
            sp_tensor handle;
            const Sizes sizes = sizes_of(shape);
            check(sp_tensor_expand(t.handle, sizes.count, sizes.values, &handle));
            return tensor_object(handle);
        },
        "A view in which dimensions of size 1 are repeated. ValueError for another size.");
    c.def(
        "permute",
        [](const Tensor &t, const nb::args &axes) {
            sp_tensor handle;
            const Sizes sizes = sizes_of(axes);
            check(sp_tensor_permute(t.handle, sizes.values, sizes.count, &handle));
            return tensor_object(handle);
        },
        "A view whose dimension i is dimension axes[i]. ValueError if one is missing.");
    c.def(
        "transpose",
        [](const Tensor &t, const IntArgument &axis, const IntArgument &other) {
            sp_tensor handle;
            check(sp_tensor_transpose(t.handle, integer_of(axis, "axis"),
                                      integer_of(other, "other"), &handle));
            return tensor_object(handle);
        },
        nb::arg("axis") = -2, nb::arg("other") = -1, "A view with two dimensions exchanged.");
    c.def(
        "select",
        [](const Tensor &t, const IntArgument &axis, const IntArgument &index) {
            sp_tensor handle;
            check(sp_tensor_select(t.handle, integer_of(axis, "axis"), integer_of(index, "index"),
                                   &handle));
            return tensor_object(handle);
        },
        nb::arg("axis"), nb::arg("index"),
        "A view of one element along an axis, without the axis. ValueError if there is none.");
    c.def("slice", axis_slice, nb::arg("axis"), nb::arg("start"), nb::arg("count"),
          nb::arg("step") = 1,
          "A view of `count` elements along an axis, from `start` on. ValueError if there are "
          "fewer.");
    c.def(
        "squeeze",
        [](const Tensor &t, const IntArgument &axis) {
            return axis_view(t, sp_tensor_squeeze, axis);
        },
        nb::arg("axis"), "A view without a dimension of size 1. ValueError for another size.");
    c.def(
        "unsqueeze",
        [](const Tensor &t, const IntArgument &axis) {
            return axis_view(t, sp_tensor_unsqueeze, axis);
        },
        nb::arg("axis"), "A view with one more dimension of size 1.");
    c.def(
        "view_as",
        [](const Tensor &t, nb::handle dtype) {
            sp_tensor handle;
            check(sp_tensor_view_as(t.handle, dtype_of(dtype), &handle));
            return tensor_object(handle);
        },
        nb::arg("dtype").none(),
        "The same bytes as elements of another dtype. ValueError if that has another size.");
}

/* An object of Tensor.__new__ has no tensor. */
const Tensor &tensor_of(nb::handle_t<Tensor> self)
{
    if (!nb::inst_ready(self)) raise_type("this Tensor has not been made by the package");
    return *nb::inst_ptr<Tensor>(self);
}

/* The object of a reference that a call has given: `self` if the call gave its own tensor. */
TensorObject same_or_new(nb::handle_t<Tensor> self, sp_tensor given)
{
    if (given.bits != tensor_of(self).handle.bits) return tensor_object(given);
    sp_tensor_release(given);
    return nb::borrow<TensorObject>(self);
}

void bind_copies(nb::class_<Tensor> &c)
{
    c.def(
        "contiguous",
        [](nb::handle_t<Tensor> self) {
            const Tensor &t = tensor_of(self);
            sp_tensor handle;
            check(unlocked_wait([&] { return sp_tensor_contiguous(t.handle, &handle); }));
            return same_or_new(self, handle);
        },
        "The tensor itself, or a contiguous copy.");
    c.def(
        "copy_",
        [](nb::handle_t<Tensor> self, const TensorArgument &source) {
            const Tensor &t = tensor_of(self);
            const Tensor &from = instance_of<Tensor>(
                source, "source", "a Tensor, which streampool.tensor() makes of an array");
            check(unlocked_wait([&] { return sp_tensor_copy(t.handle, from.handle); }));
            return nb::borrow<TensorObject>(self);
        },
        nb::arg("source"),
        "Copies the elements of a tensor of the same dtype and shape, perhaps of another device. "
        "ValueError for others.");
    c.def(
        "to",
        [](nb::handle_t<Tensor> self, nb::handle device) {
            const Tensor &t = tensor_of(self);
            sp_tensor handle;
            const sp_device wanted = device_of(device);
            check(unlocked_wait([&] { return sp_tensor_to(t.handle, wanted, &handle); }));
            return same_or_new(self, handle);
        },
        nb::arg("device").none(), "The tensor itself, or a contiguous copy on the device.");
    c.def("read", read, "A copy of the elements as a NumPy array; of bfloat16 as uint16.");
    c.def(
        "cast",
        [](const Tensor &t, nb::handle dtype) {
            sp_tensor handle;
            const sp_dtype wanted = dtype_of(dtype);
            check(unlocked_wait([&] { return sp_cast(t.handle, wanted, &handle); }));
            return tensor_object(handle);
        },
        nb::arg("dtype").none(),
        "The elements as another dtype, rounded as by ONNX Cast. TypeError for what is no dtype.");
}

/* To and from what is not a tensor. */
void bind_exchange(nb::class_<Tensor> &c)
{
    c.def(
        "numpy",
        [](const Tensor &t) {
            (void)numpy_dtype(t.info().dtype);
            return read(t);
        },
        "A copy as a NumPy array. TypeError for bfloat16, which NumPy lacks: cast it.");
    c.def(
        "__array__",
        [](const Tensor &t, nb::handle dtype, nb::handle copy) {
            if (!copy.is_none() && !truth_of(copy)) {
                raise_value("numpy() of a tensor is a copy; numpy.from_dlpack makes none");
            }
            (void)numpy_dtype(t.info().dtype);
            const nb::any array = read(t);
            return dtype.is_none() ? array : nb::borrow<nb::any>(array.attr("astype")(dtype));
        },
        nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none());
    c.def(
        "item", [](const Tensor &t) { return nb::borrow<nb::any>(read_numbers(t).attr("item")()); },
        "The only element as a number. ValueError for several.");
    c.def(
        "tolist",
        [](const Tensor &t) {
            (void)numpy_dtype(t.info().dtype);
            return nb::borrow<nb::any>(read(t).attr("tolist")());
        },
        "The elements as nested lists. TypeError for bfloat16: cast it.");
    c.def("__float__", [](const Tensor &t) { return nb::float_(read_numbers(t).attr("item")()); });
    c.def("__int__", [](const Tensor &t) { return nb::int_(read_numbers(t).attr("item")()); });
    c.def("__bool__",
          [](const Tensor &t) { return nb::cast<bool>(read_numbers(t).attr("__bool__")()); });
    c.def("__repr__", [](const Tensor &t) {
        sp_tensor_info info;
        const sp_status status = sp_tensor_get_info(t.handle, &info);
        if (status != SP_OK) return unknown_text("Tensor", status);
        return nb::str("streampool.Tensor(shape={}, dtype={})")
            .format(shape_tuple(info.shape, info.rank), dtype_name(info.dtype));
    });
}

} // namespace

sp_tensor_info Tensor::info() const
{
    sp_tensor_info info;
    check(sp_tensor_get_info(handle, &info));
    return info;
}

TensorObject tensor_object(sp_tensor handle)
{
    /* The Python layer's class, which has the operators. */
    return nb::borrow<TensorObject>(nb::cast(new Tensor(handle), nb::rv_policy::take_ownership));
}

nb::object tensor_of_memory(std::unique_ptr<HostMemory> memory)
{
    const sp_host_tensor &tensor = memory->tensor;
    sp_adopt_options options = {};
    options.release = release_memory;
    options.ctx = memory.get();
    sp_storage storage;
    sp_tensor handle;
    check(sp_storage_adopt({}, tensor.data, tensor.bytes, &options, &storage));
    const sp_host_tensor shape = memory.release()->tensor; /* of the storage now */
    const sp_status status =
        sp_tensor_from_storage(storage, 0, shape.dtype, shape.rank, shape.shape, nullptr, &handle);
    sp_storage_release(storage);
    check(status);
    return tensor_object(handle);
}

void bind_tensor(nb::module_ &m)
{
    nb::class_<Tensor> c(
        m, "Tensor", nb::dynamic_attr(), nb::is_weak_referenceable(),
        "A typed, strided array in a device's memory. Immutable in type and "
        "shape; uses from any thread are ordered. Operators on Tensors, views and "
        "copies return at once, unless the stream is full; a number or an array beside "
        "one may wait for memory that earlier commands use. They raise TypeError (other objects, "
        "a float beside integers), OverflowError (integers that a dtype lacks), ValueError "
        "(shapes, axes, dtypes that differ), IndexError, Error "
        "(an operator has no kernel for a dtype), MemoryError; what reads elements "
        "also raises the Error that a command has failed with.");
    c.def(
        "__init__",
        [](Tensor *, const nb::args &, const nb::kwargs &) {
            raise_type("streampool.tensor() makes a Tensor of an array");
        },
        "Not for calls: streampool.tensor() makes a Tensor of an array.");
    c.def_prop_ro(
        "shape",
        [](const Tensor &t) {
            const sp_tensor_info info = t.info();
            return sizes_object(info.shape, info.rank);
        },
        "Sizes, outermost dimension first.");
    c.def_prop_ro(
        "strides",
        [](const Tensor &t) {
            const sp_tensor_info info = t.info();
            return sizes_object(info.strides, info.rank);
        },
        "In elements.");
    c.def_prop_ro(
        "dtype", [](const Tensor &t) { return nb::str(dtype_name(t.info().dtype)); },
        "\"float32\", \"bfloat16\", ...");
    c.def_prop_ro("ndim", [](const Tensor &t) { return t.info().rank; }, "Dimensions, at most 8.");
    c.def_prop_ro(
        "nbytes", [](const Tensor &t) { return t.info().bytes; }, "Bytes of all elements.");
    c.def_prop_ro(
        "device", [](const Tensor &t) { return Device{t.info().device}; },
        "The device that the elements are on.");
    c.def_prop_ro(
        "is_contiguous", [](const Tensor &t) { return t.info().is_contiguous; },
        "Whether the elements are in memory in the order of their indices, without gaps.");
    bind_views(c);
    bind_tensor_ops(c);
    bind_exchange(c);
    bind_dlpack(m, c);
    bind_copies(c);
    m.def("tensor_of_buffer", tensor_of_buffer, nb::arg("array"), nb::arg("dtype"),
          nb::arg("device").none());
}

} // namespace py
