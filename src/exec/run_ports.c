/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run_ports.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

/* ---- inputs ---- */

static sp_status check_tensor(const sp_host_tensor *tensor, const char *name, bool needs_data,
                              sp_plan_input *out)
{
    *out = (sp_plan_input){.dtype = tensor->dtype};
    if (sp_dtype_bytes(tensor->dtype) == 0) {
        return sp__fail(SP_MISMATCH, "input '%s' has no dtype", name);
    }
    uint64_t bytes;
    sp_status status = sp__shape_make(tensor->shape, tensor->rank, &out->shape);
    if (status == SP_OK) status = sp__shape_bytes(&out->shape, tensor->dtype, &bytes);
    if (status != SP_OK) return sp__fail_prefix(status, "input '%s': ", name);
    if (!needs_data) return SP_OK;
    if (tensor->bytes != bytes) {
        return sp__fail(SP_MISMATCH, "input '%s' has %" PRIu64 " bytes; %s of shape %s is %" PRIu64,
                        name, tensor->bytes, sp_dtype_name(tensor->dtype),
                        sp__shape_print(&out->shape).text, bytes);
    }
    if (bytes > 0 && tensor->data == NULL) {
        return sp__fail(SP_INVALID, "input '%s' has no data", name);
    }
    if ((uintptr_t)tensor->data % sp_dtype_bytes(tensor->dtype) != 0) {
        return sp__fail(SP_INVALID, "the data of input '%s' is not aligned for %s", name,
                        sp_dtype_name(tensor->dtype));
    }
    return SP_OK;
}

/* The plan is for these values too, if shapes depend on them. Large ones never are sizes. What only
 * asks for shapes may have no values to give. */
static void take_values(const sp_graph_port *port, const sp_host_tensor *tensor, sp_plan_input *out)
{
    const uint64_t size = sp_dtype_bytes(out->dtype);
    const uint64_t bytes = sp__shape_count(&out->shape) * size;
    const bool is_small = bytes <= SP_SHAPE_INPUT_BYTES && tensor->bytes == bytes;
    const bool is_aligned = (uintptr_t)tensor->data % size == 0;
    if (port->determines_shapes && is_small && is_aligned) out->data = tensor->data;
}

/* An input without bytes may have no address; kernels get one all the same, and read nothing. */
static const void *address_of(const sp_host_tensor *tensor)
{
    static const _Alignas(16) char nothing[16];
    return tensor->data != NULL ? tensor->data : nothing;
}

static sp_status take_override(const sp_graph *graph, const sp_host_tensor *tensor, bool needs_data,
                               sp_run_ports *ports)
{
    const uint32_t index = sp__graph_port_find(graph->defaults, graph->default_count, tensor->name);
    if (index >= graph->default_count) {
        return sp__fail(SP_NOT_FOUND, "the model has no input '%s'", tensor->name);
    }
    for (uint32_t i = 0; i < ports->override_count; i++) {
        if (ports->overrides[i].index == index) {
            return sp__fail(SP_INVALID, "input '%s' was given twice", tensor->name);
        }
    }
    if (ports->override_count == SP_MODEL_MAX_PORTS) {
        return sp__fail(SP_EXHAUSTED, "more than %d overridden inputs", SP_MODEL_MAX_PORTS);
    }
    sp_plan_override *override = &ports->overrides[ports->override_count];
    override->index = index;
    SP_TRY(check_tensor(tensor, tensor->name, needs_data, &override->input));
    take_values(&graph->defaults[index], tensor, &override->input);
    ports->data[graph->input_count + ports->override_count] = address_of(tensor);
    ports->override_count++;
    return SP_OK;
}

static sp_status take_input(const sp_graph *graph, const sp_host_tensor *tensor, uint32_t position,
                            bool needs_data, sp_run_ports *ports)
{
    uint32_t index = position;
    if (tensor->name != NULL) {
        index = sp__graph_port_find(graph->inputs, graph->input_count, tensor->name);
        if (index >= graph->input_count) return take_override(graph, tensor, needs_data, ports);
    }
    if (index >= graph->input_count) {
        return sp__fail(SP_MISMATCH,
                        "the model has %u inputs; a tensor without a name stands at "
                        "position %u",
                        graph->input_count, position);
    }
    const char *name = graph->inputs[index].name;
    if (ports->is_given[index]) return sp__fail(SP_INVALID, "input '%s' was given twice", name);
    ports->is_given[index] = true;
    ports->data[index] = address_of(tensor);
    SP_TRY(check_tensor(tensor, name, needs_data, &ports->inputs[index]));
    take_values(&graph->inputs[index], tensor, &ports->inputs[index]);
    return SP_OK;
}

