/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/tensor_ports.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "device/wait.h"
#include "exec/tensor_overlap.h"
#include "ops/tensor_copy.h"
#include "runtime/failures.h"

/* ---- arguments ---- */

static const char *argument_name(const sp_model_tensor *argument)
{
    return argument->name != NULL ? argument->name : "";
}

/* "input 2 'x': " before the message. */
static sp_status fail_argument(sp_status status, const char *noun, uint32_t index,
                               const sp_model_tensor *argument)
{
    if (argument->name == NULL) return sp__fail_prefix(status, "%s %u: ", noun, index);
    return sp__fail_prefix(status, "%s '%.160s': ", noun, argument_name(argument));
}

/* Without data: the sizes of host memory are checked when it is read. */
static void describe(const sp_model_tensor *argument, const sp_rt_tensor *tensor,
                     sp_host_tensor *out)
{
    *out = (sp_host_tensor){.name = argument->name};
    if (tensor == NULL) {
        out->dtype = argument->host->dtype;
        out->rank = argument->host->rank;
        memcpy(out->shape, argument->host->shape, sizeof out->shape);
        return;
    }
    out->dtype = tensor->layout.dtype;
    out->rank = tensor->layout.shape.rank;
    memcpy(out->shape, tensor->layout.shape.dims, out->rank * sizeof out->shape[0]);
}

static sp_status tensor_find_on(const sp_tensor_ports *ports, sp_tensor handle, sp_rt_tensor **out)
{
    sp_rt_tensor *tensor;
    SP_TRY(sp__tensor_find(handle, &tensor));
    if (tensor->device.bits == sp__rt_device_handle(ports->device).bits) {
        *out = tensor;
        return SP_OK;
    }
    sp__tensor_drop(tensor);
    return sp__fail(SP_INVALID,
                    "the tensor is not on %s, the model's device; a run uses tensors of that "
                    "device and host memory: copy it with sp_tensor_to",
                    ports->device->dev->limits.name);
}

static sp_status input_init(const sp_tensor_ports *ports, uint32_t i)
{
    const sp_model_tensor *argument = &ports->arguments->inputs[i];
    sp_tensor_input *input = &ports->inputs[i];
    input->argument = argument;
    if ((argument->tensor.bits != 0) == (argument->host != NULL)) {
        return sp__fail(SP_INVALID, "give a tensor or host memory, and not both");
    }
    if (argument->host == NULL) SP_TRY(tensor_find_on(ports, argument->tensor, &input->tensor));
    describe(argument, input->tensor, &ports->input_hosts[i]);
    ports->input_hosts[i].data = input->values;
    return SP_OK;
}

static sp_status inputs_init(const sp_tensor_ports *ports)
{
    const sp_tensor_arguments *arguments = ports->arguments;
    for (uint32_t i = 0; i < arguments->input_count; i++) {
        const sp_status status = input_init(ports, i);
        if (status != SP_OK) return fail_argument(status, "input", i, &arguments->inputs[i]);
    }
    return SP_OK;
}

/* ---- inputs in host memory ---- */

static sp_status check_host_input(const sp_tensor_input *input, uint64_t bytes)
{
    const sp_host_tensor *host = input->argument->host;
    if (host->bytes != bytes) {
        return sp__fail(SP_MISMATCH,
                        "an input in host memory has %" PRIu64
                        " bytes; its dtype and shape give %" PRIu64,
                        host->bytes, bytes);
    }
    if (bytes == 0 || host->data != NULL) return SP_OK;
    return sp__fail(SP_INVALID, "an input in host memory has no data");
}

static uint64_t bytes_of(const sp_plan_input *input)
{
    return sp__shape_count(&input->shape) * sp_dtype_bytes(input->dtype);
}

/* ---- values that shapes follow from ---- */

static sp_tensor_input *input_at(const sp_tensor_ports *ports, uint32_t k)
{
    return (sp_tensor_input *)(uintptr_t)ports->run.data[k];
}

