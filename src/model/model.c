/* SPDX-License-Identifier: Apache-2.0 */
/* Life of models and what can be asked of them. Runs are in model_run.c. */
#include "model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/option.h"
#include "ops/device_kernels.h"
#include "ops/op_kernels.h"
#include "ops/op_list.h"

static void model_destroy(sp_object *object);

static sp_handle_table models = {/* process-wide: the table of all model handles */
                                 .kind = SP_KIND_MODEL,
                                 .object_bytes = sizeof(sp_rt_model),
                                 .destroy = model_destroy,
                                 .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

/* ---- run slots of devices ---- */

static struct {
    /* By device index; published by release, kept. */
    SP_ATOMIC(sp_run_slots *) by_device[SP_MAX_DEVICES];
} all_slots; /* process-wide: runs of all models share a device's slots */

sp_run_slots *sp__device_run_slots(const sp_rt_device *device)
{
    /* Pairs with the release below: the slots are initialised. */
    sp_run_slots *slots = sp_load_acquire(&all_slots.by_device[device->index]);
    if (SP_LIKELY(slots != NULL)) return slots;
    sp_run_slots *fresh = sp_aligned_malloc(SP_CACHE_LINE, sizeof *fresh);
    if (fresh == NULL) {
        sp__fail(SP_OUT_OF_MEMORY, "no memory for the run slots of %s", device->dev->limits.name);
        return NULL;
    }
    sp__run_slots_init(fresh, device->dev->limits.run_slots);
    if (sp_cas_acq_rel(&all_slots.by_device[device->index], &slots, fresh)) return fresh;
    sp__run_slots_deinit(fresh);
    sp_free(fresh);
    return slots;
}

/* ---- life ---- */

static sp_rt_model *model_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, sp_rt_model, object);
}

static void model_destroy(sp_object *object)
{
    sp_rt_model *model = model_of(object);
    if (sp__runtime_is_forked()) return;
    sp__plan_cache_deinit(&model->plans);
    sp__upload_free(model->device, &model->weights);
    sp__graph_free(model->graph);
    sp__handle_recycle(&models, object);
}

static sp_status check_ports(const sp_graph *graph)
{
    if (graph->input_count <= SP_MODEL_MAX_PORTS && graph->output_count <= SP_MODEL_MAX_PORTS) {
        return SP_OK;
    }
    return sp__fail(SP_UNSUPPORTED, "the model has %u inputs and %u outputs; at most %d of each",
                    graph->input_count, graph->output_count, SP_MODEL_MAX_PORTS);
}

/* Whoever comes first warns, and nobody waits for it: the user's log callback runs in it. */
static void check_cpu_ops(void)
{
    static sp_atomic_u32 is_checked; /* process-wide: options are. Orders nothing */
    if (sp_fetch_or_relaxed(&is_checked, 1) != 0) return;
    sp__op_list_check(sp_option_describe(SP_OPTION_CPU_OPS)->variable,
                      sp_option_text(SP_OPTION_CPU_OPS));
}

static sp_run_limits limits_of(const sp_model_options *options)
{
    const sp_option_info *trips = sp_option_describe(SP_OPTION_LOOP_TRIPS);
    const bool has_trips = options->max_loop_trips != 0;
    return (sp_run_limits){.bytes = options->max_run_bytes,
                           .trips = has_trips ? options->max_loop_trips
                                              : (uint64_t)sp_option_int(SP_OPTION_LOOP_TRIPS),
                           .trips_name = has_trips ? "max_loop_trips" : trips->variable};
}

/* Takes the graph over. */
static sp_status model_new(const sp_graph *graph, sp_rt_device *device,
                           const sp_model_options *options, sp_model *out)
{
    const uint32_t max_plans =
        options->max_plans != 0 ? options->max_plans : (uint32_t)sp_option_int(SP_OPTION_PLANS);
    sp_object *object;
    sp_status status = check_ports(graph);
    if (status == SP_OK) status = sp__handle_take(&models, &object);
    if (status != SP_OK) {
        sp__graph_free(graph);
        return status;
    }
    sp_rt_model *model = model_of(object);
    model->graph = graph;
    model->device = device;
    model->limits = limits_of(options);
    model->plans = (sp_plan_cache){.max_run_bytes = model->limits.bytes};
    status = sp__upload(device, graph->weights, graph->weight_count, &model->weights);
    if (status == SP_OK) {
        status =
            sp__plan_cache_init(&model->plans, graph, device, model->weights.memories, max_plans);
    }
    if (status != SP_OK) {
        model_destroy(object);
        return status;
    }
    sp_store_relaxed(&model->runs, 0);
    sp_store_relaxed(&model->in_flight, 0);
    sp_store_relaxed(&model->most_in_flight, 0);
    sp_store_relaxed(&model->last_parts, 0);
    out->bits = sp__handle_publish(&models, object);
    return SP_OK;
}

