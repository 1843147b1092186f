/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an eager call. Everything that can be refused is refused before anything is
 * submitted; later failures (memory, a full stream) affect only tensors that the caller does not
 * get. */
#include "ops/eager.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "ops/registry.h"
#include "ops/tensor_copy.h"
#include "tensor/array.h"

/* Limit of the inputs, and of the outputs, of a call. */
#define MAX_OPERANDS 65536

/* ---- inputs, device and shapes ---- */

static sp_status find_input(sp_eager *eager, uint32_t index)
{
    const sp_tensor handle = eager->request->inputs[index];
    if (handle.bits == 0) return SP_OK;
    sp_eager_input *input = &eager->inputs[index];
    const sp_status status = sp__tensor_find(handle, &input->tensor);
    if (status != SP_OK) return sp__fail_prefix(status, "input %" PRIu32 ": ", index);
    const sp_layout *layout = &input->tensor->layout;
    eager->values[index] = (sp_op_value){.is_present = true,
                                         .dtype = layout->dtype,
                                         .shape = layout->shape,
                                         .bytes = sp__layout_bytes(layout)};
    return SP_OK;
}

static sp_status find_output(sp_eager *eager, uint32_t index)
{
    const sp_tensor *into = eager->request->into;
    if (into == NULL || into[index].bits == 0) return SP_OK;
    const sp_status status = sp__tensor_find(into[index], &eager->outputs[index].into);
    return status == SP_OK ? SP_OK
                           : sp__fail_prefix(status, "the tensor for output %" PRIu32 ": ", index);
}

static sp_status join_device(sp_device *device, const sp_rt_tensor *tensor)
{
    if (tensor == NULL) return SP_OK;
    if (device->bits == 0) *device = tensor->device;
    if (device->bits == tensor->device.bits) return SP_OK;
    return sp__fail(SP_INVALID,
                    "the tensors are on several devices; a call runs on one device: copy with "
                    "sp_tensor_to");
}

/* The device of all tensors, and of the request if it names one. */
static sp_status find_device(sp_eager *eager)
{
    const sp_eager_request *request = eager->request;
    sp_device device = request->device;
    if (device.bits != 0) {
        SP_TRY(sp__rt_device_find_working(device, &eager->device));
        device = sp__rt_device_handle(eager->device);
    }
    for (uint32_t i = 0; i < request->input_count; i++) {
        SP_TRY(join_device(&device, eager->inputs[i].tensor));
    }
    if (device.bits == 0) {
        SP_TRY(sp__rt_device_find_working(device, &eager->device));
        device = sp__rt_device_handle(eager->device);
    }
    for (uint32_t i = 0; i < request->output_count; i++) {
        SP_TRY(join_device(&device, eager->outputs[i].into));
    }
    return sp__rt_device_find_working(device, &eager->device);
}

sp_status sp__eager_allocate(const sp_eager *eager, uint64_t bytes, void **out)
{
    const uint64_t limit = eager->device->dev->limits.memory_bytes;
    *out = limit > 0 && bytes > limit ? NULL : sp_aligned_malloc(SP_ARRAY_ALIGNMENT, (size_t)bytes);
    if (*out != NULL) return SP_OK;
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for %" PRIu64 " bytes on the host", bytes);
}

/* Reads the values of shape-determining inputs to the host: waits for their last writes. */
static sp_status read_shape_inputs(sp_eager *eager)
{
    const uint32_t shape_inputs = eager->call.op->traits->shape_inputs;
    for (uint32_t i = 0; i < eager->request->input_count && i < 32; i++) {
        sp_op_value *value = &eager->values[i];
        if ((shape_inputs >> i & 1) == 0 || !value->is_present) continue;
        void **values = &eager->inputs[i].values;
        SP_TRY(sp__eager_allocate(eager, value->bytes, values));
        const sp_status status = sp_tensor_read(eager->request->inputs[i], *values, value->bytes);
        if (status != SP_OK) return sp__fail_prefix(status, "input %" PRIu32 ": ", i);
        value->data = *values;
    }
    return SP_OK;
}

