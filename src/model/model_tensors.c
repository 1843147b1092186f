/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that run a model on tensors. */
#include <streampool/model_tensors.h>

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "exec/tensor_ports.h"
#include "model/model_run.h"
#include "runtime/checker.h"
#include "runtime/current_stream.h"

/* A call; everything is borrowed. */
typedef struct tensors_call {
    sp_model handle;    /* not after the first step: it may be released during the call */
    sp_rt_model *model; /* held */
    sp_stream stream;
    const sp_run_options *options;
    sp_tensor_arguments arguments;
    sp_rt_cancel_token *token; /* held; or NULL */
    sp_future *future;         /* NULL: the caller wants none */
    const void *call_site;
} tensors_call;

/* ---- models that the call runs ---- */

/* Inputs and outputs in host memory, in the order of the arguments. */
typedef struct host_run {
    sp_host_tensor *inputs, *outputs;
    bool *is_owned; /* by input, then by output: `data` is freed by the call */
} host_run;

static sp_status host_run_init(const sp_tensor_arguments *arguments, host_run *out)
{
    const size_t count = (size_t)arguments->input_count + arguments->output_count;
    *out = (host_run){.inputs = sp_calloc(count, sizeof *out->inputs),
                      .is_owned = sp_calloc(count, sizeof *out->is_owned)};
    if (out->inputs == NULL || out->is_owned == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run of %zu inputs and outputs", count);
    }
    out->outputs = out->inputs + arguments->input_count;
    return SP_OK;
}

static void host_run_deinit(const sp_tensor_arguments *arguments, const host_run *run)
{
    const uint32_t count = arguments->input_count + arguments->output_count;
    for (uint32_t i = 0; run->is_owned != NULL && run->inputs != NULL && i < count; i++) {
        if (run->is_owned[i]) sp_host_tensor_free(&run->inputs[i]);
    }
    sp_free(run->inputs);
    sp_free(run->is_owned);
}

/* Reads one tensor at a time, with no access held while it waits for the next. */
static sp_status host_input_read(const sp_tensor_ports *ports, uint32_t i, host_run *run)
{
    const sp_model_tensor *argument = &ports->arguments->inputs[i];
    sp_host_tensor *host = &run->inputs[i];
    if (argument->host != NULL) {
        *host = *argument->host;
        host->name = argument->name;
        return SP_OK;
    }
    const sp_layout *layout = &ports->inputs[i].tensor->layout;
    *host = ports->input_hosts[i];
    host->bytes = sp__layout_bytes(layout);
    host->data = sp_aligned_malloc(SP_HOST_TENSOR_ALIGNMENT, (size_t)host->bytes);
    if (host->data == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a copy of %llu bytes of an input",
                        (unsigned long long)host->bytes);
    }
    run->is_owned[i] = true;
    return sp_tensor_read(argument->tensor, host->data, host->bytes);
}

static sp_status host_output_write(const sp_tensor_ports *ports, uint32_t i, host_run *run,
                                   sp_tensor *fresh)
{
    const sp_model_tensor *argument = &ports->arguments->outputs[i];
    const sp_host_tensor *host = &run->outputs[i];
    if (argument->host != NULL) return SP_OK;
    if (argument->tensor.bits != 0)
        return sp_tensor_write(argument->tensor, host->data, host->bytes);
    return sp_tensor_from_host(sp__rt_device_handle(ports->device), host->dtype, host->rank,
                               host->shape, host->data, host->bytes, fresh);
}

/* What can be refused, now that the run has shown what its outputs are. */
static sp_status host_outputs_check(const sp_tensor_ports *ports, const host_run *run)
{
    const sp_tensor_arguments *arguments = ports->arguments;
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        const uint32_t index = ports->run.output_at[i];
        const sp_rt_tensor *into = ports->outputs[index].into;
        sp_plan_tensor output = {.name = ports->graph->outputs[index].name,
                                 .dtype = run->outputs[i].dtype};
        if (into == NULL) continue;
        SP_TRY(sp__shape_make(run->outputs[i].shape, run->outputs[i].rank, &output.shape));
        SP_TRY(sp__tensor_output_check(&output, into));
        SP_TRY(sp__tensor_output_check_frozen(output.name, into));
    }
    return SP_OK;
}

/* What a run that found too little room has written to the structs. */
static void host_outputs_describe(const sp_tensor_arguments *arguments, const host_run *run)
{
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        sp_host_tensor *host = arguments->outputs[i].host;
        if (host == NULL) continue;
        const sp_host_tensor before = *host;
        *host = run->outputs[i];
        host->name = before.name;
        host->data = before.data;
        host->capacity = before.capacity;
    }
}

