/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays: element type, shape and contiguous bytes in ordinary memory. A view borrows its
 * bytes; an array owns them (64-byte aligned, from base's heap). Constants, test data and attribute
 * tensors are these; tensors on devices are the runtime's storages. */
#ifndef SP_TENSOR_ARRAY_H
#define SP_TENSOR_ARRAY_H

#include "tensor/shape.h"

#define SP_ARRAY_ALIGNMENT 64

/* Borrowed, read-only. `data` is aligned for its elements; for 0 bytes it may have any value. */
typedef struct sp_array_view {
    sp_dtype dtype;
    sp_shape shape;
    const void *data;
} sp_array_view;

typedef struct sp_array {
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
    void *data; /* owned */
} sp_array;

/* Fills `out` with zeroed memory for the shape. Errors: as sp__shape_bytes, SP_OUT_OF_MEMORY. */
sp_status sp__array_init(sp_array *out, sp_dtype dtype, const sp_shape *shape);

/* Zeroed arrays are ignored. */
void sp__array_deinit(sp_array *array);

/* Element `index` of an i64 or i32 view. */
int64_t sp__array_view_int(const sp_array_view *view, uint64_t index);

#endif
