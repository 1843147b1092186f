/* SPDX-License-Identifier: Apache-2.0 */
#include "errors.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

namespace nb = nanobind;

namespace py
{

namespace
{

/* Of the Python layer, by status: a list of (class, status). process-wide: one interpreter. */
PyObject *classes;

/* A message may have bytes of a file that are no text, and may be cut inside of a character. */
nb::object decoded(const char *text)
{
    return nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(strlen(text)), "replace"));
}

[[noreturn]] void raise_text(PyObject *type, const char *format, va_list arguments)
{
    char text[512];
    std::vsnprintf(text, sizeof text, format, arguments);
    PyErr_SetObject(type, decoded(text).ptr());
    throw nb::python_error();
}

} // namespace

nb::object error_of(sp_status status, const char *message)
{
    const auto pair = nb::borrow<nb::tuple>(PyList_GetItem(classes, status));
    nb::object error = pair[0](decoded(message != nullptr ? message : sp_last_error()));
    error.attr("status") = pair[1];
    return error;
}

void raise(sp_status status, const char *message)
{
    /* What a signal handler has raised during the call (unlocked_read). */
    if (PyErr_Occurred()) throw nb::python_error();
    const nb::object error = error_of(status, message);
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

void raise(sp_status status)
{
    raise(status, nullptr);
}

void raise_type(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    raise_text(PyExc_TypeError, format, arguments);
}

void raise_value(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    raise_text(PyExc_ValueError, format, arguments);
}

void bind_errors(nb::module_ &m)
{
    m.def(
        "set_error_classes",
        [](const nb::list &pairs) {
            PyObject *before = classes;
            classes = nb::object(pairs).release().ptr();
            Py_XDECREF(before);
        },
        "Sets the (class, status) of each status, by its value.");
    m.def(
        "statuses",
        [] {
            nb::list all;
#define SP_PY_STATUS(code, value, text) all.append(nb::make_tuple(#code, value, text));
            SP_STATUS_LIST(SP_PY_STATUS)
#undef SP_PY_STATUS
            return all;
        },
        "(name, value, text) of every status of the library.");
}

} // namespace py
