/* SPDX-License-Identifier: Apache-2.0 */
/* Partitioning. One walk over the steps keeps for each value the set of devices that have its
 * newest bytes. A step on a device without them requests a copy in, at the beginning of its
 * segment, and before that, if the host does not have them, a copy out, at the end of the newest
 * segment of the one device that has them. The value is live from that copy out to the step, so no
 * other value uses its arena bytes in any memory. */
#include "plan/segments.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "ops/op_list.h"

#define NOT_COPIED UINT32_MAX

/* A copy into, or out of, the device of a segment. */
typedef struct copy_request {
    uint32_t bucket; /* 2 * segment, + 1 for a copy out */
    sp_segment_copy copy;
} copy_request;

typedef struct partitioner {
    const sp_graph_plan *plan;
    sp_segments *out;
    /* Bits of the devices that have the newest bytes; by lifetimes, then inputs, then outputs. 0:
     * the value has not been written yet. Without the host's bit, one bit at most. */
    uint32_t *places;
    /* Lifetimes that include the current step. */
    uint32_t *alive;
    uint32_t alive_count, next_lifetime;
    uint32_t newest[SP_SEGMENT_DEVICES]; /* last segment of the device in the walk so far */
    copy_request *requests;              /* in the order of the walk */
    uint32_t request_count, request_capacity;
} partitioner;

/* ---- placement ---- */

/* A narrow product has other bits on cpu, and what its step computes besides depends on sizes: only
 * the products' own names count. */
static bool is_for_cpu(const sp_graph_plan *plan, const sp_plan_step *step, const char *cpu_ops)
{
    const bool is_narrow = plan->has_narrow && sp__plan_step_is_narrow(step);
    const char *counting = is_narrow ? "Conv,Gemm,MatMul" : NULL;
    return sp__op_list_has_of(cpu_ops, step->op_name, counting);
}

uint32_t sp__segments_assign(const sp_graph_plan *plan, const sp_kernel *own, const char *cpu_ops,
                             uint8_t *devices)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        const sp_kernel *kernel = &(own != NULL ? own : plan->kernels)[step->kernel];
        const bool is_own = sp__kernel_is_there(kernel) && !is_for_cpu(plan, step, cpu_ops);
        devices[s] = is_own ? SP_SEGMENT_MODEL : SP_SEGMENT_FALLBACK;
        if (!is_own) count++;
    }
    return count;
}

/* ---- values ---- */

static void begin_step(partitioner *p, uint32_t s)
{
    const sp_graph_plan *plan = p->plan;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->alive_count; i++) {
        if (plan->lifetimes[p->alive[i]].last_step >= s) p->alive[kept++] = p->alive[i];
    }
    p->alive_count = kept;
    /* Lifetimes are in the order of their first steps. */
    for (; p->next_lifetime < plan->lifetime_count; p->next_lifetime++) {
        const sp_plan_lifetime *life = &plan->lifetimes[p->next_lifetime];
        if (life->first_step > s) break;
        if (life->bytes > 0) p->alive[p->alive_count++] = p->next_lifetime;
    }
}

/* The arena value that a binding of step `s` accesses. If a step writes its result over an operand,
 * two values are live on the same bytes: it reads the old one and writes the new one. */
static uint32_t value_in_arena(const partitioner *p, const sp_plan_binding *binding, uint32_t s)
{
    uint32_t found = NOT_COPIED;
    for (uint32_t i = 0; i < p->alive_count; i++) {
        const sp_plan_lifetime *life = &p->plan->lifetimes[p->alive[i]];
        if (life->offset != binding->offset || life->bytes < binding->bytes) continue;
        const bool is_new = life->first_step == s;
        if (is_new ? binding->is_write : found == NOT_COPIED) found = p->alive[i];
    }
    return found;
}

static uint32_t input_value(const partitioner *p, uint32_t index)
{
    return p->plan->lifetime_count + index;
}

static uint32_t output_value(const partitioner *p, uint32_t index)
{
    return p->plan->lifetime_count + p->plan->input_count + index;
}

/* NOT_COPIED: a weight, packed or not, a constant, a binding of 0 bytes; or the arena of a plan
 * with one segment. */
static sp_status binding_value(const partitioner *p, const sp_plan_binding *binding, uint32_t s,
                               uint32_t *value)
{
    *value = NOT_COPIED;
    if (binding->bytes == 0) return SP_OK;
    switch (binding->where) {
    case SP_PLACE_INPUT:
        *value = input_value(p, binding->index);
        break;
    case SP_PLACE_OUTPUT:
        *value = output_value(p, binding->index);
        break;
    case SP_PLACE_ARENA:
        if (p->out->count == 1) break;
        *value = value_in_arena(p, binding, s);
        if (*value != NOT_COPIED) break;
        return sp__fail(SP_INTERNAL,
                        "step %u accesses arena bytes at %" PRIu64 " that hold no value", s,
                        binding->offset);
    case SP_PLACE_WEIGHT:
    case SP_PLACE_PACKED:
    case SP_PLACE_CONSTANT:
        break;
    }
    return SP_OK;
}