static sp_status check_output(const sp_eager *eager, uint32_t index)
{
    const sp_rt_tensor *into = eager->outputs[index].into;
    if (into == NULL) return SP_OK;
    const sp_op_value *output = &eager->call.outputs[index];
    if (into->layout.dtype != output->dtype ||
        !sp__shape_equal(&into->layout.shape, &output->shape)) {
        return sp__fail(
            SP_MISMATCH, "output %" PRIu32 " is %s of shape %s; the given tensor is %s of shape %s",
            index, sp_dtype_name(output->dtype), sp__shape_print(&output->shape).text,
            sp_dtype_name(into->layout.dtype), sp__shape_print(&into->layout.shape).text);
    }
    return sp__tensor_check_writable(into);
}

/* Sizes and scales are computed in floating point, independently of the caller's FP state. */
static sp_status call_infer(sp_eager *eager)
{
    const sp_fpenv before = sp_fpenv_enter();
    const sp_status status = sp__op_infer(&eager->call);
    sp_fpenv_leave(before);
    return status;
}

static sp_status call_lower(sp_eager *eager)
{
    const sp_fpenv before = sp_fpenv_enter();
    const sp_status status = sp__op_lower(&eager->call, &eager->lowering);
    sp_fpenv_leave(before);
    return status;
}

static sp_status call_describe(sp_eager *eager)
{
    const sp_eager_request *request = eager->request;
    SP_TRY(sp__op_check(&eager->call));
    for (uint32_t i = 0; i < request->input_count; i++) SP_TRY(find_input(eager, i));
    for (uint32_t i = 0; i < request->output_count; i++) SP_TRY(find_output(eager, i));
    SP_TRY(find_device(eager));
    SP_TRY(read_shape_inputs(eager));
    SP_TRY(call_infer(eager));
    for (uint32_t i = 0; i < request->output_count; i++) SP_TRY(check_output(eager, i));
    return SP_OK;
}

/* ---- outputs ---- */

static bool is_input_storage(const sp_eager *eager, sp_storage storage)
{
    for (uint32_t i = 0; i < eager->request->input_count; i++) {
        const sp_rt_tensor *tensor = eager->inputs[i].tensor;
        if (tensor != NULL && tensor->storage.bits == storage.bits) return true;
    }
    return false;
}

/* May kernels write the caller's tensor directly? Not if a call that is refused between two
 * dispatches could leave it partly written, nor if it shares storage with an input. */
static bool is_direct(const sp_eager *eager, uint32_t index)
{
    const sp_rt_tensor *into = eager->outputs[index].into;
    return into != NULL && eager->request->output_count == 1 &&
           eager->lowering.dispatch_count == 1 && sp__layout_is_contiguous(&into->layout) &&
           !is_input_storage(eager, into->storage) && sp__eager_is_on_device(eager);
}

static bool outputs_are_known(const sp_eager *eager)
{
    for (uint32_t i = 0; i < eager->call.output_count; i++) {
        if (eager->call.outputs[i].data == NULL) return false;
    }
    return true;
}

/* Else kernels or copies of the device write the results. */
static bool host_writes(const sp_eager *eager)
{
    if (outputs_are_known(eager)) return true;
    return eager->lowering.alias_input == SP_NO_INPUT && !sp__eager_is_on_device(eager);
}

static sp_status output_create(const sp_eager *eager, const sp_op_value *value, sp_tensor *out)
{
    const sp_device device = sp__rt_device_handle(eager->device);
    const sp_shape *shape = &value->shape;
    return host_writes(eager)
               ? sp__tensor_create_for_host(device, value->dtype, shape->rank, shape->dims, out)
               : sp_tensor_create(device, value->dtype, shape->rank, shape->dims, out);
}

