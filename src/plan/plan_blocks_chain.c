/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise steps between convolutions, in blocks of channels, become one step that goes over the
 * image once: normalisations, sums, products and quotients with one number for each channel or for
 * all, HardSwish by Clip, and a Relu behind any of them. */
#include <string.h>

#include "base/macros.h"
#include "ops/activation.h"
#include "plan/plan_blocks.h"
#include "plan/plan_fuse.h"

/* Of fewer pixels the operands are loaded as often as the image. */
enum { LEAST_PIXELS = 16 };

/* A step as a chain: its image, its operations, and what those read. */
typedef struct chain {
    sp_plan_binding x, y, operands[SP_MAX_BINDINGS];
    sp_element_step ops[SP_ELEMENT_STEPS];
    uint32_t count, operand_count;
    uint8_t activation;
} chain;

/* ---- steps as chains ---- */

static void add_op(chain *c, uint8_t op, sp_element_operand operand, uint8_t activation)
{
    const bool has_relu = activation == SP_ACTIVATION_RELU;
    c->ops[c->count++] =
        (sp_element_step){.op = op, .operand = (uint8_t)operand, .has_relu = has_relu};
    c->activation = has_relu ? SP_ACTIVATION_NONE : activation;
    if (activation != SP_ACTIVATION_HARD_SWISH) return;
    c->ops[c->count++] =
        (sp_element_step){.op = SP_ACTIVATION_HARD_SWISH, .operand = SP_ELEMENT_READS_NOTHING};
    c->activation = SP_ACTIVATION_NONE;
}

static void read_operands(chain *c, const sp_plan_step *step, uint32_t first, uint32_t count)
{
    memcpy(c->operands, &step->bindings[first], count * sizeof *c->operands);
    c->operand_count = count;
}

/* A list of elements and one number. */
static bool read_list(const sp_plan_step *step, chain *c)
{
    const sp_binary_constants *k = step->constants;
    if (k->rank != 1 || k->a[0] + k->b[0] != 1) return false;
    const bool is_reversed = k->b[0] == 1;
    c->x = step->bindings[is_reversed ? 1 : 0];
    read_operands(c, step, is_reversed ? 0 : 1, 1);
    const uint8_t op = sp__element_op_of(step->kernel, is_reversed);
    add_op(c, op, SP_ELEMENT_READS_ONE, k->activation);
    return true;
}

static bool read_norm(const sp_plan_step *step, chain *c)
{
    const sp_norm_blocked_constants *k = step->constants;
    read_operands(c, step, 1, 4);
    add_op(c, SP_ELEMENT_NORM, SP_ELEMENT_READS_NORM, k->activation);
    c->ops[0].numbers[0] = k->epsilon;
    return true;
}

static bool read_gate(const sp_plan_step *step, chain *c)
{
    const sp_gate_constants *k = step->constants;
    const float numbers[4] = {k->addend, k->low, k->high, k->divisor};
    if (sp__activation_of(step->kernel, k) == SP_ACTIVATION_HARD_SWISH) {
        add_op(c, SP_ACTIVATION_HARD_SWISH, SP_ELEMENT_READS_NOTHING, SP_ACTIVATION_NONE);
        return true;
    }
    add_op(c, SP_ELEMENT_CLIP_GATE, SP_ELEMENT_READS_NOTHING, SP_ACTIVATION_NONE);
    memcpy(c->ops[0].numbers, numbers, sizeof numbers);
    return k->low == k->low && k->high == k->high; /* a NaN takes the place of all numbers */
}

static bool read_channel_op(const sp_plan_step *step, chain *c)
{
    const sp_channel_op_constants *k = step->constants;
    read_operands(c, step, 1, 1);
    add_op(c, k->op, k->is_shared ? SP_ELEMENT_READS_SHARED : SP_ELEMENT_READS_LIST, k->activation);
    return true;
}

static bool read_chain(const sp_plan_step *step, chain *c)
{
    const sp_channel_chain_constants *k = step->constants;
    memcpy(c->ops, k->ops, sizeof c->ops);
    c->count = k->count;
    c->activation = k->activation;
    read_operands(c, step, 1, step->binding_count - 2);
    return true;
}