static sp_segment_copy value_copy(const partitioner *p, uint32_t value)
{
    const sp_graph_plan *plan = p->plan;
    if (value < plan->lifetime_count) {
        const sp_plan_lifetime *life = &plan->lifetimes[value];
        return (sp_segment_copy){
            .where = SP_PLACE_ARENA, .offset = life->offset, .bytes = life->bytes};
    }
    const uint32_t port = value - plan->lifetime_count;
    if (port < plan->input_count) {
        return (sp_segment_copy){
            .where = SP_PLACE_INPUT, .index = port, .bytes = plan->inputs[port].bytes};
    }
    const uint32_t output = port - plan->input_count;
    return (sp_segment_copy){
        .where = SP_PLACE_OUTPUT, .index = output, .bytes = plan->outputs[output].bytes};
}

/* ---- copies ---- */

static uint32_t device_bit(uint32_t device)
{
    return (uint32_t)1 << device;
}

static sp_status request_copy(partitioner *p, uint32_t g, bool is_out, uint32_t value)
{
    copy_request *grown =
        sp_grow(p->requests, p->request_count, &p->request_capacity, sizeof *grown);
    if (grown == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    p->requests = grown;
    p->requests[p->request_count++] =
        (copy_request){.bucket = 2 * g + (is_out ? 1 : 0), .copy = value_copy(p, value)};
    return SP_OK;
}

/* Ensures that the newest bytes of the value, if any, are in host memory after the newest segment
 * of the device that has them. */
static sp_status value_need_on_host(partitioner *p, uint32_t value)
{
    const uint32_t places = p->places[value];
    if (places == 0 || (places & device_bit(SP_SEGMENT_FALLBACK)) != 0) return SP_OK;
    const uint32_t owner = (uint32_t)__builtin_ctz(places);
    SP_TRY(request_copy(p, p->newest[owner], true, value));
    p->places[value] |= device_bit(SP_SEGMENT_FALLBACK);
    return SP_OK;
}

/* The same for the memory of the device of segment `g`, before its steps. */
static sp_status value_need(partitioner *p, uint32_t g, uint32_t value)
{
    const uint32_t device = p->out->list[g].device;
    if (p->places[value] == 0 || (p->places[value] & device_bit(device)) != 0) return SP_OK;
    SP_TRY(value_need_on_host(p, value));
    if (device == SP_SEGMENT_FALLBACK) return SP_OK;
    SP_TRY(request_copy(p, g, false, value));
    p->places[value] |= device_bit(device);
    return SP_OK;
}

static sp_status walk_step(partitioner *p, uint32_t g, uint32_t s)
{
    const sp_plan_step *step = &p->plan->steps[s];
    const uint32_t own = device_bit(p->out->list[g].device);
    uint32_t value;
    if (p->out->count > 1) begin_step(p, s);
    /* Written values, too: a step may leave some of their bytes unchanged. */
    for (uint32_t i = 0; i < step->binding_count; i++) {
        SP_TRY(binding_value(p, &step->bindings[i], s, &value));
        if (value != NOT_COPIED) SP_TRY(value_need(p, g, value));
    }
    for (uint32_t i = 0; i < step->binding_count; i++) {
        if (!step->bindings[i].is_write) continue;
        SP_TRY(binding_value(p, &step->bindings[i], s, &value));
        if (value == NOT_COPIED) continue;
        p->places[value] = SP_PLANTED(stale_copy) ? p->places[value] | own : own;
    }
    return SP_OK;
}

static sp_status steps_walk(partitioner *p)
{
    const sp_segments *out = p->out;
    for (uint32_t i = 0; i < p->plan->input_count; i++) {
        p->places[input_value(p, i)] = device_bit(SP_SEGMENT_FALLBACK);
    }
    for (uint32_t g = 0; g < out->count; g++) {
        const sp_segment *segment = &out->list[g];
        p->newest[segment->device] = g;
        for (uint32_t s = 0; s < segment->step_count; s++) {
            SP_TRY(walk_step(p, g, segment->first_step + s));
        }
    }
    for (uint32_t i = 0; i < p->plan->output_count; i++) {
        SP_TRY(value_need_on_host(p, output_value(p, i)));
    }
    return SP_OK;
}

/* Sorts the requests by bucket; those of one bucket keep their order. */
static sp_status copies_sort(partitioner *p)
{
    sp_segments *out = p->out;
    const uint32_t bucket_count = 2 * out->count;
    uint32_t *starts = sp_calloc((size_t)bucket_count + 1, sizeof *starts);
    out->copies = sp_calloc(p->request_count, sizeof *out->copies);
    if (starts == NULL || out->copies == NULL) {
        sp_free(starts);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    }
    out->copy_count = p->request_count;
    for (uint32_t i = 0; i < p->request_count; i++) starts[p->requests[i].bucket + 1]++;
    for (uint32_t b = 0; b < bucket_count; b++) starts[b + 1] += starts[b];
    for (uint32_t g = 0; g < out->count; g++) {
        const uint32_t *of = &starts[2 * (size_t)g];
        out->list[g].copies = &out->copies[of[0]];
        out->list[g].copies_in = of[1] - of[0];
        out->list[g].copies_out = of[2] - of[1];
    }
    for (uint32_t i = 0; i < p->request_count; i++) {
        out->copies[starts[p->requests[i].bucket]++] = p->requests[i].copy;
    }
    sp_free(starts);
    return SP_OK;
}

/* ---- segments ---- */

static uint32_t count_segments(const sp_graph_plan *plan, const uint8_t *devices)
{
    uint32_t count = 1; /* the model's, which may have no steps */
    uint32_t device = SP_SEGMENT_MODEL;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (devices[s] != device) count++;
        device = devices[s];
    }
    return device == SP_SEGMENT_MODEL ? count : count + 1;
}

