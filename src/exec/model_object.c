/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, references and destruction of models. */
#include "exec/model_object.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/option.h"
#include "device/thread_record.h"

static void model_destroy(sp_object *object);

static sp_handle_table models = {/* process-wide: the table of all model handles */
                                 .kind = SP_KIND_MODEL,
                                 .object_bytes = sizeof(sp_rt_model),
                                 .lanes_at = offsetof(sp_rt_model, lanes),
                                 .destroy = model_destroy,
                                 .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

static sp_rt_model *model_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, sp_rt_model, object);
}

static void model_destroy(sp_object *object)
{
    sp_rt_model *model = model_of(object);
    if (sp__runtime_is_forked()) return;
    sp__plan_cache_deinit(&model->plans);
    sp__packed_weights_deinit(&model->packed);
    sp__upload_deinit(model->device, &model->weights);
    sp__graph_destroy(model->graph);
    sp_free(model->cpu_ops);
    sp__handle_recycle(&models, object);
}

static sp_run_limits limits_of(const sp_model_options *options)
{
    sp_run_limits limits = {.bytes = options->max_run_bytes,
                            .trips = options->max_loop_trips,
                            .partial_bytes = options->max_partial_bytes,
                            .trips_name = "max_loop_trips",
                            .partial_name = "max_partial_bytes"};
    if (limits.trips == 0) {
        limits.trips = (uint64_t)sp_option_int(SP_OPTION_LOOP_TRIPS);
        limits.trips_name = sp_option_describe(SP_OPTION_LOOP_TRIPS)->variable;
    }
    if (limits.partial_bytes == 0) {
        limits.partial_bytes = sp_option_bytes(SP_OPTION_PARTIAL_MEMORY);
        limits.partial_name = sp_option_describe(SP_OPTION_PARTIAL_MEMORY)->variable;
    }
    return limits;
}

static sp_status plans_init(sp_rt_model *model, const sp_model_options *options)
{
    const bool has_ops = options->cpu_ops != NULL;
    if (has_ops) {
        model->cpu_ops = sp_strdup(options->cpu_ops);
        if (model->cpu_ops == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a model");
    }
    model->plans.cpu_ops = has_ops ? model->cpu_ops : sp_option_text(SP_OPTION_CPU_OPS);
    const uint32_t max_plans =
        options->max_plans != 0 ? options->max_plans : (uint32_t)sp_option_int(SP_OPTION_PLANS);
    return sp__plan_cache_init(&model->plans, model->graph, model->device, model->weights.memories,
                               max_plans);
}

sp_status sp__model_create(const sp_graph *graph, sp_rt_device *device,
                           const sp_model_options *options, sp_model *out)
{
    sp_object *object;
    sp_status status = sp__handle_acquire(&models, &object);
    if (status != SP_OK) {
        sp__graph_destroy(graph);
        return status;
    }
    sp_rt_model *model = model_of(object);
    model->graph = graph;
    model->device = device;
    model->limits = limits_of(options);
    model->plans = (sp_plan_cache){.max_run_bytes = model->limits.bytes,
                                   .packed = &model->packed,
                                   .precision = options->precision};
    model->packed = (sp_packed_weights){0};
    model->cpu_ops = NULL;
    model->flow = (sp_run_flow){.weight = options->weight,
                                .limit = options->max_concurrent_runs,
                                .most_queued = options->max_waiting};
    status = sp__upload_init(device, graph->weights, graph->weight_count, &model->weights);
    if (status == SP_OK) status = sp__packed_weights_init(&model->packed, graph);
    if (status == SP_OK) status = plans_init(model, options);
    if (status != SP_OK) {
        model_destroy(object);
        return status;
    }
    sp_store_relaxed(&model->last_partial_plans, 0);
    sp_store_relaxed(&model->partial_queued, 0);
    sp__run_counters_init(&model->counters, model->lanes);
    out->bits = sp__handle_publish(&models, object);
    return SP_OK;
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

sp_rt_model *sp__model_visit(sp_model handle, uint32_t lane)
{
    sp_object *object = sp__handle_visit(&models, handle.bits, "model", lane);
    return object != NULL ? model_of(object) : NULL;
}

void sp__model_leave(sp_rt_model *model, uint32_t lane)
{
    sp__handle_leave(&models, &model->object, lane);
}

sp_status sp__thread_lane(uint32_t *out)
{
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    *out = (uint32_t)(record->number % SP_LANES);
    return SP_OK;
}

void sp__model_drop(sp_rt_model *model)
{
    sp__object_drop(&models, &model->object);
}

bool sp__model_drop_unless_last(sp_rt_model *model)
{
    return sp__object_drop_unless_last(&model->object);
}

sp_status sp__model_retain(sp_model handle)
{
    return sp__handle_retain(&models, handle.bits, "model");
}

sp_status sp__model_release(sp_model handle)
{
    return sp__handle_release(&models, handle.bits, "model");
}