static sp_status input_read_values(const sp_tensor_ports *ports, uint32_t k,
                                   const sp_plan_input *of)
{
    sp_tensor_input *input = input_at(ports, k);
    const uint64_t bytes = bytes_of(of);
    if (bytes > SP_SHAPE_INPUT_BYTES) return SP_OK;
    if (input->tensor == NULL) {
        SP_TRY(check_host_input(input, bytes));
        if (bytes > 0) memcpy(input->values, input->argument->host->data, bytes);
    } else {
        SP_TRY(sp_tensor_read(input->argument->tensor, input->values, bytes));
    }
    input->has_values = true;
    ports->input_hosts[input - ports->inputs].bytes = bytes;
    return SP_OK;
}

/* The number of inputs whose values were read. */
static sp_status values_read(const sp_tensor_ports *ports, uint32_t *count)
{
    const sp_graph *graph = ports->graph;
    const sp_run_ports *run = &ports->run;
    *count = 0;
    for (uint32_t k = 0; k < graph->input_count; k++) {
        if (!graph->inputs[k].determines_shapes) continue;
        SP_TRY(input_read_values(ports, k, &run->inputs[k]));
        (*count)++;
    }
    for (uint32_t k = 0; k < run->override_count; k++) {
        if (!graph->defaults[run->overrides[k].index].determines_shapes) continue;
        SP_TRY(input_read_values(ports, graph->input_count + k, &run->overrides[k].input));
        (*count)++;
    }
    return SP_OK;
}

static sp_status inputs_take(sp_tensor_ports *ports)
{
    const uint32_t count = ports->arguments->input_count;
    uint32_t read_count;
    SP_TRY(sp__run_ports_take_inputs(ports->graph, ports->input_hosts, count, false, &ports->run));
    SP_TRY(values_read(ports, &read_count));
    if (read_count == 0) return SP_OK;
    return sp__run_ports_take_inputs(ports->graph, ports->input_hosts, count, false, &ports->run);
}

/* ---- init and deinit ---- */

static sp_status rooms_create(sp_tensor_ports *ports)
{
    const size_t inputs = ports->arguments->input_count, outputs = ports->arguments->output_count;
    const size_t made = ports->graph->output_count;
    ports->inputs = sp_calloc(inputs, sizeof *ports->inputs);
    ports->outputs = sp_calloc(made, sizeof *ports->outputs);
    ports->input_hosts = sp_calloc(inputs + outputs, sizeof *ports->input_hosts);
    ports->places = sp_calloc(inputs + made, sizeof *ports->places);
    if (ports->inputs == NULL || ports->outputs == NULL || ports->input_hosts == NULL ||
        ports->places == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run of %zu inputs and %zu outputs",
                        inputs, made);
    }
    ports->output_hosts = ports->input_hosts + inputs;
    return SP_OK;
}

static void rooms_destroy(sp_tensor_ports *ports)
{
    for (uint32_t i = 0; ports->inputs != NULL && i < ports->arguments->input_count; i++) {
        const sp_tensor_input *input = &ports->inputs[i];
        if (input->tensor != NULL) sp__tensor_drop(input->tensor);
        (void)sp_tensor_release(input->copy); /* its memory is kept until the run is done */
    }
    for (uint32_t i = 0; ports->outputs != NULL && i < ports->graph->output_count; i++) {
        if (ports->outputs[i].into != NULL) sp__tensor_drop(ports->outputs[i].into);
        (void)sp_tensor_release(ports->outputs[i].fresh);
    }
    sp_free(ports->inputs);
    sp_free(ports->outputs);
    sp_free(ports->input_hosts);
    sp_free(ports->places);
    sp_free(ports->input_storages);
}

static sp_status outputs_find(sp_tensor_ports *ports)
{
    const sp_tensor_arguments *arguments = ports->arguments;
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        const sp_model_tensor *argument = &arguments->outputs[i];
        sp_status status = SP_OK;
        if (argument->tensor.bits == 0) continue;
        if (argument->host != NULL) {
            status = sp__fail(SP_INVALID, "give a tensor or host memory, and not both");
        } else {
            status = tensor_find_on(ports, argument->tensor,
                                    &ports->outputs[ports->run.output_at[i]].into);
        }
        if (status != SP_OK) return fail_argument(status, "output", i, argument);
        ports->given_count++;
    }
    return SP_OK;
}

