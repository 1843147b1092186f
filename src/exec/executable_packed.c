/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of an executable, on each device that runs its steps. */
#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "exec/context.h"

#define ALL_TARGETS UINT32_MAX

/* Marks the packings that the steps of the target's segments read. */
static void mark_needed_packings(const sp_executable *executable, uint32_t target, bool *is_needed)
{
    const sp_graph_plan *plan = executable->plan;
    for (uint32_t g = 0; g < executable->segments.count; g++) {
        const sp_segment *segment = &executable->segments.list[g];
        if (segment->device != target && target != ALL_TARGETS) continue;
        for (uint32_t s = 0; s < segment->step_count; s++) {
            const sp_plan_step *step = &plan->steps[segment->first_step + s];
            for (uint32_t i = 0; i < step->binding_count; i++) {
                const sp_plan_binding *binding = &step->bindings[i];
                if (binding->where == SP_PLACE_PACKED) is_needed[binding->index] = true;
            }
        }
    }
}

/* `packed`: one for each packing; zero for those that the target does not need. */
static sp_status get_copies(const sp_executable *executable, uint32_t target, sp_rt_device *device,
                            bool may_wait, sp_memory *packed)
{
    bool *is_needed = sp_calloc(executable->plan->packing_count, sizeof *is_needed);
    if (is_needed == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    mark_needed_packings(executable, target, is_needed);
    const sp_packed_request request = {
        .plan = executable->plan,
        .device = device,
        .is_needed = is_needed,
        .may_wait = may_wait,
    };
    const sp_status status = sp__packed_weights_get(executable->packed_table, &request, packed);
    sp_free(is_needed);
    return status;
}

static sp_memory *copies_new(const sp_executable *executable)
{
    sp_memory *packed = sp_calloc(executable->plan->packing_count, sizeof *packed);
    if (packed == NULL) (void)sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    return packed;
}

static sp_status target_get_copies(sp_executable *executable, uint32_t t, bool may_wait)
{
    sp_target *target = &executable->targets[t];
    target->packed = copies_new(executable);
    if (target->packed == NULL) return SP_OUT_OF_MEMORY;
    return get_copies(executable, t, target->device, may_wait, target->packed);
}

/* ---- weights in the file's layout ---- */

/* Calls `change` for each binding to a weight in the file's layout, on any device: the host reads
 * all of them in runs on the calling thread. */
static void change_holds(const sp_executable *executable,
                         void (*change)(sp_weight_store *store, uint32_t weight))
{
    const sp_graph_plan *plan = executable->plan;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        for (uint32_t i = 0; i < plan->steps[s].binding_count; i++) {
            const sp_plan_binding *binding = &plan->steps[s].bindings[i];
            if (binding->where != SP_PLACE_WEIGHT) continue;
            change(&executable->packed_table->store, binding->index);
        }
    }
}

sp_status sp__executable_pack(sp_executable *executable, sp_packed_weights *table, bool may_wait)
{
    executable->packed_table = table;
    executable->holds_weights = !SP_PLANTED(unheld_weights);
    if (executable->holds_weights) change_holds(executable, sp__weight_hold);
    if (executable->plan->packing_count == 0) return SP_OK;
    for (uint32_t t = 0; t < executable->target_count; t++) {
        SP_TRY(target_get_copies(executable, t, may_wait));
    }
    return SP_OK;
}

/* ---- runs on the calling thread ---- */

/* NULL for packings that no step reads, which tensors without elements have. */
static sp_status find_host_pointers(sp_executable *executable, const sp_memory *packed)
{
    const uint32_t count = executable->plan->packing_count;
    void **pointers = sp_calloc(count, sizeof *pointers);
    if (pointers == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    for (uint32_t i = 0; i < count; i++) pointers[i] = packed[i].host;
    executable->host_packed = pointers;
    return SP_OK;
}

/* The fallback's copies are for the fallback's steps only. */
static sp_status host_pack(void *arg)
{
    sp_executable *executable = arg;
    sp_rt_device *cpu;
    SP_TRY(sp__rt_device_find((sp_device){0}, &cpu));
    sp_memory *packed = copies_new(executable);
    if (packed == NULL) return SP_OUT_OF_MEMORY;
    sp_status status = get_copies(executable, ALL_TARGETS, cpu, false, packed);
    if (status == SP_OK) status = find_host_pointers(executable, packed);
    sp_free(packed);
    return status;
}

sp_status sp__executable_host_packed(sp_executable *executable, void *const **out)
{
    if (executable->plan->packing_count > 0) {
        SP_TRY(sp_once_run(&executable->host_packing, host_pack, executable));
    }
    *out = executable->host_packed;
    return SP_OK;
}

void sp__executable_unpack(sp_executable *executable)
{
    if (executable->holds_weights) change_holds(executable, sp__weight_drop);
    for (uint32_t t = 0; t < executable->target_count; t++) sp_free(executable->targets[t].packed);
    sp_free((void *)executable->host_packed);
}
