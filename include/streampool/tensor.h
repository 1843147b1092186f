/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: typed, strided views of storages.
 *
 * A tensor says how bytes of a storage are read as elements: their type, the shape (outermost
 * dimension first, rank 0 is one element), and how many elements to step along each dimension
 * (strides, which may be 0 or negative). A tensor is immutable; its elements are not. It keeps a
 * reference to its storage: any number of views share the memory, and uses through any of them are
 * ordered as uses of the storage are, so a tensor written by one thread and read by another is
 * right with no call from the user.
 *
 * Errors of all calls that take a tensor: SP_INVALID for a zero, stale or foreign handle. Of calls
 * that create one: SP_EXHAUSTED when a storage has 65,535 references, or for more than 2^40 bytes
 * of elements; SP_OUT_OF_MEMORY. Shapes, axes and types that do not fit are SP_MISMATCH. Negative
 * axes count from the last dimension. */
#ifndef STREAMPOOL_TENSOR_H
#define STREAMPOOL_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/dtype.h>
#include <streampool/storage.h>

SP_EXTERN_C_BEGIN

typedef struct sp_tensor {
    uint64_t bits;
} sp_tensor;

/* A contiguous tensor in a new, tracked storage of `device`; the elements are undefined. `shape`
 * has `rank` sizes, at most SP_MAX_RANK, of 0 or more; it may be NULL for rank 0. Further errors:
 * as sp_storage_create. */
SP_API sp_status sp_tensor_create(sp_device device, sp_dtype dtype, uint32_t rank,
                                  const int64_t *shape, sp_tensor *out);

/* The same with a copy of `bytes` bytes at `data`: the elements in order, of exactly that size. The
 * data is not needed afterwards. Needs no stream. Waits for earlier commands of
 * the thread's stream only if they use 32 such tensors, or 8 MiB in tensors of about that size, or
 * all memory that there may be. */
SP_API sp_status sp_tensor_from_host(sp_device device, sp_dtype dtype, uint32_t rank,
                                     const int64_t *shape, const void *data, uint64_t bytes,
                                     sp_tensor *out);

/* A tensor over part of a storage, of which it takes a reference. The first element begins at byte
 * `offset`, a multiple of the element's size; `strides` counts elements, NULL is a contiguous
 * tensor. SP_INVALID if an element would be outside the storage, or misaligned in adopted memory.
 */
SP_API sp_status sp_tensor_from_storage(sp_storage storage, uint64_t offset, sp_dtype dtype,
                                        uint32_t rank, const int64_t *shape, const int64_t *strides,
                                        sp_tensor *out);

/* One more reference. SP_EXHAUSTED past 65,535. */
SP_API sp_status sp_tensor_retain(sp_tensor tensor);
/* One reference less; may be called while commands that use the tensor are still queued. The zero
 * handle is fine. */
SP_API sp_status sp_tensor_release(sp_tensor tensor);

typedef struct sp_tensor_info {
    sp_storage storage; /* borrowed: valid while the tensor lives; retain it to keep it */
    sp_device device;
    sp_dtype dtype;
    uint32_t rank;
    int64_t shape[SP_MAX_RANK];
    int64_t strides[SP_MAX_RANK]; /* in elements */
    uint64_t offset;              /* of the first element in the storage, in bytes */
    uint64_t bytes;               /* of all elements; a repeated one counts each time */
    bool is_contiguous;           /* the elements are in order, without gaps */
} sp_tensor_info;

/* Properties of the tensor. Dimensions of size 1 have the strides of a contiguous tensor. */
SP_API sp_status sp_tensor_get_info(sp_tensor tensor, sp_tensor_info *out);

/* ---- views: tensors over the same storage, without copies and waits ---- */

/* Dimension i of the view is dimension axes[i] of the tensor: `count` axes, each once. */
SP_API sp_status sp_tensor_permute(sp_tensor tensor, const int64_t *axes, uint32_t count,
                                   sp_tensor *out);
/* Exchanges two dimensions. */
SP_API sp_status sp_tensor_transpose(sp_tensor tensor, int64_t axis, int64_t other_axis,
                                     sp_tensor *out);
/* The `count` elements start, start + step, start + 2 * step ... along an axis; all must be in
 * range (nothing is clamped). The step may be negative; SP_INVALID for step 0. */
SP_API sp_status sp_tensor_slice(sp_tensor tensor, int64_t axis, int64_t start, int64_t count,
                                 int64_t step, sp_tensor *out);
/* One element along an axis, without the axis. A negative index counts from the end. */
SP_API sp_status sp_tensor_select(sp_tensor tensor, int64_t axis, int64_t index, sp_tensor *out);
/* The same elements in the same order with another shape; one size may be -1, which is inferred.
 * SP_MISMATCH if the count differs, or if no strides give that view: make the tensor contiguous
 * first. */
SP_API sp_status sp_tensor_reshape(sp_tensor tensor, uint32_t rank, const int64_t *shape,
                                   sp_tensor *out);
/* Dimensions of size 1 repeated (stride 0), and new ones in front, by the rule of broadcasting. */
SP_API sp_status sp_tensor_expand(sp_tensor tensor, uint32_t rank, const int64_t *shape,
                                  sp_tensor *out);
/* Removes a dimension of size 1. */
SP_API sp_status sp_tensor_squeeze(sp_tensor tensor, int64_t axis, sp_tensor *out);
/* Adds a dimension of size 1, which is `axis` of the view. */
SP_API sp_status sp_tensor_unsqueeze(sp_tensor tensor, int64_t axis, sp_tensor *out);
/* The same bytes as elements of another type of the same size. A bool is a byte of 0 or 1. */
SP_API sp_status sp_tensor_view_as(sp_tensor tensor, sp_dtype dtype, sp_tensor *out);

/* ---- copies ---- */

/* Copies the elements of `source` into `destination`, on the calling thread's current stream, and
 * returns at once. One dtype and one shape, else SP_MISMATCH. The two may share a storage and
 * overlap: the source is read first. SP_INVALID if elements of the destination share memory (a
 * dimension that is repeated). They may be on two devices: then the stream is of the source's
 * device if that is a cuda device, else of the destination's, and a tensor that is not contiguous
 * is packed or unpacked in memory of its device, on that one's current stream. Further errors:
 * those of sp_stream_current, sp_storage_copy_async and, for two devices, sp_storage_create. */
SP_API sp_status sp_tensor_copy(sp_tensor destination, sp_tensor source);

/* The tensor itself, with one more reference, if it is contiguous; else a contiguous copy in a new
 * storage, made on the current stream. */
SP_API sp_status sp_tensor_contiguous(sp_tensor tensor, sp_tensor *out);

/* The tensor itself, with one more reference, if it is on `device`; else a contiguous copy there,
 * in a new storage, made as by sp_tensor_copy. */
SP_API sp_status sp_tensor_to(sp_tensor tensor, sp_device device, sp_tensor *out);

/* Copies the elements, in order, to host memory; `bytes` must be their size, else SP_MISMATCH.
 * Waits as sp_storage_host_begin does. */
SP_API sp_status sp_tensor_read(sp_tensor tensor, void *data, uint64_t bytes);
/* The reverse of sp_tensor_read. Other bytes of the storage are unchanged; SP_INVALID if elements
 * share memory. */
SP_API sp_status sp_tensor_write(sp_tensor tensor, const void *data, uint64_t bytes);

SP_EXTERN_C_END

#endif
