/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as public objects, for reading. Each has a plan of the plan layer, its partition over the
 * model's device and the fallback, and a hold on the model, whose graph the plan borrows. Constant
 * from publish to destroy. */
#include <streampool/plan.h>

#include <string.h>

#include "base/error.h"
#include "base/handle.h"
#include "exec/model_object.h"
#include "exec/partition.h"
#include "exec/run_ports.h"
#include "ops/blocked.h"
#include "ops/device_kernels.h"

typedef struct sp_rt_plan {
    SP_CACHE_ALIGNED sp_object object;
    sp_rt_model *model; /* held */
    const sp_graph_plan *plan;
    sp_segments segments;
} sp_rt_plan;

static void plan_destroy(sp_object *object);

static sp_handle_table plans = {/* process-wide: the table of all plan handles */
                                .kind = SP_KIND_PLAN,
                                .object_bytes = sizeof(sp_rt_plan),
                                .destroy = plan_destroy,
                                .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

/* ---- life ---- */

static void plan_destroy(sp_object *object)
{
    sp_rt_plan *plan = SP_CONTAINER_OF(object, sp_rt_plan, object);
    if (sp__runtime_is_forked()) return;
    sp__segments_deinit(&plan->segments);
    sp__plan_destroy(plan->plan);
    sp__model_drop(plan->model);
    sp__handle_recycle(&plans, object);
}

static sp_status plan_compile(const sp_rt_model *model, const sp_host_tensor *inputs,
                              uint32_t input_count, const sp_graph_plan **out)
{
    sp_run_ports ports;
    SP_TRY(sp__run_ports_init(&ports, model->graph, input_count));
    sp_status status = sp__run_ports_take_inputs(model->graph, inputs, input_count, false, &ports);
    if (status == SP_OK) {
        const bool is_for_cpu = sp__plan_cache_is_for_cpu(&model->plans);
        const sp_plan_request request = {.inputs = ports.inputs,
                                         .input_count = model->graph->input_count,
                                         .overrides = ports.overrides,
                                         .override_count = ports.override_count,
                                         .is_blocked = is_for_cpu,
                                         .is_strided = is_for_cpu,
                                         .precision = model->plans.precision};
        status = sp__plan_compile(model->graph, &request, out);
    }
    sp__run_ports_deinit(&ports);
    return status;
}

/* On success takes over the plan and the caller's hold on the model. */
static sp_status plan_publish(sp_rt_model *model, const sp_graph_plan *executable, sp_plan *out)
{
    sp_segments segments;
    sp_object *object;
    SP_TRY(sp__partition(executable, model->device, model->plans.cpu_ops, &segments));
    const sp_status status = sp__handle_acquire(&plans, &object);
    if (status != SP_OK) {
        sp__segments_deinit(&segments);
        return status;
    }
    sp_rt_plan *plan = SP_CONTAINER_OF(object, sp_rt_plan, object);
    plan->model = model;
    plan->plan = executable;
    plan->segments = segments;
    out->bits = sp__handle_publish(&plans, object);
    return SP_OK;
}

static sp_status plan_create(sp_rt_model *model, const sp_host_tensor *inputs, uint32_t input_count,
                             sp_plan *out)
{
    sp_rt_device *device;
    const sp_graph_plan *executable;
    SP_TRY(sp__rt_device_find(sp__rt_device_handle(model->device), &device));
    SP_TRY(plan_compile(model, inputs, input_count, &executable));
    const sp_status status = plan_publish(model, executable, out);
    if (status != SP_OK) sp__plan_destroy(executable);
    return status;
}

sp_status sp_plan_create(sp_model handle, const sp_host_tensor *inputs, uint32_t input_count,
                         sp_plan *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_plan_create: out is NULL");
    *out = (sp_plan){0};
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_status status = plan_create(model, inputs, input_count, out);
    if (status != SP_OK) sp__model_drop(model);
    return status;
}

sp_status sp_plan_retain(sp_plan plan)
{
    SP_TRY(sp__runtime_enter());
    return sp__handle_retain(&plans, plan.bits, "plan");
}

sp_status sp_plan_release(sp_plan plan)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__handle_release(&plans, plan.bits, "plan");
}

/* ---- questions ---- */

