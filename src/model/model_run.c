/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: from the caller's tensors to a plan, a slot, a session, and back. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "device/thread_record.h"
#include "model/model.h"
#include "model/parts.h"
#include "runtime/current_stream.h"

/* One run's view of the caller's tensors, in the plan's order. Lives on the stack. */
typedef struct run_ports {
    sp_plan_input inputs[SP_MODEL_MAX_PORTS];
    sp_plan_override overrides[SP_MODEL_MAX_PORTS];
    /* Addresses: inputs, then overrides, as the plan counts them. */
    const void *data[2 * SP_MODEL_MAX_PORTS];
    bool is_given[SP_MODEL_MAX_PORTS];
    uint32_t override_count;
    void *outputs[SP_MODEL_MAX_PORTS];
} run_ports;

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
    const bool is_small = bytes <= SP_DECIDING_BYTES && tensor->bytes == bytes;
    const bool is_aligned = (uintptr_t)tensor->data % size == 0;
    if (port->decides_shapes && is_small && is_aligned) out->data = tensor->data;
}

/* An input without bytes may have no address; kernels get one all the same, and read nothing. */
static const void *address_of(const sp_host_tensor *tensor)
{
    return tensor->data != NULL ? tensor->data : tensor;
}

static sp_status take_override(const sp_graph *graph, const sp_host_tensor *tensor, bool needs_data,
                               run_ports *ports)
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

static sp_status take_input(const sp_graph *graph, const sp_host_tensor *tensor, uint32_t place,
                            bool needs_data, run_ports *ports)
{
    uint32_t index = place;
    if (tensor->name != NULL) {
        index = sp__graph_port_find(graph->inputs, graph->input_count, tensor->name);
        if (index >= graph->input_count) return take_override(graph, tensor, needs_data, ports);
    }
    if (index >= graph->input_count) {
        return sp__fail(SP_MISMATCH,
                        "the model has %u inputs; a tensor without a name stands at "
                        "place %u",
                        graph->input_count, place);
    }
    const char *name = graph->inputs[index].name;
    if (ports->is_given[index]) return sp__fail(SP_INVALID, "input '%s' was given twice", name);
    ports->is_given[index] = true;
    ports->data[index] = address_of(tensor);
    SP_TRY(check_tensor(tensor, name, needs_data, &ports->inputs[index]));
    take_values(&graph->inputs[index], tensor, &ports->inputs[index]);
    return SP_OK;
}

static sp_status take_inputs(const sp_graph *graph, const sp_host_tensor *inputs, uint32_t count,
                             bool needs_data, run_ports *ports)
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

static sp_status find_plan(sp_rt_model *model, const run_ports *ports, bool may_wait,
                           sp_plan_place **out)
{
    const sp_plan_request request = {.inputs = ports->inputs,
                                     .input_count = model->graph->input_count,
                                     .overrides = ports->overrides,
                                     .override_count = ports->override_count};
    return sp__plan_cache_find(&model->plans, &request, may_wait, out);
}

/* ---- outputs ---- */

