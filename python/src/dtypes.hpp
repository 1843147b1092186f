/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: the library's, those of the buffer protocol, and NumPy's. */
#ifndef SP_PYTHON_DTYPES_HPP
#define SP_PYTHON_DTYPES_HPP

#include <nanobind/nanobind.h>

#include <streampool/dtype.h>

namespace py
{

/* Of a buffer's format and size of an element; SP_DTYPE_NONE: none that the library has, or not in
 * the machine's byte order. */
sp_dtype dtype_of_format(const char *format, Py_ssize_t itemsize);

/* The name that the package uses: "float32", "bfloat16", "bool"; "none". */
const char *dtype_name(sp_dtype dtype);
/* The reverse, for strings and for what numpy.dtype() takes. TypeError for others. */
sp_dtype dtype_of(nanobind::handle object);

/* numpy.dtype of an element type; TypeError for bf16, which NumPy lacks. */
nanobind::handle numpy_dtype(sp_dtype dtype);
/* numpy.empty(shape, dtype): `shape` is a tuple. */
nanobind::object numpy_empty(nanobind::handle shape, sp_dtype dtype);
/* numpy.array(number, dtype). */
nanobind::object numpy_array(nanobind::handle number, sp_dtype dtype);
/* numpy.ndarray(shape, dtype, buffer): over the buffer's memory. */
nanobind::object numpy_ndarray(nanobind::handle shape, sp_dtype dtype, nanobind::handle buffer);
bool is_numpy_array(nanobind::handle object);
/* Arrays of rank 0 too: NumPy makes such of numbers in comparisons. */
bool is_numpy_scalar(nanobind::handle object);
/* A scalar of NumPy that is a bool, an integer or a float, as Python's; others may be anything. */
nanobind::object number_of_numpy(nanobind::handle scalar);
nanobind::object shape_tuple(const int64_t *shape, uint32_t rank);

void bind_dtypes(nanobind::module_ &m);

} // namespace py

#endif
