/* SPDX-License-Identifier: Apache-2.0 */
/* Reference execution of a plan, and the check of its invariants. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/size.h"
#include "ops/lowering.h"
#include "plan/plan.h"

/* The memory of one run. */
typedef struct run_places {
    const void *const *inputs;
    void *const *outputs;
    void *const *packed;
    void *arena;
    const sp_atomic_u32 *cancel; /* or NULL */
    uint64_t *step_ns;           /* by step; NULL: not timed */
} run_places;

/* The address of a binding. Kernels get inputs and outputs in one array of pointers. */
static void *binding_address(const sp_graph_plan *plan, const sp_plan_binding *binding,
                             const run_places *run)
{
    switch (binding->where) {
    case SP_PLACE_INPUT:
        return (void *)(uintptr_t)run->inputs[binding->index];
    case SP_PLACE_OUTPUT:
        return run->outputs[binding->index];
    case SP_PLACE_WEIGHT:
        return plan->graph->weights[binding->index].data;
    case SP_PLACE_PACKED:
        return run->packed[binding->index];
    case SP_PLACE_CONSTANT:
        return plan->constants[binding->index].data;
    case SP_PLACE_ARENA:
        return run->arena == NULL ? NULL : (char *)run->arena + binding->offset;
    }
    return NULL;
}

static sp_status step_run(const sp_graph_plan *plan, const sp_plan_step *step,
                          const run_places *run)
{
    void *bindings[SP_MAX_BINDINGS];
    for (uint32_t i = 0; i < step->binding_count; i++) {
        bindings[i] = binding_address(plan, &step->bindings[i], run);
    }
    const sp_status status =
        sp__kernel_run(&plan->kernels[step->kernel], bindings, step->constants);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "node '%s' (%s): ", step->node_name, step->op_name);
}

static sp_status steps_run(const sp_graph_plan *plan, const run_places *run)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (run->cancel != NULL && sp_load_relaxed(run->cancel) != 0) return sp__fail_cancelled();
        SP_TRY(step_run(plan, &plan->steps[s], run));
    }
    return SP_OK;
}

/* One reading of the clock a step: a step ends where the next one begins. */
static sp_status steps_time(const sp_graph_plan *plan, const run_places *run)
{
    uint64_t before = sp_clock_now();
    for (uint32_t s = 0; s < plan->step_count; s++) {
        SP_TRY(step_run(plan, &plan->steps[s], run));
        const uint64_t after = sp_clock_now();
        run->step_ns[s] = after - before;
        before = after;
    }
    return SP_OK;
}

static sp_status places_run(const sp_graph_plan *plan, const run_places *run)
{
    if (run->arena == NULL && plan->arena_bytes > 0) {
        return sp__fail(SP_INVALID, "the plan needs an arena of %" PRIu64 " bytes",
                        plan->arena_bytes);
    }
    const sp_fpenv before = sp_fpenv_enter();
    const sp_status status = run->step_ns != NULL ? steps_time(plan, run) : steps_run(plan, run);
    sp_fpenv_leave(before);
    return status;
}

sp_status sp__plan_run_packed(const sp_graph_plan *plan, const void *const *inputs,
                              void *const *outputs, void *arena, void *const *packed,
                              const sp_atomic_u32 *cancel)
{
    return places_run(plan, &(run_places){.inputs = inputs,
                                          .outputs = outputs,
                                          .packed = packed,
                                          .arena = arena,
                                          .cancel = cancel});
}

sp_status sp__plan_run_timed(const sp_graph_plan *plan, const void *const *inputs,
                             void *const *outputs, void *arena, void *const *packed,
                             uint64_t *step_ns)
{
    return places_run(plan, &(run_places){.inputs = inputs,
                                          .outputs = outputs,
                                          .packed = packed,
                                          .arena = arena,
                                          .step_ns = step_ns});
}

/* `packed` is zeroed by the caller, which frees its pointers, also on an error. */
static sp_status weights_pack(const sp_graph_plan *plan, void **packed)
{
    sp_status status = SP_OK;
    const sp_fpenv before = sp_fpenv_enter();
    for (uint32_t i = 0; i < plan->packing_count && status == SP_OK; i++) {
        const sp_packing *packing = &plan->packings[i];
        packed[i] = sp_aligned_malloc(SP_ARRAY_ALIGNMENT, (size_t)packing->bytes);
        status = packed[i] != NULL ? sp__packing_run(plan->graph, packing, plan->kernels, packed[i])
                                   : sp__fail(SP_OUT_OF_MEMORY, "no memory to pack a weight");
    }
    sp_fpenv_leave(before);
    return status;
}

