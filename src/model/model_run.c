/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that run a model: from the caller's tensors to a plan, its run, and back. */
#include "model/model_run.h"

#include "base/error.h"
#include "base/heap.h"
#include "exec/model_object.h"
#include "exec/partial/partial_run.h"
#include "exec/run_ports.h"
#include "batch/batch_queue.h"
#include "batch/batch_run.h"
#include "batch/partial_submitted.h"
#include "batch/submitted.h"
#include "device/wait.h"
#include "exec/future_outputs.h"
#include "runtime/current_stream.h"

/* The arguments of a call. */
typedef struct run_arguments {
    const sp_host_tensor *inputs;
    sp_host_tensor *outputs;
    uint32_t input_count, output_count;
    const sp_run_options *options; /* NULL: defaults */
    sp_rt_cancel_token *token;     /* of the options, held; NULL: none */
    sp_rt_batch_queue *queue;      /* in which the run waits, held; NULL: none */
} run_arguments;

/* Takes a hold on the token, if there is one. Errors: SP_INVALID; SP_CANCELLED, without a hold. */
static sp_status arguments_hold_token(run_arguments *args)
{
    if (args->options == NULL || args->options->cancel_token.bits == 0) return SP_OK;
    SP_TRY(sp__cancel_token_hold(args->options->cancel_token, &args->token));
    if (!sp__cancel_token_is_cancelled(args->token)) return SP_OK;
    sp__cancel_token_drop(args->token);
    return sp__fail_cancelled();
}

static void arguments_drop_token(const run_arguments *args)
{
    if (SP_UNLIKELY(args->token != NULL)) sp__cancel_token_drop(args->token);
}

static sp_status terms_init(sp_rt_model *model, const run_arguments *args, sp_run_terms *out)
{
    SP_TRY(sp__model_terms(model, args->options, out));
    out->token = args->token;
    if (SP_UNLIKELY(args->token != NULL)) out->cancel = &args->token->is_cancelled;
    return SP_OK;
}

/* Ends with sp__run_ports_deinit, also after a failure of a later call. */
static sp_status ports_init(const sp_rt_model *model, const run_arguments *args, bool needs_data,
                            sp_run_ports *ports)
{
    const sp_graph *graph = model->graph;
    SP_TRY(sp__run_ports_init(ports, graph, args->input_count));
    sp_status status =
        sp__run_ports_take_inputs(graph, args->inputs, args->input_count, needs_data, ports);
    if (status == SP_OK) {
        status = sp__run_ports_name_outputs(graph, args->outputs, args->output_count, ports);
    }
    if (status != SP_OK) sp__run_ports_deinit(ports);
    return status;
}

/* ---- runs that are waited for ---- */

static sp_status run_plan(sp_rt_model *model, sp_plan_entry *entry, const run_arguments *args,
                          sp_run_ports *ports, const sp_stream_ref *stream, sp_run_terms *terms)
{
    const sp_executable *executable = entry->executable;
    SP_TRY(sp__run_ports_take_outputs(executable->plan, args->outputs, ports));
    terms->is_timed = sp__run_counters_start(&model->counters, terms->lane);
    const sp_status status =
        sp__batch_run(model, entry, ports->data, ports->outputs, stream, terms);
    sp__run_counters_end(&model->counters, status);
    SP_TRY(status);
    sp__run_ports_give_outputs(executable->plan, args->outputs, ports);
    return SP_OK;
}

/* Where one plan is not enough, the sizes of the outputs are known at the end of the run. Releases
 * the plan. `is_run` is false for a caller that only asks for the outputs' shapes. */
static SP_NOINLINE sp_status run_partial(sp_rt_model *model, sp_plan_entry *entry,
                                         const run_arguments *args, sp_run_ports *ports,
                                         const sp_stream_ref *stream, const sp_run_terms *terms,
                                         bool is_run)
{
    sp_partial_run *run;
    const sp_partial_place place = {.stream = stream};
    sp__run_counters_start(&model->counters, terms->lane);
    sp_status status = sp__partial_run_execute(model, entry, ports->data, place, terms, &run);
    sp__run_counters_end(&model->counters, status);
    SP_TRY(status);
    if (is_run) status = sp__partial_run_give_outputs(run, args->outputs, ports);
    else sp__run_ports_describe(sp__partial_run_made(run), args->outputs, ports);
    sp__partial_run_destroy(run);
    return status;
}

/* Inside a host function or callback neither a plan nor a slot is waited for: the holder of the
 * last one may be waiting for that function. */
