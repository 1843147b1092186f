/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run_ports.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"

/* ---- room ---- */

static void ports_use_room(sp_run_ports *ports)
{
    ports->inputs = ports->room.inputs;
    ports->overrides = ports->room.overrides;
    ports->spans = NULL;
    ports->data = ports->room.data;
    ports->outputs = ports->room.outputs;
    ports->output_at = ports->room.output_at;
    ports->is_given = ports->room.is_given;
    ports->is_allocated = ports->room.is_allocated;
}

/* All arrays in one block, those of the strictest alignment first. */
static sp_status ports_use_heap(sp_run_ports *ports, const sp_graph *graph)
{
    const size_t inputs = graph->input_count;
    const size_t overrides = ports->override_capacity;
    const size_t outputs = graph->output_count;
    const size_t flags = inputs > outputs ? inputs : outputs;
    const size_t given = inputs + overrides;
    char *at = sp_malloc(inputs * sizeof *ports->inputs + overrides * sizeof *ports->overrides +
                         (given + outputs) * sizeof *ports->spans + given * sizeof *ports->data +
                         outputs * (sizeof *ports->outputs + sizeof *ports->output_at + 1) + flags);
    if (at == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run of %zu inputs and %zu outputs",
                        given, outputs);
    }
    ports->block = at;
    ports->inputs = (void *)at;
    ports->overrides = (void *)(ports->inputs + inputs);
    ports->spans = (void *)(ports->overrides + overrides);
    ports->data = (void *)(ports->spans + given + outputs);
    ports->outputs = (void *)(ports->data + given);
    ports->output_at = (void *)(ports->outputs + outputs);
    ports->is_allocated = (void *)(ports->output_at + outputs);
    ports->is_given = ports->is_allocated + outputs;
    return SP_OK;
}

sp_status sp__run_ports_init(sp_run_ports *ports, const sp_graph *graph, uint32_t tensor_count)
{
    const uint32_t overrides =
        tensor_count < graph->default_count ? tensor_count : graph->default_count;
    ports->override_count = 0;
    ports->override_capacity = overrides;
    ports->tensor_count = 0;
    ports->block = NULL;
    if (SP_LIKELY(graph->input_count <= SP_RUN_PORTS_INLINE && overrides <= SP_RUN_PORTS_INLINE &&
                  graph->output_count <= SP_RUN_PORTS_INLINE)) {
        ports_use_room(ports);
        return SP_OK;
    }
    return ports_use_heap(ports, graph);
}

void sp__run_ports_deinit(sp_run_ports *ports)
{
    for (uint32_t i = 0; i < ports->tensor_count; i++) {
        if (ports->is_allocated[i]) sp_free(ports->outputs[ports->output_at[i]]);
    }
    sp_free(ports->block);
}

/* ---- names ---- */

sp_status sp__ports_not_found(const sp_graph_port *ports, uint32_t count, const char *noun,
                              const char *name)
{
    static const char more[] = ", ...";
    char names[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        const size_t left = sizeof names - sizeof more - used;
        const int length = snprintf(names + used, left, "%s%s", i > 0 ? ", " : "", ports[i].name);
        if (length < 0 || (size_t)length >= left) {
            memcpy(names + used, i > 0 ? more : more + 2, sizeof more - (i > 0 ? 0 : 2));
            break;
        }
        used += (size_t)length;
    }
    return sp__fail(SP_NOT_FOUND, "the model has no %s '%.160s'; it has%s %s", noun, name,
                    count > 0 ? ":" : "", count > 0 ? names : "none");
}

/* Callers mostly give all tensors in the model's order, so the name at `position` is compared
 * first. At least `count` if there is none. */
static uint32_t port_find(const sp_graph_port *ports, const sp_graph_name *names, uint32_t count,
                          uint32_t position, const char *name)
{
    if (position < count && strcmp(ports[position].name, name) == 0) return position;
    return sp__graph_name_find(names, count, name);
}

/* ---- inputs ---- */

