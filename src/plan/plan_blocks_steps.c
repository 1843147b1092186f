/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps compute images in blocks of channels. Convolutions do wherever their kernel can;
 * other steps where their input is blocked already. Plain and blocked images have the same
 * elements, and the kernels the same bits, so the choice is one of speed alone. */
#include <string.h>

#include "base/macros.h"
#include "plan/plan_blocks.h"

const sp_plan_binding *sp__block_output(const sp_plan_step *step)
{
    return &step->bindings[step->binding_count - 1];
}

sp_plan_binding sp__block_binding(uint32_t value, const sp_image_form *form, bool is_write)
{
    return (sp_plan_binding){.where = SP_PLACE_ARENA,
                             .index = value,
                             .is_write = is_write,
                             .bytes = (uint64_t)sp__image_form_count(form) * sizeof(float)};
}

/* Is the operand a whole value of so many floats, at an address that the plan assigns? */
bool sp__block_is_whole(const sp_block_pass *pass, const sp_plan_binding *binding, int64_t count)
{
    if (binding->where != SP_PLACE_ARENA) return false;
    const uint64_t bytes = (uint64_t)count * sizeof(float);
    return binding->bytes == bytes && pass->builder->values[binding->index].bytes == bytes;
}

int64_t sp__block_plain_count(const sp_image_form *form)
{
    return form->images * form->channels * form->pixels;
}

/* The form of a blocked operand that has so many elements; NULL if it is not blocked. */
const sp_image_form *sp__block_form(const sp_block_pass *pass, const sp_plan_binding *binding,
                                    int64_t count)
{
    if (!sp__block_is_whole(pass, binding, count)) return NULL;
    const sp_block_value *value = &pass->values[binding->index];
    return value->blocked != SP_NO_VALUE && sp__block_plain_count(&value->form) == count
               ? &value->form
               : NULL;
}

/* The step writes its output over that operand if the recorded one would have. */
void sp__block_set_in_place(sp_block_pass *pass, const sp_plan_step *step, uint32_t operand,
                            uint32_t from, uint32_t to)
{
    sp_plan_value *values = pass->builder->values;
    const sp_plan_value *recorded = &values[sp__block_output(step)->index];
    if (recorded->in_place != step->bindings[operand].index) return;
    if (to != sp__block_output(step)->index) values[to].in_place = from;
}

/* ---- convolutions and pools ---- */

/* The weights packed, if they are constants of the graph. */
static sp_status pack_weights(sp_block_pass *pass, const sp_plan_binding *weights,
                              const sp_blocked_call *call, sp_plan_binding *out)
{
    const sp_packing what = {
        .weight = pass->builder->values[weights->index].index,
        .kernel = SP_KERNEL_ID_gemm_pack_f32,
        .grid = {1, 1, 1},
        .constant_bytes = sizeof call->pack,
        .constants = &call->pack,
        .bytes = call->packed_bytes,
    };
    *out = (sp_plan_binding){.where = SP_PLACE_PACKED, .bytes = what.bytes};
    return sp__plan_pack_value(pass->builder, weights->index, &what, &out->index);
}

static bool is_packable(const sp_block_pass *pass, const sp_plan_binding *weights)
{
    const sp_graph *graph = pass->builder->plan->graph;
    if (weights->where != SP_PLACE_ARENA || weights->index >= graph->value_count) return false;
    const sp_plan_value *value = &pass->builder->values[weights->index];
    return value->where == SP_PLACE_WEIGHT && graph->values[weights->index].is_constant &&
           !value->is_tainted && !value->is_computed;
}

static sp_status add_call(sp_block_pass *pass, const sp_plan_step *step, sp_kernel_id kernel,
                          const sp_blocked_call *call)
{
    const bool is_conv = kernel != SP_KERNEL_ID_max_pool_blocked_f32;
    sp_plan_binding bindings[SP_MAX_BINDINGS];
    memcpy(bindings, step->bindings, step->binding_count * sizeof *bindings);
    uint32_t x, y;
    if (call->constants.is_plain) {
        SP_TRY(sp__block_read_plain(pass, step, bindings[0].index));
    } else {
        SP_TRY(sp__block_read(pass, step, bindings[0].index, &call->x, &x));
        bindings[0] = sp__block_binding(x, &call->x, false);
    }
    if (is_conv) SP_TRY(pack_weights(pass, &step->bindings[1], call, &bindings[1]));
    if (call->constants.of.has_bias) SP_TRY(sp__block_read_plain(pass, step, bindings[2].index));
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &call->y, &y));
    bindings[step->binding_count - 1] = sp__block_binding(y, &call->y, true);
    sp_plan_step blocked = *step;
    blocked.kernel = kernel;
    blocked.bindings = bindings;
    blocked.constants = &call->constants;
    blocked.constant_bytes = sizeof call->constants;
    memcpy(blocked.grid, call->grid, sizeof blocked.grid);
    return sp__plan_add_step(pass->builder, &blocked);
}

