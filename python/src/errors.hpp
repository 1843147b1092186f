/* SPDX-License-Identifier: Apache-2.0 */
/* A status as an exception: its class by the status, its text the library's message. */
#ifndef SP_PYTHON_ERRORS_HPP
#define SP_PYTHON_ERRORS_HPP

#include <nanobind/nanobind.h>

#include <streampool/status.h>

namespace py
{

/* The exception for a status; `message` NULL: the calling thread's last error. */
nanobind::object error_of(sp_status status, const char *message = nullptr);

[[noreturn]] void raise(sp_status status);
[[noreturn]] void raise(sp_status status, const char *message);
/* A built-in exception. */
[[noreturn]] void raise_type(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void raise_value(const char *format, ...) __attribute__((format(printf, 1, 2)));

inline void check(sp_status status)
{
    if (status != SP_OK) raise(status);
}

/* What `repr` shows of an object that the library does not describe, as in a forked child: logs and
 * debuggers ask anywhere, so it is no exception. */
inline nanobind::str unknown_text(const char *type, sp_status status)
{
    const char *name = sp_status_name(status);
    constexpr size_t prefix = sizeof "SP_" - 1;
    return nanobind::str("streampool.{}({})").format(type, name + prefix);
}

void bind_errors(nanobind::module_ &m);

} // namespace py

#endif
