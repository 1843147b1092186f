/* SPDX-License-Identifier: Apache-2.0 */
#include "dtypes.hpp"

#include <cstring>

#include "arguments.hpp"
#include "errors.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

constexpr uint32_t dtype_count = SP_BOOL + 1;

struct DtypeRow {
    const char *name;
    char kind; /* f, i, u, b; 'x': NumPy has none */
};

const DtypeRow rows[dtype_count] = {
    {"none", 0},     {"float32", 'f'}, {"float64", 'f'}, {"float16", 'f'}, {"bfloat16", 'x'},
    {"int8", 'i'},   {"int16", 'i'},   {"int32", 'i'},   {"int64", 'i'},   {"uint8", 'u'},
    {"uint16", 'u'}, {"uint32", 'u'},  {"uint64", 'u'},  {"bool", 'b'},
};

/* Of NumPy; set once, and kept for ever: calls import nothing. process-wide: one interpreter. */
struct {
    PyObject *dtype, *empty, *array, *ndarray, *scalar;
    PyObject *dtypes[dtype_count], *swapped[dtype_count]; /* of the other byte order */
} numpy;

sp_dtype dtype_of_kind(char kind, size_t bytes)
{
    for (uint32_t i = 1; i < dtype_count; i++) {
        const auto dtype = static_cast<sp_dtype>(i);
        if (rows[i].kind == kind && sp_dtype_bytes(dtype) == bytes) return dtype;
    }
    return SP_DTYPE_NONE;
}

char kind_of_format(char code)
{
    if (strchr("efd", code) != nullptr) return 'f';
    if (strchr("bhilqn", code) != nullptr) return 'i';
    if (strchr("BHILQN", code) != nullptr) return 'u';
    return code == '?' ? 'b' : 0;
}

void load_numpy()
{
    const nb::module_ module = nb::module_::import_("numpy");
    numpy.dtype = nb::object(module.attr("dtype")).release().ptr();
    numpy.empty = nb::object(module.attr("empty")).release().ptr();
    numpy.array = nb::object(module.attr("array")).release().ptr();
    numpy.ndarray = nb::object(module.attr("ndarray")).release().ptr();
    numpy.scalar = nb::object(module.attr("generic")).release().ptr();
    for (uint32_t i = 1; i < dtype_count; i++) {
        if (rows[i].kind == 'x') continue;
        const nb::object dtype = nb::handle(numpy.dtype)(rows[i].name);
        numpy.swapped[i] = nb::object(dtype.attr("newbyteorder")()).release().ptr();
        numpy.dtypes[i] = nb::object(dtype).release().ptr();
    }
}

} // namespace

sp_dtype dtype_of_format(const char *format, Py_ssize_t itemsize)
{
    if (format == nullptr) return SP_U8;
    if (*format == '@' || *format == '=' || *format == '<') format++; /* little-endian machines */
    if (format[0] == 0 || format[1] != 0) return SP_DTYPE_NONE;
    const char kind = kind_of_format(*format);
    return kind != 0 ? dtype_of_kind(kind, static_cast<size_t>(itemsize)) : SP_DTYPE_NONE;
}

const char *dtype_name(sp_dtype dtype)
{
    return rows[dtype < dtype_count ? dtype : 0].name;
}

static bool is_same(PyObject *dtype, PyObject *known)
{
    if (known == nullptr) return false;
    const int is = PyObject_RichCompareBool(dtype, known, Py_EQ);
    if (is < 0) throw nb::python_error();
    return is != 0;
}

/* SP_DTYPE_NONE: one that NumPy lacks, or that we lack. */
static sp_dtype dtype_of_numpy(nb::handle dtype)
{
    for (uint32_t i = 1; i < dtype_count; i++) {
        if (dtype.ptr() == numpy.dtypes[i]) return static_cast<sp_dtype>(i);
    }
    for (uint32_t i = 1; i < dtype_count; i++) {
        const bool is =
            is_same(dtype.ptr(), numpy.dtypes[i]) || is_same(dtype.ptr(), numpy.swapped[i]);
        if (is) return static_cast<sp_dtype>(i);
    }
    return SP_DTYPE_NONE;
}