static sp_status output_init(sp_eager *eager, uint32_t index)
{
    sp_eager_output *output = &eager->outputs[index];
    const sp_op_value *value = &eager->call.outputs[index];
    if (output->into != NULL) {
        const sp_tensor handle = eager->request->into[index];
        SP_TRY(sp_tensor_retain(handle));
        output->into_owned = handle;
    }
    if (is_direct(eager, index)) {
        output->storage = output->into->storage;
        output->offset = output->into->layout.offset;
        return SP_OK;
    }
    SP_TRY(output_create(eager, value, &output->tensor));
    sp_tensor_info info;
    SP_TRY(sp_tensor_get_info(output->tensor, &info));
    output->storage = info.storage;
    return SP_OK;
}

/* Copies an input's elements, in order, to an output. */
static sp_status copy_alias(sp_eager *eager, uint32_t index)
{
    const sp_rt_tensor *from = eager->inputs[eager->lowering.alias_input + index].tensor;
    const sp_shape *shape = &from->layout.shape;
    sp_tensor view;
    SP_TRY(sp_tensor_reshape(eager->outputs[index].tensor, shape->rank, shape->dims, &view));
    sp_rt_tensor *to;
    sp_status status = sp__tensor_find(view, &to);
    if (status == SP_OK) {
        status = sp__tensor_copy(to, from, eager->request->call_site);
        sp__tensor_drop(to);
    }
    (void)sp_tensor_release(view);
    return status;
}

static sp_status call_compute(sp_eager *eager)
{
    const sp_op_call *call = &eager->call;
    if (outputs_are_known(eager)) {
        for (uint32_t i = 0; i < call->output_count; i++) {
            SP_TRY(sp_tensor_write(eager->outputs[i].tensor, call->outputs[i].data,
                                   call->outputs[i].bytes));
        }
        return SP_OK;
    }
    if (eager->lowering.alias_input != SP_NO_INPUT) {
        for (uint32_t i = 0; i < call->output_count; i++) SP_TRY(copy_alias(eager, i));
        return SP_OK;
    }
    return sp__eager_is_on_device(eager) ? sp__eager_submit(eager) : sp__eager_run_on_host(eager);
}

/* Copies the result to the caller's tensor unless that was written directly. */
static sp_status output_copy_into(sp_eager *eager, uint32_t index)
{
    const sp_eager_output *output = &eager->outputs[index];
    if (output->into == NULL || output->tensor.bits == 0) return SP_OK;
    sp_rt_tensor *from;
    SP_TRY(sp__tensor_find(output->tensor, &from));
    const sp_status status = sp__tensor_copy(output->into, from, eager->request->call_site);
    sp__tensor_drop(from);
    return status;
}

static sp_status call_run(sp_eager *eager)
{
    const uint32_t count = eager->request->output_count;
    SP_TRY(call_describe(eager));
    SP_TRY(call_lower(eager));
    for (uint32_t i = 0; i < count; i++) SP_TRY(output_init(eager, i));
    SP_TRY(call_compute(eager));
    for (uint32_t i = 0; i < count; i++) SP_TRY(output_copy_into(eager, i));
    return SP_OK;
}

/* ---- init and deinit ---- */

static sp_status eager_init(sp_eager *eager, const sp_eager_request *request)
{
    const size_t inputs = request->input_count, outputs = request->output_count;
    *eager = (sp_eager){.request = request};
    sp__lowering_init(&eager->lowering);
    eager->values = sp_calloc(inputs + outputs, sizeof *eager->values);
    eager->inputs = sp_calloc(inputs, sizeof *eager->inputs);
    eager->outputs = sp_calloc(outputs, sizeof *eager->outputs);
    if (eager->values == NULL || eager->inputs == NULL || eager->outputs == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for %zu operands", inputs + outputs);
    }
    eager->call = (sp_op_call){.op = request->op,
                               .version = request->version,
                               .attributes = request->attributes,
                               .inputs = eager->values,
                               .outputs = eager->values + inputs,
                               .input_count = request->input_count,
                               .output_count = request->output_count};
    return SP_OK;
}

