/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_calls.h"

static const int64_t sides[2] = {4, 4};

sp_status call_tensor_create(call_context *self)
{
    sp_tensor tensor;
    SP_TRY(sp_tensor_create(self->device, SP_F32, 2, sides, &tensor));
    return sp_tensor_release(tensor);
}

sp_status call_tensor_from_host(call_context *self)
{
    sp_tensor tensor;
    const float values[16] = {1};
    SP_TRY(sp_tensor_from_host(self->device, SP_F32, 2, sides, values, sizeof values, &tensor));
    return sp_tensor_release(tensor);
}

sp_status call_tensor_from_storage(call_context *self)
{
    sp_tensor tensor;
    SP_TRY(sp_tensor_from_storage(self->a, 0, SP_F32, 2, sides, NULL, &tensor));
    return sp_tensor_release(tensor);
}

sp_status call_tensor_retain(call_context *self)
{
    SP_TRY(sp_tensor_retain(self->tensor));
    return sp_tensor_release(self->tensor);
}

sp_status call_tensor_get_info(call_context *self)
{
    sp_tensor_info info;
    return sp_tensor_get_info(self->tensor, &info);
}

sp_status call_tensor_slice(call_context *self)
{
    sp_tensor view;
    SP_TRY(sp_tensor_slice(self->tensor, 0, 1, 2, 1, &view));
    return sp_tensor_release(view);
}

sp_status call_tensor_contiguous(call_context *self)
{
    sp_tensor packed;
    SP_TRY(sp_tensor_contiguous(self->view, &packed));
    return sp_tensor_release(packed);
}

sp_status call_tensor_copy(call_context *self)
{
    return sp_tensor_copy(self->other, self->view);
}

sp_status call_tensor_copy_within(call_context *self)
{
    return sp_tensor_copy(self->tensor, self->view);
}

sp_status call_tensor_read(call_context *self)
{
    float values[16];
    return sp_tensor_read(self->view, values, sizeof values);
}

sp_status call_tensor_write(call_context *self)
{
    const float values[16] = {2};
    return sp_tensor_write(self->view, values, sizeof values);
}

sp_status call_tensor_to_dlpack(call_context *self)
{
    sp_dlpack_managed *managed;
    SP_TRY(sp_tensor_to_dlpack(self->tensor, (sp_stream){0}, &managed));
    managed->deleter(managed);
    return SP_OK;
}

sp_status call_tensor_to_dlpack_on_stream(call_context *self)
{
    sp_dlpack_managed *managed;
    SP_TRY(sp_tensor_to_dlpack(self->tensor, self->stream, &managed));
    managed->deleter(managed);
    return SP_OK;
}

sp_status call_tensor_from_dlpack(call_context *self)
{
    sp_tensor tensor;
    int64_t shape[] = {64};
    sp_dlpack_managed managed = {.version = {1, 0},
                                 .flags = SP_DLPACK_READ_ONLY,
                                 .dl_tensor = {.data = self->memory,
                                               .device = {SP_DLPACK_CPU, 0},
                                               .ndim = 1,
                                               .dtype = {SP_DLPACK_UINT, 8, 1},
                                               .shape = shape}};
    const sp_dlpack_import_options options = {.device = self->device};
    SP_TRY(sp_tensor_from_dlpack(&managed, &options, &tensor));
    return sp_tensor_release(tensor);
}
