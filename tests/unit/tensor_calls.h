/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of tensors, for the table of public calls. */
#ifndef SP_TESTS_TENSOR_CALLS_H
#define SP_TESTS_TENSOR_CALLS_H

#include "runtime_calls.h"

sp_status call_tensor_create(call_context *self);
sp_status call_tensor_from_host(call_context *self);
sp_status call_tensor_from_storage(call_context *self);
sp_status call_tensor_retain(call_context *self);
sp_status call_tensor_get_info(call_context *self);
sp_status call_tensor_slice(call_context *self);
sp_status call_tensor_contiguous(call_context *self);
sp_status call_tensor_copy(call_context *self);
sp_status call_tensor_copy_within(call_context *self);
sp_status call_tensor_read(call_context *self);
sp_status call_tensor_write(call_context *self);
sp_status call_tensor_to_dlpack(call_context *self);
sp_status call_tensor_to_dlpack_on_stream(call_context *self);
sp_status call_tensor_from_dlpack(call_context *self);

#endif