/* Passes the outputs to the caller or, on an error, releases them. */
static void outputs_return(sp_eager *eager, sp_status status, sp_tensor *outputs)
{
    for (uint32_t i = 0; eager->outputs != NULL && i < eager->request->output_count; i++) {
        sp_eager_output *output = &eager->outputs[i];
        const bool is_own = output->into_owned.bits != 0;
        if (status == SP_OK) outputs[i] = is_own ? output->into_owned : output->tensor;
        if (status != SP_OK || is_own) (void)sp_tensor_release(output->tensor);
        if (status != SP_OK) (void)sp_tensor_release(output->into_owned);
        if (output->into != NULL) sp__tensor_drop(output->into);
        sp_free(output->values);
    }
}

/* Storages that commands still use are kept until these are done. */
static void eager_deinit(sp_eager *eager)
{
    for (uint32_t i = 0; eager->inputs != NULL && i < eager->request->input_count; i++) {
        sp_eager_input *input = &eager->inputs[i];
        if (input->tensor != NULL) sp__tensor_drop(input->tensor);
        (void)sp_tensor_release(input->copy);
        sp_free(input->values);
    }
    for (uint32_t i = 0; i < SP_LOWERING_MAX_SCRATCH; i++) {
        (void)sp_storage_release(eager->scratch[i]);
    }
    sp__lowering_deinit(&eager->lowering);
    sp_free(eager->values);
    sp_free(eager->inputs);
    sp_free(eager->outputs);
}

/* How many inputs the message tells: none if there is none, or if they are not known yet. */
static uint32_t count_of_known_inputs(const sp_eager *eager)
{
    const uint32_t count = eager->values == NULL ? 0 : eager->request->input_count;
    for (uint32_t i = 0; i < count; i++) {
        if (eager->values[i].is_present) return count;
    }
    return 0;
}

/* "Add of f32 [2,3], f32 [4]: " before the message, with the first few inputs. */
static sp_status fail_call(sp_status status, const sp_eager *eager)
{
    char operands[256] = "";
    size_t at = 0;
    const uint32_t count = count_of_known_inputs(eager);
    for (uint32_t i = 0; i < count && i < 4 && at < sizeof operands; i++) {
        const sp_op_value *value = &eager->values[i];
        const char *before = i == 0 ? " of " : ", ";
        const int length =
            value->is_present
                ? snprintf(operands + at, sizeof operands - at, "%s%s %s", before,
                           sp_dtype_name(value->dtype), sp__shape_print(&value->shape).text)
                : snprintf(operands + at, sizeof operands - at, "%s-", before);
        at += length > 0 ? (size_t)length : 0;
    }
    /* SP_CORRUPT is for files; for calls it is SP_INVALID. */
    if (status == SP_CORRUPT) status = SP_INVALID;
    return sp__fail_prefix(status, "%s%s%s: ", eager->request->op->name, operands,
                           count > 4 ? ", ..." : "");
}

sp_status sp__eager_begin(const char *op, const sp_tensor *inputs, uint32_t input_count,
                          sp_tensor *outputs, uint32_t output_count)
{
    if (outputs == NULL) return sp__fail(SP_INVALID, "%s: outputs is NULL", op);
    if (input_count > MAX_OPERANDS || output_count > MAX_OPERANDS) {
        return sp__fail(SP_INVALID,
                        "%s: %" PRIu32 " inputs and %" PRIu32
                        " outputs are given; at most %d of each are supported",
                        op, input_count, output_count, MAX_OPERANDS);
    }
    memset(outputs, 0, output_count * sizeof *outputs);
    if (inputs == NULL && input_count > 0) {
        return sp__fail(SP_INVALID, "%s: inputs is NULL, with a count of %" PRIu32, op,
                        input_count);
    }
    return sp__runtime_enter();
}

sp_status sp__eager_run(const sp_eager_request *request, sp_tensor *outputs)
{
    sp_eager eager;
    sp_status status = eager_init(&eager, request);
    if (status == SP_OK) status = call_run(&eager);
    if (status != SP_OK) status = fail_call(status, &eager);
    outputs_return(&eager, status, outputs);
    eager_deinit(&eager);
    return status;
}
