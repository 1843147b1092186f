/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of an executable, on each device that runs its steps. */
#include "base/error.h"
#include "base/heap.h"
#include "exec/context.h"

/* Marks the packings that the steps of the target's segments read. */
static void mark_needed_packings(const sp_executable *executable, uint32_t target, bool *is_needed)
{
    const sp_graph_plan *plan = executable->plan;
    for (uint32_t g = 0; g < executable->segments.count; g++) {
        const sp_segment *segment = &executable->segments.list[g];
        if (segment->device != target) continue;
        for (uint32_t s = 0; s < segment->step_count; s++) {
            const sp_plan_step *step = &plan->steps[segment->first_step + s];
            for (uint32_t i = 0; i < step->binding_count; i++) {
                const sp_plan_binding *binding = &step->bindings[i];
                if (binding->where == SP_PLACE_PACKED) is_needed[binding->index] = true;
            }
        }
    }
}

static sp_status target_get_copies(sp_executable *executable, uint32_t t, sp_packed_weights *table,
                                   bool may_wait)
{
    const uint32_t count = executable->plan->packing_count;
    sp_target *target = &executable->targets[t];
    bool *is_needed = sp_calloc(count, sizeof *is_needed);
    target->packed = sp_calloc(count, sizeof *target->packed);
    sp_status status = SP_OK;
    if (is_needed == NULL || target->packed == NULL) {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    } else {
        mark_needed_packings(executable, t, is_needed);
        const sp_packed_request request = {
            .plan = executable->plan,
            .device = target->device,
            .is_needed = is_needed,
            .may_wait = may_wait,
        };
        status = sp__packed_weights_get(table, &request, target->packed);
    }
    sp_free(is_needed);
    return status;
}

/* For runs on the calling thread; NULL for packings that no step reads, which tensors without
 * elements have. */
static sp_status find_host_pointers(sp_executable *executable)
{
    const uint32_t count = executable->plan->packing_count;
    executable->host_packed = sp_calloc(count, sizeof *executable->host_packed);
    if (executable->host_packed == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    for (uint32_t t = executable->target_count; t-- > 0;) {
        for (uint32_t i = 0; i < count; i++) {
            const sp_memory *memory = &executable->targets[t].packed[i];
            if (memory->device == NULL) continue;
            SP_TRY(sp__memory_host(memory, 0, &executable->host_packed[i]));
        }
    }
    return SP_OK;
}

sp_status sp__executable_pack(sp_executable *executable, sp_packed_weights *table, bool may_wait)
{
    if (executable->plan->packing_count == 0) return SP_OK;
    for (uint32_t t = 0; t < executable->target_count; t++) {
        SP_TRY(target_get_copies(executable, t, table, may_wait));
    }
    return find_host_pointers(executable);
}

void sp__executable_unpack(sp_executable *executable)
{
    for (uint32_t t = 0; t < executable->target_count; t++) sp_free(executable->targets[t].packed);
    sp_free((void *)executable->host_packed);
}