sp_status sp__plan_run_reference(const sp_graph_plan *plan, const void *const *inputs,
                                 void *const *outputs, void *arena)
{
    void **packed = sp_calloc(plan->packing_count, sizeof *packed);
    if (packed == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to run a plan");
    sp_status status = weights_pack(plan, packed);
    if (status == SP_OK) status = sp__plan_run_packed(plan, inputs, outputs, arena, packed, NULL);
    for (uint32_t i = 0; i < plan->packing_count; i++) sp_free(packed[i]);
    sp_free((void *)packed);
    return status;
}

/* ---- the check ---- */

/* 0 for weights that are only read packed: devices with their own memory have no copy of these. */
static uint64_t weight_bytes(const sp_graph *graph, uint32_t index)
{
    const bool is_there = index < graph->weight_count && !graph->weights[index].is_only_packed;
    return is_there ? graph->weights[index].bytes : 0;
}

static uint64_t binding_memory_bytes(const sp_graph_plan *plan, const sp_plan_binding *binding)
{
    switch (binding->where) {
    case SP_PLACE_INPUT:
        return binding->index < plan->input_count ? plan->inputs[binding->index].bytes : 0;
    case SP_PLACE_OUTPUT:
        return binding->index < plan->output_count ? plan->outputs[binding->index].bytes : 0;
    case SP_PLACE_WEIGHT:
        return weight_bytes(plan->graph, binding->index);
    case SP_PLACE_PACKED:
        return binding->index < plan->packing_count ? plan->packings[binding->index].bytes : 0;
    case SP_PLACE_CONSTANT:
        return binding->index < plan->constant_count ? plan->constants[binding->index].bytes : 0;
    case SP_PLACE_ARENA:
        return plan->arena_bytes;
    }
    return 0;
}

/* Does the step read packed weights in the format that its kernel knows? Lists have none. */
static bool has_format(const sp_graph_plan *plan, const sp_plan_step *step,
                       const sp_plan_binding *binding)
{
    if (binding->where != SP_PLACE_PACKED) return true;
    const sp_pack_format format = sp__pack_format_of(plan->packings[binding->index].kernel);
    return format == SP_PACK_NONE || format == sp__pack_format_of(step->kernel);
}

static sp_status check_step(const sp_graph_plan *plan, uint32_t s, bool *is_written)
{
    const sp_plan_step *step = &plan->steps[s];
    for (uint32_t i = 0; i < step->binding_count; i++) {
        const sp_plan_binding *binding = &step->bindings[i];
        const bool may_write =
            binding->where == SP_PLACE_OUTPUT || binding->where == SP_PLACE_ARENA;
        if (!sp_size_in_range(binding->offset, binding->bytes,
                              binding_memory_bytes(plan, binding)) ||
            binding->offset % 64 != 0 || (binding->is_write && !may_write)) {
            return sp__fail(SP_INTERNAL,
                            "step %" PRIu32 ": binding %" PRIu32
                            " is out of bounds, misaligned or not writable",
                            s, i);
        }
        if (!has_format(plan, step, binding)) {
            return sp__fail(SP_INTERNAL,
                            "step %" PRIu32 ": binding %" PRIu32
                            " is a weight in a format that its kernel does not read",
                            s, i);
        }
        if (binding->where != SP_PLACE_OUTPUT) continue;
        const bool reads = !binding->is_write && binding->bytes > 0;
        if (reads && !is_written[binding->index]) {
            return sp__fail(SP_INTERNAL,
                            "step %" PRIu32 " reads output %" PRIu32 " before it is written", s,
                            binding->index);
        }
    }
    for (uint32_t i = 0; i < step->binding_count; i++) {
        if (step->bindings[i].where == SP_PLACE_OUTPUT && step->bindings[i].is_write) {
            is_written[step->bindings[i].index] = true;
        }
    }
    return SP_OK;
}

/* A value may begin in the step in which another ends, on the same bytes: it reuses them. */
static bool lifetimes_collide(const sp_plan_lifetime *a, const sp_plan_lifetime *b)
{
    const bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    const bool in_time = a->first_step <= b->last_step && b->first_step <= a->last_step;
    const bool is_same = a->offset == b->offset && a->bytes == b->bytes;
    const bool is_reuse =
        is_same && (a->last_step == b->first_step || b->last_step == a->first_step);
    return in_space && in_time && !is_reuse;
}

/* Has an earlier step of the lifetime written each byte that step `s` reads? */
static bool has_bytes(const sp_graph_plan *plan, const sp_plan_lifetime *life, uint32_t s,
                      const sp_plan_binding *read)
{
    uint64_t at = read->offset;
    bool is_further = true;
    while (is_further && at < read->offset + read->bytes) {
        is_further = false;
        for (uint32_t w = life->first_step; w < s; w++) {
            for (uint32_t i = 0; i < plan->steps[w].binding_count; i++) {
                const sp_plan_binding *write = &plan->steps[w].bindings[i];
                const uint64_t end = write->offset + write->bytes;
                if (write->where != SP_PLACE_ARENA || !write->is_write) continue;
                if (write->offset > at || end <= at) continue;
                at = end;
                is_further = true;
            }
        }
    }
    return is_further;
}

/* Every arena access of a step must be to a value that is live in that step, or to a part of it. */
static sp_status check_live(const sp_graph_plan *plan, uint32_t s, const sp_plan_binding *binding)
{
    if (binding->where != SP_PLACE_ARENA || binding->bytes == 0) return SP_OK;
    for (uint32_t i = 0; i < plan->lifetime_count; i++) {
        const sp_plan_lifetime *life = &plan->lifetimes[i];
        if (s < life->first_step || s > life->last_step || binding->offset < life->offset) continue;
        if (!sp_size_in_range(binding->offset - life->offset, binding->bytes, life->bytes)) {
            continue;
        }
        if (binding->is_write || has_bytes(plan, life, s, binding)) return SP_OK;
    }
    return sp__fail(SP_INTERNAL,
                    "step %" PRIu32 " accesses arena bytes at %" PRIu64 " that hold no live value",
                    s, binding->offset);
}

/* Do both have bytes in common, but not all of both? */
static bool is_part(const sp_plan_binding *a, const sp_plan_binding *b)
{
    const uint64_t first = a->offset > b->offset ? a->offset : b->offset;
    const uint64_t a_end = a->offset + a->bytes, b_end = b->offset + b->bytes;
    const bool is_same = a->offset == b->offset && a->bytes == b->bytes;
    return first < a_end && first < b_end && !is_same;
}

/* A step may write over what it reads, but over no part of it, and not over more than it. Joins
 * name the whole for those of its parts that they copy. */
static sp_status check_apart(const sp_graph_plan *plan, uint32_t s)
{
    const sp_plan_step *step = &plan->steps[s];
    if (step->kernel == SP_KERNEL_ID_concat || step->kernel == SP_KERNEL_ID_split) return SP_OK;
    for (uint32_t w = 0; w < step->binding_count; w++) {
        const sp_plan_binding *write = &step->bindings[w];
        if (write->where != SP_PLACE_ARENA || !write->is_write) continue;
        for (uint32_t r = 0; r < step->binding_count; r++) {
            const sp_plan_binding *read = &step->bindings[r];
            if (read->where != SP_PLACE_ARENA || read->is_write) continue;
            if (!is_part(read, write)) continue;
            return sp__fail(SP_INTERNAL,
                            "step %" PRIu32 " writes over a part of what it reads, at %" PRIu64, s,
                            read->offset);
        }
    }
    return SP_OK;
}

static sp_status check_arena(const sp_graph_plan *plan)
{
    for (uint32_t i = 0; i < plan->lifetime_count; i++) {
        for (uint32_t k = i + 1; k < plan->lifetime_count; k++) {
            if (!lifetimes_collide(&plan->lifetimes[i], &plan->lifetimes[k])) continue;
            return sp__fail(SP_INTERNAL, "values %" PRIu32 " and %" PRIu32 " overlap in the arena",
                            i, k);
        }
    }
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        SP_TRY(check_apart(plan, s));
        for (uint32_t i = 0; i < step->binding_count; i++) {
            SP_TRY(check_live(plan, s, &step->bindings[i]));
        }
    }
    return SP_OK;
}

sp_status sp__plan_check(const sp_graph_plan *plan)
{
    bool *is_written = sp_calloc(plan->output_count, sizeof(*is_written));
    if (is_written == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to check a plan");
    sp_status status = SP_OK;
    for (uint32_t s = 0; s < plan->step_count && status == SP_OK; s++) {
        status = check_step(plan, s, is_written);
    }
    for (uint32_t i = 0; i < plan->output_count && status == SP_OK; i++) {
        if (!is_written[i] && plan->outputs[i].bytes > 0) {
            status = sp__fail(SP_INTERNAL, "no step writes output '%s'", plan->outputs[i].name);
        }
    }
    sp_free(is_written);
    return status == SP_OK ? check_arena(plan) : status;
}
