/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting. One walk over the steps keeps for each value where its newest bytes are: on the host, on
 * the device, or on both. A step that needs them where they are not asks for a copy, which stands
 * at the end or at the beginning of the device's segment next to the step's: the value was alive
 * there already, so on both sides the place is its own. */
#include "plan/segments.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "ops/op_list.h"

/* Where the newest bytes of a value are. Nowhere: nothing has written it yet. */
enum { NOWHERE = 0, ON_HOST = 1, ON_DEVICE = 2 };

#define NOT_COPIED UINT32_MAX

typedef struct cutter {
    const sp_graph_plan *plan;
    sp_segments *out;
    uint8_t *places; /* of lifetimes, then inputs, then outputs */
    /* Lifetimes that the step at hand is in. */
    uint32_t *alive;
    uint32_t alive_count, next_lifetime;
    uint32_t copy_capacity;
} cutter;

/* ---- placement ---- */

uint32_t sp__segments_choose(const sp_graph_plan *plan, const sp_kernel *own, const char *cpu_ops,
                             bool *is_on_cpu)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        const sp_kernel *kernel = &(own != NULL ? own : plan->kernels)[step->kernel];
        is_on_cpu[s] = !sp__kernel_is_there(kernel) || sp__op_list_has(cpu_ops, step->op_name);
        if (is_on_cpu[s]) count++;
    }
    return count;
}

/* ---- values ---- */

static void begin_step(cutter *c, uint32_t s)
{
    const sp_graph_plan *plan = c->plan;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->alive_count; i++) {
        if (plan->lifetimes[c->alive[i]].last_step >= s) c->alive[kept++] = c->alive[i];
    }
    c->alive_count = kept;
    /* They stand in the order of their first steps. */
    for (; c->next_lifetime < plan->lifetime_count; c->next_lifetime++) {
        const sp_plan_lifetime *life = &plan->lifetimes[c->next_lifetime];
        if (life->first_step > s) break;
        if (life->bytes > 0) c->alive[c->alive_count++] = c->next_lifetime;
    }
}

/* The value that a binding of step `s` means. Two are alive in one place where a step writes its
 * result over an operand: it reads the old one and writes the new one. */
static uint32_t value_in_arena(const cutter *c, const sp_plan_binding *binding, uint32_t s)
{
    uint32_t found = NOT_COPIED;
    for (uint32_t i = 0; i < c->alive_count; i++) {
        const sp_plan_lifetime *life = &c->plan->lifetimes[c->alive[i]];
        if (life->offset != binding->offset || life->bytes < binding->bytes) continue;
        const bool is_new = life->first_step == s;
        if (is_new ? binding->is_write : found == NOT_COPIED) found = c->alive[i];
    }
    return found;
}

static uint32_t input_value(const cutter *c, uint32_t index)
{
    return c->plan->lifetime_count + index;
}

static uint32_t output_value(const cutter *c, uint32_t index)
{
    return c->plan->lifetime_count + c->plan->input_count + index;
}

/* NOT_COPIED: a weight, packed or not, a constant, nothing at all; or the arena, of a plan in one
 * segment. */
static sp_status value_of(const cutter *c, const sp_plan_binding *binding, uint32_t s,
                          uint32_t *value)
{
    *value = NOT_COPIED;
    if (binding->bytes == 0) return SP_OK;
    switch (binding->where) {
    case SP_PLACE_INPUT:
        *value = input_value(c, binding->index);
        break;
    case SP_PLACE_OUTPUT:
        *value = output_value(c, binding->index);
        break;
    case SP_PLACE_ARENA:
        if (c->out->count == 1) break;
        *value = value_in_arena(c, binding, s);
        if (*value != NOT_COPIED) break;
        return sp__fail(SP_INTERNAL,
                        "step %u touches arena bytes at %" PRIu64 " that hold no value", s,
                        binding->offset);
    case SP_PLACE_WEIGHT:
    case SP_PLACE_PACKED:
    case SP_PLACE_CONSTANT:
        break;
    }
    return SP_OK;
}

