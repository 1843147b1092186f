/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of calls as values of C++. Each raises TypeError for an object of another type, and
 * ValueError for a value that has no place; `what` names the argument in the message. */
#ifndef SP_PYTHON_ARGUMENTS_HPP
#define SP_PYTHON_ARGUMENTS_HPP

#include <nanobind/nanobind.h>

#include <string>

namespace py
{

std::string class_name(nanobind::handle object);

/* A string, lent by the object. ValueError for one with a null character, which would end it in C,
 * or with half of a surrogate pair, which has no UTF-8. */
const char *text_of(nanobind::handle object, const char *what);
int64_t integer_of(nanobind::handle object, const char *what);
double number_of(nanobind::handle object, const char *what);
/* As bool(object); what that raises comes through. */
bool truth_of(nanobind::handle object);

[[noreturn]] void raise_kind(const char *what, const char *wanted, nanobind::handle object);

/* Whether it is an object of a class of the extension, whose __init__ has run. */
template <class T> bool is_instance(nanobind::handle object)
{
    return nanobind::isinstance<T>(object) && nanobind::inst_ready(object);
}

/* An object of a class of the extension; `wanted` names the class. */
template <class T>
const T &instance_of(nanobind::handle object, const char *what, const char *wanted)
{
    if (!is_instance<T>(object)) raise_kind(what, wanted, object);
    return *nanobind::inst_ptr<T>(object);
}

inline bool is_anything(nanobind::handle)
{
    return true;
}

/* Arguments that have a type in the stubs, and that the call itself checks, by the functions above:
 * nanobind would answer one of another type with a list of signatures. */
#define SP_PY_ARGUMENT(Name, type)                                                                 \
    class Name : public nanobind::object                                                           \
    {                                                                                              \
        NB_OBJECT(Name, nanobind::object, type, is_anything)                                       \
    };
SP_PY_ARGUMENT(IntArgument, "typing.SupportsIndex")
SP_PY_ARGUMENT(FloatArgument, "float")
SP_PY_ARGUMENT(BoolArgument, "bool")
SP_PY_ARGUMENT(TextArgument, "str")
SP_PY_ARGUMENT(TensorArgument, "_core.Tensor")
SP_PY_ARGUMENT(StreamArgument, "_core.Stream")
SP_PY_ARGUMENT(EventArgument, "_core.Event")
#undef SP_PY_ARGUMENT

} // namespace py

#endif