/* The results become the caller's, all of them or none. */
static void host_outputs_give(const sp_tensor_ports *ports, const host_run *run)
{
    const sp_tensor_arguments *arguments = ports->arguments;
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        sp_model_tensor *argument = &arguments->outputs[i];
        sp_tensor_output *output = &ports->outputs[ports->run.output_at[i]];
        if (argument->host != NULL) {
            const char *name = argument->host->name;
            *argument->host = run->outputs[i];
            argument->host->name = name;
            run->is_owned[arguments->input_count + i] = false;
        } else if (argument->tensor.bits == 0) {
            argument->tensor = output->fresh;
            output->fresh = (sp_tensor){0};
        }
    }
}

static sp_status host_run_compute(const tensors_call *call, sp_tensor_ports *ports, host_run *run)
{
    const sp_tensor_arguments *arguments = &call->arguments;
    const uint32_t inputs = arguments->input_count, outputs = arguments->output_count;
    for (uint32_t i = 0; i < inputs; i++) SP_TRY(host_input_read(ports, i, run));
    for (uint32_t i = 0; i < outputs; i++) {
        const sp_model_tensor *argument = &arguments->outputs[i];
        if (argument->host != NULL) run->outputs[i] = *argument->host;
        run->outputs[i].name = argument->name;
        run->is_owned[inputs + i] = run->outputs[i].data == NULL && run->outputs[i].capacity == 0;
    }
    /* The inputs were waited for: the program may have released the model meanwhile. */
    const sp_status status =
        sp__model_run_held(call->model, call->options, run->inputs, inputs, run->outputs, outputs);
    if (status == SP_MISMATCH) host_outputs_describe(arguments, run);
    if (status != SP_OK) return status;
    SP_TRY(host_outputs_check(ports, run));
    for (uint32_t i = 0; i < outputs; i++) {
        sp_tensor *fresh = &ports->outputs[ports->run.output_at[i]].fresh;
        SP_TRY(host_output_write(ports, i, run, fresh));
    }
    host_outputs_give(ports, run);
    return SP_OK;
}

static sp_status run_on_host(const tensors_call *call, sp_tensor_ports *ports)
{
    host_run run;
    sp_status status = host_run_init(&call->arguments, &run);
    if (status == SP_OK) status = host_run_compute(call, ports, &run);
    host_run_deinit(&call->arguments, &run);
    return status;
}

/* The future is done with the call. It is created first, since outputs are given last. */
static sp_status run_by_call(const tensors_call *call, sp_tensor_ports *ports)
{
    sp_rt_future *future;
    if (call->future == NULL) return run_on_host(call, ports);
    SP_TRY(sp__future_create(&future));
    const sp_status status = run_on_host(call, ports);
    if (status != SP_OK) {
        sp__future_discard(future);
        return status;
    }
    *call->future = sp__future_publish(future);
    sp__future_complete(future);
    sp__future_drop(future);
    return SP_OK;
}

/* ---- runs on the stream ---- */

/* Takes over the use of the plan. */
static sp_status run_plan(const tensors_call *call, const sp_stream_ref *stream,
                          sp_plan_entry *entry, sp_tensor_ports *ports)
{
    const sp_graph_plan *plan = entry->executable->plan;
    const uint64_t before = sp__queue_last_point(stream->queue).value;
    sp_tensor_run request = {.model = call->model,
                             .plan_entry = entry,
                             .stream = stream,
                             .inputs = ports->places,
                             .outputs = ports->places + plan->input_count,
                             .token = call->token,
                             .call_site = call->call_site};
    sp_tensor_run_submitted submitted = {.run = NULL};
    sp_status status = sp__thread_lane(&request.lane);
    if (status == SP_OK) status = sp__tensor_ports_bind(ports, plan, call->call_site);
    if (status == SP_OK) status = sp__tensor_run_submit(&request, &submitted);
    if (submitted.run == NULL) {
        sp__plan_cache_release(&call->model->plans, entry);
        return status;
    }
    const sp_status submit_status = status;
    if (status == SP_OK) {
        status = sp__tensor_ports_give(ports, plan, before, submitted.last, call->call_site);
    }
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp__tensor_run_await(&submitted, submit_status);
    if (status == SP_OK && call->future != NULL) *call->future = submitted.future;
    else (void)sp__future_release(submitted.future);
    sp__error_put_back(&scope);
    return status;
}

