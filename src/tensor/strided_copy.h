/* SPDX-License-Identifier: Apache-2.0 */
/* Moves: what it takes to copy the elements of one layout to the places of another of the same
 * shape, in whatever order is cheapest: reversed where the destination is reversed, outermost where
 * its steps are large, neighbouring dimensions made one. Kernels and the host read the same plan.
 */
#ifndef SP_TENSOR_STRIDED_COPY_H
#define SP_TENSOR_STRIDED_COPY_H

#include "tensor/layout.h"

/* Strides and places count elements. A place counts from the lowest element of its side, which is
 * at byte offset - below of the layout's storage. */
typedef struct sp_strided_copy {
    uint32_t rank; /* at least 1 */
    uint32_t element_bytes;
    int64_t count; /* of elements */
    int64_t dims[SP_MAX_RANK];
    int64_t from[SP_MAX_RANK], to[SP_MAX_RANK]; /* strides; those of `to` are not negative */
    int64_t from_first, to_first;               /* places of the first element moved */
} sp_strided_copy;

/* The layouts have one shape and elements of one size. */
void sp__strided_copy_plan(const sp_layout *to, const sp_layout *from, sp_strided_copy *out);

/* Both sides are the same stretch of elements, in order. */
bool sp__strided_copy_is_plain(const sp_strided_copy *move);

/* Moves on the host. Each address is that of the lowest element of its side, aligned or not. */
void sp__strided_copy_on_host(const sp_strided_copy *move, void *to, const void *from);

#endif