static sp_status input_check(const sp_host_tensor *tensor, const char *name, bool needs_data,
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

/* If shapes depend on the values, the plan is for these values too. Large tensors never are sizes.
 * A caller that asks for shapes may give no values. */
static void input_take_values(const sp_graph_port *port, const sp_host_tensor *tensor,
                              sp_plan_input *out)
{
    const uint64_t size = sp_dtype_bytes(out->dtype);
    const uint64_t bytes = sp__shape_count(&out->shape) * size;
    const bool is_small = bytes <= SP_SHAPE_INPUT_BYTES && tensor->bytes == bytes;
    const bool is_aligned = (uintptr_t)tensor->data % size == 0;
    if (port->determines_shapes && is_small && is_aligned) out->data = tensor->data;
}

/* An input of 0 bytes may have no address; kernels get one that they do not read. */
static const void *input_address(const sp_host_tensor *tensor)
{
    static const _Alignas(16) char nothing[16];
    return tensor->data != NULL ? tensor->data : nothing;
}

static sp_status take_override(const sp_graph *graph, const sp_host_tensor *tensor, bool needs_data,
                               sp_run_ports *ports)
{
    const uint32_t index =
        sp__graph_name_find(graph->default_names, graph->default_count, tensor->name);
    if (index >= graph->default_count) {
        return sp__ports_not_found(graph->inputs, graph->input_count, "input", tensor->name);
    }
    for (uint32_t i = 0; i < ports->override_count; i++) {
        if (ports->overrides[i].index == index) {
            return sp__fail(SP_INVALID, "input '%s' was given twice", tensor->name);
        }
    }
    sp_plan_override *override = &ports->overrides[ports->override_count];
    override->index = index;
    SP_TRY(input_check(tensor, tensor->name, needs_data, &override->input));
    input_take_values(&graph->defaults[index], tensor, &override->input);
    ports->data[graph->input_count + ports->override_count] = input_address(tensor);
    ports->override_count++;
    return SP_OK;
}

static sp_status take_input(const sp_graph *graph, const sp_host_tensor *tensor, uint32_t position,
                            bool needs_data, sp_run_ports *ports)
{
    uint32_t index = position;
    if (tensor->name != NULL) {
        index = port_find(graph->inputs, graph->input_names, graph->input_count, position,
                          tensor->name);
        if (index >= graph->input_count) return take_override(graph, tensor, needs_data, ports);
    }
    if (index >= graph->input_count) {
        return sp__fail(
            SP_MISMATCH,
            "the model has %u inputs; a tensor without a name is number %u of the array",
            graph->input_count, position);
    }
    const char *name = graph->inputs[index].name;
    if (ports->is_given[index]) return sp__fail(SP_INVALID, "input '%s' was given twice", name);
    ports->is_given[index] = true;
    ports->data[index] = input_address(tensor);
    SP_TRY(input_check(tensor, name, needs_data, &ports->inputs[index]));
    input_take_values(&graph->inputs[index], tensor, &ports->inputs[index]);
    return SP_OK;
}

sp_status sp__run_ports_take_inputs(const sp_graph *graph, const sp_host_tensor *inputs,
                                    uint32_t count, bool needs_data, sp_run_ports *ports)
{
    if (inputs == NULL && count > 0) return sp__fail(SP_INVALID, "no inputs were given");
    for (uint32_t i = 0; i < graph->input_count; i++) ports->is_given[i] = false;
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

static sp_plan_request plan_request(const sp_plan_cache *plans, const sp_run_ports *ports)
{
    return (sp_plan_request){.inputs = ports->inputs,
                             .input_count = plans->graph->input_count,
                             .overrides = ports->overrides,
                             .override_count = ports->override_count};
}

sp_status sp__run_ports_find_plan(sp_plan_cache *plans, const sp_run_ports *ports, bool may_wait,
                                  sp_plan_entry **out)
{
    const sp_plan_request request = plan_request(plans, ports);
    return sp__plan_cache_acquire(plans, &request, may_wait, out);
}

sp_status sp__run_ports_visit_plan(sp_plan_cache *plans, const sp_run_ports *ports, uint32_t lane,
                                   sp_plan_entry **out)
{
    const sp_plan_request request = plan_request(plans, ports);
    return sp__plan_cache_visit(plans, &request, lane, out);
}

sp_status sp__run_ports_try_visit_plan(sp_plan_cache *plans, const sp_run_ports *ports,
                                       uint32_t lane, sp_plan_entry **out)
{
    const sp_plan_request request = plan_request(plans, ports);
    return sp__plan_cache_try_visit(plans, &request, lane, out);
}

sp_status sp__run_ports_find_plan_until(sp_plan_cache *plans, const sp_run_ports *ports,
                                        const sp_atomic_u32 *no_wait, sp_plan_entry **out)
{
    const sp_plan_request request = plan_request(plans, ports);
    return sp__plan_cache_acquire_until(plans, &request, no_wait, out);
}

/* The tensor that take_inputs would turn into this input. Its size has been checked. */
static sp_host_tensor input_tensor(const char *name, const sp_plan_input *input, const void *data)
{
    sp_host_tensor tensor = {.name = name,
                             .data = (void *)(uintptr_t)data,
                             .dtype = input->dtype,
                             .rank = input->shape.rank};
    tensor.bytes = sp__shape_count(&input->shape) * sp_dtype_bytes(input->dtype);
    memcpy(tensor.shape, input->shape.dims, sizeof tensor.shape);
    return tensor;
}

uint32_t sp__run_ports_copy_inputs(const sp_graph *graph, const sp_run_ports *ports,
                                   sp_host_tensor *out)
{
    const uint32_t own = graph->input_count;
    for (uint32_t i = 0; i < own; i++) {
        out[i] = input_tensor(graph->inputs[i].name, &ports->inputs[i], ports->data[i]);
    }
    for (uint32_t i = 0; i < ports->override_count; i++) {
        const sp_plan_override *override = &ports->overrides[i];
        out[own + i] = input_tensor(graph->defaults[override->index].name, &override->input,
                                    ports->data[own + i]);
    }
    return own + ports->override_count;
}

/* ---- outputs ---- */

static sp_status output_find(const sp_graph *graph, const sp_host_tensor *tensor, uint32_t position,
                             uint32_t *index)
{
    const uint32_t count = graph->output_count;
    *index = position;
    if (tensor->name != NULL)
        *index = port_find(graph->outputs, graph->output_names, count, position, tensor->name);
    if (*index < count) return SP_OK;
    if (tensor->name != NULL) {
        return sp__ports_not_found(graph->outputs, count, "output", tensor->name);
    }
    return sp__fail(SP_MISMATCH,
                    "the model has %u outputs; a tensor without a name is number %u of the array",
                    count, position);
}

sp_status sp__run_ports_name_outputs(const sp_graph *graph, const sp_host_tensor *outputs,
                                     uint32_t count, sp_run_ports *ports)
{
    if (outputs == NULL && count > 0) return sp__fail(SP_INVALID, "no outputs were given");
    ports->tensor_count = 0;
    for (uint32_t i = 0; i < graph->output_count; i++) ports->is_given[i] = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        SP_TRY(output_find(graph, &outputs[i], i, &index));
        if (ports->is_given[index]) {
            return sp__fail(SP_INVALID, "output '%s' was given twice", graph->outputs[index].name);
        }
        ports->is_given[index] = true;
        ports->output_at[i] = index;
        ports->is_allocated[i] = false;
        ports->tensor_count++;
    }
    return SP_OK;
}

/* An unrequested output, NULL here, will have memory of its own. */
static bool is_overlapping(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    if (a == NULL || b == NULL) return false;
    const uintptr_t x = (uintptr_t)a;
    const uintptr_t y = (uintptr_t)b;
    return x <= y ? y - x < a_bytes && b_bytes > 0 : x - y < b_bytes && a_bytes > 0;
}

static sp_status fail_overlap(const sp_plan_tensor *output, const sp_plan_tensor *other,
                              bool is_output)
{
    return sp__fail(SP_INVALID, "output '%s' overlaps %s '%s'", output->name,
                    is_output ? "output" : "input", other->name);
}

/* For a few ports: each output with each input, and with the outputs before it. */
static sp_status check_pairs(const sp_graph_plan *plan, const sp_run_ports *ports)
{
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const sp_plan_tensor *output = &plan->outputs[i];
        if (ports->outputs[i] == NULL) continue;
        for (uint32_t k = 0; k < plan->input_count; k++) {
            const sp_plan_tensor *input = &plan->inputs[k];
            if (is_overlapping(ports->outputs[i], output->bytes, ports->data[k], input->bytes)) {
                return fail_overlap(output, input, false);
            }
        }
        for (uint32_t k = 0; k < i; k++) {
            const sp_plan_tensor *other = &plan->outputs[k];
            if (is_overlapping(ports->outputs[i], output->bytes, ports->outputs[k], other->bytes)) {
                return fail_overlap(output, other, true);
            }
        }
    }
    return SP_OK;
}

