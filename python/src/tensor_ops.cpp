/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_ops.hpp"

#include <cstring>

#include <streampool/ops.h>

#include "arguments.hpp"
#include "device.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

[[noreturn]] void raise_out_of_range(nb::handle number, sp_dtype dtype)
{
    PyErr_Format(PyExc_OverflowError, "%R does not fit a tensor of dtype %s", number.ptr(),
                 dtype_name(dtype));
    throw nb::python_error();
}

/* Does a type of integers, or bool, have the number? */
bool has_integer(sp_dtype dtype, nb::handle number)
{
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    const bool is_signed = dtype <= SP_I64;
    const auto bits = static_cast<int>(sp_dtype_bytes(dtype) * 8);
    if (overflow != 0) {
        const bool may_fit = dtype == SP_U64 && overflow > 0;
        return may_fit && nb::cast<int64_t>(number.attr("bit_length")()) <= bits;
    }
    if (dtype == SP_BOOL) return value == 0 || value == 1;
    if (!is_signed && value < 0) return false;
    return bits == 64 || (value < 0 ? -(value + 1) : value) >> (is_signed ? bits - 1 : bits) == 0;
}

/* NumPy before 2 wraps integers around, and warns. */
nb::object array_of_number(nb::handle number, sp_dtype staged, sp_dtype dtype)
{
    if (dtype > SP_BF16 && !has_integer(dtype, number)) raise_out_of_range(number, dtype);
    try {
        return numpy_array(number, staged);
    } catch (nb::python_error &error) {
        if (!error.matches(PyExc_OverflowError)) throw;
    }
    raise_out_of_range(number, dtype);
}

/* A number as a tensor of rank 0 with the dtype of the other operand. A float for a tensor of
 * integers, and an integer out of their range, are refused: the result would lose them. */
TensorObject scalar_of(nb::handle number, const Tensor &like)
{
    const sp_tensor_info info = like.info();
    const bool is_float = info.dtype <= SP_BF16;
    if (!is_float && PyFloat_Check(number.ptr())) {
        raise_type("a float does not fit a tensor of dtype %s", dtype_name(info.dtype));
    }
    const sp_dtype staged = info.dtype == SP_BF16 ? SP_F32 : info.dtype;
    const nb::object array = array_of_number(number, staged, info.dtype);
    Py_buffer buffer;
    sp_tensor handle, cast;
    if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_SIMPLE) != 0) throw nb::python_error();
    sp_status status = unlocked_wait([&] {
        return sp_tensor_from_host(info.device, staged, 0, nullptr, buffer.buf,
                                   static_cast<uint64_t>(buffer.len), &handle);
    });
    PyBuffer_Release(&buffer);
    check(status);
    TensorObject scalar = tensor_object(handle);
    if (staged == info.dtype) return scalar;
    check(unlocked_wait([&] { return sp_cast(handle, info.dtype, &cast); }));
    return tensor_object(cast);
}

bool is_number(nb::handle value)
{
    return PyBool_Check(value.ptr()) || PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr());
}

/* NumPy's numbers are Python's, its arrays are tensors of their dtype. A null object: the operand
 * is nothing of these. */
nb::object operand_of(nb::handle value, const Tensor &other)
{
    if (is_instance<Tensor>(value)) return nb::borrow(value);
    if (is_number(value)) return scalar_of(value, other);
    if (is_numpy_scalar(value)) {
        const nb::object number = number_of_numpy(value);
        if (is_number(number)) return scalar_of(number, other);
        raise_kind("an operand", "a Tensor, an array, or a number that a Tensor can have", value);
    }
    if (!is_numpy_array(value)) return nb::object();
    return nb::type<Tensor>().attr("_of_array")(value, nb::none(), Device{other.info().device});
}

template <bool is_reflected>
TensorObject binary(const char *op, const Tensor &self, nb::handle value)
{
    const nb::object operand = operand_of(value, self);
    if (!operand.is_valid()) return nb::borrow<TensorObject>(Py_NotImplemented);
    if (strcmp(op, "Div") == 0 && self.info().dtype > SP_BF16) {
        raise_type("/ of %s would lose what is left over: cast the tensor to a type of floats, or "
                   "use ops.Div, which rounds towards zero",
                   dtype_name(self.info().dtype));
    }
    const sp_tensor other = nb::cast<const Tensor &>(operand).handle;
    const sp_tensor inputs[] = {is_reflected ? other : self.handle,
                                is_reflected ? self.handle : other};
    sp_tensor result;
    check(unlocked_wait([&] { return sp_op_run(op, nullptr, inputs, 2, &result, 1); }));
    return tensor_object(result);
}

TensorObject unary(const char *op, const Tensor &self)
{
    sp_tensor result;
    check(unlocked_wait([&] { return sp_op_run(op, nullptr, &self.handle, 1, &result, 1); }));
    return tensor_object(result);
}

/* ---- indices ---- */

TensorObject sliced(const Tensor &tensor, int64_t axis, nb::handle slice)
{
    Py_ssize_t start, stop, step;
    const sp_tensor_info info = tensor.info();
    if (PySlice_Unpack(slice.ptr(), &start, &stop, &step) != 0) throw nb::python_error();
    const Py_ssize_t count = PySlice_AdjustIndices(info.shape[axis], &start, &stop, step);
    sp_tensor handle;
    check(sp_tensor_slice(tensor.handle, axis, count > 0 ? start : 0, count, step, &handle));
    return tensor_object(handle);
}