static SP_NOINLINE sp_status run_ports_inside(sp_rt_model *model, const run_arguments *args,
                                              sp_run_ports *ports, sp_run_terms *terms)
{
    sp_plan_entry *entry;
    SP_TRY(sp__run_ports_find_plan(&model->plans, ports, false, &entry));
    if (entry->executable->plan->is_partial) {
        return run_partial(model, entry, args, ports, NULL, terms, true);
    }
    const sp_status status = run_plan(model, entry, args, ports, NULL, terms);
    sp__plan_cache_release(&model->plans, entry);
    return status;
}

/* Acquires the stream first, since other threads may wait for the plan or the slot while they hold
 * a stream. */
static sp_status run_ports(sp_rt_model *model, const run_arguments *args, sp_run_ports *ports)
{
    bool is_inside;
    sp_plan_entry *entry; /* visited */
    sp_stream_ref current;
    sp_run_terms terms;
    SP_TRY(terms_init(model, args, &terms));
    SP_TRY(sp__is_inside_callback(&is_inside));
    if (SP_UNLIKELY(is_inside)) return run_ports_inside(model, args, ports, &terms);
    SP_TRY(sp__current_stream(model->device, &current));
    /* A run that is submitted is not given up, since it uses the caller's memory. */
    if (SP_UNLIKELY(sp__thread_has_check())) {
        SP_TRY(sp__point_wait_if_checked(sp__queue_last_point(current.queue)));
    }
    SP_TRY(sp__run_ports_visit_plan(&model->plans, ports, terms.lane, &entry));
    if (SP_UNLIKELY(entry->executable->plan->is_partial)) {
        sp__plan_cache_keep(&model->plans, entry, terms.lane);
        return run_partial(model, entry, args, ports, &current, &terms, true);
    }
    const sp_status status = run_plan(model, entry, args, ports, &current, &terms);
    sp__plan_cache_leave(&model->plans, entry, terms.lane);
    return status;
}

/* ---- shapes ---- */

/* With the data of all inputs. The calling thread's stream, which may have to be waited for, comes
 * before the plan. */
static sp_status infer_by_run(sp_rt_model *model, const run_arguments *args, bool is_inside,
                              sp_run_ports *ports)
{
    sp_plan_entry *entry;
    sp_stream_ref stream;
    sp_run_terms terms;
    SP_TRY(sp__model_terms(model, NULL, &terms));
    if (sp__run_ports_take_inputs(model->graph, args->inputs, args->input_count, true, ports) !=
        SP_OK) {
        return sp__fail_prefix(SP_UNSUPPORTED,
                               "shapes depend on values that the model computes from all inputs: ");
    }
    SP_TRY(sp__run_ports_name_outputs(model->graph, args->outputs, args->output_count, ports));
    if (!is_inside) SP_TRY(sp__current_stream(model->device, &stream));
    SP_TRY(sp__run_ports_find_plan(&model->plans, ports, !is_inside, &entry));
    return run_partial(model, entry, args, ports, is_inside ? NULL : &stream, &terms, false);
}

static sp_status infer_ports(sp_rt_model *model, const run_arguments *args, sp_run_ports *ports)
{
    bool is_inside;
    sp_plan_entry *entry;
    SP_TRY(sp__is_inside_callback(&is_inside));
    SP_TRY(sp__run_ports_find_plan(&model->plans, ports, !is_inside, &entry));
    const bool is_partial = entry->executable->plan->is_partial;
    if (!is_partial) sp__run_ports_describe(entry->executable->plan, args->outputs, ports);
    sp__plan_cache_release(&model->plans, entry);
    return is_partial ? infer_by_run(model, args, is_inside, ports) : SP_OK;
}

/* ---- both ---- */

/* `is_run` is false for a caller that only asks for the outputs' shapes. */
static sp_status ports_compute(sp_rt_model *model, const run_arguments *args, bool is_run)
{
    sp_run_ports ports;
    SP_TRY(ports_init(model, args, is_run, &ports));
    const sp_status status =
        is_run ? run_ports(model, args, &ports) : infer_ports(model, args, &ports);
    sp__run_ports_deinit(&ports);
    return status;
}

static sp_status model_compute(sp_model handle, const run_arguments *args, bool is_run)
{
    uint32_t lane;
    SP_TRY(sp__runtime_enter());
    SP_TRY(sp__thread_lane(&lane));
    sp_rt_model *model = sp__model_visit(handle, lane);
    if (model == NULL) return SP_INVALID;
    const sp_status status = ports_compute(model, args, is_run);
    sp__model_leave(model, lane);
    return status;
}