/* `folder` is that of the file, or NULL. */
static sp_status load(const char *folder, const void *bytes, size_t len,
                      const sp_model_options *options, sp_model *out)
{
    sp_rt_device *device;
    const sp_model_options wanted = options != NULL ? *options : (sp_model_options){0};
    SP_TRY(sp__rt_device_find(wanted.device, &device));
    if (wanted.max_plans > SP_PLAN_CACHE_MOST) {
        return sp__fail(SP_INVALID, "a model keeps at most %d plans, not %u", SP_PLAN_CACHE_MOST,
                        wanted.max_plans);
    }
    if (bytes == NULL) return sp__fail(SP_INVALID, "sp_model_load_from_memory was given no bytes");
    if (len > PTRDIFF_MAX) { /* no object is that large: refuse it before anything is read */
        return sp__fail(SP_INVALID,
                        "sp_model_load_from_memory was given %zu bytes, which no file has", len);
    }
    check_cpu_ops();
    sp__allocator_set_give_way(sp__models_give_way);
    const sp_graph *graph;
    SP_TRY(sp__graph_load_in(folder, bytes, len, &graph));
    return model_new(graph, device, &wanted, out);
}

sp_status sp_model_load_from_memory(const void *bytes, size_t len, const sp_model_options *options,
                                    sp_model *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_load needs a place for the handle");
    *out = (sp_model){0};
    return load(NULL, bytes, len, options, out);
}

static sp_status load_file(const char *path, const sp_model_options *options, sp_model *out)
{
    void *bytes;
    size_t len;
    SP_TRY(sp_file_read(path, &bytes, &len));
    char *folder = sp_file_folder(path);
    const sp_status status = folder != NULL ? load(folder, bytes, len, options, out)
                                            : sp__fail(SP_OUT_OF_MEMORY, "no memory for a path");
    sp_free(folder);
    sp_free(bytes);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "%s: ", path);
}

sp_status sp_model_load(const char *path, const sp_model_options *options, sp_model *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_load needs a place for the handle");
    *out = (sp_model){0};
    SP_TRY(sp__runtime_enter());
    if (path == NULL) return sp__fail(SP_INVALID, "sp_model_load was given no path");
    return load_file(path, options, out);
}

sp_rt_model *sp__model_hold(sp_model handle)
{
    sp_object *object = sp__handle_hold(&models, handle.bits, "model");
    return object != NULL ? model_of(object) : NULL;
}

bool sp__model_hold_slot(uint32_t slot, sp_rt_model **out)
{
    sp_object *object;
    const bool is_slot = sp__handle_hold_slot(&models, slot, &object);
    *out = object != NULL ? model_of(object) : NULL;
    return is_slot;
}

void sp__model_drop(sp_rt_model *model)
{
    sp__object_drop(&models, &model->object);
}

bool sp__model_drop_unless_last(sp_rt_model *model)
{
    return sp__object_drop_unless_last(&model->object);
}

sp_status sp_model_retain(sp_model model)
{
    SP_TRY(sp__runtime_enter());
    return sp__handle_retain(&models, model.bits, "model");
}

sp_status sp_model_release(sp_model model)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__handle_release(&models, model.bits, "model");
}

/* ---- questions ---- */

sp_status sp_model_get_info(sp_model handle, sp_model_info *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_get_info needs a place to write to");
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
        .runs = sp_load_relaxed(&model->runs),
        .plan_count = sp_load_relaxed(&model->plans.plan_count),
        .plan_builds = sp_load_relaxed(&model->plans.build_count),
        .plan_evictions = sp_load_relaxed(&model->plans.evictions),
        .session_count = sp__plan_cache_sessions(&model->plans),
        .most_in_flight = sp_load_relaxed(&model->most_in_flight),
        .part_count = sp_load_relaxed(&model->last_parts),
    };
    sp_plan_place *newest = sp__plan_cache_newest(&model->plans);
    if (newest != NULL) {
        out->step_count = newest->compiled->plan->step_count;
        out->cpu_step_count = newest->compiled->segments.cpu_step_count;
        out->segment_count = newest->compiled->segments.count;
        sp__plan_cache_drop(&model->plans, newest);
    }
    sp__model_drop(model);
    return SP_OK;
}