static sp_status ports_fill(sp_tensor_ports *ports)
{
    const sp_tensor_arguments *arguments = ports->arguments;
    SP_TRY(inputs_init(ports));
    SP_TRY(inputs_take(ports));
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        ports->output_hosts[i].name = arguments->outputs[i].name;
    }
    SP_TRY(sp__run_ports_name_outputs(ports->graph, ports->output_hosts, arguments->output_count,
                                      &ports->run));
    SP_TRY(outputs_find(ports));
    return sp__tensor_ports_check_overlap(ports);
}

sp_status sp__tensor_ports_init(sp_tensor_ports *ports, const sp_graph *graph, sp_rt_device *device,
                                const sp_tensor_arguments *arguments)
{
    ports->graph = graph;
    ports->device = device;
    ports->arguments = arguments;
    ports->given_count = 0;
    ports->input_storages = NULL;
    if (arguments->inputs == NULL && arguments->input_count > 0) {
        return sp__fail(SP_INVALID, "no inputs were given");
    }
    if (arguments->outputs == NULL && arguments->output_count > 0) {
        return sp__fail(SP_INVALID, "no outputs were given");
    }
    SP_TRY(sp__run_ports_init(&ports->run, graph, arguments->input_count));
    sp_status status = rooms_create(ports);
    if (status == SP_OK) status = ports_fill(ports);
    if (status != SP_OK) sp__tensor_ports_deinit(ports);
    return status;
}

void sp__tensor_ports_deinit(sp_tensor_ports *ports)
{
    rooms_destroy(ports);
    sp__run_ports_deinit(&ports->run);
}

/* ---- places of inputs ---- */

/* A new tensor of the call: with the values that the plan is for, since the input may have changed,
 * with the data of host memory, or with the elements in order. */
static sp_status input_copy(const sp_tensor_ports *ports, sp_tensor_input *input,
                            const sp_plan_tensor *of, const void *call_site)
{
    const bool is_host = input->tensor == NULL;
    if (!input->has_values && !is_host) {
        return sp__tensor_copy_of(input->tensor, call_site, &input->copy);
    }
    if (!input->has_values) SP_TRY(check_host_input(input, of->bytes));
    const void *data = input->has_values ? input->values : input->argument->host->data;
    return sp_tensor_from_host(sp__rt_device_handle(ports->device), of->dtype, of->shape.rank,
                               of->shape.dims, data, of->bytes, &input->copy);
}

static sp_status place_of(sp_tensor tensor, sp_tensor_place *out)
{
    sp_tensor_info info;
    SP_TRY(sp_tensor_get_info(tensor, &info));
    *out = (sp_tensor_place){.storage = info.storage, .offset = info.offset};
    return SP_OK;
}

static sp_status input_bind(const sp_tensor_ports *ports, uint32_t k, const sp_plan_tensor *of,
                            const void *call_site)
{
    sp_tensor_input *input = input_at(ports, k);
    const sp_rt_tensor *tensor = input->tensor;
    if (tensor != NULL && !input->has_values && sp__layout_is_contiguous(&tensor->layout)) {
        ports->places[k] =
            (sp_tensor_place){.storage = tensor->storage, .offset = tensor->layout.offset};
        return SP_OK;
    }
    const sp_status status = input_copy(ports, input, of, call_site);
    if (status != SP_OK) return sp__fail_prefix(status, "input '%s': ", of->name);
    return place_of(input->copy, &ports->places[k]);
}

/* ---- places of outputs ---- */