sp_status sp_model_run(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                       sp_host_tensor *outputs, uint32_t output_count)
{
    return sp_model_run_with(model, NULL, inputs, input_count, outputs, output_count);
}

/* Of the handle's model, or of one that the caller holds. */
static sp_status run_compute(sp_model handle, sp_rt_model *held, run_arguments *args)
{
    SP_TRY(arguments_hold_token(args));
    const sp_status status =
        held != NULL ? ports_compute(held, args, true) : model_compute(handle, args, true);
    arguments_drop_token(args);
    return status;
}

sp_status sp_model_run_with(sp_model model, const sp_run_options *options,
                            const sp_host_tensor *inputs, uint32_t input_count,
                            sp_host_tensor *outputs, uint32_t output_count)
{
    run_arguments args = {inputs, outputs, input_count, output_count, options, NULL, NULL};
    return run_compute(model, NULL, &args);
}

sp_status sp__model_run_held(sp_rt_model *model, const sp_run_options *options,
                             const sp_host_tensor *inputs, uint32_t input_count,
                             sp_host_tensor *outputs, uint32_t output_count)
{
    run_arguments args = {inputs, outputs, input_count, output_count, options, NULL, NULL};
    return run_compute((sp_model){0}, model, &args);
}

sp_status sp_model_infer(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                         sp_host_tensor *outputs, uint32_t output_count)
{
    const run_arguments args = {inputs, outputs, input_count, output_count, NULL, NULL, NULL};
    return model_compute(model, &args, false);
}

/* ---- submitted runs ---- */

/* What the call writes to the caller's outputs, if the run is accepted. */
static void results_set(sp_rt_future *run, const run_arguments *args, const sp_run_ports *ports)
{
    sp__future_outputs_set(&run->results, args->outputs, false);
    for (uint32_t i = 0; i < ports->tensor_count; i++) {
        sp_host_tensor *tensor = &run->results.tensors[i];
        if (!ports->is_allocated[i]) continue;
        tensor->data = ports->outputs[ports->output_at[i]];
        tensor->capacity = tensor->bytes;
    }
}

/* With a reserved place in the queue. *entry is NULL once the run owns the use of the plan and the
 * place. */
static sp_status queue_plan(sp_rt_batch_queue *queue, sp_plan_entry **entry,
                            const run_arguments *args, sp_run_terms *terms, sp_run_ports *ports,
                            sp_future *out)
{
    const sp_graph_plan *plan = (*entry)->executable->plan;
    sp_rt_future *run;
    sp_batch_line line;
    SP_TRY(sp__run_ports_take_outputs(plan, args->outputs, ports));
    SP_TRY(sp__batch_queue_line(queue, *entry, &line));
    SP_TRY(sp__submitted_create_in(queue, *entry, line.slots, ports, &run));
    sp__run_ports_describe(plan, args->outputs, ports);
    results_set(run, args, ports);
    terms->flow = line.flow;
    terms->is_refused = false; /* of the queue, not of the device */
    *out = sp__submitted_accept_in(run, queue, *entry, terms);
    *entry = NULL;
    sp__run_ports_give_memory(args->outputs, ports);
    return SP_OK;
}

/* *entry is NULL once the run owns the use of the plan. */
static sp_status submit_plan(sp_rt_model *model, sp_rt_device *device, sp_plan_entry **entry,
                             const run_arguments *args, sp_run_ports *ports, sp_future *out)
{
    const sp_executable *executable = (*entry)->executable;
    sp_rt_future *run;
    sp_run_terms terms;
    sp_batch_line line;
    SP_TRY(terms_init(model, args, &terms));
    SP_TRY(sp__run_ports_take_outputs(executable->plan, args->outputs, ports));
    SP_TRY(sp__batch_line_of(model, *entry, false, &line));
    SP_TRY(sp__submitted_create(device, executable, &line, ports, &run));
    sp__run_ports_describe(executable->plan, args->outputs, ports);
    results_set(run, args, ports);
    sp_plan_entry *owned = *entry;
    *entry = NULL;
    SP_TRY(sp__submitted_accept(run, model, owned, &line, &terms, out));
    sp__run_ports_give_memory(args->outputs, ports);
    return SP_OK;
}

static sp_status submit_partial(sp_rt_model *model, const run_arguments *args,
                                const sp_run_ports *ports, sp_future *out)
{
    sp_run_terms terms;
    SP_TRY(terms_init(model, args, &terms));
    return sp__partial_submit(model, &terms, args->outputs, ports, out);
}