sp_status sp__run_ports_take_inputs(const sp_graph *graph, const sp_host_tensor *inputs,
                                    uint32_t count, bool needs_data, sp_run_ports *ports)
{
    if (inputs == NULL && count > 0) return sp__fail(SP_INVALID, "no inputs were given");
    memset(ports->is_given, 0, sizeof ports->is_given);
    ports->override_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        SP_TRY(take_input(graph, &inputs[i], i, needs_data, ports));
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (!ports->is_given[i]) {
            return sp__fail(SP_MISMATCH,
                            "input '%s' is missing: the model has %u inputs, %u were "
                            "given",
                            graph->inputs[i].name, graph->input_count, count);
        }
    }
    return SP_OK;
}

sp_status sp__run_ports_find_plan(sp_plan_cache *plans, const sp_run_ports *ports, bool may_wait,
                                  sp_plan_entry **out)
{
    const sp_plan_request request = {.inputs = ports->inputs,
                                     .input_count = plans->graph->input_count,
                                     .overrides = ports->overrides,
                                     .override_count = ports->override_count};
    return sp__plan_cache_acquire(plans, &request, may_wait, out);
}

/* ---- outputs ---- */

sp_status sp__run_ports_output_index(const sp_graph *graph, const sp_host_tensor *tensor,
                                     uint32_t position, uint32_t *index)
{
    *index = position;
    if (tensor->name != NULL) {
        *index = sp__graph_port_find(graph->outputs, graph->output_count, tensor->name);
    }
    if (*index < graph->output_count) return SP_OK;
    if (tensor->name != NULL) {
        return sp__fail(SP_NOT_FOUND, "the model has no output '%s'", tensor->name);
    }
    return sp__fail(SP_MISMATCH,
                    "the model has %u outputs; a tensor without a name stands at "
                    "position %u",
                    graph->output_count, position);
}

static void describe_output(const sp_plan_tensor *from, sp_host_tensor *to)
{
    to->dtype = from->dtype;
    to->rank = from->shape.rank;
    memcpy(to->shape, from->shape.dims, sizeof to->shape);
    to->bytes = from->bytes;
}

/* NULL is an output that is left out: it will have memory of its own. */
static bool is_overlapping(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    if (a == NULL || b == NULL) return false;
    const uintptr_t x = (uintptr_t)a;
    const uintptr_t y = (uintptr_t)b;
    return x <= y ? y - x < a_bytes && b_bytes > 0 : x - y < b_bytes && a_bytes > 0;
}

/* A run writes outputs while it still reads inputs and other outputs. */
static sp_status check_overlap(const sp_graph_plan *plan, const sp_run_ports *ports)
{
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const sp_plan_tensor *output = &plan->outputs[i];
        for (uint32_t k = 0; k < plan->input_count; k++) {
            const sp_plan_tensor *input = &plan->inputs[k];
            if (is_overlapping(ports->outputs[i], output->bytes, ports->data[k], input->bytes)) {
                return sp__fail(SP_INVALID, "output '%s' overlaps input '%s'", output->name,
                                input->name);
            }
        }
        for (uint32_t k = 0; k < i; k++) {
            const sp_plan_tensor *other = &plan->outputs[k];
            if (is_overlapping(ports->outputs[i], output->bytes, ports->outputs[k], other->bytes)) {
                return sp__fail(SP_INVALID, "output '%s' overlaps output '%s'", output->name,
                                other->name);
            }
        }
    }
    return SP_OK;
}

sp_status sp__run_ports_take_outputs(const sp_graph_plan *plan, const sp_host_tensor *outputs,
                                     uint32_t count, sp_run_ports *ports)
{
    if (outputs == NULL && count > 0) return sp__fail(SP_INVALID, "no outputs were given");
    memset(ports->outputs, 0, plan->output_count * sizeof *ports->outputs);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        SP_TRY(sp__run_ports_output_index(plan->graph, &outputs[i], i, &index));
        const sp_plan_tensor *tensor = &plan->outputs[index];
        if (ports->outputs[index] != NULL) {
            return sp__fail(SP_INVALID, "output '%s' was given twice", tensor->name);
        }
        if (outputs[i].bytes < tensor->bytes) {
            return sp__fail(SP_MISMATCH,
                            "output '%s' is %s of shape %s, %" PRIu64
                            " bytes; there is room for %" PRIu64,
                            tensor->name, sp_dtype_name(tensor->dtype),
                            sp__shape_print(&tensor->shape).text, tensor->bytes, outputs[i].bytes);
        }
        const bool is_aligned = (uintptr_t)outputs[i].data % sp_dtype_bytes(tensor->dtype) == 0;
        const bool has_data = outputs[i].data != NULL || tensor->bytes == 0;
        if (!has_data || !is_aligned) {
            return sp__fail(SP_INVALID, "output '%s' has no data, or is not aligned for %s",
                            tensor->name, sp_dtype_name(tensor->dtype));
        }
        ports->outputs[index] = outputs[i].data;
    }
    return check_overlap(plan, ports);
}

void sp__run_ports_describe(const sp_graph_plan *plan, sp_host_tensor *outputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        if (sp__run_ports_output_index(plan->graph, &outputs[i], i, &index) == SP_OK) {
            describe_output(&plan->outputs[index], &outputs[i]);
        }
    }
}