sp_status sp__tensor_output_check(const sp_plan_tensor *output, const sp_rt_tensor *into)
{
    const sp_layout *layout = &into->layout;
    if (layout->dtype != output->dtype || !sp__shape_equal(&layout->shape, &output->shape)) {
        return sp__fail(
            SP_MISMATCH, "output '%s' is %s of shape %s; the given tensor is %s of shape %s",
            output->name, sp_dtype_name(output->dtype), sp__shape_print(&output->shape).text,
            sp_dtype_name(layout->dtype), sp__shape_print(&layout->shape).text);
    }
    const sp_status status = sp__tensor_check_writable(into);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "output '%s': ", output->name);
}

sp_status sp__tensor_output_check_frozen(const char *name, const sp_rt_tensor *into)
{
    sp_storage_info info;
    SP_TRY(sp_storage_get_info(into->storage, &info));
    if (!info.is_frozen) return SP_OK;
    return sp__fail(SP_INVALID, "output '%s': a frozen storage cannot be written", name);
}

static sp_status check_outputs(const sp_tensor_ports *ports, const sp_graph_plan *plan)
{
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const sp_rt_tensor *into = ports->outputs[i].into;
        if (into != NULL) SP_TRY(sp__tensor_output_check(&plan->outputs[i], into));
    }
    return SP_OK;
}

/* An output that is written in place, and is frozen, makes the run fail before it writes any. */
static sp_status output_bind(const sp_tensor_ports *ports, uint32_t i, const sp_graph_plan *plan)
{
    sp_tensor_output *output = &ports->outputs[i];
    const sp_plan_tensor *of = &plan->outputs[i];
    const sp_rt_tensor *into = output->into;
    sp_tensor_place *place = &ports->places[plan->input_count + i];
    if (into != NULL && sp__layout_is_contiguous(&into->layout) &&
        !sp__tensor_ports_reads(ports, plan->input_count, into->storage)) {
        *place = (sp_tensor_place){.storage = into->storage, .offset = into->layout.offset};
        return SP_OK;
    }
    if (into != NULL) SP_TRY(sp__tensor_output_check_frozen(of->name, into));
    const sp_status status = sp_tensor_create(sp__rt_device_handle(ports->device), of->dtype,
                                              of->shape.rank, of->shape.dims, &output->fresh);
    if (status != SP_OK) return sp__fail_prefix(status, "output '%s': ", of->name);
    return place_of(output->fresh, place);
}

/* ---- outputs in host memory ---- */

static void host_describe(const sp_plan_tensor *output, sp_host_tensor *host)
{
    host->dtype = output->dtype;
    host->rank = output->shape.rank;
    memcpy(host->shape, output->shape.dims, sizeof host->shape);
    host->bytes = output->bytes;
}

static bool is_to_allocate(const sp_host_tensor *host)
{
    return host->data == NULL && host->capacity == 0;
}

static sp_status check_host_outputs(const sp_tensor_ports *ports, const sp_graph_plan *plan)
{
    const sp_tensor_arguments *arguments = ports->arguments;
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        const sp_plan_tensor *output = &plan->outputs[ports->run.output_at[i]];
        sp_host_tensor *host = arguments->outputs[i].host;
        if (host == NULL) continue;
        host_describe(output, host);
        if (is_to_allocate(host)) continue;
        if (host->capacity < output->bytes) {
            return sp__fail(SP_MISMATCH,
                            "output '%s' is %s of shape %s and needs %" PRIu64
                            " bytes; its capacity is %" PRIu64,
                            output->name, sp_dtype_name(output->dtype),
                            sp__shape_print(&output->shape).text, output->bytes, host->capacity);
        }
        if (host->data == NULL && output->bytes > 0) {
            return sp__fail(SP_INVALID, "output '%s' has no data", output->name);
        }
    }
    return SP_OK;
}

static sp_status host_output_read(const sp_plan_tensor *output, sp_tensor_output *from,
                                  sp_host_tensor *host)
{
    if (is_to_allocate(host) && output->bytes > 0) {
        host->data = sp_aligned_malloc(SP_HOST_TENSOR_ALIGNMENT, (size_t)output->bytes);
        if (host->data == NULL) {
            return sp__fail(SP_OUT_OF_MEMORY, "no memory for output '%s' of %" PRIu64 " bytes",
                            output->name, output->bytes);
        }
        host->capacity = output->bytes;
        from->is_allocated = true;
    }
    return sp_tensor_read(from->fresh, host->data, output->bytes);
}

