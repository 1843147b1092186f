/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of a compiled plan, on each device that has steps of it. */
#include "base/error.h"
#include "base/heap.h"
#include "exec/session.h"

/* Which packings do the steps of every other segment read, from `first` on? */
static void mark_needed(const sp_compiled *compiled, uint32_t first, bool *is_needed)
{
    const sp_graph_plan *plan = compiled->plan;
    for (uint32_t g = first; g < compiled->segments.count; g += 2) {
        const sp_segment *segment = &compiled->segments.list[g];
        for (uint32_t s = 0; s < segment->step_count; s++) {
            const sp_plan_step *step = &plan->steps[segment->first_step + s];
            for (uint32_t i = 0; i < step->binding_count; i++) {
                const sp_plan_binding *binding = &step->bindings[i];
                if (binding->where == SP_PLACE_PACKED) is_needed[binding->index] = true;
            }
        }
    }
}

/* The copies on one device; `first` is 0 for the model's device, 1 for cpu beside it. */
static sp_status get_copies(const sp_compiled *compiled, uint32_t first, sp_packed_weights *table,
                            bool may_wait, sp_memory **out)
{
    const uint32_t count = compiled->plan->packing_count;
    bool *is_needed = sp_calloc(count, sizeof *is_needed);
    *out = sp_calloc(count, sizeof **out);
    sp_status status = SP_OK;
    if (is_needed == NULL || *out == NULL) {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    } else {
        mark_needed(compiled, first, is_needed);
        const sp_packed_request request = {
            .plan = compiled->plan,
            .device = first == 0 ? compiled->device : compiled->cpu,
            .is_needed = is_needed,
            .may_wait = may_wait,
        };
        status = sp__packed_weights_get(table, &request, *out);
    }
    sp_free(is_needed);
    return status;
}

sp_status sp__compiled_pack(sp_compiled *compiled, sp_packed_weights *table, bool may_wait)
{
    const uint32_t count = compiled->plan->packing_count;
    if (count == 0) return SP_OK;
    SP_TRY(get_copies(compiled, 0, table, may_wait, &compiled->packed));
    if (compiled->cpu != NULL) {
        SP_TRY(get_copies(compiled, 1, table, may_wait, &compiled->cpu_packed));
    }
    compiled->host_packed = sp_calloc(count, sizeof *compiled->host_packed);
    if (compiled->host_packed == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    /* What an op asks for and its steps do not read, of tensors without elements, is on neither. */
    for (uint32_t i = 0; i < count; i++) {
        const bool is_on_cpu = compiled->packed[i].device == NULL && compiled->cpu_packed != NULL;
        compiled->host_packed[i] = (is_on_cpu ? compiled->cpu_packed : compiled->packed)[i].host;
    }
    return SP_OK;
}

void sp__compiled_unpack(sp_compiled *compiled)
{
    sp_free(compiled->packed);
    sp_free(compiled->cpu_packed);
    sp_free((void *)compiled->host_packed);
}