/* The plan with a hold, for a question whose answer goes to `out`. */
static sp_status plan_hold(sp_plan handle, const void *out, sp_rt_plan **plan)
{
    if (out == NULL) return sp__fail(SP_INVALID, "a question about a plan: out is NULL");
    SP_TRY(sp__runtime_enter());
    sp_object *object = sp__handle_hold(&plans, handle.bits, "plan");
    if (object == NULL) return SP_INVALID;
    *plan = SP_CONTAINER_OF(object, sp_rt_plan, object);
    return SP_OK;
}

/* The same with an index: SP_NOT_FOUND, and no hold, if it is not below the number of `noun`, which
 * `count` reads from the plan. */
static sp_status plan_hold_at(sp_plan handle, const void *out, uint32_t index,
                              uint32_t (*count)(const sp_rt_plan *), const char *noun,
                              sp_rt_plan **plan)
{
    SP_TRY(plan_hold(handle, out, plan));
    const uint32_t most = count(*plan);
    if (index < most) return SP_OK;
    sp__object_drop(&plans, &(*plan)->object);
    return sp__fail(SP_NOT_FOUND, "the plan has %u %s, none with index %u", most, noun, index);
}

static void plan_drop(sp_rt_plan *plan)
{
    sp__object_drop(&plans, &plan->object);
}

static uint64_t constant_bytes(const sp_graph_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->constant_count; i++) bytes += plan->constants[i].bytes;
    return bytes;
}

static uint32_t loop_count(const sp_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) count += graph->nodes[i].body != NULL;
    return count;
}

static uint32_t stop_count(const sp_rt_plan *p)
{
    return p->plan->is_partial ? p->plan->stop_count + p->plan->asked_count : 0;
}

sp_status sp_plan_get_info(sp_plan handle, sp_plan_info *out)
{
    sp_rt_plan *p;
    SP_TRY(plan_hold(handle, out, &p));
    const sp_graph_plan *plan = p->plan;
    *out = (sp_plan_info){
        .device = sp__rt_device_handle(p->model->device),
        .step_count = plan->step_count,
        .cpu_step_count = p->segments.fallback_step_count,
        .segment_count = p->segments.count,
        .input_count = plan->input_count,
        .output_count = plan->output_count,
        .buffer_count = plan->lifetime_count,
        .arena_bytes = plan->arena_bytes,
        .constant_bytes = constant_bytes(plan),
        .weight_bytes = plan->graph->weight_bytes,
        .is_partial = plan->is_partial,
        .stop_count = stop_count(p),
        .loop_count = loop_count(plan->graph),
    };
    plan_drop(p);
    return SP_OK;
}

static sp_host_tensor plan_tensor(const sp_plan_tensor *from)
{
    sp_host_tensor tensor = {
        .name = from->name, .bytes = from->bytes, .dtype = from->dtype, .rank = from->shape.rank};
    memcpy(tensor.shape, from->shape.dims, sizeof tensor.shape);
    return tensor;
}

static uint32_t input_count(const sp_rt_plan *p)
{
    return p->plan->input_count;
}

sp_status sp_plan_get_input(sp_plan handle, uint32_t index, sp_host_tensor *out)
{
    sp_rt_plan *p;
    SP_TRY(plan_hold_at(handle, out, index, input_count, "inputs", &p));
    *out = plan_tensor(&p->plan->inputs[index]);
    plan_drop(p);
    return SP_OK;
}

static uint32_t output_count(const sp_rt_plan *p)
{
    return p->plan->output_count;
}

sp_status sp_plan_get_output(sp_plan handle, uint32_t index, sp_host_tensor *out)
{
    sp_rt_plan *p;
    SP_TRY(plan_hold_at(handle, out, index, output_count, "outputs", &p));
    *out = plan_tensor(&p->plan->outputs[index]);
    plan_drop(p);
    return SP_OK;
}

/* ---- steps ---- */

static uint32_t step_count(const sp_rt_plan *p)
{
    return p->plan->step_count;
}

/* The segment that has the step. */
static uint32_t segment_of(const sp_segments *segments, uint32_t step)
{
    uint32_t low = 0;
    uint32_t high = segments->count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const sp_segment *segment = &segments->list[middle];
        if (segment->first_step + segment->step_count > step) high = middle;
        else low = middle + 1;
    }
    return low;
}

