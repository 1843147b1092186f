/* SPDX-License-Identifier: Apache-2.0 */
/* Concat and Split in place (docs/decisions/0067-joined-in-place.md): where the parts of a whole
 * lie one after the other, a part that the plan places is placed within the whole, and is not
 * copied.
 *
 * Homes. A part's home is the result of a Concat, or the operand of a Split. No value gets a home
 * that leads back to it, so following homes ends, at the root that has the memory.
 *
 * Nothing else writes there. A value that has a home, or is one, is written by its own step and by
 * those of its parts; a step writes over its operand only if that has no home, and is dead with all
 * its parts, of which the step reads none by itself (plan_arena.c). */
#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "plan/arena_layout.h"
#include "plan/plan_build.h"

sp_plan_home sp__plan_home(const sp_plan_builder *builder, uint32_t root)
{
    sp_plan_home home = {root, 0};
    while (builder->values[home.root].home != SP_NO_VALUE) {
        home.offset += builder->values[home.root].home_offset;
        home.root = builder->values[home.root].home;
    }
    return home;
}

/* ---- the whole and the parts of a step ---- */

static const sp_concat_constants *join_constants(const sp_plan_step *step)
{
    const bool is_join = step->kernel == SP_KERNEL_ID_concat || step->kernel == SP_KERNEL_ID_split;
    return is_join ? step->constants : NULL;
}

static const sp_plan_binding *join_whole(const sp_plan_step *step)
{
    const sp_concat_constants *k = step->constants;
    return &step->bindings[step->kernel == SP_KERNEL_ID_concat ? k->parts : 0];
}

static const sp_plan_binding *join_part(const sp_plan_step *step, uint32_t part)
{
    return &step->bindings[step->kernel == SP_KERNEL_ID_concat ? part : part + 1];
}

static bool is_placed(const sp_plan_builder *builder, const sp_plan_binding *binding)
{
    return binding->where == SP_PLACE_ARENA &&
           sp__plan_is_in_arena(&builder->values[binding->index]);
}

/* One row, whose parts are in one piece each. */
static bool is_candidate(const sp_plan_builder *builder, const sp_plan_step *step)
{
    const sp_concat_constants *k = join_constants(step);
    if (k == NULL || k->outer != 1 || !is_placed(builder, join_whole(step))) return false;
    return builder->values[join_whole(step)->index].bytes == (uint64_t)k->row_bytes;
}

/* ---- homes ---- */

/* Is the part where it would be copied to, or from? One of no bytes always is. */
static bool is_in_place(const sp_plan_builder *builder, const sp_plan_step *step, uint32_t part)
{
    const sp_concat_constants *k = step->constants;
    if (k->part_bytes[part] == 0) return true;
    const sp_plan_binding *binding = join_part(step, part);
    if (!is_placed(builder, binding)) return false;
    const sp_plan_home here = sp__plan_home(builder, binding->index);
    const sp_plan_home whole = sp__plan_home(builder, join_whole(step)->index);
    return here.root == whole.root && here.offset == whole.offset + (uint64_t)k->part_offset[part];
}

static void set_home(sp_plan_builder *builder, uint32_t root, uint32_t home, uint64_t offset)
{
    builder->values[root].home = home;
    builder->values[root].home_offset = offset;
}

/* A whole that is not in place itself, and all of whose parts are in another one as they are in it:
 * it is there, too. */
static void whole_find_home(sp_plan_builder *builder, const sp_plan_step *step)
{
    const sp_concat_constants *k = step->constants;
    const uint32_t whole = join_whole(step)->index;
    if (step->kernel != SP_KERNEL_ID_concat || builder->values[whole].home != SP_NO_VALUE) return;
    if (!is_placed(builder, join_part(step, 0)) || k->part_offset[0] != 0) return;
    const sp_plan_home home = sp__plan_home(builder, join_part(step, 0)->index);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < k->parts; i++) {
        const sp_plan_binding *part = join_part(step, i);
        if (!is_placed(builder, part)) return;
        const sp_plan_home here = sp__plan_home(builder, part->index);
        const uint64_t offset = home.offset + (uint64_t)k->part_offset[i];
        if (here.root != home.root || here.offset != offset) return;
        bytes += (uint64_t)k->part_bytes[i];
    }
    const bool is_all = bytes == (uint64_t)k->row_bytes;
    if (is_all && home.root != whole) set_home(builder, whole, home.root, home.offset);
}