/* The call for x as it is blocked, if it is in the form that the convolution reads. */
static bool make_conv(const sp_block_pass *pass, const sp_plan_step *step, sp_blocked_call *call)
{
    const sp_conv_constants *k = step->constants;
    if (step->kernel == SP_KERNEL_ID_conv_depthwise_f32) return sp__blocked_depthwise(k, call);
    const uint32_t x = step->bindings[0].index;
    return (sp__blocked_conv(k, true, call) && sp__block_is_in_form(pass, x, &call->x)) ||
           sp__blocked_conv(k, false, call);
}

static sp_status block_conv(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const bool is_depthwise = step->kernel == SP_KERNEL_ID_conv_depthwise_f32;
    const sp_plan_binding *x = &step->bindings[0];
    sp_blocked_call call;
    if (x->where != SP_PLACE_ARENA || !is_packable(pass, &step->bindings[1])) return SP_OK;
    if (!make_conv(pass, step, &call) ||
        !sp__block_is_whole(pass, x, sp__block_plain_count(&call.x)) ||
        !sp__block_is_whole(pass, sp__block_output(step), sp__block_plain_count(&call.y))) {
        return SP_OK;
    }
    *is_done = true;
    return add_call(
        pass, step,
        is_depthwise ? SP_KERNEL_ID_depthwise_blocked_f32 : SP_KERNEL_ID_conv_blocked_f32, &call);
}

static sp_status block_max_pool(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_pool_constants *k = step->constants;
    const sp_image_form *form =
        sp__block_form(pass, &step->bindings[0], k->planes * k->in_h * k->in_w);
    sp_blocked_call call;
    if (form == NULL || !sp__blocked_max_pool(k, form, &call)) return SP_OK;
    if (!sp__block_is_whole(pass, sp__block_output(step), sp__block_plain_count(&call.y)))
        return SP_OK;
    *is_done = true;
    return add_call(pass, step, SP_KERNEL_ID_max_pool_blocked_f32, &call);
}

static sp_status block_norm(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_batch_norm_constants *norm = step->constants;
    const int64_t count = norm->planes * norm->plane;
    const sp_image_form *from = sp__block_form(pass, &step->bindings[0], count);
    sp_norm_blocked_constants constants;
    sp_plan_step blocked = *step;
    if (from == NULL || !sp__blocked_norm(norm, from, &constants, blocked.grid)) return SP_OK;
    if (!sp__block_is_whole(pass, sp__block_output(step), count)) return SP_OK;
    *is_done = true;
    const sp_image_form form = *from;
    bool is_fused = false;
    SP_TRY(sp__block_fuse_norm(pass, step, &constants, &is_fused));
    if (is_fused) return SP_OK;
    uint32_t x, y;
    sp_plan_binding bindings[6];
    memcpy(bindings, step->bindings, sizeof bindings);
    for (uint32_t i = 1; i < 5; i++) {
        if (bindings[i].where != SP_PLACE_ARENA) continue;
        SP_TRY(sp__block_read_plain(pass, step, bindings[i].index));
    }
    SP_TRY(sp__block_read(pass, step, bindings[0].index, &form, &x));
    SP_TRY(sp__block_write(pass, bindings[5].index, &form, &y));
    sp__block_set_in_place(pass, step, 0, x, y);
    bindings[0] = sp__block_binding(x, &form, false);
    bindings[5] = sp__block_binding(y, &form, true);
    blocked.kernel = SP_KERNEL_ID_norm_blocked_f32;
    blocked.bindings = bindings;
    blocked.constants = &constants;
    blocked.constant_bytes = sizeof constants;
    return sp__plan_add_step(pass->builder, &blocked);
}

sp_status sp__block_step(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    switch (step->kernel) {
    case SP_KERNEL_ID_conv_f32:
    case SP_KERNEL_ID_conv_depthwise_f32:
        return block_conv(pass, step, is_done);
    case SP_KERNEL_ID_max_pool_f32:
        return block_max_pool(pass, step, is_done);
    case SP_KERNEL_ID_batch_norm_f32:
        return block_norm(pass, step, is_done);
    default:
        return sp__block_elements(pass, step, is_done);
    }
}
