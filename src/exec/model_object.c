/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, references and destruction of models. */
#include "exec/model_object.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/option.h"

static void model_destroy(sp_object *object);

static sp_handle_table models = {/* process-wide: the table of all model handles */
                                 .kind = SP_KIND_MODEL,
                                 .object_bytes = sizeof(sp_rt_model),
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

static sp_run_limits limits_of(const sp_model_options *options)
{
    const sp_option_row *trips = sp_option_describe(SP_OPTION_LOOP_TRIPS);
    const bool has_trips = options->max_loop_trips != 0;
    return (sp_run_limits){.bytes = options->max_run_bytes,
                           .trips = has_trips ? options->max_loop_trips
                                              : (uint64_t)sp_option_int(SP_OPTION_LOOP_TRIPS),
                           .trips_name = has_trips ? "max_loop_trips" : trips->variable};
}

sp_status sp__model_create(const sp_graph *graph, sp_rt_device *device,
                           const sp_model_options *options, sp_model *out)
{
    const uint32_t max_plans =
        options->max_plans != 0 ? options->max_plans : (uint32_t)sp_option_int(SP_OPTION_PLANS);
    sp_object *object;
    sp_status status = check_ports(graph);
    if (status == SP_OK) status = sp__handle_acquire(&models, &object);
    if (status != SP_OK) {
        sp__graph_destroy(graph);
        return status;
    }
    sp_rt_model *model = model_of(object);
    model->graph = graph;
    model->device = device;
    model->limits = limits_of(options);
    model->plans = (sp_plan_cache){.max_run_bytes = model->limits.bytes, .packed = &model->packed};
    model->packed = (sp_packed_weights){0};
    status = sp__upload_init(device, graph->weights, graph->weight_count, &model->weights);
    if (status == SP_OK) status = sp__packed_weights_init(&model->packed, graph);
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
    sp_store_relaxed(&model->last_partial_plans, 0);
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
