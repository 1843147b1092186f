/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of models, and questions about them. Runs are in model_run.c. */
#include <streampool/model.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/option.h"
#include "batch/batch_plans.h"
#include "exec/model_object.h"
#include "exec/run_ports.h"
#include "ops/cpu/arch/cpu_isa.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/device_kernels.h"
#include "ops/op_kernels.h"
#include "ops/op_list.h"

/* The first load warns; others do not wait for it, since the user's log callback runs in it. */
static void check_cpu_ops(void)
{
    static sp_atomic_u32 is_checked; /* process-wide: options are. Orders nothing */
    if (sp_fetch_or_relaxed(&is_checked, 1) != 0) return;
    sp__op_list_check(sp_option_describe(SP_OPTION_CPU_OPS)->variable,
                      sp_option_text(SP_OPTION_CPU_OPS));
}

/* See sp_model_options. */
#define MOST_WEIGHT 1000

static sp_status check_precision(sp_precision precision, const sp_dev *device)
{
    static const char *const names[] = {
        [SP_PRECISION_TF32] = "tf32", [SP_PRECISION_F16] = "f16", [SP_PRECISION_BF16] = "bf16"};
    if (precision == SP_PRECISION_DEFAULT) return SP_OK;
    if ((uint32_t)precision >= SP_COUNT_OF(names)) {
        return sp__fail(SP_INVALID, "precision is %d; it can be %d at most", (int)precision,
                        (int)SP_PRECISION_BF16);
    }
    if (device->limits.has_tensor_cores) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "precision %s needs a cuda device of compute capability 8.0 or more, which %s "
                    "is not; load the model for one, or without a precision",
                    names[precision], device->limits.name);
}

/* `folder` is that of the file, or NULL. */
static sp_status bytes_load(const char *folder, const void *bytes, size_t len,
                            const sp_model_options *options, sp_model *out)
{
    sp_rt_device *device;
    const sp_model_options wanted = options != NULL ? *options : (sp_model_options){0};
    SP_TRY(sp__rt_device_find(wanted.device, &device));
    if (wanted.max_plans > SP_PLAN_CACHE_MOST) {
        return sp__fail(SP_INVALID, "max_plans is %u; a model keeps at most %d plans",
                        wanted.max_plans, SP_PLAN_CACHE_MOST);
    }
    if (wanted.weight > MOST_WEIGHT) {
        return sp__fail(SP_INVALID, "weight is %u; it can be %d at most", wanted.weight,
                        MOST_WEIGHT);
    }
    SP_TRY(check_precision(wanted.precision, device->dev));
    if (bytes == NULL) return sp__fail(SP_INVALID, "sp_model_load_from_memory: bytes is NULL");
    if (len > PTRDIFF_MAX) { /* no object is that large: refuse it before anything is read */
        return sp__fail(SP_INVALID,
                        "sp_model_load_from_memory: len is %zu bytes, which no file has", len);
    }
    check_cpu_ops();
    if (wanted.cpu_ops != NULL) sp__op_list_check("cpu_ops", wanted.cpu_ops);
    sp__allocator_set_reclaim(sp__models_reclaim);
    const sp_graph *graph;
    SP_TRY(sp__graph_load_in(folder, bytes, len, &graph));
    const uint32_t weight_count = graph->weight_count;
    SP_TRY(sp__model_create(graph, device, &wanted, out));
    SP_LOG(SP_LOG_INFO, "a model of %zu bytes was loaded for %s, with %u weights", len,
           device->dev->limits.name, weight_count);
    return SP_OK;
}

sp_status sp_model_load_from_memory(const void *bytes, size_t len, const sp_model_options *options,
                                    sp_model *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_load_from_memory: out is NULL");
    *out = (sp_model){0};
    return bytes_load(NULL, bytes, len, options, out);
}

static sp_status file_load(const char *path, const sp_model_options *options, sp_model *out)
{
    void *bytes;
    size_t len;
    SP_TRY(sp_file_read(path, &bytes, &len));
    char *folder = sp_file_folder(path);
    const sp_status status = folder != NULL ? bytes_load(folder, bytes, len, options, out)
                                            : sp__fail(SP_OUT_OF_MEMORY, "no memory for a path");
    sp_free(folder);
    sp_free(bytes);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "%s: ", path);
}

sp_status sp_model_load(const char *path, const sp_model_options *options, sp_model *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_load: out is NULL");
    *out = (sp_model){0};
    SP_TRY(sp__runtime_enter());
    if (path == NULL) return sp__fail(SP_INVALID, "sp_model_load: path is NULL");
    return file_load(path, options, out);
}

sp_status sp_model_retain(sp_model model)
{
    SP_TRY(sp__runtime_enter());
    return sp__model_retain(model);
}

sp_status sp_model_release(sp_model model)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__model_release(model);
}

/* ---- questions ---- */

