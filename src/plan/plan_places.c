/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of compiling: assigns memory. Outputs are written to the caller's memory, all
 * others to the arena. */
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "plan/plan_build.h"

/* ---- outputs ---- */

/* An output is the memory of its value if a step computes the value and it is not another output
 * already; otherwise the output is a copy. */
static sp_status place_output(sp_plan_builder *builder, uint32_t output)
{
    const sp_graph *graph = builder->plan->graph;
    const char *name = graph->values[builder->outputs[output]].name;
    const sp_plan_value *value = &builder->values[builder->outputs[output]];
    sp_plan_value *root = &builder->values[value->root];
    const sp_dtype declared =
        builder->plan->is_subgraph ? SP_DTYPE_NONE : graph->outputs[output].dtype;
    if (declared != SP_DTYPE_NONE && declared != value->dtype) {
        return sp__fail(SP_MISMATCH, "output '%s' is of type %s; the file declares %s", name,
                        sp_dtype_name(value->dtype), sp_dtype_name(declared));
    }
    if (root->is_computed && root->output == SP_NO_OUTPUT) {
        root->output = output;
        return SP_OK;
    }
    const sp_flat_constants k = {.count = (int64_t)value->bytes};
    const sp_plan_binding bindings[2] = {
        {.where = SP_PLACE_ARENA, .index = value->root, .bytes = value->bytes},
        {.where = SP_PLACE_OUTPUT, .index = output, .bytes = value->bytes, .is_write = true}};
    const sp_plan_step step = {.kernel = SP_KERNEL_ID_copy_bytes,
                               .binding_count = 2,
                               .bindings = bindings,
                               .constants = &k,
                               .constant_bytes = sizeof(k),
                               .node_name = name,
                               .op_name = "output"};
    return sp__plan_add_step(builder, &step);
}

/* ---- the finished plan ---- */

static void resolve_binding(const sp_plan_builder *builder, sp_plan_binding *binding)
{
    if (binding->where != SP_PLACE_ARENA) return;
    const sp_plan_home home = sp__plan_home(builder, binding->index);
    const sp_plan_value *root = &builder->values[home.root];
    if (!root->is_computed) {
        binding->where = root->where;
        binding->index = root->index;
    } else if (root->output != SP_NO_OUTPUT) {
        binding->where = SP_PLACE_OUTPUT;
        binding->index = root->output;
    } else {
        binding->offset = root->offset + home.offset;
        binding->index = 0;
    }
}

static sp_status finish_steps(sp_plan_builder *builder)
{
    sp_graph_plan *plan = builder->plan;
    sp_plan_step *steps;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        sp_plan_binding *bindings = sp__plan_bindings(&builder->steps[s]);
        for (uint32_t i = 0; i < builder->steps[s].binding_count; i++) {
            resolve_binding(builder, &bindings[i]);
        }
    }
    SP_TRY(sp__bump_array(&plan->bump, plan->step_count, sizeof(*steps), &steps));
    if (plan->step_count > 0) memcpy(steps, builder->steps, plan->step_count * sizeof(*steps));
    plan->steps = steps;
    return SP_OK;
}

static void set_tensor(const sp_plan_builder *builder, uint32_t index, sp_plan_tensor *out)
{
    const sp_plan_value *value = &builder->values[index];
    *out = (sp_plan_tensor){.name = builder->plan->graph->values[index].name,
                            .value = index,
                            .dtype = value->dtype,
                            .shape = value->shape};
    /* Succeeds, as before. */
    (void)sp__shape_bytes(&value->shape, value->dtype, &out->bytes);
    out->is_known = value->data != NULL && out->bytes <= SP_SHAPE_INPUT_BYTES;
}

static sp_status finish_tensors(sp_plan_builder *builder)
{
    sp_graph_plan *plan = builder->plan;
    const sp_graph *graph = plan->graph;
    const sp_plan_request *request = builder->request;
    sp_plan_tensor *inputs, *outputs;
    plan->input_count = request->input_count + request->override_count;
    plan->output_count = builder->output_count;
    SP_TRY(sp__bump_array(&plan->bump, plan->input_count, sizeof(*inputs), &inputs));
    SP_TRY(sp__bump_array(&plan->bump, plan->output_count, sizeof(*outputs), &outputs));
    plan->inputs = inputs;
    plan->outputs = outputs;
    for (uint32_t i = 0; i < request->input_count; i++) {
        const sp_plan_subgraph *subgraph = request->subgraph;
        set_tensor(builder, subgraph != NULL ? subgraph->given[i] : graph->inputs[i].value,
                   inputs++);
    }
    for (uint32_t i = 0; i < request->override_count; i++) {
        set_tensor(builder, graph->defaults[request->overrides[i].index].value, inputs++);
    }
    for (uint32_t i = 0; i < builder->output_count; i++) {
        set_tensor(builder, builder->outputs[i], outputs++);
    }
    return SP_OK;
}

sp_status sp__plan_place(sp_plan_builder *builder)
{
    for (uint32_t i = 0; i < builder->output_count; i++) {
        SP_TRY(place_output(builder, i));
    }
    const sp_plan_request *request = builder->request;
    if (request->is_strided && !request->is_unfused) SP_TRY(sp__plan_join(builder));
    SP_TRY(sp__plan_lay_out(builder));
    SP_TRY(finish_steps(builder));
    return finish_tensors(builder);
}