static bool get_cpu_op(sp_plan_cache *plans, uint32_t index, sp_model_cpu_op *out)
{
    sp_plan_place *newest = sp__plan_cache_newest(plans);
    if (newest == NULL) return false;
    const sp_compiled *compiled = newest->compiled;
    const char *name;
    const bool is_found =
        sp__segments_cpu_op(&compiled->segments, compiled->plan, index, &name, &out->step_count);
    if (is_found) snprintf(out->name, sizeof out->name, "%s", name);
    sp__plan_cache_drop(plans, newest);
    return is_found;
}

sp_status sp_model_get_cpu_op(sp_model handle, uint32_t index, sp_model_cpu_op *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_get_cpu_op needs a place to write to");
    *out = (sp_model_cpu_op){0};
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const bool is_found = get_cpu_op(&model->plans, index, out);
    sp__model_drop(model);
    if (is_found) return SP_OK;
    return sp__fail(SP_NOT_FOUND, "no op with index %u runs on the cpu instead", index);
}

sp_status sp_device_get_ops(sp_device handle, sp_device_ops *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_device_get_ops needs a place to write to");
    *out = (sp_device_ops){0};
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    const sp_op_coverage coverage = sp__op_coverage(sp__device_kernels(device->dev));
    *out = (sp_device_ops){coverage.op_count, coverage.covered_count};
    return SP_OK;
}

static void describe(const sp_graph_port *port, sp_port *out)
{
    *out = (sp_port){.name = port->name,
                     .dtype = port->dtype,
                     .rank = port->rank,
                     .decides_shapes = port->decides_shapes};
    for (uint32_t i = 0; i < port->rank; i++) {
        out->shape[i] = port->dims[i];
        out->dim_names[i] = port->dim_names[i] != NULL ? port->dim_names[i] : "";
    }
}

static sp_status get_port(sp_model handle, bool is_input, uint32_t index, sp_port *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "a port needs a place to be written to");
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_graph *graph = model->graph;
    const uint32_t count = is_input ? graph->input_count : graph->output_count;
    sp_status status = SP_OK;
    if (index < count) {
        describe(is_input ? &graph->inputs[index] : &graph->outputs[index], out);
    } else {
        status = sp__fail(SP_NOT_FOUND, "the model has %u %s, none with index %u", count,
                          is_input ? "inputs" : "outputs", index);
    }
    sp__model_drop(model);
    return status;
}

sp_status sp_model_get_input(sp_model model, uint32_t index, sp_port *out)
{
    return get_port(model, true, index, out);
}

sp_status sp_model_get_output(sp_model model, uint32_t index, sp_port *out)
{
    return get_port(model, false, index, out);
}

static sp_status no_such_port(const sp_graph_port *ports, uint32_t count, const char *noun,
                              const char *name)
{
    char names[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof names; i++) {
        const int length =
            snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", ports[i].name);
        used += length > 0 ? (size_t)length : 0;
    }
    return sp__fail(SP_NOT_FOUND, "the model has no %s '%s'; it has: %s", noun, name, names);
}

static sp_status find_port(sp_model handle, bool is_input, const char *name, uint32_t *index)
{
    if (name == NULL || index == NULL) {
        return sp__fail(SP_INVALID, "a search by name needs a name and a place for the index");
    }
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_graph *graph = model->graph;
    const sp_graph_port *ports = is_input ? graph->inputs : graph->outputs;
    const uint32_t count = is_input ? graph->input_count : graph->output_count;
    const uint32_t found = sp__graph_port_find(ports, count, name);
    sp_status status = SP_OK;
    if (found < count) {
        *index = found;
    } else {
        status = no_such_port(ports, count, is_input ? "input" : "output", name);
    }
    sp__model_drop(model);
    return status;
}

sp_status sp_model_find_input(sp_model model, const char *name, uint32_t *index)
{
    return find_port(model, true, name, index);
}

sp_status sp_model_find_output(sp_model model, const char *name, uint32_t *index)
{
    return find_port(model, false, name, index);
}