static void spans_add(sp_run_ports *ports, uint32_t *count, const void *data, uint64_t bytes,
                      uint32_t index, bool is_output)
{
    if (data == NULL || bytes == 0) return;
    ports->spans[(*count)++] = (sp_port_span){.begin = (uintptr_t)data,
                                              .end = (uintptr_t)data + bytes,
                                              .index = index,
                                              .is_output = is_output};
}

/* For many ports, where the time of check_pairs would be quadratic. */
static sp_status check_spans(const sp_graph_plan *plan, sp_run_ports *ports)
{
    uint32_t count = 0;
    sp_port_span found[2];
    for (uint32_t i = 0; i < plan->input_count; i++) {
        spans_add(ports, &count, ports->data[i], plan->inputs[i].bytes, i, false);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        spans_add(ports, &count, ports->outputs[i], plan->outputs[i].bytes, i, true);
    }
    if (!sp__port_spans_overlap(ports->spans, count, found)) return SP_OK;
    const sp_plan_tensor *others = found[1].is_output ? plan->outputs : plan->inputs;
    return fail_overlap(&plan->outputs[found[0].index], &others[found[1].index],
                        found[1].is_output);
}

/* A run writes outputs while it still reads inputs and other outputs. */
static sp_status check_overlap(const sp_graph_plan *plan, sp_run_ports *ports)
{
    return SP_LIKELY(ports->spans == NULL) ? check_pairs(plan, ports) : check_spans(plan, ports);
}