static void part_find_home(sp_plan_builder *builder, const sp_plan_step *step, uint32_t part)
{
    const sp_concat_constants *k = step->constants;
    const sp_plan_binding *binding = join_part(step, part);
    const uint64_t bytes = (uint64_t)k->part_bytes[part], at = (uint64_t)k->part_offset[part];
    if (!is_placed(builder, binding)) return;
    const sp_plan_value *value = &builder->values[binding->index];
    if (value->home != SP_NO_VALUE || value->bytes != bytes || bytes == 0) return;
    if (at % SP_ARENA_ALIGNMENT != 0) return;
    if (sp__plan_home(builder, join_whole(step)->index).root == binding->index) return;
    set_home(builder, binding->index, join_whole(step)->index, at);
}

/* From the last step to the first: of several joins of the same parts the largest holds them. */
static bool find_homes(sp_plan_builder *builder)
{
    bool is_found = false;
    for (uint32_t s = builder->plan->step_count; s-- > 0;) {
        const sp_plan_step *step = &builder->steps[s];
        if (!is_candidate(builder, step)) continue;
        const sp_concat_constants *k = step->constants;
        whole_find_home(builder, step);
        for (uint32_t i = 0; i < k->parts; i++) part_find_home(builder, step, i);
        for (uint32_t i = 0; i < k->parts; i++) is_found |= is_in_place(builder, step, i);
    }
    return is_found;
}

static void forget_homes(sp_plan_builder *builder)
{
    for (uint32_t i = 0; i < builder->value_count; i++) builder->values[i].home = SP_NO_VALUE;
}

/* ---- steps ---- */

/* The step without the parts that are in place; *has_parts is false if none is left. */
static sp_status shrink_step(sp_plan_builder *builder, sp_plan_step *step, bool *has_parts)
{
    sp_concat_constants *k;
    sp_plan_binding *bindings;
    const bool is_concat = step->kernel == SP_KERNEL_ID_concat;
    const uint32_t parts = ((const sp_concat_constants *)step->constants)->parts;
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(&builder->plan->bump, parts + 1, sizeof *bindings, &bindings));
    *k = *(const sp_concat_constants *)step->constants;
    k->parts = 0;
    for (uint32_t i = 0; i < parts; i++) {
        if (is_in_place(builder, step, i)) continue;
        k->part_bytes[k->parts] = k->part_bytes[i];
        k->part_offset[k->parts] = k->part_offset[i];
        bindings[is_concat ? k->parts : k->parts + 1] = *join_part(step, i);
        k->parts++;
    }
    bindings[is_concat ? k->parts : 0] = *join_whole(step);
    step->constants = k;
    step->bindings = bindings;
    step->binding_count = k->parts + 1;
    *has_parts = k->parts > 0;
    return SP_OK;
}

/* Sets `steps`, which has room for all, to the steps that are left, and *count to their number. */
static sp_status shrink_steps(sp_plan_builder *builder, sp_plan_step *steps, uint32_t *count)
{
    *count = 0;
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        sp_plan_step step = builder->steps[s];
        bool stays = true;
        if (is_candidate(builder, &step)) SP_TRY(shrink_step(builder, &step, &stays));
        if (stays) steps[(*count)++] = step;
    }
    return SP_OK;
}

static void swap_steps(sp_plan_builder *builder, sp_plan_step **steps, uint32_t *count)
{
    sp_plan_step *const other = *steps;
    const uint32_t other_count = *count;
    *steps = builder->steps;
    *count = builder->plan->step_count;
    builder->steps = other;
    builder->plan->step_count = other_count;
}

/* With the steps that are left, unless the arena is larger with them. */
static sp_status choose_steps(sp_plan_builder *builder, sp_plan_step **steps, uint32_t count)
{
    uint64_t apart, joined;
    swap_steps(builder, steps, &count);
    SP_TRY(sp__plan_arena_bytes(builder, &joined));
    swap_steps(builder, steps, &count);
    forget_homes(builder);
    SP_TRY(sp__plan_arena_bytes(builder, &apart));
    if (joined > apart) return SP_OK;
    (void)find_homes(builder);
    swap_steps(builder, steps, &count);
    return SP_OK;
}

sp_status sp__plan_join(sp_plan_builder *builder)
{
    const uint32_t capacity = builder->plan->step_count;
    uint32_t count;
    if (!find_homes(builder)) return SP_OK;
    sp_plan_step *steps = sp_calloc(capacity, sizeof *steps);
    if (steps == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    sp_status status = shrink_steps(builder, steps, &count);
    if (status == SP_OK) status = choose_steps(builder, &steps, count);
    builder->step_capacity = capacity; /* of either array */
    sp_free(steps);
    return status;
}
