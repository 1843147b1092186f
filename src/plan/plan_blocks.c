/* SPDX-License-Identifier: Apache-2.0 */
/* The pass: which values are plain and which are blocked, and the copies between them. */
#include "plan/plan_blocks_maps.h"

#include "base/error.h"
#include "base/heap.h"

/* ---- copies ---- */

static sp_status fail_large(void)
{
    return sp__fail(SP_EXHAUSTED, "an image has too many elements for one copy");
}

static sp_status add_copy(sp_block_pass *pass, const sp_plan_step *step, const sp_image_form *form,
                          sp_kernel_id kernel, uint32_t from, uint32_t to)
{
    const uint64_t plain = (uint64_t)sp__block_plain_count(form) * sizeof(float);
    const bool blocks = kernel == SP_KERNEL_ID_channels_block;
    sp_plan_binding bindings[2] = {sp__block_binding(from, form, false),
                                   sp__block_binding(to, form, true)};
    bindings[blocks ? 0 : 1].bytes = plain;
    sp_channels_constants constants;
    sp_plan_step copy = {.kernel = kernel,
                         .node_name = step->node_name,
                         .op_name = "Reorder",
                         .binding_count = 2,
                         .bindings = bindings,
                         .constants = &constants,
                         .constant_bytes = sizeof constants};
    if (!sp__blocked_copy(form, &constants)) return fail_large();
    return sp__plan_add_step(pass->builder, &copy);
}

sp_status sp__block_add_move(sp_block_pass *pass, const sp_plan_step *step,
                             const sp_block_move *move)
{
    uint32_t offsets;
    SP_TRY(sp__block_move_offsets(pass, move->from_form, move->first, move->to_form, &offsets));
    const sp_plan_binding bindings[3] = {
        sp__block_binding(move->from, move->from_form, false),
        {.where = SP_PLACE_ARENA, .index = offsets, .bytes = pass->builder->values[offsets].bytes},
        sp__block_binding(move->to, move->to_form, true)};
    sp_channels_move_constants constants;
    sp_plan_step copy = {.kernel = SP_KERNEL_ID_channels_move,
                         .node_name = step->node_name,
                         .op_name = step->op_name,
                         .binding_count = 3,
                         .bindings = bindings,
                         .constants = &constants,
                         .constant_bytes = sizeof constants};
    if (!sp__blocked_move(move->from_form, move->to_form, &constants)) {
        return fail_large();
    }
    return sp__plan_add_step(pass->builder, &copy);
}

/* Moves the blocks of a value to another form of the same images. */
static sp_status move_blocks(sp_block_pass *pass, const sp_plan_step *step, uint32_t root,
                             const sp_image_form *form)
{
    sp_block_value *value = &pass->values[root];
    const sp_image_form from = value->form;
    const uint64_t bytes = (uint64_t)sp__image_form_count(form) * sizeof(float);
    const sp_plan_step names = {.node_name = step->node_name, .op_name = "Reorder"};
    sp_block_move move = {.from = value->blocked, .from_form = &from, .to_form = form};
    SP_TRY(sp__plan_add_value(pass->builder, bytes, &move.to));
    value->form = *form;
    value->blocked = move.to;
    value->writer = pass->builder->plan->step_count;
    return sp__block_add_move(pass, &names, &move);
}

bool sp__block_is_in_form(const sp_block_pass *pass, uint32_t root, const sp_image_form *form)
{
    const sp_block_value *value = &pass->values[root];
    return value->blocked != SP_NO_VALUE && sp__image_form_equal(&value->form, form);
}

sp_status sp__block_read_plain(sp_block_pass *pass, const sp_plan_step *step, uint32_t root)
{
    sp_block_value *value = &pass->values[root];
    /* A value that no step has written has no bytes. */
    if (value->is_plain || value->blocked == SP_NO_VALUE) return SP_OK;
    if (value->form.map != NULL) {
        sp_image_form form = value->form;
        form.map = NULL;
        SP_TRY(move_blocks(pass, step, root, &form));
    }
    value->is_plain = true;
    return add_copy(pass, step, &value->form, SP_KERNEL_ID_channels_unblock, value->blocked, root);
}

/* Copies the plain value to blocks without a map. */
static sp_status block_plain(sp_block_pass *pass, const sp_plan_step *step, uint32_t root,
                             const sp_image_form *form)
{
    sp_block_value *value = &pass->values[root];
    const uint64_t bytes = (uint64_t)sp__image_form_count(form) * sizeof(float);
    value->form = *form;
    value->blocked = root;
    value->writer = SP_NO_STEP;
    if (sp__image_form_is_plain(form)) return SP_OK;
    SP_TRY(sp__plan_add_value(pass->builder, bytes, &value->blocked));
    value->writer = pass->builder->plan->step_count;
    return add_copy(pass, step, form, SP_KERNEL_ID_channels_block, root, value->blocked);
}

