/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between held tensors: the implementation of sp_tensor_copy and sp_tensor_contiguous, on
 * the calling thread's current stream. */
#ifndef SP_OPS_TENSOR_COPY_H
#define SP_OPS_TENSOR_COPY_H

#include "tensor/tensor.h"

/* As sp_tensor_copy. */
sp_status sp__tensor_copy(const sp_rt_tensor *to, const sp_rt_tensor *from, const void *call_site);

/* A contiguous copy with its own storage, owned by the caller. */
sp_status sp__tensor_copy_of(const sp_rt_tensor *tensor, const void *call_site, sp_tensor *out);

#endif