sp_status sp_plan_get_step(sp_plan handle, uint32_t index, sp_plan_step_info *out)
{
    sp_rt_plan *p;
    SP_TRY(plan_hold_at(handle, out, index, step_count, "steps", &p));
    const sp_plan_step *step = &p->plan->steps[index];
    const sp_kernel *kernel = &p->plan->kernels[step->kernel];
    sp_tiling tiling;
    kernel->tiling(step->constants, &tiling);
    *out = (sp_plan_step_info){
        .op = step->op_name,
        .node = step->node_name,
        .kernel = kernel->name,
        .grid = {tiling.grid[0], tiling.grid[1], tiling.grid[2]},
        .segment = segment_of(&p->segments, index),
        .multiply_adds = step->multiply_adds,
    };
    for (uint32_t i = 0; i < step->binding_count; i++) {
        const sp_plan_binding *binding = &step->bindings[i];
        *(binding->is_write ? &out->written_bytes : &out->read_bytes) += binding->bytes;
    }
    plan_drop(p);
    return SP_OK;
}

sp_status sp_plan_step_has_kernel(sp_plan handle, uint32_t index, const char *kind, bool *out)
{
    sp_rt_plan *p;
    const sp_kernel *kernels;
    SP_TRY(plan_hold_at(handle, out, index, step_count, "steps", &p));
    const sp_status status = sp__device_kind_kernels(kind, &kernels);
    if (status == SP_OK) {
        const sp_plan_step *step = &p->plan->steps[index];
        *out = kernels == NULL || sp__blocked_is_there(kernels, step->kernel, step->constants);
    }
    plan_drop(p);
    return status;
}

/* ---- segments, buffers, stops ---- */

static uint32_t segment_count(const sp_rt_plan *p)
{
    return p->segments.count;
}

/* Of the segment's copies from `first` on, up to `end`. */
static uint64_t copy_bytes(const sp_segment *segment, uint32_t first, uint32_t end)
{
    uint64_t bytes = 0;
    for (uint32_t i = first; i < end; i++) bytes += segment->copies[i].bytes;
    return bytes;
}

sp_status sp_plan_get_segment(sp_plan handle, uint32_t index, sp_plan_segment_info *out)
{
    sp_rt_plan *p;
    sp_device fallback;
    SP_TRY(plan_hold_at(handle, out, index, segment_count, "segments", &p));
    const sp_status status = sp_device_at(0, &fallback);
    if (status == SP_OK) {
        const sp_segment *segment = &p->segments.list[index];
        *out = (sp_plan_segment_info){
            .device = segment->device == SP_SEGMENT_FALLBACK
                          ? fallback
                          : sp__rt_device_handle(p->model->device),
            .first_step = segment->first_step,
            .step_count = segment->step_count,
            .copy_in_count = segment->copies_in,
            .copy_out_count = segment->copies_out,
            .copy_in_bytes = copy_bytes(segment, 0, segment->copies_in),
            .copy_out_bytes =
                copy_bytes(segment, segment->copies_in, segment->copies_in + segment->copies_out),
        };
    }
    plan_drop(p);
    return status;
}

static uint32_t buffer_count(const sp_rt_plan *p)
{
    return p->plan->lifetime_count;
}

sp_status sp_plan_get_buffer(sp_plan handle, uint32_t index, sp_plan_buffer_info *out)
{
    sp_rt_plan *p;
    SP_TRY(plan_hold_at(handle, out, index, buffer_count, "buffers", &p));
    const sp_plan_lifetime *life = &p->plan->lifetimes[index];
    *out = (sp_plan_buffer_info){.offset = life->offset,
                                 .bytes = life->bytes,
                                 .first_step = life->first_step,
                                 .last_step = life->last_step};
    plan_drop(p);
    return SP_OK;
}

sp_status sp_plan_get_stop(sp_plan handle, uint32_t index, sp_plan_stop_info *out)
{
    sp_rt_plan *p;
    SP_TRY(plan_hold_at(handle, out, index, stop_count, "stops", &p));
    const sp_graph_plan *plan = p->plan;
    if (index < plan->stop_count) {
        const sp_graph_node *node = &plan->graph->nodes[plan->stops[index]];
        *out = (sp_plan_stop_info){.op = node->op->name, .name = node->name};
    } else {
        const uint32_t value = plan->asked[index - plan->stop_count];
        *out = (sp_plan_stop_info){
            .op = "If", .name = plan->graph->values[value].name, .is_condition = true};
    }
    plan_drop(p);
    return SP_OK;
}