/* Of one that is of another library, as bfloat16 of ml_dtypes, its type has the name. That of
 * others is computed by a module of NumPy that each use imports. */
static nb::object name_of_numpy(nb::handle dtype)
{
    const bool is_foreign = nb::object(dtype.attr("isbuiltin")).equal(nb::int_(2));
    if (is_foreign) return dtype.attr("type").attr("__name__");
    return dtype.attr("name");
}

sp_dtype dtype_of(nb::handle object)
{
    nb::object name = nb::borrow(object);
    /* For NumPy None is float64. */
    if (object.is_none()) raise_kind("dtype", "a name such as 'float32', or NumPy's", object);
    if (!PyUnicode_Check(object.ptr())) {
        const nb::object dtype = nb::handle(numpy.dtype)(object);
        const sp_dtype known = dtype_of_numpy(dtype);
        if (known != SP_DTYPE_NONE) return known;
        name = name_of_numpy(dtype);
    }
    const char *text = text_of(name, "dtype");
    for (uint32_t i = 1; i < dtype_count; i++) {
        if (strcmp(text, rows[i].name) == 0) return static_cast<sp_dtype>(i);
    }
    raise_type(
        "dtype %s is not one of float16, bfloat16, float32, float64, int8 to int64, uint8 to "
        "uint64, bool",
        text);
}

nb::handle numpy_dtype(sp_dtype dtype)
{
    if (numpy.dtypes[dtype] == nullptr) raise_type("NumPy has no dtype %s", dtype_name(dtype));
    return numpy.dtypes[dtype];
}

nb::object numpy_empty(nb::handle shape, sp_dtype dtype)
{
    PyObject *const arguments[] = {shape.ptr(), numpy_dtype(dtype).ptr()};
    PyObject *array = PyObject_Vectorcall(numpy.empty, arguments, 2, nullptr);
    if (array == nullptr) throw nb::python_error();
    return nb::steal(array);
}

nb::object numpy_array(nb::handle number, sp_dtype dtype)
{
    return nb::handle(numpy.array)(number, numpy_dtype(dtype));
}

nb::object numpy_ndarray(nb::handle shape, sp_dtype dtype, nb::handle buffer)
{
    return nb::handle(numpy.ndarray)(shape, numpy_dtype(dtype), buffer);
}

static bool is_instance_of(nb::handle object, PyObject *type)
{
    const int is = PyObject_IsInstance(object.ptr(), type);
    if (is < 0) throw nb::python_error();
    return is != 0;
}

bool is_numpy_array(nb::handle object)
{
    return is_instance_of(object, numpy.ndarray);
}

bool is_numpy_scalar(nb::handle object)
{
    if (is_instance_of(object, numpy.scalar)) return true;
    return is_numpy_array(object) && nb::object(object.attr("ndim")).equal(nb::int_(0));
}

nb::object number_of_numpy(nb::handle scalar)
{
    const nb::object kind = scalar.attr("dtype").attr("kind");
    if (strchr("biuf", *text_of(kind, "the kind of a dtype")) == nullptr) return nb::none();
    return scalar.attr("item")();
}

nb::object shape_tuple(const int64_t *shape, uint32_t rank)
{
    PyObject *tuple = PyTuple_New(rank);
    if (tuple == nullptr) throw nb::python_error();
    for (uint32_t i = 0; i < rank; i++) {
        PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
    }
    return nb::steal(tuple);
}

void bind_dtypes(nb::module_ &m)
{
    static_assert(SP_F32 == 1 && SP_F64 == 2 && SP_F16 == 3 && SP_BF16 == 4 && SP_I8 == 5 &&
                  SP_I64 == 8 && SP_U8 == 9 && SP_U64 == 12 && SP_BOOL == 13);
    m.def("load_numpy", load_numpy,
          "Before all else. Not by the import: stubs are made where there is no NumPy.");
    m.def(
        "dtype_name", [](nb::handle dtype) { return nb::str(dtype_name(dtype_of(dtype))); },
        nb::arg("dtype"), "The package's name of a dtype.");
}

} // namespace py
