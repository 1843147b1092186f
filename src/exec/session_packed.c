/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of a compiled plan, on each device that has steps of it. */
#include "base/error.h"
#include "base/heap.h"
#include "exec/session.h"

/* Which packings do the steps of the target's segments read? */
static void mark_needed(const sp_compiled *compiled, uint32_t target, bool *is_needed)
{
    const sp_graph_plan *plan = compiled->plan;
    for (uint32_t g = 0; g < compiled->segments.count; g++) {
        const sp_segment *segment = &compiled->segments.list[g];
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

static sp_status get_copies(sp_compiled *compiled, uint32_t t, sp_packed_weights *table,
                            bool may_wait)
{
    const uint32_t count = compiled->plan->packing_count;
    sp_target *target = &compiled->targets[t];
    bool *is_needed = sp_calloc(count, sizeof *is_needed);
    target->packed = sp_calloc(count, sizeof *target->packed);
    sp_status status = SP_OK;
    if (is_needed == NULL || target->packed == NULL) {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    } else {
        mark_needed(compiled, t, is_needed);
        const sp_packed_request request = {
            .plan = compiled->plan,
            .device = target->device,
            .is_needed = is_needed,
            .may_wait = may_wait,
        };
        status = sp__packed_weights_get(table, &request, target->packed);
    }
    sp_free(is_needed);
    return status;
}

/* For runs on the calling thread; NULL for what an op asks for and its steps do not read, of
 * tensors without elements. */
static sp_status find_host_pointers(sp_compiled *compiled)
{
    const uint32_t count = compiled->plan->packing_count;
    compiled->host_packed = sp_calloc(count, sizeof *compiled->host_packed);
    if (compiled->host_packed == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    for (uint32_t t = compiled->target_count; t-- > 0;) {
        for (uint32_t i = 0; i < count; i++) {
            const sp_memory *memory = &compiled->targets[t].packed[i];
            if (memory->device == NULL) continue;
            SP_TRY(sp__memory_host(memory, 0, &compiled->host_packed[i]));
        }
    }
    return SP_OK;
}

sp_status sp__compiled_pack(sp_compiled *compiled, sp_packed_weights *table, bool may_wait)
{
    if (compiled->plan->packing_count == 0) return SP_OK;
    for (uint32_t t = 0; t < compiled->target_count; t++) {
        SP_TRY(get_copies(compiled, t, table, may_wait));
    }
    return find_host_pointers(compiled);
}

void sp__compiled_unpack(sp_compiled *compiled)
{
    for (uint32_t t = 0; t < compiled->target_count; t++) sp_free(compiled->targets[t].packed);
    sp_free((void *)compiled->host_packed);
}