static sp_status output_index(const sp_graph *graph, const sp_host_tensor *tensor, uint32_t place,
                              uint32_t *index)
{
    *index = place;
    if (tensor->name != NULL) {
        *index = sp__graph_port_find(graph->outputs, graph->output_count, tensor->name);
    }
    if (*index < graph->output_count) return SP_OK;
    if (tensor->name != NULL) {
        return sp__fail(SP_NOT_FOUND, "the model has no output '%s'", tensor->name);
    }
    return sp__fail(SP_MISMATCH,
                    "the model has %u outputs; a tensor without a name stands at "
                    "place %u",
                    graph->output_count, place);
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
static sp_status check_overlap(const sp_plan *plan, const run_ports *ports)
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

static sp_status take_outputs(const sp_plan *plan, const sp_host_tensor *outputs, uint32_t count,
                              run_ports *ports)
{
    if (outputs == NULL && count > 0) return sp__fail(SP_INVALID, "no outputs were given");
    memset(ports->outputs, 0, plan->output_count * sizeof *ports->outputs);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        SP_TRY(output_index(plan->graph, &outputs[i], i, &index));
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

static void describe_outputs(const sp_plan *plan, sp_host_tensor *outputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        if (output_index(plan->graph, &outputs[i], i, &index) == SP_OK) {
            describe_output(&plan->outputs[index], &outputs[i]);
        }
    }
}

/* ---- run ---- */

static void count_in(sp_rt_model *model)
{
    const uint32_t now = sp_fetch_add_relaxed(&model->in_flight, 1) + 1;
    uint32_t most = sp_load_relaxed(&model->most_in_flight);
    while (most < now && !sp_cas_relaxed(&model->most_in_flight, &most, now)) {
    }
}

/* On the stream, or, if there is none, here and now. */
static sp_status run_in_session(sp_rt_model *model, sp_compiled *compiled,
                                const void *const *inputs, void **outputs,
                                const sp_stream_ref *stream)
{
    sp_session *session;
    SP_TRY(sp__session_take(compiled, stream != NULL, &session));
    sp_status status = sp__session_cover_unwanted(session, outputs);
    if (status == SP_OK) {
        count_in(model);
        status = stream == NULL ? sp__session_run_inline(session, inputs, outputs)
                                : sp__session_run(session, stream, inputs, outputs);
        sp_fetch_sub_relaxed(&model->in_flight, 1);
    }
    sp__session_give(session);
    return status;
}

sp_status sp__model_compute(sp_rt_model *model, sp_compiled *compiled, const void *const *inputs,
                            void **outputs, const sp_stream_ref *stream)
{
    if (stream == NULL) return run_in_session(model, compiled, inputs, outputs, NULL);
    sp_run_slots *slots = sp__device_run_slots(model->device);
    if (slots == NULL) return SP_OUT_OF_MEMORY;
    SP_TRY(sp__run_slots_take(slots));
    const sp_status status = run_in_session(model, compiled, inputs, outputs, stream);
    sp__run_slots_give(slots);
    return status;
}

static sp_status run_plan(sp_rt_model *model, sp_compiled *compiled, run_ports *ports,
                          const sp_stream_ref *stream, sp_host_tensor *outputs,
                          uint32_t output_count)
{
    SP_TRY(take_outputs(compiled->plan, outputs, output_count, ports));
    sp_fetch_add_relaxed(&model->runs, (uint64_t)1);
    SP_TRY(sp__model_compute(model, compiled, ports->data, ports->outputs, stream));
    describe_outputs(compiled->plan, outputs, output_count);
    return SP_OK;
}

static sp_status check_names(const sp_graph *graph, const sp_host_tensor *outputs, uint32_t count)
{
    if (outputs == NULL && count > 0) return sp__fail(SP_INVALID, "no outputs were given");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        SP_TRY(output_index(graph, &outputs[i], i, &index));
    }
    return SP_OK;
}

/* Where one plan is not enough: how large the outputs are is known at the end. The place's use ends
 * here. `is_run` is false for who only asks for the outputs' shapes. */
static SP_NOINLINE sp_status run_parts(sp_rt_model *model, sp_plan_place *place, run_ports *ports,
                                       const sp_stream_ref *stream, sp_host_tensor *outputs,
                                       uint32_t output_count, bool is_run)
{
    sp_parts *parts;
    sp_status status = check_names(model->graph, outputs, output_count);
    if (status != SP_OK) {
        sp__plan_cache_drop(&model->plans, place);
        return status;
    }
    sp_fetch_add_relaxed(&model->runs, (uint64_t)1);
    SP_TRY(sp__parts_run(model, place, ports->data, stream, &parts));
    const sp_plan *made = sp__parts_made(parts);
    if (is_run) status = take_outputs(made, outputs, output_count, ports);
    if (is_run && status == SP_OK) sp__parts_copy(parts, ports->outputs);
    if (status == SP_OK) describe_outputs(made, outputs, output_count);
    sp__parts_free(parts);
    return status;
}

