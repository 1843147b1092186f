/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors inside the library. Immutable from publish to destroy, so a thread with a hold reads the
 * fields without a lock. The object has one of the storage's references that callers count: the
 * storage is used through its handle, as callers use it. */
#ifndef SP_TENSOR_TENSOR_H
#define SP_TENSOR_TENSOR_H

#include <streampool/tensor.h>

#include "base/handle.h"
#include "tensor/layout.h"

typedef struct sp_rt_tensor {
    SP_CACHE_ALIGNED sp_object object;
    sp_storage storage;
    sp_device device;
    uint64_t storage_bytes;
    sp_layout layout;
} sp_rt_tensor;

/* As sp_tensor_create, for elements that the host writes next (sp__storage_create_for_host). */
sp_status sp__tensor_create_for_host(sp_device device, sp_dtype dtype, uint32_t rank,
                                     const int64_t *shape, sp_tensor *out);

/* The tensor with a hold. Includes sp__runtime_enter. */
sp_status sp__tensor_find(sp_tensor handle, sp_rt_tensor **out);
void sp__tensor_drop(sp_rt_tensor *tensor);

/* A tensor of that layout, which fits, over the storage of `tensor`. */
sp_status sp__tensor_share(const sp_rt_tensor *tensor, const sp_layout *layout, sp_tensor *out);

/* An unpublished object, for callers that must not fail later; released with sp__tensor_forget, or
 * published over a storage whose reference it takes over. */
sp_status sp__tensor_acquire(sp_rt_tensor **out);
void sp__tensor_forget(sp_rt_tensor *tensor);
sp_tensor sp__tensor_publish(sp_rt_tensor *tensor, sp_storage storage, sp_device device,
                             uint64_t storage_bytes, const sp_layout *layout);

/* The range of the storage that the tensor's elements occupy, for a command. */
sp_storage_range sp__tensor_range(const sp_rt_tensor *tensor);

/* Frees the table of tensors. For tests, when no handle is left. */
void sp__tensors_deinit(void);

/* SP_INVALID, with the reason, if elements share memory, so that none of them can be written. */
sp_status sp__tensor_check_writable(const sp_rt_tensor *tensor);

#endif