static sp_segment_copy copy_of(const cutter *c, uint32_t value)
{
    const sp_graph_plan *plan = c->plan;
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

static sp_status add_copy(cutter *c, uint32_t value)
{
    sp_segments *out = c->out;
    sp_segment_copy *grown =
        sp_grow(out->copies, out->copy_count, &c->copy_capacity, sizeof *grown);
    if (grown == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    out->copies = grown;
    out->copies[out->copy_count++] = copy_of(c, value);
    return SP_OK;
}

/* The newest bytes of the value, if it has any, will be at `place` when segment `g` begins. */
static sp_status need(cutter *c, uint32_t g, uint32_t value, uint8_t place)
{
    if (c->places[value] == NOWHERE || (c->places[value] & place) != 0) return SP_OK;
    SP_TRY(add_copy(c, value));
    c->places[value] |= place;
    if (place == ON_DEVICE) {
        c->out->list[g].copies_in++;
    } else {
        c->out->list[g - 1].copies_out++;
    }
    return SP_OK;
}

static sp_status walk_step(cutter *c, uint32_t g, uint32_t s)
{
    const sp_plan_step *step = &c->plan->steps[s];
    const uint8_t place = g % 2 == 0 ? ON_DEVICE : ON_HOST;
    uint32_t value;
    if (c->out->count > 1) begin_step(c, s);
    /* What a step writes it may leave in part as it was. */
    for (uint32_t i = 0; i < step->binding_count; i++) {
        SP_TRY(value_of(c, &step->bindings[i], s, &value));
        if (value != NOT_COPIED) SP_TRY(need(c, g, value, place));
    }
    for (uint32_t i = 0; i < step->binding_count; i++) {
        if (!step->bindings[i].is_write) continue;
        SP_TRY(value_of(c, &step->bindings[i], s, &value));
        if (value == NOT_COPIED) continue;
        c->places[value] = SP_PLANTED(stale_copy) ? (uint8_t)(c->places[value] | place) : place;
    }
    return SP_OK;
}

/* The copies of a segment are those that were asked for in it and in the next one: one stretch. */
static sp_status walk(cutter *c)
{
    sp_segments *out = c->out;
    for (uint32_t i = 0; i < c->plan->input_count; i++) c->places[input_value(c, i)] = ON_HOST;
    for (uint32_t g = 0; g < out->count; g++) {
        const sp_segment *segment = &out->list[g];
        for (uint32_t s = 0; s < segment->step_count; s++) {
            SP_TRY(walk_step(c, g, segment->first_step + s));
        }
    }
    /* The caller takes the outputs, as a cpu segment behind the last one would. */
    for (uint32_t i = 0; i < c->plan->output_count; i++) {
        SP_TRY(need(c, out->count, output_value(c, i), ON_HOST));
    }
    const sp_segment_copy *next = out->copies;
    for (uint32_t g = 0; g < out->count; g += 2) {
        out->list[g].copies = next;
        if (next != NULL) next += out->list[g].copies_in + out->list[g].copies_out;
    }
    return SP_OK;
}

/* ---- segments ---- */

static uint32_t count_segments(const sp_graph_plan *plan, const bool *is_on_cpu)
{
    uint32_t count = 1; /* the device's, perhaps without steps */
    bool was_on_cpu = false;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (is_on_cpu[s] != was_on_cpu) count++;
        was_on_cpu = is_on_cpu[s];
    }
    return was_on_cpu ? count + 1 : count;
}

static void fill_segments(const sp_graph_plan *plan, const bool *is_on_cpu, sp_segments *out)
{
    sp_segment *segment = out->list;
    bool was_on_cpu = false;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (is_on_cpu[s] != was_on_cpu) (++segment)->first_step = s;
        was_on_cpu = is_on_cpu[s];
        segment->step_count++;
        if (was_on_cpu) out->cpu_step_count++;
    }
    if (was_on_cpu) (++segment)->first_step = plan->step_count;
}

static sp_status cut(cutter *c, const bool *is_on_cpu)
{
    const sp_graph_plan *plan = c->plan;
    const size_t values = (size_t)plan->lifetime_count + plan->input_count + plan->output_count;
    c->out->count = count_segments(plan, is_on_cpu);
    c->out->list = sp_calloc(c->out->count, sizeof *c->out->list);
    c->places = sp_calloc(values, sizeof *c->places);
    c->alive = sp_calloc(plan->lifetime_count, sizeof *c->alive);
    if (c->out->list == NULL || c->places == NULL || c->alive == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    }
    fill_segments(plan, is_on_cpu, c->out);
    return walk(c);
}

sp_status sp__segments_cut(const sp_graph_plan *plan, const bool *is_on_cpu, sp_segments *out)
{
    *out = (sp_segments){0};
    cutter c = {.plan = plan, .out = out};
    const sp_status status = cut(&c, is_on_cpu);
    sp_free(c.places);
    sp_free(c.alive);
    if (status != SP_OK) sp__segments_free(out);
    return status;
}

void sp__segments_free(sp_segments *segments)
{
    sp_free(segments->list);
    sp_free(segments->copies);
    *segments = (sp_segments){0};
}

/* ---- figures ---- */

typedef struct cpu_steps {
    const sp_segments *segments;
    uint32_t segment, step; /* of the next one */
} cpu_steps;

/* The steps on the cpu in order; false past the end. */
static bool next_cpu_step(cpu_steps *it, uint32_t *step)
{
    for (; it->segment < it->segments->count; it->segment += 2, it->step = 0) {
        const sp_segment *segment = &it->segments->list[it->segment];
        if (it->step == segment->step_count) continue;
        *step = segment->first_step + it->step++;
        return true;
    }
    return false;
}

static uint32_t count_steps_of(const sp_segments *segments, const sp_graph_plan *plan,
                               const char *op, uint32_t *first)
{
    cpu_steps it = {.segments = segments, .segment = 1};
    uint32_t count = 0;
    for (uint32_t s; next_cpu_step(&it, &s);) {
        if (strcmp(plan->steps[s].op_name, op) != 0) continue;
        if (count++ == 0) *first = s;
    }
    return count;
}

bool sp__segments_cpu_op(const sp_segments *segments, const sp_graph_plan *plan, uint32_t index,
                         const char **name, uint32_t *step_count)
{
    cpu_steps it = {.segments = segments, .segment = 1};
    for (uint32_t s; next_cpu_step(&it, &s);) {
        uint32_t first = s;
        const uint32_t count = count_steps_of(segments, plan, plan->steps[s].op_name, &first);
        if (first != s || index-- > 0) continue;
        *name = plan->steps[s].op_name;
        *step_count = count;
        return true;
    }
    return false;
}
