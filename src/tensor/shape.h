/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: up to SP_MAX_RANK dimensions of 0 or more, outermost first. A plain value, copied freely;
 * a function that makes one from untrusted numbers checks them, so element and byte counts of a
 * valid shape never overflow. Relies on base's checked arithmetic only. */
#ifndef SP_TENSOR_SHAPE_H
#define SP_TENSOR_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/dtype.h>
#include <streampool/status.h>

/* The largest tensor, whatever a file or a caller asks for: 2^40 bytes. It keeps every product of
 * an offset and a small number far from 2^63. */
#define SP_MAX_TENSOR_BYTES ((uint64_t)1 << 40)

typedef struct sp_shape {
    uint32_t rank; /* 0 is a scalar, one element */
    int64_t dims[SP_MAX_RANK];
} sp_shape;

#define SP_SHAPE_TEXT_BYTES 176
typedef struct sp_shape_text {
    char text[SP_SHAPE_TEXT_BYTES];
} sp_shape_text;

/* Makes a shape of `rank` dimensions. Errors: SP_MISMATCH (rank or a negative dimension). */
sp_status sp__shape_make(const int64_t *dims, uint64_t rank, sp_shape *out);

/* Elements and bytes. Errors: SP_EXHAUSTED above SP_MAX_TENSOR_BYTES, SP_MISMATCH for a negative
 * dimension. */
sp_status sp__shape_bytes(const sp_shape *shape, sp_dtype dtype, uint64_t *out);

/* Elements of a shape that sp__shape_bytes has accepted. */
uint64_t sp__shape_count(const sp_shape *shape);

/* Elements of dimensions [first, last) of an accepted shape; 1 for an empty range. */
uint64_t sp__shape_range_count(const sp_shape *shape, uint32_t first, uint32_t last);

bool sp__shape_equal(const sp_shape *a, const sp_shape *b);

/* The shape both broadcast to by ONNX's (numpy's) rule. Errors: SP_MISMATCH naming both. */
sp_status sp__shape_broadcast(const sp_shape *a, const sp_shape *b, sp_shape *out);

/* Element strides of a contiguous tensor of `shape`. */
void sp__shape_strides(const sp_shape *shape, int64_t strides[SP_MAX_RANK]);

/* Element strides that read a contiguous tensor of `shape` as if it had shape `target`, to which it
 * broadcasts: 0 along repeated dimensions. */
void sp__shape_broadcast_strides(const sp_shape *shape, const sp_shape *target,
                                 int64_t strides[SP_MAX_RANK]);

/* `axis` counted from the end if negative. Errors: SP_MISMATCH outside [-rank, rank). */
sp_status sp__shape_axis(const sp_shape *shape, int64_t axis, uint32_t *out);

/* "[1,3,224,224]", "[]" for a scalar; for messages: sp__shape_print(&s).text. */
sp_shape_text sp__shape_print(const sp_shape *shape);

#endif
