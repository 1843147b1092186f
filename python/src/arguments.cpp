/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments.hpp"

#include <cstring>

#include "errors.hpp"

namespace nb = nanobind;

namespace py
{

std::string class_name(nb::handle object)
{
    return nb::borrow<nb::str>(object.type().attr("__name__")).c_str();
}

void raise_kind(const char *what, const char *wanted, nb::handle object)
{
    raise_type("%s is %s; an object of type %s was given", what, wanted,
               class_name(object).c_str());
}

const char *text_of(nb::handle object, const char *what)
{
    Py_ssize_t bytes;
    if (!PyUnicode_Check(object.ptr())) raise_kind(what, "a string", object);
    const char *text = PyUnicode_AsUTF8AndSize(object.ptr(), &bytes);
    if (text == nullptr) throw nb::python_error(); /* UnicodeEncodeError, which is a ValueError */
    if (strlen(text) != static_cast<size_t>(bytes)) {
        raise_value("%s has a null character: %s", what, nb::repr(object).c_str());
    }
    return text;
}

int64_t integer_of(nb::handle object, const char *what)
{
    if (!PyIndex_Check(object.ptr())) raise_kind(what, "an integer", object);
    const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    int overflow;
    const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0) raise_value("%s does not fit 64 bits", what);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    return value;
}

double number_of(nb::handle object, const char *what)
{
    const double value = PyFloat_AsDouble(object.ptr());
    if (value != -1 || !PyErr_Occurred()) return value;
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        raise_kind(what, "a number", object);
    }
    throw nb::python_error();
}

bool truth_of(nb::handle object)
{
    const int truth = PyObject_IsTrue(object.ptr());
    if (truth < 0) throw nb::python_error();
    return truth != 0;
}

} // namespace py