static sp_status fill_segments(const sp_graph_plan *plan, const uint8_t *devices, sp_segments *out)
{
    sp_segment *segment = out->list;
    segment->device = SP_SEGMENT_MODEL;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (devices[s] >= SP_SEGMENT_DEVICES) {
            return sp__fail(SP_INTERNAL, "step %u is on device %u; at most %u are supported", s,
                            devices[s], SP_SEGMENT_DEVICES);
        }
        if (devices[s] != segment->device) {
            *++segment = (sp_segment){.device = devices[s], .first_step = s};
        }
        segment->step_count++;
        if (devices[s] == SP_SEGMENT_FALLBACK) out->fallback_step_count++;
    }
    if (segment->device != SP_SEGMENT_MODEL) {
        *++segment = (sp_segment){.device = SP_SEGMENT_MODEL, .first_step = plan->step_count};
    }
    return SP_OK;
}

static sp_status plan_partition(partitioner *p, const uint8_t *devices)
{
    const sp_graph_plan *plan = p->plan;
    const size_t values = (size_t)plan->lifetime_count + plan->input_count + plan->output_count;
    p->out->count = count_segments(plan, devices);
    p->out->list = sp_calloc(p->out->count, sizeof *p->out->list);
    p->places = sp_calloc(values, sizeof *p->places);
    p->alive = sp_calloc(plan->lifetime_count, sizeof *p->alive);
    if (p->out->list == NULL || p->places == NULL || p->alive == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    }
    SP_TRY(fill_segments(plan, devices, p->out));
    SP_TRY(steps_walk(p));
    return copies_sort(p);
}

sp_status sp__segments_partition(const sp_graph_plan *plan, const uint8_t *devices,
                                 sp_segments *out)
{
    *out = (sp_segments){0};
    partitioner p = {.plan = plan, .out = out};
    const sp_status status = plan_partition(&p, devices);
    sp_free(p.places);
    sp_free(p.alive);
    sp_free(p.requests);
    if (status != SP_OK) sp__segments_deinit(out);
    return status;
}

void sp__segments_deinit(sp_segments *segments)
{
    sp_free(segments->list);
    sp_free(segments->copies);
    *segments = (sp_segments){0};
}

/* ---- information ---- */

typedef struct fallback_steps {
    const sp_segments *segments;
    uint32_t segment, step; /* position of the next step */
} fallback_steps;

/* The next step on the fallback, in order; false past the end. */
static bool next_fallback_step(fallback_steps *it, uint32_t *step)
{
    for (; it->segment < it->segments->count; it->segment++, it->step = 0) {
        const sp_segment *segment = &it->segments->list[it->segment];
        if (segment->device != SP_SEGMENT_FALLBACK || it->step == segment->step_count) continue;
        *step = segment->first_step + it->step++;
        return true;
    }
    return false;
}

static uint32_t count_op_steps(const sp_segments *segments, const sp_graph_plan *plan,
                               const char *op, uint32_t *first)
{
    fallback_steps it = {.segments = segments};
    uint32_t count = 0;
    for (uint32_t s; next_fallback_step(&it, &s);) {
        if (strcmp(plan->steps[s].op_name, op) != 0) continue;
        if (count++ == 0) *first = s;
    }
    return count;
}

bool sp__segments_fallback_op(const sp_segments *segments, const sp_graph_plan *plan,
                              uint32_t index, const char **name, uint32_t *step_count)
{
    fallback_steps it = {.segments = segments};
    for (uint32_t s; next_fallback_step(&it, &s);) {
        uint32_t first = s;
        const uint32_t count = count_op_steps(segments, plan, plan->steps[s].op_name, &first);
        if (first != s || index-- > 0) continue;
        *name = plan->steps[s].op_name;
        *step_count = count;
        return true;
    }
    return false;
}