/* Has the caller left the memory to the library? */
static bool is_to_allocate(const sp_host_tensor *tensor)
{
    return tensor->data == NULL && tensor->capacity == 0;
}

static sp_status output_check(const sp_plan_tensor *output, const sp_host_tensor *tensor)
{
    if (is_to_allocate(tensor)) return SP_OK;
    if (tensor->capacity < output->bytes) {
        return sp__fail(SP_MISMATCH,
                        "output '%s' is %s of shape %s and needs %" PRIu64
                        " bytes; its capacity is %" PRIu64,
                        output->name, sp_dtype_name(output->dtype),
                        sp__shape_print(&output->shape).text, output->bytes, tensor->capacity);
    }
    const bool has_data = tensor->data != NULL || output->bytes == 0;
    const bool is_aligned = (uintptr_t)tensor->data % sp_dtype_bytes(output->dtype) == 0;
    if (has_data && is_aligned) return SP_OK;
    return sp__fail(SP_INVALID, "output '%s' has no data, or is not aligned for %s", output->name,
                    sp_dtype_name(output->dtype));
}

static sp_status output_allocate(const sp_plan_tensor *output, sp_run_ports *ports, uint32_t i)
{
    if (output->bytes == 0) return SP_OK;
    void *data = sp_aligned_malloc(SP_HOST_TENSOR_ALIGNMENT, (size_t)output->bytes);
    if (data == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for output '%s' of %" PRIu64 " bytes",
                        output->name, output->bytes);
    }
    ports->outputs[ports->output_at[i]] = data;
    ports->is_allocated[i] = true;
    return SP_OK;
}

sp_status sp__run_ports_take_outputs(const sp_graph_plan *plan, sp_host_tensor *outputs,
                                     sp_run_ports *ports)
{
    memset(ports->outputs, 0, plan->output_count * sizeof *ports->outputs);
    for (uint32_t i = 0; i < ports->tensor_count; i++) {
        const uint32_t index = ports->output_at[i];
        const sp_status status = output_check(&plan->outputs[index], &outputs[i]);
        if (status == SP_MISMATCH) sp__run_ports_describe(plan, outputs, ports);
        if (status != SP_OK) return status;
        ports->outputs[index] = outputs[i].data;
    }
    SP_TRY(check_overlap(plan, ports));
    for (uint32_t i = 0; i < ports->tensor_count; i++) {
        if (!is_to_allocate(&outputs[i])) continue;
        SP_TRY(output_allocate(&plan->outputs[ports->output_at[i]], ports, i));
    }
    return SP_OK;
}

void sp__run_ports_describe(const sp_graph_plan *plan, sp_host_tensor *outputs,
                            const sp_run_ports *ports)
{
    for (uint32_t i = 0; i < ports->tensor_count; i++) {
        const sp_plan_tensor *from = &plan->outputs[ports->output_at[i]];
        outputs[i].dtype = from->dtype;
        outputs[i].rank = from->shape.rank;
        memcpy(outputs[i].shape, from->shape.dims, sizeof outputs[i].shape);
        outputs[i].bytes = from->bytes;
    }
}

void sp__run_ports_give_outputs(const sp_graph_plan *plan, sp_host_tensor *outputs,
                                sp_run_ports *ports)
{
    sp__run_ports_describe(plan, outputs, ports);
    sp__run_ports_give_memory(outputs, ports);
}

void sp__run_ports_give_memory(sp_host_tensor *outputs, sp_run_ports *ports)
{
    for (uint32_t i = 0; i < ports->tensor_count; i++) {
        if (!ports->is_allocated[i]) continue;
        outputs[i].data = ports->outputs[ports->output_at[i]];
        outputs[i].capacity = outputs[i].bytes;
        ports->is_allocated[i] = false;
    }
}
