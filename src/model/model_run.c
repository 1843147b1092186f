/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that run a model: from the caller's tensors to a plan, its run, and back. */
#include "base/error.h"
#include "base/heap.h"
#include "exec/model_object.h"
#include "exec/partial/partial_run.h"
#include "exec/run_ports.h"
#include "batch/batch_run.h"
#include "batch/submitted.h"
#include "runtime/current_stream.h"

/* The arguments of a call. */
typedef struct run_arguments {
    const sp_host_tensor *inputs;
    sp_host_tensor *outputs;
    uint32_t input_count, output_count;
} run_arguments;

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
                          sp_run_ports *ports, const sp_stream_ref *stream)
{
    const sp_executable *executable = entry->executable;
    SP_TRY(sp__run_ports_take_outputs(executable->plan, args->outputs, ports));
    sp_fetch_add_relaxed(&model->runs, (uint64_t)1);
    SP_TRY(sp__batch_run(model, entry, ports->data, ports->outputs, stream));
    sp__run_ports_give_outputs(executable->plan, args->outputs, ports);
    return SP_OK;
}

static sp_status partial_outputs_write(const sp_partial_run *run, const run_arguments *args,
                                       sp_run_ports *ports)
{
    const sp_graph_plan *made = sp__partial_run_made(run);
    SP_TRY(sp__run_ports_take_outputs(made, args->outputs, ports));
    sp__partial_run_copy_outputs(run, ports->outputs);
    sp__run_ports_give_outputs(made, args->outputs, ports);
    return SP_OK;
}

/* Where one plan is not enough, the sizes of the outputs are known at the end of the run. Releases
 * the plan. `is_run` is false for a caller that only asks for the outputs' shapes. */
static SP_NOINLINE sp_status run_partial(sp_rt_model *model, sp_plan_entry *entry,
                                         const run_arguments *args, sp_run_ports *ports,
                                         const sp_stream_ref *stream, bool is_run)
{
    sp_partial_run *run;
    sp_status status = SP_OK;
    sp_fetch_add_relaxed(&model->runs, (uint64_t)1);
    SP_TRY(sp__partial_run_execute(model, entry, ports->data, stream, &run));
    if (is_run) status = partial_outputs_write(run, args, ports);
    else sp__run_ports_describe(sp__partial_run_made(run), args->outputs, ports);
    sp__partial_run_destroy(run);
    return status;
}

/* Acquires the stream first, since other threads may wait for the plan or the slot while they hold
 * a stream. Inside a host function or callback neither is waited for: the holder of the last slot,
 * or plan, may be waiting for that function. */
static sp_status run_ports(sp_rt_model *model, const run_arguments *args, sp_run_ports *ports)
{
    bool is_inside;
    sp_plan_entry *entry;
    sp_stream_ref current;
    SP_TRY(sp__is_inside_callback(&is_inside));
    if (!is_inside) SP_TRY(sp__current_stream(model->device, &current));
    const sp_stream_ref *stream = is_inside ? NULL : &current;
    SP_TRY(sp__run_ports_find_plan(&model->plans, ports, !is_inside, &entry));
    if (SP_UNLIKELY(entry->executable->plan->is_partial)) {
        return run_partial(model, entry, args, ports, stream, true);
    }
    const sp_status status = run_plan(model, entry, args, ports, stream);
    sp__plan_cache_release(&model->plans, entry);
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
    if (sp__run_ports_take_inputs(model->graph, args->inputs, args->input_count, true, ports) !=
        SP_OK) {
        return sp__fail_prefix(SP_UNSUPPORTED,
                               "shapes depend on values that the model computes from all inputs: ");
    }
    SP_TRY(sp__run_ports_name_outputs(model->graph, args->outputs, args->output_count, ports));
    if (!is_inside) SP_TRY(sp__current_stream(model->device, &stream));
    SP_TRY(sp__run_ports_find_plan(&model->plans, ports, !is_inside, &entry));
    return run_partial(model, entry, args, ports, is_inside ? NULL : &stream, false);
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
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_status status = ports_compute(model, args, is_run);
    sp__model_drop(model);
    return status;
}

sp_status sp_model_run(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                       sp_host_tensor *outputs, uint32_t output_count)
{
    const run_arguments args = {inputs, outputs, input_count, output_count};
    return model_compute(model, &args, true);
}

sp_status sp_model_infer(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                         sp_host_tensor *outputs, uint32_t output_count)
{
    const run_arguments args = {inputs, outputs, input_count, output_count};
    return model_compute(model, &args, false);
}

/* ---- submitted runs ---- */

/* The sizes of the outputs of a partial plan are not known at the call. */
static sp_status check_whole(const sp_graph_plan *plan)
{
    if (!plan->is_partial) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "not supported: to submit a model whose shapes, branches or loops follow from "
                    "values that it computes; sp_model_run runs it");
}

/* From here on the run owns the use of the plan. */
static sp_status submit_plan(sp_rt_model *model, sp_rt_device *device, sp_plan_entry *entry,
                             const run_arguments *args, sp_run_ports *ports, sp_future *out)
{
    const sp_graph_plan *plan = entry->executable->plan;
    sp_rt_future *run;
    SP_TRY(check_whole(plan));
    SP_TRY(sp__run_ports_take_outputs(plan, args->outputs, ports));
    sp_batch_line line;
    SP_TRY(sp__batch_line_of(model, entry, &line));
    SP_TRY(sp__submitted_create(device, entry->executable, &line, ports, &run));
    sp__run_ports_give_outputs(plan, args->outputs, ports);
    *out = sp__submitted_accept(run, model, entry, &line);
    return SP_OK;
}

static sp_status submit_ports(sp_rt_model *model, sp_rt_device *device, const run_arguments *args,
                              sp_run_ports *ports, sp_future *out)
{
    bool is_inside;
    sp_plan_entry *entry;
    SP_TRY(sp__is_inside_callback(&is_inside));
    SP_TRY(sp__run_ports_find_plan(&model->plans, ports, !is_inside, &entry));
    const sp_status status = submit_plan(model, device, entry, args, ports, out);
    if (status != SP_OK) sp__plan_cache_release(&model->plans, entry);
    return status;
}

static sp_status submit_held(sp_rt_model *model, const run_arguments *args, sp_future *out)
{
    sp_run_ports ports;
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(sp__rt_device_handle(model->device), &device));
    SP_TRY(ports_init(model, args, true, &ports));
    const sp_status status = submit_ports(model, device, args, &ports, out);
    sp__run_ports_deinit(&ports);
    return status;
}

sp_status sp_model_submit(sp_model handle, const sp_host_tensor *inputs, uint32_t input_count,
                          sp_host_tensor *outputs, uint32_t output_count, sp_future *out)
{
    const run_arguments args = {inputs, outputs, input_count, output_count};
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_submit: out is NULL");
    *out = (sp_future){0};
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_status status = submit_held(model, &args, out);
    sp__model_drop(model);
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
