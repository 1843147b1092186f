/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: where the elements of a tensor are in its storage. Element [i0, i1, ...] begins at byte
 *
 *     offset + (i0 * strides[0] + i1 * strides[1] + ...) * bytes of an element
 *
 * A plain value. A layout that sp__layout_init has made fits into its storage, and so does every
 * layout made of it here: that is checked once, by overflow-safe arithmetic. Invariants:
 *
 *     offset is a multiple of the element's bytes
 *     no element is further than 2^56 bytes from the first
 *     strides of dimensions of fewer than 2 elements have no meaning, and are those of a tensor
 * contiguous in its inner dimensions; so   is contiguous  <=>  strides are those of the shape
 *
 * Strides may be 0 (a repeated dimension) and negative (a reversed one). */
#ifndef SP_TENSOR_LAYOUT_H
#define SP_TENSOR_LAYOUT_H

#include "tensor/shape.h"

typedef struct sp_layout {
    sp_dtype dtype;
    sp_shape shape;
    int64_t strides[SP_MAX_RANK]; /* in elements */
    uint64_t offset;              /* in bytes, of the first element */
} sp_layout;

/* Checks all; NULL strides are those of a contiguous tensor. Errors: SP_INVALID (no dtype, offset
 * not a multiple of its bytes, elements outside of `storage_bytes`), SP_MISMATCH and SP_EXHAUSTED
 * as of shapes. */
sp_status sp__layout_init(sp_layout *out, sp_dtype dtype, const sp_shape *shape,
                          const int64_t *strides, uint64_t offset, uint64_t storage_bytes);

/* The same without a storage: contiguous, at offset 0. */
sp_status sp__layout_init_contiguous(sp_layout *out, sp_dtype dtype, const sp_shape *shape);

bool sp__layout_is_contiguous(const sp_layout *layout);

/* Bytes of all elements together; a repeated one counts each time. */
uint64_t sp__layout_bytes(const sp_layout *layout);

/* The bytes of the storage that the elements occupy: they begin at offset - below and end at offset
 * + above. Both 0 if there is no element. */
typedef struct sp_layout_reach {
    uint64_t below;
    uint64_t above;
} sp_layout_reach;

/* False if an element is too far from the first: never for a checked layout. */
bool sp__layout_reach(const sp_layout *layout, sp_layout_reach *out);

/* False if it is certain that no two elements share a byte: then each may be written. True for all
 * repeated dimensions, and for some unusual layouts without an overlap. */
bool sp__layout_overlaps_itself(const sp_layout *layout);

/* ---- views: other layouts of the same elements; `out` may be `layout` ---- */

/* Dimension i of the view is dimension axes[i]. Errors: SP_MISMATCH if it is no permutation. */
sp_status sp__layout_permute(const sp_layout *layout, const int64_t *axes, uint32_t count,
                             sp_layout *out);
/* `count` elements along an axis: start, start + step, ... Errors: SP_MISMATCH (axis, or elements
 * outside of it), SP_INVALID for step 0. */
sp_status sp__layout_slice(const sp_layout *layout, int64_t axis, int64_t start, int64_t count,
                           int64_t step, sp_layout *out);
/* One element along an axis, which is removed. */
sp_status sp__layout_select(const sp_layout *layout, int64_t axis, int64_t index, sp_layout *out);
/* The elements in order under another shape, of which one dimension may be -1. Errors: SP_MISMATCH
 * if the count differs, or no strides give such a view. */
sp_status sp__layout_reshape(const sp_layout *layout, const int64_t *dims, uint32_t rank,
                             sp_layout *out);
/* Dimensions of 1 repeated, new ones prepended. Errors: SP_MISMATCH. */
sp_status sp__layout_expand(const sp_layout *layout, const sp_shape *shape, sp_layout *out);
/* Without dimension `axis`, of size 1. */
sp_status sp__layout_squeeze(const sp_layout *layout, int64_t axis, sp_layout *out);
/* With a dimension of size 1 that is `axis` of the view. */
sp_status sp__layout_unsqueeze(const sp_layout *layout, int64_t axis, sp_layout *out);
/* The same bytes as another type of the same size. */
sp_status sp__layout_view_as(const sp_layout *layout, sp_dtype dtype, sp_layout *out);

/* Sets the strides of dimensions of fewer than 2 elements to those of the invariant; of
 * layout.c. */
void sp__layout_normalise(sp_layout *layout);

#endif