/* Is the step such a chain? */
static bool read_step(const sp_plan_step *step, chain *c)
{
    *c = (chain){.x = step->bindings[0], .y = *sp__block_output(step)};
    switch (step->kernel) {
    case SP_KERNEL_ID_add_f32:
    case SP_KERNEL_ID_sub_f32:
    case SP_KERNEL_ID_mul_f32:
    case SP_KERNEL_ID_div_f32:
        return read_list(step, c);
    case SP_KERNEL_ID_norm_blocked_f32:
        return read_norm(step, c);
    case SP_KERNEL_ID_clip_gate_f32:
        return read_gate(step, c);
    case SP_KERNEL_ID_channel_op_f32:
        return read_channel_op(step, c);
    case SP_KERNEL_ID_channel_chain_f32:
        return read_chain(step, c);
    default:
        return false;
    }
}

/* ---- two steps as one ---- */

/* The operations of `second` behind those of `first`; false if there are too many, or if the result
 * of the first ones has an activation that is no operation. */
static bool join(chain *first, const chain *second)
{
    const uint32_t operands = first->operand_count + second->operand_count;
    if (first->count + second->count > SP_ELEMENT_STEPS || operands + 2 > SP_MAX_BINDINGS)
        return false;
    if (first->activation != SP_ACTIVATION_NONE) return false;
    memcpy(&first->ops[first->count], second->ops, second->count * sizeof *second->ops);
    memcpy(&first->operands[first->operand_count], second->operands,
           second->operand_count * sizeof *second->operands);
    first->count += second->count;
    first->operand_count = operands;
    first->y = second->y;
    first->activation = second->activation;
    return true;
}

/* In the place of the later step, where all operands are there. */
static sp_status replace_steps(sp_block_pass *pass, uint32_t first, const chain *c,
                               const sp_image_form *form)
{
    sp_plan_builder *builder = pass->builder;
    sp_plan_step *steps = builder->steps, *last = &steps[builder->plan->step_count - 1];
    sp_plan_step joined = {.kernel = SP_KERNEL_ID_channel_chain_f32,
                           .node_name = steps[first].node_name,
                           .op_name = steps[first].op_name,
                           .binding_count = c->operand_count + 2,
                           .constant_bytes = sizeof(sp_channel_chain_constants)};
    sp_channel_chain_constants *k;
    sp_plan_binding *bindings;
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(&builder->plan->bump, joined.binding_count, sizeof *bindings, &bindings));
    SP_TRY(sp__plan_append_name(builder, &joined.op_name, last->op_name));
    if (!sp__blocked_chain(form, k)) return SP_OK;
    k->count = c->count;
    k->activation = c->activation;
    memcpy(k->ops, c->ops, sizeof k->ops);
    bindings[0] = c->x;
    memcpy(bindings + 1, c->operands, c->operand_count * sizeof *bindings);
    bindings[c->operand_count + 1] = c->y;
    joined.constants = k;
    joined.bindings = bindings;
    const uint32_t between = sp__block_output(&steps[first])->index;
    sp_plan_value *y = &builder->values[c->y.index];
    if (y->in_place == between) y->in_place = builder->values[between].in_place;
    steps[first].kernel = SP_NO_KERNEL;
    *last = joined;
    return SP_OK;
}

sp_status sp__block_chain(sp_block_pass *pass, const sp_plan_step *step)
{
    const sp_plan_builder *builder = pass->builder;
    const uint32_t last = builder->plan->step_count - 1;
    chain first, second;
    if (builder->plan->step_count < 2 || !read_step(&builder->steps[last], &second)) return SP_OK;
    for (uint32_t i = 0; i + 1 < step->binding_count; i++) {
        const uint32_t root = step->bindings[i].index;
        if (step->bindings[i].where != SP_PLACE_ARENA || root >= pass->value_count) continue;
        const sp_block_value *value = &pass->values[root];
        if (value->blocked != second.x.index || value->writer >= last) continue;
        /* Its write and that read; unknown if steps are not fused. */
        if (builder->values[root].use_count != 2 && !SP_PLANTED(chain_read_value)) continue;
        const sp_plan_step *writer = &builder->steps[value->writer];
        if (sp__block_output(writer)->index != second.x.index) continue;
        if (!read_step(writer, &first) || !join(&first, &second)) continue;
        const sp_image_form form = value->form;
        if (form.pixels < LEAST_PIXELS) continue;
        return replace_steps(pass, value->writer, &first, &form);
    }
    return SP_OK;
}