sp_status sp__block_read(sp_block_pass *pass, const sp_plan_step *step, uint32_t root,
                         const sp_image_form *form, uint32_t *blocked)
{
    sp_block_value *value = &pass->values[root];
    if (!sp__block_is_in_form(pass, root, form)) {
        const sp_image_form *from = &value->form;
        const bool is_like = value->blocked != SP_NO_VALUE && from->images == form->images &&
                             from->channels == form->channels && from->pixels == form->pixels;
        if (!is_like) {
            sp_image_form gapless = *form;
            gapless.map = NULL;
            SP_TRY(sp__block_read_plain(pass, step, root));
            SP_TRY(block_plain(pass, step, root, &gapless));
        }
        if (!sp__block_is_in_form(pass, root, form)) {
            SP_TRY(move_blocks(pass, step, root, form));
        }
    }
    *blocked = value->blocked;
    return SP_OK;
}

sp_status sp__block_write(sp_block_pass *pass, uint32_t root, const sp_image_form *form,
                          uint32_t *blocked)
{
    sp_block_value *value = &pass->values[root];
    value->is_plain = sp__image_form_is_plain(form);
    *blocked = root;
    if (!value->is_plain) {
        SP_TRY(sp__plan_add_value(pass->builder,
                                  (uint64_t)sp__image_form_count(form) * sizeof(float), blocked));
    }
    value->form = *form;
    value->blocked = *blocked;
    value->writer = pass->builder->plan->step_count; /* the caller adds it next */
    return SP_OK;
}

sp_status sp__block_add_recorded(sp_block_pass *pass, int64_t count, uint32_t *root)
{
    SP_TRY(sp__plan_add_value(pass->builder, (uint64_t)count * sizeof(float), root));
    for (; pass->value_count <= *root; pass->value_count++) {
        sp_block_value *values =
            sp_grow(pass->values, pass->value_count, &pass->value_capacity, sizeof *values);
        if (values == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
        pass->values = values;
        values[pass->value_count] = (sp_block_value){.blocked = SP_NO_VALUE};
    }
    return SP_OK;
}

sp_status sp__block_add_root(sp_block_pass *pass, const sp_image_form *form, uint32_t *root)
{
    SP_TRY(sp__block_add_recorded(pass, sp__image_form_count(form), root));
    pass->values[*root] = (sp_block_value){
        .blocked = *root, .form = *form, .writer = pass->builder->plan->step_count};
    return SP_OK;
}

/* ---- the pass ---- */

sp_status sp__block_plain(sp_block_pass *pass, const sp_plan_step *step)
{
    for (uint32_t i = 0; i < step->binding_count; i++) {
        const sp_plan_binding *binding = &step->bindings[i];
        if (binding->where != SP_PLACE_ARENA || binding->is_write) continue;
        SP_TRY(sp__block_read_plain(pass, step, binding->index));
    }
    for (uint32_t i = 0; i < step->binding_count; i++) {
        const sp_plan_binding *binding = &step->bindings[i];
        if (binding->where != SP_PLACE_ARENA || !binding->is_write) continue;
        pass->values[binding->index].is_plain = true;
        pass->values[binding->index].blocked = SP_NO_VALUE;
    }
    return sp__plan_add_step(pass->builder, step);
}

static sp_status run_steps(sp_block_pass *pass, const sp_plan_step *steps, uint32_t count)
{
    sp_plan_builder *builder = pass->builder;
    for (uint32_t s = 0; s < count; s++) {
        bool is_done = false;
        const uint32_t before = builder->plan->step_count;
        SP_TRY(sp__block_step(pass, &steps[s], &is_done));
        if (!is_done) SP_TRY(sp__block_plain(pass, &steps[s]));
        else if (builder->plan->step_count > before) SP_TRY(sp__block_chain(pass, &steps[s]));
    }
    for (uint32_t i = 0; i < builder->output_count; i++) {
        const sp_plan_value *output = &builder->values[builder->outputs[i]];
        if (!builder->values[output->root].is_computed) continue;
        /* The step that is named in errors: the last one of the plan. */
        SP_TRY(sp__block_read_plain(pass, &steps[count - 1], output->root));
    }
    return SP_OK;
}

/* Removes the steps that have become a part of another one. */
static void drop_steps(sp_plan_builder *builder)
{
    uint32_t kept = 0;
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        if (builder->steps[s].kernel != SP_NO_KERNEL) builder->steps[kept++] = builder->steps[s];
    }
    builder->plan->step_count = kept;
}

sp_status sp__plan_block(sp_plan_builder *builder)
{
    sp_graph_plan *plan = builder->plan;
    sp_block_pass pass = {.builder = builder};
    sp_plan_step *steps = builder->steps;
    const uint32_t count = plan->step_count, value_count = builder->value_count;
    if (count == 0) return SP_OK;
    pass.value_count = pass.value_capacity = value_count;
    pass.values = sp_calloc(value_count, sizeof *pass.values);
    if (pass.values == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    for (uint32_t i = 0; i < value_count; i++) {
        pass.values[i] =
            (sp_block_value){.is_plain = !builder->values[i].is_computed, .blocked = SP_NO_VALUE};
    }
    builder->steps = NULL;
    builder->step_capacity = plan->step_count = 0;
    const sp_status status = run_steps(&pass, steps, count);
    drop_steps(builder);
    sp_free(steps);
    sp_free(pass.values);
    sp__block_maps_deinit(&pass);
    return status;
}
