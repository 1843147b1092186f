/* SPDX-License-Identifier: Apache-2.0 */
/* Eager calls of each kind, for the table of public calls. */
#ifndef SP_TESTS_EAGER_CALLS_H
#define SP_TESTS_EAGER_CALLS_H

#include "runtime_calls.h"

sp_status call_op_run(call_context *self);           /* a view is copied, then the kernel */
sp_status call_op_run_known(call_context *self);     /* the host writes the result */
sp_status call_op_run_deciding(call_context *self);  /* the shape is in an input */
sp_status call_op_run_alias(call_context *self);     /* the result is the input's elements */
sp_status call_op_run_into(call_context *self);      /* directly */
sp_status call_op_run_into_view(call_context *self); /* by a copy */
sp_status call_op_attributes(call_context *self);
sp_status call_linear(call_context *self); /* with scratch */
sp_status call_silu(call_context *self);
sp_status call_concat(call_context *self);

#endif
