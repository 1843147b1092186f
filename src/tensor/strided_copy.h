/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies: how to copy the elements of one layout to those of another of the same shape, in
 * the cheapest order: reversed where the destination is reversed, outermost where its strides are
 * large, neighbouring dimensions collapsed. Kernels and the host execute the same plan. */
#ifndef SP_TENSOR_STRIDED_COPY_H
#define SP_TENSOR_STRIDED_COPY_H

#include "tensor/layout.h"

/* Strides and positions count elements. A position is relative to the lowest element of its side,
 * which is at byte offset - below of the layout's storage. */
typedef struct sp_strided_copy {
    uint32_t rank; /* at least 1 */
    uint32_t element_bytes;
    int64_t count; /* of elements */
    int64_t dims[SP_MAX_RANK];
    int64_t from[SP_MAX_RANK], to[SP_MAX_RANK]; /* strides; those of `to` are not negative */
    int64_t from_first, to_first;               /* positions of the first element copied */
} sp_strided_copy;

/* The layouts have one shape and elements of one size. */
void sp__strided_copy_plan(const sp_layout *to, const sp_layout *from, sp_strided_copy *out);

/* Both sides are the same contiguous range of elements, in order. */
bool sp__strided_copy_is_plain(const sp_strided_copy *copy);

/* Copies on the host. Each address is that of the lowest element of its side, aligned or not. */
void sp__strided_copy_on_host(const sp_strided_copy *copy, void *to, const void *from);

#endif
