/* SPDX-License-Identifier: Apache-2.0 */
#include "eager_calls.h"

#include <streampool/ops.h>

/* The status of a call, whose result is given back. */
static sp_status end(sp_status status, sp_tensor result)
{
    const sp_status released = sp_tensor_release(result);
    return status != SP_OK ? status : released;
}

sp_status call_op_run(call_context *self)
{
    sp_tensor y;
    const sp_status status = sp_op_run("Softmax", NULL, &self->view, 1, &y, 1);
    return end(status, y);
}

sp_status call_op_run_known(call_context *self)
{
    sp_tensor y;
    const sp_status status = sp_op_run("Shape", NULL, &self->view, 1, &y, 1);
    return end(status, y);
}

sp_status call_op_run_deciding(call_context *self)
{
    sp_tensor y;
    const sp_status status = sp_op_run("NonZero", NULL, &self->view, 1, &y, 1);
    return end(status, y);
}

sp_status call_op_run_alias(call_context *self)
{
    sp_tensor y;
    const sp_status status = sp_op_run("Flatten", NULL, &self->view, 1, &y, 1);
    return end(status, y);
}

sp_status call_op_run_into(call_context *self)
{
    sp_tensor y;
    const sp_op_options options = {.into = &self->other};
    const sp_status status = sp_op_run("Relu", &options, &self->tensor, 1, &y, 1);
    return end(status, y);
}

/* The transpose goes into the transposed view of its own input, so every element stays. */
sp_status call_op_run_into_view(call_context *self)
{
    sp_tensor y;
    const sp_op_options options = {.into = &self->view};
    const sp_status status = sp_op_run("Transpose", &options, &self->tensor, 1, &y, 1);
    return end(status, y);
}

sp_status call_op_attributes(call_context *self)
{
    sp_tensor y[2];
    static const char *const activations[] = {"Relu"};
    const sp_op_attribute attributes[] = {
        {.name = "activations", .type = SP_OP_STRINGS, .count = 1, .strings = activations},
        {.name = "hidden_size", .type = SP_OP_INT, .i = 4}};
    const sp_op_options options = {.attributes = attributes, .attribute_count = 2};
    sp_tensor x;
    SP_TRY(sp_tensor_unsqueeze(self->tensor, 0, &x));
    const sp_tensor inputs[3] = {x, x, x};
    sp_status status = sp_op_run("RNN", &options, inputs, 3, y, 2);
    status = end(end(status, y[0]), y[1]);
    return end(status, x);
}

sp_status call_linear(call_context *self)
{
    sp_tensor y;
    const sp_status status = sp_linear(self->view, self->tensor, (sp_tensor){0}, &y);
    return end(status, y);
}

sp_status call_silu(call_context *self)
{
    sp_tensor y;
    const sp_status status = sp_silu(self->tensor, &y);
    return end(status, y);
}

sp_status call_concat(call_context *self)
{
    sp_tensor y;
    const sp_tensor xs[3] = {self->tensor, self->view, self->tensor};
    const sp_status status = sp_concat(xs, 3, 0, &y);
    return end(status, y);
}