/* ---- a run ---- */

sp_status sp__tensor_ports_bind(sp_tensor_ports *ports, const sp_graph_plan *plan,
                                const void *call_site)
{
    SP_TRY(check_outputs(ports, plan));
    SP_TRY(check_host_outputs(ports, plan));
    for (uint32_t k = 0; k < plan->input_count; k++) {
        SP_TRY(input_bind(ports, k, &plan->inputs[k], call_site));
    }
    SP_TRY(sp__tensor_ports_sort_storages(ports, plan->input_count));
    for (uint32_t i = 0; i < plan->output_count; i++) SP_TRY(output_bind(ports, i, plan));
    return SP_OK;
}

static sp_status output_copy(const sp_tensor_output *output, const void *call_site)
{
    sp_rt_tensor *from;
    SP_TRY(sp__tensor_find(output->fresh, &from));
    const sp_status status = sp__tensor_copy(output->into, from, call_site);
    sp__tensor_drop(from);
    return status;
}

static sp_status outputs_copy(const sp_tensor_ports *ports, const void *call_site)
{
    for (uint32_t i = 0; i < ports->arguments->output_count; i++) {
        const sp_tensor_output *output = &ports->outputs[ports->run.output_at[i]];
        if (output->into == NULL || output->fresh.bits == 0) continue;
        SP_TRY(output_copy(output, call_site));
    }
    return SP_OK;
}

static bool has_host_outputs(const sp_tensor_arguments *arguments)
{
    bool is_any = false;
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        is_any = is_any || arguments->outputs[i].host != NULL;
    }
    return is_any;
}

/* As a read of the outputs waits: an input may be behind an open access of the caller. */
static sp_status run_wait(uint64_t before, sp_point run)
{
    SP_TRY(sp__point_wait_for_access(&run, 1));
    const sp_fault fault = sp__point_fault(run);
    if (SP_LIKELY(fault == SP_NO_FAULT)) return SP_OK;
    sp__failures_returned(run, before);
    return sp__fault_report(fault);
}

static sp_status host_outputs_read(const sp_tensor_ports *ports, const sp_graph_plan *plan)
{
    const sp_tensor_arguments *arguments = ports->arguments;
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        const uint32_t index = ports->run.output_at[i];
        sp_host_tensor *host = arguments->outputs[i].host;
        if (host == NULL) continue;
        SP_TRY(host_output_read(&plan->outputs[index], &ports->outputs[index], host));
    }
    return SP_OK;
}

static void host_outputs_free(const sp_tensor_ports *ports)
{
    const sp_tensor_arguments *arguments = ports->arguments;
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        sp_host_tensor *host = arguments->outputs[i].host;
        if (host == NULL || !ports->outputs[ports->run.output_at[i]].is_allocated) continue;
        sp_free(host->data);
        host->data = NULL;
        host->capacity = 0;
    }
}

sp_status sp__tensor_ports_give(sp_tensor_ports *ports, const sp_graph_plan *plan, uint64_t before,
                                sp_point run, const void *call_site)
{
    const sp_tensor_arguments *arguments = ports->arguments;
    SP_TRY(outputs_copy(ports, call_site));
    if (has_host_outputs(arguments)) SP_TRY(run_wait(before, run));
    const sp_status status = host_outputs_read(ports, plan);
    if (status != SP_OK) {
        host_outputs_free(ports);
        return status;
    }
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        sp_tensor_output *output = &ports->outputs[ports->run.output_at[i]];
        if (output->into != NULL || arguments->outputs[i].host != NULL) continue;
        arguments->outputs[i].tensor = output->fresh;
        output->fresh = (sp_tensor){0};
    }
    return SP_OK;
}
