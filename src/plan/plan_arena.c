/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of a plan: values are written over their dead inputs if the op allows it, all others
 * share it by lifetime. */
#include "base/macros.h"
#include "plan/arena_layout.h"
#include "plan/plan_build.h"

/* ---- values ---- */

bool sp__plan_is_in_arena(const sp_plan_value *root)
{
    return root->is_computed && root->output == SP_NO_OUTPUT;
}

/* The value whose memory a binding is in, if that is placed in the arena, else NULL. */
static sp_plan_value *arena_value(const sp_plan_builder *builder, const sp_plan_binding *binding)
{
    if (binding->where != SP_PLACE_ARENA) return NULL;
    sp_plan_value *root = &builder->values[sp__plan_home(builder, binding->index).root];
    return sp__plan_is_in_arena(root) ? root : NULL;
}

/* ---- lifetimes ---- */

static void forget_layout(sp_plan_builder *builder)
{
    for (uint32_t i = 0; i < builder->value_count; i++) {
        sp_plan_value *value = &builder->values[i];
        value->first_step = value->last_step = SP_NO_STEP;
        value->is_laid_out = value->is_released = false;
    }
}

static void find_lifetimes(sp_plan_builder *builder)
{
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        const sp_plan_step *step = &builder->steps[s];
        for (uint32_t i = 0; i < step->binding_count; i++) {
            const sp_plan_binding *binding = &step->bindings[i];
            sp_plan_value *root = arena_value(builder, binding);
            if (root == NULL) continue;
            if (root->first_step == SP_NO_STEP) root->first_step = root->last_step = s;
            /* Planted: a part does not keep the whole alive. */
            if (SP_PLANTED(part_dies) && root != &builder->values[binding->index]) continue;
            /* Planted: the second reader of a value does not keep it alive. */
            const bool is_forgotten =
                SP_PLANTED(overlapping_arena) && root->last_step > root->first_step;
            if (!is_forgotten) root->last_step = s;
        }
    }
}

/* Does the step read a part of the value by itself? It would read results that are there already.
 */
static bool step_reads_part(const sp_plan_builder *builder, const sp_plan_step *step, uint32_t root)
{
    for (uint32_t i = 0; i < step->binding_count; i++) {
        const sp_plan_binding *binding = &step->bindings[i];
        if (binding->where != SP_PLACE_ARENA || binding->index == root) continue;
        if (sp__plan_home(builder, binding->index).root == root) return true;
    }
    return false;
}

/* `value`, which step `s` writes first, takes over the memory of its input if that is dead after
 * `s`. The memory is then released once, with its new owner. */
static bool value_reuse_input(sp_plan_builder *builder, sp_plan_value *value, uint32_t s)
{
    if (value->in_place == SP_NO_VALUE) return false;
    sp_plan_value *old = &builder->values[value->in_place];
    if (!sp__plan_is_in_arena(old) || !old->is_laid_out || old->last_step != s) return false;
    if (old->bytes != value->bytes || old == value) return false;
    const bool has_part = step_reads_part(builder, &builder->steps[s], value->in_place);
    if (has_part && !SP_PLANTED(whole_overwritten)) return false;
    value->offset = old->offset;
    value->is_laid_out = true;
    old->is_released = true; /* with its new owner */
    return true;
}

/* First all values of the step get memory, then those that end here release it: what a step reads
 * and what it writes never overlap, unless the memory was taken over. `lifetimes`: where the plan's
 * next one goes; NULL: none is wanted. */
static sp_status step_lay_out(sp_plan_builder *builder, sp_arena_layout *layout, uint32_t s,
                              sp_plan_lifetime **lifetimes)
{
    const sp_plan_step *step = &builder->steps[s];
    for (uint32_t i = 0; i < step->binding_count; i++) {
        sp_plan_value *value = arena_value(builder, &step->bindings[i]);
        if (value == NULL || value->is_laid_out) continue;
        if (!value_reuse_input(builder, value, s)) {
            SP_TRY(sp__arena_layout_acquire(layout, value->bytes, &value->offset));
            value->is_laid_out = true;
        }
        if (lifetimes == NULL) continue;
        *(*lifetimes)++ = (sp_plan_lifetime){.offset = value->offset,
                                             .bytes = value->bytes,
                                             .first_step = value->first_step,
                                             .last_step = value->last_step};
    }
    for (uint32_t i = 0; i < step->binding_count; i++) {
        sp_plan_value *value = arena_value(builder, &step->bindings[i]);
        if (value == NULL || value->last_step != s || value->is_released) continue;
        SP_TRY(sp__arena_layout_release(layout, value->offset, value->bytes));
        value->is_released = true; /* a value may be in two bindings */
    }
    return SP_OK;
}

static sp_status lay_out(sp_plan_builder *builder, sp_plan_lifetime *lifetimes, uint64_t *bytes)
{
    sp_arena_layout layout = {0};
    sp_status status = SP_OK;
    for (uint32_t s = 0; s < builder->plan->step_count && status == SP_OK; s++) {
        status = step_lay_out(builder, &layout, s, lifetimes == NULL ? NULL : &lifetimes);
    }
    *bytes = layout.bytes;
    sp__arena_layout_deinit(&layout);
    return status;
}

/* ---- both ---- */

sp_status sp__plan_arena_bytes(sp_plan_builder *builder, uint64_t *bytes)
{
    forget_layout(builder);
    find_lifetimes(builder);
    return lay_out(builder, NULL, bytes);
}

static uint32_t count_arena_values(const sp_plan_builder *builder)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < builder->value_count; i++) {
        const sp_plan_value *value = &builder->values[i];
        if (value->root == i && sp__plan_is_in_arena(value) && value->first_step != SP_NO_STEP) {
            count++;
        }
    }
    return count;
}

sp_status sp__plan_lay_out(sp_plan_builder *builder)
{
    sp_graph_plan *plan = builder->plan;
    sp_plan_lifetime *lifetimes;
    forget_layout(builder);
    find_lifetimes(builder);
    plan->lifetime_count = count_arena_values(builder);
    SP_TRY(sp__bump_array(&plan->bump, plan->lifetime_count, sizeof *lifetimes, &lifetimes));
    plan->lifetimes = lifetimes;
    return lay_out(builder, lifetimes, &plan->arena_bytes);
}