TensorObject selected(const Tensor &tensor, int64_t axis, int64_t index)
{
    const sp_tensor_info info = tensor.info();
    sp_tensor handle;
    if (index >= info.shape[axis] || index < -info.shape[axis]) {
        PyErr_SetString(PyExc_IndexError, "the index is out of range");
        throw nb::python_error();
    }
    check(sp_tensor_select(tensor.handle, axis, index, &handle));
    return tensor_object(handle);
}

[[noreturn]] void raise_too_many(uint32_t rank)
{
    PyErr_Format(PyExc_IndexError, "too many indices: the tensor has %u dimensions", rank);
    throw nb::python_error();
}

TensorObject unsqueezed(const Tensor &tensor, int64_t axis)
{
    sp_tensor handle;
    check(sp_tensor_unsqueeze(tensor.handle, axis, &handle));
    return tensor_object(handle);
}

/* ONNX has no operator for it. */
TensorObject not_equal(const Tensor &self, nb::handle value)
{
    const TensorObject equal = binary<false>("Equal", self, value);
    if (equal.is(Py_NotImplemented)) return equal;
    return unary("Not", nb::cast<const Tensor &>(equal));
}

/* The dimensions that `...` stands for. */
uint32_t left_by(const nb::tuple &indices, uint32_t rank)
{
    uint32_t indexed = 0, ellipses = 0;
    for (const nb::handle index : indices) {
        if (index.is(Py_Ellipsis)) ellipses++;
        else if (!index.is_none()) indexed++;
    }
    if (indexed > rank) raise_too_many(rank);
    if (ellipses <= 1) return rank - indexed;
    PyErr_SetString(PyExc_IndexError, "there can be one '...' among the indices");
    throw nb::python_error();
}

/* Integers, slices, None and `...`, one or a tuple of them. A view. */
TensorObject get_item(nb::handle_t<Tensor> self, nb::handle indices)
{
    auto result = nb::borrow<TensorObject>(self);
    const bool is_tuple = PyTuple_Check(indices.ptr());
    const nb::tuple all =
        is_tuple ? nb::borrow<nb::tuple>(indices) : nb::make_tuple(nb::borrow(indices));
    const uint32_t left = left_by(all, nb::cast<const Tensor &>(self).info().rank);
    int64_t axis = 0;
    for (const nb::handle index : all) {
        const Tensor &tensor = nb::cast<const Tensor &>(result);
        if (PyBool_Check(index.ptr())) {
            raise_type("an index is an integer, a slice, None or '...', and no bool");
        } else if (index.is(Py_Ellipsis)) {
            axis += left;
        } else if (index.is_none()) {
            result = unsqueezed(tensor, axis++);
        } else if (PySlice_Check(index.ptr())) {
            result = sliced(tensor, axis++, index);
        } else if (PyIndex_Check(index.ptr())) {
            const Py_ssize_t at = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
            if (at == -1 && PyErr_Occurred()) throw nb::python_error();
            result = selected(tensor, axis, at);
        } else {
            raise_type("an index is an integer, a slice, None or '...'");
        }
    }
    return result;
}

struct BinaryRow {
    const char *method, *reflected, *op; /* Python reflects comparisons itself */
};

} // namespace

void bind_tensor_ops(nb::class_<Tensor> &c)
{
    static const BinaryRow binaries[] = {
        {"__add__", "__radd__", "Add"}, {"__sub__", "__rsub__", "Sub"},
        {"__mul__", "__rmul__", "Mul"}, {"__truediv__", "__rtruediv__", "Div"},
        {"__pow__", "__rpow__", "Pow"}, {"__matmul__", "__rmatmul__", "MatMul"},
        {"__lt__", nullptr, "Less"},    {"__le__", nullptr, "LessOrEqual"},
        {"__gt__", nullptr, "Greater"}, {"__ge__", nullptr, "GreaterOrEqual"},
        {"__and__", "__rand__", "And"}, {"__or__", "__ror__", "Or"},
        {"__xor__", "__rxor__", "Xor"}, {"__eq__", nullptr, "Equal"},
    };
    for (const BinaryRow &row : binaries) {
        const char *op = row.op;
        c.def(
            row.method, [op](const Tensor &a, nb::handle b) { return binary<false>(op, a, b); },
            nb::is_operator());
        if (row.reflected == nullptr) continue;
        c.def(
            row.reflected, [op](const Tensor &a, nb::handle b) { return binary<true>(op, a, b); },
            nb::is_operator());
    }
    c.def("__neg__", [](const Tensor &t) { return unary("Neg", t); });
    c.def("__abs__", [](const Tensor &t) { return unary("Abs", t); });
    c.def("__invert__", [](const Tensor &t) { return unary("Not", t); });
    c.def("__ne__", not_equal, nb::is_operator());
    /* Of the object: that of the elements would need a wait. */
    c.def("__hash__", [](nb::handle_t<Tensor> t) {
        return static_cast<Py_ssize_t>(reinterpret_cast<uintptr_t>(t.ptr()) >> 4);
    });
    c.def("__getitem__", get_item, nb::arg("index").none(),
          "A view: integers, slices, None and '...'.");
    c.def("__len__", [](const Tensor &t) {
        const sp_tensor_info info = t.info();
        if (info.rank == 0) raise_type("a tensor of rank 0 has no length");
        return info.shape[0];
    });
}

} // namespace py