static sp_status is_inside_callback(bool *out)
{
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    *out = sp__thread_is_inside_callback(record);
    return SP_OK;
}

/* A thread waits for its stream first, while nobody waits for anything of its: those who have the
 * streams may be waiting for a plan or a slot. Inside a host function or callback it waits for
 * neither: the holder of the last slot, or plan, may be waiting for that function. */
static sp_status run_held(sp_rt_model *model, const sp_host_tensor *inputs, uint32_t input_count,
                          sp_host_tensor *outputs, uint32_t output_count)
{
    run_ports ports;
    bool is_inside;
    sp_plan_place *place;
    sp_stream_ref stream;
    SP_TRY(is_inside_callback(&is_inside));
    SP_TRY(take_inputs(model->graph, inputs, input_count, true, &ports));
    if (!is_inside) SP_TRY(sp__current_stream(model->device, &stream));
    SP_TRY(find_plan(model, &ports, !is_inside, &place));
    if (SP_UNLIKELY(place->compiled->plan->is_partial)) {
        return run_parts(model, place, &ports, is_inside ? NULL : &stream, outputs, output_count,
                         true);
    }
    const sp_status status =
        run_plan(model, place->compiled, &ports, is_inside ? NULL : &stream, outputs, output_count);
    sp__plan_cache_drop(&model->plans, place);
    return status;
}

sp_status sp_model_run(sp_model handle, const sp_host_tensor *inputs, uint32_t input_count,
                       sp_host_tensor *outputs, uint32_t output_count)
{
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_status status = run_held(model, inputs, input_count, outputs, output_count);
    sp__model_drop(model);
    return status;
}

/* With the inputs' data, and on the thread's stream, which may have to be waited for before a plan
 * is. */
static sp_status infer_by_run(sp_rt_model *model, const sp_host_tensor *inputs,
                              uint32_t input_count, bool is_inside, sp_host_tensor *outputs,
                              uint32_t output_count)
{
    run_ports ports;
    sp_plan_place *place;
    sp_stream_ref stream;
    if (take_inputs(model->graph, inputs, input_count, true, &ports) != SP_OK) {
        return sp__fail_prefix(SP_UNSUPPORTED,
                               "shapes depend on values that the model computes from all inputs: ");
    }
    if (!is_inside) SP_TRY(sp__current_stream(model->device, &stream));
    SP_TRY(find_plan(model, &ports, !is_inside, &place));
    return run_parts(model, place, &ports, is_inside ? NULL : &stream, outputs, output_count,
                     false);
}

static sp_status infer_held(sp_rt_model *model, const sp_host_tensor *inputs, uint32_t input_count,
                            sp_host_tensor *outputs, uint32_t output_count)
{
    run_ports ports;
    bool is_inside;
    sp_plan_place *place;
    SP_TRY(check_names(model->graph, outputs, output_count));
    SP_TRY(is_inside_callback(&is_inside));
    SP_TRY(take_inputs(model->graph, inputs, input_count, false, &ports));
    SP_TRY(find_plan(model, &ports, !is_inside, &place));
    if (SP_UNLIKELY(place->compiled->plan->is_partial)) {
        sp__plan_cache_drop(&model->plans, place);
        return infer_by_run(model, inputs, input_count, is_inside, outputs, output_count);
    }
    describe_outputs(place->compiled->plan, outputs, output_count);
    sp__plan_cache_drop(&model->plans, place);
    return SP_OK;
}

sp_status sp_model_infer(sp_model handle, const sp_host_tensor *inputs, uint32_t input_count,
                         sp_host_tensor *outputs, uint32_t output_count)
{
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_status status = infer_held(model, inputs, input_count, outputs, output_count);
    sp__model_drop(model);
    return status;
}
