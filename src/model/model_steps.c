/* SPDX-License-Identifier: Apache-2.0 */
/* A run whose steps are timed: on the calling thread, in a context of the plan's pool. */
#include <streampool/plan.h>

#include "base/error.h"
#include "device/device.h"
#include "exec/model_object.h"
#include "exec/run_ports.h"

/* The arguments of the call. */
typedef struct timed_run {
    const sp_host_tensor *inputs;
    sp_host_tensor *outputs;
    uint32_t input_count, output_count;
    uint64_t *step_ns;
    uint32_t step_count;
} timed_run;

static sp_status device_check(const sp_rt_model *model)
{
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(sp__rt_device_handle(model->device), &device));
    if (device->dev->vtable->kind->is_fallback) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "the steps of a model are timed on the cpu only; its device is %s",
                    device->dev->limits.name);
}

static sp_status plan_check(const sp_graph_plan *plan, const timed_run *run)
{
    if (plan->is_partial) {
        return sp__fail(SP_UNSUPPORTED,
                        "the steps of a model are timed if one plan computes it: shapes, branches "
                        "or loops of this one follow from values that the run computes");
    }
    if (plan->step_count == run->step_count) return SP_OK;
    return sp__fail(SP_MISMATCH, "the plan for these inputs has %u steps; there is room for %u",
                    plan->step_count, run->step_count);
}

/* With a context beyond those of the run slots if all are in use: the run has no slot. */
static sp_status plan_time(sp_executable *executable, const timed_run *run, sp_run_ports *ports)
{
    sp_exec_context *context;
    SP_TRY(sp__run_ports_take_outputs(executable->plan, run->outputs, ports));
    SP_TRY(sp__exec_context_acquire(executable, SP_NO_HOME, false, &context));
    sp_status status = sp__exec_context_cover_unrequested(context, false, ports->outputs);
    if (status == SP_OK) {
        status = sp__exec_context_run_timed(context, ports->data, ports->outputs, run->step_ns);
    }
    sp__wait_entry_resume(sp__exec_context_release(context));
    if (status == SP_OK) sp__run_ports_give_outputs(executable->plan, run->outputs, ports);
    return status;
}

static sp_status ports_time(sp_rt_model *model, const timed_run *run, sp_run_ports *ports)
{
    bool is_inside;
    sp_plan_entry *entry;
    SP_TRY(sp__run_ports_take_inputs(model->graph, run->inputs, run->input_count, true, ports));
    SP_TRY(sp__run_ports_name_outputs(model->graph, run->outputs, run->output_count, ports));
    SP_TRY(sp__is_inside_callback(&is_inside));
    SP_TRY(sp__run_ports_find_plan(&model->plans, ports, !is_inside, &entry));
    sp_status status = plan_check(entry->executable->plan, run);
    if (status == SP_OK) status = plan_time(entry->executable, run, ports);
    sp__plan_cache_release(&model->plans, entry);
    return status;
}

static sp_status model_time(sp_rt_model *model, const timed_run *run)
{
    sp_run_ports ports;
    SP_TRY(device_check(model));
    SP_TRY(sp__run_ports_init(&ports, model->graph, run->input_count));
    const sp_status status = ports_time(model, run, &ports);
    sp__run_ports_deinit(&ports);
    return status;
}

sp_status sp_model_time_steps(sp_model handle, const sp_host_tensor *inputs, uint32_t input_count,
                              sp_host_tensor *outputs, uint32_t output_count, uint64_t *step_ns,
                              uint32_t step_count)
{
    const timed_run run = {inputs, outputs, input_count, output_count, step_ns, step_count};
    if (step_ns == NULL) return sp__fail(SP_INVALID, "sp_model_time_steps: step_ns is NULL");
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_status status = model_time(model, &run);
    sp__model_drop(model);
    return status;
}