static sp_status run_ports(const tensors_call *call, sp_tensor_ports *ports)
{
    sp_rt_model *model = call->model;
    bool is_inside;
    sp_stream_ref stream;
    sp_plan_entry *entry;
    SP_TRY(sp__is_inside_callback(&is_inside));
    SP_TRY(sp__current_stream(model->device, &stream));
    SP_TRY(sp__run_ports_find_plan(&model->plans, &ports->run, !is_inside, &entry));
    if (!entry->executable->plan->is_partial) return run_plan(call, &stream, entry, ports);
    sp__plan_cache_release(&model->plans, entry);
    return run_by_call(call, ports);
}

static sp_status run_on_current(const tensors_call *call)
{
    sp_tensor_ports ports;
    SP_TRY(
        sp__tensor_ports_init(&ports, call->model->graph, call->model->device, &call->arguments));
    const sp_status status = run_ports(call, &ports);
    sp__tensor_ports_deinit(&ports);
    return status;
}

/* Memory, copies and the run use the stream as the current one. */
static sp_status run_on_stream(const tensors_call *call)
{
    sp_stream_ref stream;
    sp_stream_guard guard;
    if (call->stream.bits == 0) return run_on_current(call);
    SP_TRY(sp__rt_stream_find(call->stream, &stream));
    if (stream.stream->device != call->model->device) {
        return sp__fail(SP_INVALID, "the stream is on %s; the model is on %s",
                        stream.stream->device->dev->limits.name,
                        call->model->device->dev->limits.name);
    }
    SP_TRY(sp_stream_guard_begin(call->stream, &guard));
    const sp_status status = run_on_current(call);
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    (void)sp_stream_guard_end(&guard);
    sp__error_put_back(&scope);
    return status;
}

/* ---- arguments ---- */

static sp_status check_options(const tensors_call *call)
{
    sp_run_terms terms;
    SP_TRY(sp__model_terms(call->model, call->options, &terms));
    if (terms.deadline_ns == 0) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "a run on tensors has no time-out: it begins when its stream comes to it; "
                    "cancel it by a token");
}

static sp_status check_future(const tensors_call *call)
{
    const sp_tensor_arguments *arguments = &call->arguments;
    if (call->future == NULL || arguments->outputs == NULL) return SP_OK;
    for (uint32_t i = 0; i < arguments->output_count; i++) {
        if (arguments->outputs[i].host == NULL) continue;
        return sp__fail(SP_UNSUPPORTED,
                        "output %u of a submitted run is in host memory: pass a tensor, or use "
                        "sp_model_submit",
                        i);
    }
    return SP_OK;
}

static sp_status run_with_token(tensors_call *call)
{
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find_working(sp__rt_device_handle(call->model->device), &device));
    SP_TRY(check_options(call));
    SP_TRY(check_future(call));
    const bool has_token = call->options != NULL && call->options->cancel_token.bits != 0;
    if (!has_token) return run_on_stream(call);
    SP_TRY(sp__cancel_token_hold(call->options->cancel_token, &call->token));
    const bool is_cancelled = sp__cancel_token_is_cancelled(call->token);
    const sp_status status = is_cancelled ? sp__fail_cancelled() : run_on_stream(call);
    sp__cancel_token_drop(call->token);
    return status;
}

static sp_status call_run(tensors_call *call)
{
    SP_TRY(sp__runtime_enter());
    call->model = sp__model_hold(call->handle);
    if (call->model == NULL) return SP_INVALID;
    const sp_status status = run_with_token(call);
    sp__model_drop(call->model);
    return status;
}

sp_status sp_model_run_tensors(sp_model model, sp_stream stream, const sp_run_options *options,
                               const sp_model_tensor *inputs, uint32_t input_count,
                               sp_model_tensor *outputs, uint32_t output_count)
{
    tensors_call call = {.handle = model,
                         .stream = stream,
                         .options = options,
                         .arguments = {inputs, outputs, input_count, output_count},
                         .call_site = SP_CALL_SITE};
    return call_run(&call);
}

sp_status sp_model_submit_tensors(sp_model model, sp_stream stream, const sp_run_options *options,
                                  const sp_model_tensor *inputs, uint32_t input_count,
                                  sp_model_tensor *outputs, uint32_t output_count, sp_future *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_submit_tensors: out is NULL");
    *out = (sp_future){0};
    tensors_call call = {.handle = model,
                         .stream = stream,
                         .options = options,
                         .arguments = {inputs, outputs, input_count, output_count},
                         .future = out,
                         .call_site = SP_CALL_SITE};
    return call_run(&call);
}
