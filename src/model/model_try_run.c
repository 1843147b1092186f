/* SPDX-License-Identifier: Apache-2.0 */
/* sp_model_try_run: a run on the calling thread that waits for nothing. It takes only what is idle,
 * and computes without a stream, as runs in callbacks do. */
#include "base/clock.h"
#include "base/error.h"
#include "exec/model_object.h"
#include "exec/run_estimate.h"
#include "exec/run_ports.h"
#include "batch/batch_run.h"
#include "runtime/current_stream.h"

/* A run, as far as it is prepared. */
typedef struct try_run {
    sp_rt_model *model;
    sp_plan_entry *entry; /* visited */
    sp_stream_ref stream;
    sp_run_terms terms;
} try_run;

/* A constant text: callers with a lock are refused in each of their calls. */
#define BUSY(why) sp__fail_text(SP_BUSY, "the run would wait or take longer than allowed: " why)

static sp_status context_compute(const try_run *run, sp_exec_context *context,
                                 const sp_run_ports *ports)
{
    sp_run_counters *counters = &run->model->counters;
    const uint32_t lane = run->terms.lane;
    const bool is_timed = sp__run_counters_start(counters, lane);
    const uint64_t begin_ns = is_timed ? sp_clock_now() : 0;
    context->cancel = NULL;
    sp__run_counters_enter(counters, lane, context->is_moved);
    const sp_status status = sp__exec_context_run_inline(context, ports->data, ports->outputs);
    sp__run_counters_leave(counters, lane);
    if (is_timed) {
        sp__run_counters_time(counters, begin_ns);
        sp__run_estimate_add(&run->entry->run_ns, sp_clock_now() - begin_ns);
    }
    sp__run_counters_end(counters, status);
    return status;
}

/* With a slot. */
static sp_status slot_compute(const try_run *run, sp_run_ports *ports)
{
    sp_executable *executable = run->entry->executable;
    sp_exec_context *context =
        sp__exec_context_try_acquire(executable, sp__stream_home(run->stream.stream));
    if (context == NULL) return BUSY("no memory for one run more is idle");
    const sp_status covered = sp__exec_context_cover_unrequested(context, true, ports->outputs);
    const sp_status status = covered == SP_OK ? context_compute(run, context, ports)
                                              : BUSY("no memory for unrequested outputs is free");
    sp__wait_entry_resume(sp__exec_context_release(context));
    return status;
}

/* With a plan. */
static sp_status plan_compute(try_run *run, sp_host_tensor *outputs, sp_run_ports *ports)
{
    const sp_graph_plan *plan = run->entry->executable->plan;
    sp_batch_line line;
    SP_TRY(sp__run_ports_take_outputs(plan, outputs, ports));
    SP_TRY(sp__batch_line_of(run->model, run->entry, true, &line));
    run->terms.flow = line.flow;
    if (!sp__run_slots_try_acquire(line.slots, &run->terms)) return BUSY("no run slot is free");
    const sp_status status = slot_compute(run, ports);
    sp__wait_entry_resume(sp__run_slots_release(line.slots, &run->terms));
    SP_TRY(status);
    sp__run_ports_give_outputs(plan, outputs, ports);
    return SP_OK;
}

/* Whether a run of the plan is expected to end in time. */
static sp_status plan_check(const sp_plan_entry *entry, int64_t most_ns)
{
    const uint32_t expected_ns = sp_load_relaxed(&entry->run_ns);
    if (entry->executable->plan->is_partial) return BUSY("it goes through several plans");
    if (expected_ns == 0) return BUSY("no run of its plan was timed yet");
    if (most_ns >= 0 && expected_ns > (uint64_t)most_ns) {
        return BUSY("runs of its plan take longer");
    }
    return SP_OK;
}

static sp_status ports_compute(sp_rt_model *model, int64_t most_ns, sp_host_tensor *outputs,
                               sp_run_ports *ports)
{
    bool is_inside;
    try_run run = {.model = model};
    SP_TRY(sp__model_terms(model, NULL, &run.terms));
    SP_TRY(sp__is_inside_callback(&is_inside));
    if (is_inside) return BUSY("it is inside a host function or callback");
    if (!sp__plan_cache_is_for_cpu(&model->plans)) return BUSY("its device is not the cpu");
    if (!sp__current_stream_peek(model->device, &run.stream)) return BUSY("it needs a stream");
    if (!sp__stream_is_idle(&run.stream)) return BUSY("work on its stream is not done");
    SP_TRY(sp__run_ports_try_visit_plan(&model->plans, ports, run.terms.lane, &run.entry));
    if (run.entry == NULL) return BUSY("there is no plan for its inputs yet");
    sp_status status = plan_check(run.entry, most_ns);
    if (status == SP_OK) status = plan_compute(&run, outputs, ports);
    sp__plan_cache_leave(&model->plans, run.entry, run.terms.lane);
    return status;
}

static sp_status model_compute(sp_rt_model *model, int64_t most_ns, const sp_host_tensor *inputs,
                               uint32_t input_count, sp_host_tensor *outputs, uint32_t output_count)
{
    sp_run_ports ports;
    SP_TRY(sp__run_ports_init(&ports, model->graph, input_count));
    sp_status status = sp__run_ports_take_inputs(model->graph, inputs, input_count, true, &ports);
    if (status == SP_OK) {
        status = sp__run_ports_name_outputs(model->graph, outputs, output_count, &ports);
    }
    if (status == SP_OK) status = ports_compute(model, most_ns, outputs, &ports);
    sp__run_ports_deinit(&ports);
    return status;
}

sp_status sp_model_try_run(sp_model handle, int64_t most_ns, const sp_host_tensor *inputs,
                           uint32_t input_count, sp_host_tensor *outputs, uint32_t output_count)
{
    uint32_t lane;
    if (most_ns < 0 && most_ns != SP_FOREVER) {
        return sp__fail(SP_INVALID,
                        "sp_model_try_run: most_ns is %lld; it can be 0 or more, or SP_FOREVER",
                        (long long)most_ns);
    }
    SP_TRY(sp__runtime_enter());
    SP_TRY(sp__thread_lane(&lane));
    sp_rt_model *model = sp__model_visit(handle, lane);
    if (model == NULL) return SP_INVALID;
    const sp_status status =
        model_compute(model, most_ns, inputs, input_count, outputs, output_count);
    sp__model_leave(model, lane);
    return status;
}
