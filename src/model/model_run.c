/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that run a model: from the caller's tensors to a plan, its run, and back. */
#include "base/error.h"
#include "exec/model_object.h"
#include "exec/partial_run.h"
#include "exec/run_ports.h"
#include "exec/submitted.h"
#include "runtime/current_stream.h"

static sp_status run_plan(sp_rt_model *model, sp_executable *executable, sp_run_ports *ports,
                          const sp_stream_ref *stream, sp_host_tensor *outputs,
                          uint32_t output_count)
{
    SP_TRY(sp__run_ports_take_outputs(executable->plan, outputs, output_count, ports));
    sp_fetch_add_relaxed(&model->runs, (uint64_t)1);
    SP_TRY(sp__model_compute(model, executable, ports->data, ports->outputs, stream));
    sp__run_ports_describe(executable->plan, outputs, output_count);
    return SP_OK;
}

static sp_status check_names(const sp_graph *graph, const sp_host_tensor *outputs, uint32_t count)
{
    if (outputs == NULL && count > 0) return sp__fail(SP_INVALID, "no outputs were given");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index;
        SP_TRY(sp__run_ports_output_index(graph, &outputs[i], i, &index));
    }
    return SP_OK;
}

/* Where one plan is not enough: how large the outputs are is known at the end. The place's use ends
 * here. `is_run` is false for who only asks for the outputs' shapes. */
static SP_NOINLINE sp_status run_parts(sp_rt_model *model, sp_plan_entry *entry,
                                       sp_run_ports *ports, const sp_stream_ref *stream,
                                       sp_host_tensor *outputs, uint32_t output_count, bool is_run)
{
    sp_partial_run *parts;
    sp_status status = check_names(model->graph, outputs, output_count);
    if (status != SP_OK) {
        sp__plan_cache_release(&model->plans, entry);
        return status;
    }
    sp_fetch_add_relaxed(&model->runs, (uint64_t)1);
    SP_TRY(sp__partial_run_execute(model, entry, ports->data, stream, &parts));
    const sp_graph_plan *made = sp__partial_run_made(parts);
    if (is_run) status = sp__run_ports_take_outputs(made, outputs, output_count, ports);
    if (is_run && status == SP_OK) sp__partial_run_copy_outputs(parts, ports->outputs);
    if (status == SP_OK) sp__run_ports_describe(made, outputs, output_count);
    sp__partial_run_destroy(parts);
    return status;
}

/* A thread waits for its stream first, while nobody waits for anything of its: those who have the
 * streams may be waiting for a plan or a slot. Inside a host function or callback it waits for
 * neither: the holder of the last slot, or plan, may be waiting for that function. */
static sp_status run_held(sp_rt_model *model, const sp_host_tensor *inputs, uint32_t input_count,
                          sp_host_tensor *outputs, uint32_t output_count)
{
    sp_run_ports ports;
    bool is_inside;
    sp_plan_entry *entry;
    sp_stream_ref stream;
    SP_TRY(sp__is_inside_callback(&is_inside));
    SP_TRY(sp__run_ports_take_inputs(model->graph, inputs, input_count, true, &ports));
    if (!is_inside) SP_TRY(sp__current_stream(model->device, &stream));
    SP_TRY(sp__run_ports_find_plan(&model->plans, &ports, !is_inside, &entry));
    if (SP_UNLIKELY(entry->executable->plan->is_partial)) {
        return run_parts(model, entry, &ports, is_inside ? NULL : &stream, outputs, output_count,
                         true);
    }
    const sp_status status = run_plan(model, entry->executable, &ports, is_inside ? NULL : &stream,
                                      outputs, output_count);
    sp__plan_cache_release(&model->plans, entry);
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
    sp_run_ports ports;
    sp_plan_entry *entry;
    sp_stream_ref stream;
    if (sp__run_ports_take_inputs(model->graph, inputs, input_count, true, &ports) != SP_OK) {
        return sp__fail_prefix(SP_UNSUPPORTED,
                               "shapes depend on values that the model computes from all inputs: ");
    }
    if (!is_inside) SP_TRY(sp__current_stream(model->device, &stream));
    SP_TRY(sp__run_ports_find_plan(&model->plans, &ports, !is_inside, &entry));
    return run_parts(model, entry, &ports, is_inside ? NULL : &stream, outputs, output_count,
                     false);
}

static sp_status infer_held(sp_rt_model *model, const sp_host_tensor *inputs, uint32_t input_count,
                            sp_host_tensor *outputs, uint32_t output_count)
{
    sp_run_ports ports;
    bool is_inside;
    sp_plan_entry *entry;
    SP_TRY(check_names(model->graph, outputs, output_count));
    SP_TRY(sp__is_inside_callback(&is_inside));
    SP_TRY(sp__run_ports_take_inputs(model->graph, inputs, input_count, false, &ports));
    SP_TRY(sp__run_ports_find_plan(&model->plans, &ports, !is_inside, &entry));
    if (SP_UNLIKELY(entry->executable->plan->is_partial)) {
        sp__plan_cache_release(&model->plans, entry);
        return infer_by_run(model, inputs, input_count, is_inside, outputs, output_count);
    }
    sp__run_ports_describe(entry->executable->plan, outputs, output_count);
    sp__plan_cache_release(&model->plans, entry);
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

/* ---- submitted runs ---- */

/* Nobody would tell the caller the sizes of the outputs. */
static sp_status check_whole(const sp_graph_plan *plan)
{
    if (!plan->is_partial) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "not supported: to submit a model whose shapes, branches or loops follow from "
                    "values that it computes; sp_model_run runs it");
}

static sp_status submit_held(sp_rt_model *model, const sp_host_tensor *inputs, uint32_t input_count,
                             sp_host_tensor *outputs, uint32_t output_count, sp_future *out)
{
    sp_run_ports ports;
    bool is_inside;
    sp_rt_device *device;
    sp_plan_entry *entry;
    SP_TRY(sp__rt_device_find(sp__rt_device_handle(model->device), &device));
    SP_TRY(sp__is_inside_callback(&is_inside));
    SP_TRY(sp__run_ports_take_inputs(model->graph, inputs, input_count, true, &ports));
    SP_TRY(sp__run_ports_find_plan(&model->plans, &ports, !is_inside, &entry));
    const sp_graph_plan *plan = entry->executable->plan;
    sp_status status = check_whole(plan);
    if (status == SP_OK) {
        status = sp__run_ports_take_outputs(plan, outputs, output_count, &ports);
    }
    sp_rt_future *run;
    if (status == SP_OK) status = sp__submitted_create(device, entry->executable, &ports, &run);
    if (status != SP_OK) {
        sp__plan_cache_release(&model->plans, entry);
        return status;
    }
    sp__run_ports_describe(plan, outputs, output_count);
    *out = sp__submitted_accept(run, model, entry);
    return SP_OK;
}

sp_status sp_model_submit(sp_model handle, const sp_host_tensor *inputs, uint32_t input_count,
                          sp_host_tensor *outputs, uint32_t output_count, sp_future *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_submit needs a place for the handle");
    *out = (sp_future){0};
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_status status = submit_held(model, inputs, input_count, outputs, output_count, out);
    sp__model_drop(model);
    return status;
}
