/* SPDX-License-Identifier: Apache-2.0 */
/* .npy, NumPy's file of one array: 6 bytes of magic, a version, a header that is a Python
 * dictionary
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *
 * and the elements. Versions 1.0, 2.0 and 3.0 are read (they differ in the width of the header's
 * length, and in its encoding); either byte order and either order of elements. Objects, structs,
 * text and complex numbers are refused. Memory is bounded by the file's size. */
#ifndef SP_IO_NPY_H
#define SP_IO_NPY_H

#include "tensor/array.h"

/* The array of a whole file in memory: contiguous, in the machine's byte order; freed with
 * sp__array_deinit. Errors: SP_CORRUPT, SP_UNSUPPORTED, SP_OUT_OF_MEMORY, those of shapes. */
sp_status sp__npy_load(const void *bytes, size_t len, sp_array *out);

/* A whole file, of version 1.0, in memory that the caller frees with sp_free. SP_UNSUPPORTED for
 * bf16, which NumPy does not have. */
sp_status sp__npy_save(const sp_array_view *array, void **bytes, size_t *len);

#endif