sp_status sp_model_get_info(sp_model handle, sp_model_info *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_get_info: out is NULL");
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    *out = (sp_model_info){
        .input_count = model->graph->input_count,
        .output_count = model->graph->output_count,
        .node_count = model->graph->node_count,
        .opset = model->graph->opset,
        .weight_bytes = model->graph->weight_bytes,
        .device = sp__rt_device_handle(model->device),
        .runs = sp__run_counters_started(&model->counters),
        .plan_count = sp_load_relaxed(&model->plans.plan_count),
        .plan_builds = sp_load_relaxed(&model->plans.build_count),
        .plan_evictions = sp_load_relaxed(&model->plans.evictions),
        .context_count = sp__plan_cache_context_count(&model->plans),
        .most_in_flight = sp_load_relaxed(&model->counters.most_in_flight),
        .partial_plan_count = sp_load_relaxed(&model->last_partial_plans),
        .packed_bytes = sp_load_relaxed(&model->packed.bytes),
        .batches = sp_load_relaxed(&model->counters.batches),
        .batched_runs = sp_load_relaxed(&model->counters.batched_runs),
        .precision = model->plans.precision,
    };
    sp_plan_entry *newest = sp__plan_cache_acquire_newest(&model->plans);
    if (newest != NULL) {
        out->step_count = newest->executable->plan->step_count;
        out->cpu_step_count = newest->executable->segments.fallback_step_count;
        out->segment_count = newest->executable->segments.count;
        sp__plan_cache_release(&model->plans, newest);
    }
    sp__model_drop(model);
    return SP_OK;
}

sp_status sp_model_get_statistics(sp_model handle, sp_model_statistics *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_get_statistics: out is NULL");
    *out = (sp_model_statistics){0};
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    sp__run_counters_read(&model->counters, out);
    out->waiting = sp__model_waiting(model) + sp__batch_plans_waiting(&model->plans);
    sp__model_drop(model);
    return SP_OK;
}

static bool cpu_op_get(sp_plan_cache *plans, uint32_t index, sp_model_cpu_op *out)
{
    sp_plan_entry *newest = sp__plan_cache_acquire_newest(plans);
    if (newest == NULL) return false;
    const sp_executable *executable = newest->executable;
    const char *name;
    const bool is_found = sp__segments_fallback_op(&executable->segments, executable->plan, index,
                                                   &name, &out->step_count);
    if (is_found) snprintf(out->name, sizeof out->name, "%s", name);
    sp__plan_cache_release(plans, newest);
    return is_found;
}

sp_status sp_model_get_cpu_op(sp_model handle, uint32_t index, sp_model_cpu_op *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_get_cpu_op: out is NULL");
    *out = (sp_model_cpu_op){0};
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const bool is_found = cpu_op_get(&model->plans, index, out);
    sp__model_drop(model);
    if (is_found) return SP_OK;
    return sp__fail(SP_NOT_FOUND, "no op with index %u runs on the cpu instead", index);
}

sp_status sp_device_get_ops(sp_device handle, sp_device_ops *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_device_get_ops: out is NULL");
    *out = (sp_device_ops){0};
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    const sp_kernel *kernels = sp__device_kernels(device->dev);
    const sp_op_coverage coverage = sp__op_coverage(kernels);
    *out = (sp_device_ops){.op_count = coverage.op_count, .own_count = coverage.covered_count};
    if (kernels != NULL) return SP_OK;
    const sp_cpu_choice choice = sp__cpu_isa_choice();
    out->instruction_set = sp__cpu_isa_name(choice.isa);
    out->instruction_set_reason = choice.why;
    return SP_OK;
}

static void port_describe(const sp_graph_port *port, sp_port *out)
{
    *out = (sp_port){.name = port->name,
                     .dtype = port->dtype,
                     .rank = port->rank,
                     .determines_shapes = port->determines_shapes,
                     .has_shape = port->has_shape};
    for (uint32_t i = 0; i < port->rank; i++) {
        out->shape[i] = port->dims[i];
        out->dim_names[i] = port->dim_names[i] != NULL ? port->dim_names[i] : "";
    }
}

static sp_status port_get(sp_model handle, bool is_input, uint32_t index, sp_port *out)
{
    if (out == NULL)
        return sp__fail(SP_INVALID, "a question about an input or output: out is NULL");
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_graph *graph = model->graph;
    const uint32_t count = is_input ? graph->input_count : graph->output_count;
    sp_status status = SP_OK;
    if (index < count) {
        port_describe(is_input ? &graph->inputs[index] : &graph->outputs[index], out);
    } else {
        status = sp__fail(SP_NOT_FOUND, "the model has %u %s, none with index %u", count,
                          is_input ? "inputs" : "outputs", index);
    }
    sp__model_drop(model);
    return status;
}

sp_status sp_model_get_input(sp_model model, uint32_t index, sp_port *out)
{
    return port_get(model, true, index, out);
}

sp_status sp_model_get_output(sp_model model, uint32_t index, sp_port *out)
{
    return port_get(model, false, index, out);
}

static sp_status port_find(sp_model handle, bool is_input, const char *name, uint32_t *index)
{
    if (name == NULL || index == NULL) {
        return sp__fail(SP_INVALID, "a search by name: name or index is NULL");
    }
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_graph *graph = model->graph;
    const sp_graph_port *ports = is_input ? graph->inputs : graph->outputs;
    const uint32_t count = is_input ? graph->input_count : graph->output_count;
    const sp_graph_name *names = is_input ? graph->input_names : graph->output_names;
    const uint32_t found = sp__graph_name_find(names, count, name);
    sp_status status = SP_OK;
    if (found < count) {
        *index = found;
    } else {
        status = sp__ports_not_found(ports, count, is_input ? "input" : "output", name);
    }
    sp__model_drop(model);
    return status;
}

sp_status sp_model_find_input(sp_model model, const char *name, uint32_t *index)
{
    return port_find(model, true, name, index);
}

sp_status sp_model_find_output(sp_model model, const char *name, uint32_t *index)
{
    return port_find(model, false, name, index);
}
