/* SPDX-License-Identifier: Apache-2.0 */
/* Packings: the weights that the steps of a plan read in their kernels' layout, each once. */
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "plan/plan_build.h"

_Static_assert(sizeof(sp_pack_constants) == 7 * sizeof(int64_t),
               "constants of packings have no padding: it has any bits");

bool sp__packing_equal(const sp_packing *a, const sp_packing *b)
{
    return a->weight == b->weight && a->kernel == b->kernel && a->bytes == b->bytes &&
           a->constant_bytes == b->constant_bytes &&
           memcmp(a->constants, b->constants, a->constant_bytes) == 0;
}

sp_status sp__packing_run(const sp_graph *graph, const sp_packing *packing,
                          const sp_kernel *kernels, void *out)
{
    void *const bindings[2] = {graph->weights[packing->weight].data, out};
    return sp__kernel_run(&kernels[packing->kernel], bindings, packing->constants);
}

/* ---- packings of steps ---- */

static sp_status add_packing(sp_plan_builder *builder, sp_plan_value *value, sp_packing what,
                             uint32_t *index)
{
    sp_plan_packing *packings = sp_grow(builder->packings, builder->packing_count,
                                        &builder->packing_capacity, sizeof *packings);
    if (packings == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    builder->packings = packings;
    void *constants;
    SP_TRY(sp__bump_array(&builder->plan->bump, what.constant_bytes, 1, &constants));
    if (what.constant_bytes > 0) memcpy(constants, what.constants, what.constant_bytes);
    what.constants = constants;
    *index = builder->packing_count++;
    packings[*index] = (sp_plan_packing){.what = what, .next = value->packing};
    value->packing = *index;
    return SP_OK;
}

sp_status sp__plan_pack(sp_plan_builder *builder, uint32_t which, const sp_packing *what,
                        sp_plan_binding *out)
{
    sp_plan_value *value = &builder->values[which];
    sp_packing packing = *what;
    packing.weight = value->index;
    *out = (sp_plan_binding){.where = SP_PLACE_PACKED, .bytes = what->bytes};
    for (uint32_t i = value->packing; i != SP_NO_PACKING; i = builder->packings[i].next) {
        if (!sp__packing_equal(&builder->packings[i].what, &packing)) continue;
        out->index = i;
        return SP_OK;
    }
    return add_packing(builder, value, packing, &out->index);
}

sp_status sp__plan_pack_matrix(sp_plan_builder *builder, uint32_t value, const sp_pack *pack,
                               sp_plan_binding *out)
{
    const sp_packing what = {.kernel = sp__pack_kernel(pack->format),
                             .constant_bytes = sizeof pack->matrix,
                             .constants = &pack->matrix,
                             .bytes = sp__pack_copy_bytes(pack)};
    return sp__plan_pack(builder, value, &what, out);
}

sp_status sp__plan_pack_inputs(sp_plan_builder *builder, const sp_graph_node *node,
                               const sp_op_call *call, sp_op_value *inputs)
{
    for (uint32_t i = 1; i <= SP_OP_PACKED_INPUTS && i < node->input_count; i++) {
        if (node->inputs[i] == SP_NO_VALUE) continue;
        const sp_plan_value *value = &builder->values[node->inputs[i]];
        const bool is_weight = builder->plan->graph->values[node->inputs[i]].is_constant;
        if (!is_weight || value->is_tainted) continue;
        const sp_pack pack = sp__op_pack(call, i);
        if (pack.format == SP_PACK_NONE) continue;
        sp_plan_binding packed;
        SP_TRY(sp__plan_pack_matrix(builder, node->inputs[i], &pack, &packed));
        builder->packed[i - 1] = packed.index;
        inputs[i].is_packed = true;
    }
    return SP_OK;
}

/* ---- the finished plan ---- */

sp_status sp__plan_finish_packings(sp_plan_builder *builder)
{
    sp_graph_plan *plan = builder->plan;
    sp_packing *packings;
    SP_TRY(sp__bump_array(&plan->bump, builder->packing_count, sizeof *packings, &packings));
    for (uint32_t i = 0; i < builder->packing_count; i++) packings[i] = builder->packings[i].what;
    plan->packings = packings;
    plan->packing_count = builder->packing_count;
    return SP_OK;
}
