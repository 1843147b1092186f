/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of compiling: assigns memory. Outputs are written to the caller's memory, values
 * over their dead inputs if the op allows it, all others to the arena by lifetime. */
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "plan/arena_layout.h"
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
    const sp_flat_constants k = {.count = (int64_t)value->bytes, .tile_count = 1 << 20};
    const sp_plan_binding bindings[2] = {
        {.where = SP_PLACE_ARENA, .index = value->root, .bytes = value->bytes},
        {.where = SP_PLACE_OUTPUT, .index = output, .bytes = value->bytes, .is_write = true}};
    const sp_plan_step step = {
        .kernel = SP_KERNEL_ID_copy_bytes,
        .grid = {(uint32_t)sp__lower_tiles(value->bytes, (uint64_t)k.tile_count), 1, 1},
        .binding_count = 2,
        .bindings = bindings,
        .constants = &k,
        .constant_bytes = sizeof(k),
        .node_name = name,
        .op_name = "output"};
    return sp__plan_add_step(builder, &step);
}

/* ---- lifetimes ---- */

/* The recorded bindings are in the plan's memory; the builder may still write them. */
static sp_plan_binding *step_bindings(const sp_plan_step *step)
{
    return (sp_plan_binding *)(uintptr_t)step->bindings;
}

static bool is_in_arena(const sp_plan_value *root)
{
    return root->is_computed && root->output == SP_NO_OUTPUT;
}

/* The value of a binding if it is placed in the arena, else NULL. */
static sp_plan_value *arena_value(const sp_plan_builder *builder, const sp_plan_binding *binding)
{
    if (binding->where != SP_PLACE_ARENA) return NULL;
    sp_plan_value *root = &builder->values[binding->index];
    return is_in_arena(root) ? root : NULL;
}

static void find_lifetimes(sp_plan_builder *builder)
{
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        const sp_plan_step *step = &builder->steps[s];
        for (uint32_t i = 0; i < step->binding_count; i++) {
            if (step->bindings[i].where != SP_PLACE_ARENA) continue;
            sp_plan_value *root = &builder->values[step->bindings[i].index];
            if (root->first_step == SP_NO_STEP) root->first_step = s;
            /* Planted: the second reader of a value does not keep it alive. */
            const bool is_forgotten =
                SP_PLANTED(overlapping_arena) && root->last_step > root->first_step;
            if (!is_forgotten) root->last_step = s;
        }
    }
}

/* `value`, which step `s` writes first, takes over the memory of its input if that is dead after
 * `s`. The memory is then released once, with its new owner. */
static bool value_reuse_input(sp_plan_builder *builder, sp_plan_value *value, uint32_t s)
{
    if (value->in_place == SP_NO_VALUE) return false;
    sp_plan_value *old = &builder->values[value->in_place];
    if (!is_in_arena(old) || !old->is_laid_out || old->last_step != s) return false;
    if (old->bytes != value->bytes || old == value) return false;
    value->offset = old->offset;
    value->is_laid_out = true;
    old->bytes = 0; /* released with its new owner */
    return true;
}

/* First all values of the step get memory, then those that end here release it: what a step reads
 * and what it writes never overlap, unless the memory was taken over. */
static sp_status step_lay_out(sp_plan_builder *builder, sp_arena_layout *layout, uint32_t s,
                              sp_plan_lifetime *lifetimes)
{
    sp_graph_plan *plan = builder->plan;
    const sp_plan_step *step = &builder->steps[s];
    for (uint32_t i = 0; i < step->binding_count; i++) {
        sp_plan_value *value = arena_value(builder, &step->bindings[i]);
        if (value == NULL || value->is_laid_out) continue;
        const uint64_t bytes = value->bytes;
        if (!value_reuse_input(builder, value, s)) {
            SP_TRY(sp__arena_layout_acquire(layout, bytes, &value->offset));
            value->is_laid_out = true;
        }
        lifetimes[plan->lifetime_count++] = (sp_plan_lifetime){.offset = value->offset,
                                                               .bytes = bytes,
                                                               .first_step = value->first_step,
                                                               .last_step = value->last_step};
    }
    for (uint32_t i = 0; i < step->binding_count; i++) {
        sp_plan_value *value = arena_value(builder, &step->bindings[i]);
        if (value == NULL || value->last_step != s || value->bytes == 0) continue;
        SP_TRY(sp__arena_layout_release(layout, value->offset, value->bytes));
        value->bytes = 0; /* a value may be in two bindings */
    }
    return SP_OK;
}

static uint32_t count_arena_values(const sp_plan_builder *builder)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < builder->value_count; i++) {
        const sp_plan_value *value = &builder->values[i];
        if (value->root == i && is_in_arena(value) && value->first_step != SP_NO_STEP) count++;
    }
    return count;
}

static sp_status arena_lay_out(sp_plan_builder *builder)
{
    sp_graph_plan *plan = builder->plan;
    sp_plan_lifetime *lifetimes;
    SP_TRY(
        sp__bump_array(&plan->bump, count_arena_values(builder), sizeof(*lifetimes), &lifetimes));
    plan->lifetimes = lifetimes;
    sp_arena_layout layout = {0};
    sp_status status = SP_OK;
    for (uint32_t s = 0; s < plan->step_count && status == SP_OK; s++) {
        status = step_lay_out(builder, &layout, s, lifetimes);
    }
    plan->arena_bytes = layout.bytes;
    sp__arena_layout_deinit(&layout);
    return status;
}

/* ---- the finished plan ---- */

static void resolve_binding(const sp_plan_builder *builder, sp_plan_binding *binding)
{
    if (binding->where != SP_PLACE_ARENA) return;
    const sp_plan_value *root = &builder->values[binding->index];
    if (!root->is_computed) {
        binding->where = root->where;
        binding->index = root->index;
    } else if (root->output != SP_NO_OUTPUT) {
        binding->where = SP_PLACE_OUTPUT;
        binding->index = root->output;
    } else {
        binding->offset = root->offset;
        binding->index = 0;
    }
}

static sp_status finish_steps(sp_plan_builder *builder)
{
    sp_graph_plan *plan = builder->plan;
    sp_plan_step *steps;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        sp_plan_binding *bindings = step_bindings(&builder->steps[s]);
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
    /* Succeeds, as before; the layout has zeroed the value's own `bytes`. */
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
    find_lifetimes(builder);
    SP_TRY(arena_lay_out(builder));
    SP_TRY(finish_steps(builder));
    return finish_tensors(builder);
}