static sp_status submit_ports(sp_rt_model *model, sp_rt_device *device, const run_arguments *args,
                              sp_run_ports *ports, sp_future *out)
{
    bool is_inside;
    sp_plan_entry *entry;
    SP_TRY(sp__is_inside_callback(&is_inside));
    SP_TRY(sp__run_ports_find_plan(&model->plans, ports, !is_inside, &entry));
    if (SP_UNLIKELY(entry->executable->plan->is_partial)) {
        sp__plan_cache_release(&model->plans, entry);
        return submit_partial(model, args, ports, out);
    }
    const sp_status status = submit_plan(model, device, &entry, args, ports, out);
    if (entry != NULL) sp__plan_cache_release(&model->plans, entry);
    return status;
}

/* Waits for a place in the queue while it uses no plan: plans in use are not evicted, for which
 * other submits may wait. Runs of partial plans are not merged, and need no place. */
static sp_status queue_ports(sp_rt_model *model, const run_arguments *args, sp_run_ports *ports,
                             sp_future *out)
{
    bool is_inside;
    sp_run_terms terms;
    sp_plan_entry *entry = NULL;
    SP_TRY(terms_init(model, args, &terms));
    SP_TRY(sp__is_inside_callback(&is_inside));
    SP_TRY(sp__batch_queue_reserve(args->queue, !is_inside && !terms.is_refused, &terms));
    sp_status status = sp__run_ports_find_plan(&model->plans, ports, !is_inside, &entry);
    const bool is_partial = status == SP_OK && entry->executable->plan->is_partial;
    if (status == SP_OK && !is_partial) {
        status = queue_plan(args->queue, &entry, args, &terms, ports, out);
    }
    const bool has_place = is_partial || status != SP_OK;
    if (entry != NULL && has_place) sp__plan_cache_release(&model->plans, entry);
    if (has_place) sp__batch_queue_unreserve(args->queue);
    return is_partial ? sp__partial_submit(model, &terms, args->outputs, ports, out) : status;
}

static sp_status submit_held(sp_rt_model *model, const run_arguments *args, sp_future *out)
{
    sp_run_ports ports;
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(sp__rt_device_handle(model->device), &device));
    SP_TRY(ports_init(model, args, true, &ports));
    const sp_status status = args->queue != NULL ? queue_ports(model, args, &ports, out)
                                                 : submit_ports(model, device, args, &ports, out);
    sp__run_ports_deinit(&ports);
    return status;
}

static sp_status model_submit(sp_model handle, const run_arguments *args, sp_future *out)
{
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_status status = submit_held(model, args, out);
    sp__model_drop(model);
    return status;
}

sp_status sp_model_submit(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                          sp_host_tensor *outputs, uint32_t output_count, sp_future *out)
{
    return sp_model_submit_with(model, NULL, inputs, input_count, outputs, output_count, out);
}

sp_status sp_model_submit_with(sp_model model, const sp_run_options *options,
                               const sp_host_tensor *inputs, uint32_t input_count,
                               sp_host_tensor *outputs, uint32_t output_count, sp_future *out)
{
    run_arguments args = {inputs, outputs, input_count, output_count, options, NULL, NULL};
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_submit: out is NULL");
    *out = (sp_future){0};
    SP_TRY(arguments_hold_token(&args));
    const sp_status status = model_submit(model, &args, out);
    arguments_drop_token(&args);
    return status;
}

sp_status sp_batch_queue_submit(sp_batch_queue handle, const sp_run_options *options,
                                const sp_host_tensor *inputs, uint32_t input_count,
                                sp_host_tensor *outputs, uint32_t output_count, sp_future *out)
{
    run_arguments args = {inputs, outputs, input_count, output_count, options, NULL, NULL};
    if (out == NULL) return sp__fail(SP_INVALID, "sp_batch_queue_submit: out is NULL");
    *out = (sp_future){0};
    SP_TRY(sp__runtime_enter());
    SP_TRY(sp__batch_queue_hold(handle, &args.queue));
    sp_status status = arguments_hold_token(&args);
    if (status == SP_OK) {
        status = submit_held(args.queue->model, &args, out);
        arguments_drop_token(&args);
    }
    sp__batch_queue_drop(args.queue);
    return status;
}

/* ---- tensors ---- */

void sp_host_tensor_free(sp_host_tensor *tensor)
{
    if (tensor == NULL) return;
    sp_free(tensor->data);
    tensor->data = NULL;
    tensor->capacity = 0;
}
