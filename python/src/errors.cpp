/* SPDX-License-Identifier: Apache-2.0 */
#include "errors.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
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

/* What the library's messages advise, in terms of the package. */
constexpr const char *advice[][2] = {
    {"sp_tensor_contiguous", "contiguous()"},
    {"sp_tensor_to", "to()"},
    {"sp_tensor_expand", "expand()"},
    {"sp_storage_copy_async", "to() or copy_()"},
    {"get one from sp_device_at or sp_device_open", "streampool.device() gives one"},
    {"is closed by sp_shutdown only", "cannot be closed"},
    {"streampool was shut down (sp_shutdown)", "streampool was shut down"},
    {"the shutdown (sp_shutdown) or exit", "the shutdown or exit"},
    /* A thread of Python has an access open in a signal handler that interrupts its wait. */
    {"call sp_storage_host_end first, or wait outside the function",
     "wait outside of the signal handler"},
    {"sp_model_load_from_memory: len is", "the source has"},
};

std::string in_python(std::string text)
{
    for (const auto &[from, to] : advice) {
        for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += strlen(to)) {
            text.replace(at, strlen(from), to);
        }
    }
    return text;
}

[[noreturn]] void raise_text(PyObject *type, const char *format, va_list arguments)
{
    char text[512];
    std::vsnprintf(text, sizeof text, format, arguments);
    PyErr_SetObject(type, decoded(text).ptr());
    throw nb::python_error();
}

/* (path, errno), for the Python layer. */
void add_file(const nb::object &error)
{
    int code = 0;
    const char *file = sp_last_error_file(&code);
    if (file != nullptr) error.attr("_file") = nb::make_tuple(nb::bytes(file), code);
}

} // namespace

nb::object error_of(sp_status status, const char *message)
{
    const auto pair = nb::borrow<nb::tuple>(PyList_GetItem(classes, status));
    const std::string text = in_python(message != nullptr ? message : sp_last_error());
    nb::object error = pair[0](decoded(text.c_str()));
    error.attr("status") = pair[1];
    if (status == SP_IO && message == nullptr) add_file(error);
    return error;
}

void raise(sp_status status, const char *message)
{
    /* What a signal handler has raised during the call (unlocked_wait). */
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
