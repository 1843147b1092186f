/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps compute images in blocks of channels. Convolutions do wherever their kernel can;
 * other steps where their input is blocked already. Plain and blocked images have the same
 * elements, and the kernels the same bits, so the choice is one of speed alone. */
#include <string.h>

#include "base/macros.h"
#include "plan/plan_blocks_maps.h"

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

sp_image_form sp__block_dense(const sp_image_form *form)
{
    sp_image_form dense = *form;
    if (!sp__image_form_is_dense(form)) dense.map = NULL;
    return dense;
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

/* ---- calls ---- */

sp_status sp__block_add_call(sp_block_pass *pass, const sp_plan_step *step, sp_kernel_id kernel,
                             const sp_blocked_call *call, const sp_block_operands *operands)
{
    const sp_blocked_constants *k = &call->constants;
    sp_plan_binding bindings[SP_MAX_BINDINGS] = {step->bindings[0]};
    uint32_t x, y, count = 1;
    if (k->is_plain) {
        SP_TRY(sp__block_read_plain(pass, step, bindings[0].index));
    } else {
        SP_TRY(sp__block_read(pass, step, bindings[0].index, &call->x, &x));
        bindings[0] = sp__block_binding(x, &call->x, false);
    }
    if (kernel != SP_KERNEL_ID_max_pool_blocked_f32) bindings[count++] = operands->weights;
    if (k->has_offsets) bindings[count++] = operands->offsets;
    if (k->of.has_bias) {
        bindings[count++] = operands->bias;
        if (operands->bias.where == SP_PLACE_ARENA) {
            SP_TRY(sp__block_read_plain(pass, step, operands->bias.index));
        }
    }
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &call->y, &y));
    bindings[count++] = sp__block_binding(y, &call->y, true);
    sp_plan_step blocked = *step;
    blocked.kernel = kernel;
    blocked.binding_count = count;
    blocked.bindings = bindings;
    blocked.constants = k;
    blocked.constant_bytes = sizeof *k;
    return sp__plan_add_step(pass->builder, &blocked);
}

static bool is_whole_call(const sp_block_pass *pass, const sp_plan_step *step,
                          const sp_blocked_call *call)
{
    return sp__block_is_whole(pass, &step->bindings[0], sp__block_plain_count(&call->x)) &&
           sp__block_is_whole(pass, sp__block_output(step), sp__block_plain_count(&call->y));
}

/* ---- convolutions ---- */

static bool is_finite(const sp_block_pass *pass, const sp_plan_binding *weights)
{
    const sp_graph *graph = pass->builder->plan->graph;
    const uint32_t weight = pass->builder->values[weights->index].index;
    if (weight == SP_NO_WEIGHT) return false;
    return graph->weights[weight].is_finite || SP_PLANTED(skip_infinite);
}

bool sp__block_is_like(const sp_block_pass *pass, uint32_t x, const sp_image_form *form)
{
    const sp_block_value *value = &pass->values[x];
    return value->blocked != SP_NO_VALUE && value->form.images == form->images &&
           value->form.channels == form->channels && value->form.pixels == form->pixels;
}

sp_status sp__block_set_maps(sp_block_pass *pass, uint32_t x, sp_blocked_call *call,
                             sp_block_operands *operands)
{
    sp_blocked_constants *k = &call->constants;
    SP_TRY(sp__block_group_map(pass, k->of.groups, k->of.filters, &call->y.map));
    if (k->is_plain) return SP_OK;
    SP_TRY(sp__block_group_map(pass, k->of.groups, k->of.channels, &call->x.map));
    if (!sp__blocked_has_offsets(call)) return SP_OK;
    sp_image_form form = call->x;
    form.map = sp__block_is_like(pass, x, &call->x) ? pass->values[x].form.map : NULL;
    if (form.map == call->x.map) return SP_OK; /* each group begins with a block */
    call->x = form;
    k->has_offsets = true;
    k->x_blocks = sp__image_form_blocks(&form);
    uint32_t offsets;
    SP_TRY(sp__block_offsets(pass, &form, &offsets));
    operands->offsets = (sp_plan_binding){
        .where = SP_PLACE_ARENA, .index = offsets, .bytes = pass->builder->values[offsets].bytes};
    return SP_OK;
}

static sp_status pack_weights(sp_block_pass *pass, const sp_plan_step *step,
                              const sp_blocked_call *call, sp_plan_binding *out)
{
    const sp_plan_binding *weights = &step->bindings[1];
    if (call->y.map == NULL) {
        return sp__plan_pack_matrix(pass->builder, weights->index, &call->weights, out);
    }
    return sp__block_pack(pass, weights, call->weights.matrix.depth, call->y.map, out);
}

/* Few filters: images stay plain. */
static sp_status block_rows(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    sp_blocked_call call;
    if (!sp__blocked_rows(step->constants, &call) || !is_whole_call(pass, step, &call)) {
        return SP_OK;
    }
    *is_done = true;
    sp_plan_step rows = *step;
    rows.kernel = SP_KERNEL_ID_conv_rows_f32;
    rows.constants = &call.constants;
    rows.constant_bytes = sizeof call.constants;
    return sp__block_plain(pass, &rows);
}

/* The call, which is one of blocks. */
static sp_status add_conv(sp_block_pass *pass, const sp_plan_step *step, sp_blocked_call *call)
{
    sp_block_operands operands = {.bias = step->bindings[2]};
    call->constants.skips_padding =
        sp__blocked_has_padding(&call->constants.of) && is_finite(pass, &step->bindings[1]);
    SP_TRY(sp__block_set_maps(pass, step->bindings[0].index, call, &operands));
    SP_TRY(pack_weights(pass, step, call, &operands.weights));
    return sp__block_add_call(pass, step, SP_KERNEL_ID_conv_blocked_f32, call, &operands);
}

/* Of a blocked x: a copy of the pixels that a pointwise convolution with a stride reads, and the
 * convolution of that, whose outputs read channels where they are. */
static sp_status block_thin(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_plan_binding *x = &step->bindings[0];
    const sp_image_form from = pass->values[x->index].form;
    sp_conv_constants conv;
    sp_copy_constants k;
    sp_blocked_call call;
    uint32_t blocked, root;
    if (!sp__blocked_thin(step->constants, &from, &conv, &k)) return SP_OK;
    if (!sp__blocked_conv(&conv, true, &call)) return SP_OK;
    *is_done = true;
    const sp_image_form to = {from.images, from.channels, call.x.pixels, from.map};
    SP_TRY(sp__block_read(pass, step, x->index, &from, &blocked));
    SP_TRY(sp__block_add_root(pass, &to, &root));
    sp_plan_binding bindings[SP_MAX_BINDINGS] = {sp__block_binding(blocked, &from, false),
                                                 sp__block_binding(root, &to, true)};
    const sp_plan_step copy = {.kernel = SP_KERNEL_ID_copy_strided,
                               .node_name = step->node_name,
                               .op_name = "Reorder",
                               .binding_count = 2,
                               .bindings = bindings,
                               .constants = &k,
                               .constant_bytes = sizeof k};
    SP_TRY(sp__plan_add_step(pass->builder, &copy));
    memcpy(bindings, step->bindings, step->binding_count * sizeof *bindings);
    bindings[0] = sp__block_binding(root, &to, false);
    sp_plan_step thin = *step;
    thin.bindings = bindings;
    return add_conv(pass, &thin, &call);
}

static sp_status block_conv(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_conv_constants *k = step->constants;
    const uint32_t x = step->bindings[0].index;
    sp_blocked_call call;
    if (!sp__blocked_conv(k, true, &call)) {
        if (!sp__blocked_conv(k, false, &call)) return block_rows(pass, step, is_done);
    } else {
        SP_TRY(sp__block_regroup(pass, x, call.x.images));
        if (!sp__block_is_like(pass, x, &call.x) && !sp__blocked_conv(k, false, &call)) {
            return block_rows(pass, step, is_done);
        }
    }
    if (!is_whole_call(pass, step, &call)) return SP_OK;
    if (sp__block_is_like(pass, x, &call.x)) SP_TRY(block_thin(pass, step, is_done));
    if (*is_done) return SP_OK;
    *is_done = true;
    return add_conv(pass, step, &call);
}

/* Each lane by itself: in the lanes of x, if what there is for each channel can be there too. */
static sp_status block_depthwise(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_plan_binding *x = &step->bindings[0];
    sp_blocked_call call;
    sp_block_operands operands = {.bias = step->bindings[2]};
    if (!sp__blocked_depthwise(step->constants, &call) || !is_whole_call(pass, step, &call)) {
        return SP_OK;
    }
    *is_done = true;
    call.constants.skips_padding = is_finite(pass, &step->bindings[1]);
    SP_TRY(sp__block_regroup(pass, x->index, call.x.images));
    const bool has_bias = call.constants.of.has_bias;
    const bool can_move = !has_bias || sp__block_is_packable(pass, &operands.bias);
    if (can_move && sp__block_is_like(pass, x->index, &call.x)) {
        call.x = sp__block_dense(&pass->values[x->index].form);
    }
    if (call.x.map == NULL) {
        SP_TRY(sp__plan_pack_matrix(pass->builder, step->bindings[1].index, &call.weights,
                                    &operands.weights));
    } else {
        const int64_t taps = call.weights.matrix.depth;
        sp__blocked_set_lanes(&call, &call.x);
        SP_TRY(sp__block_pack(pass, &step->bindings[1], taps, call.x.map, &operands.weights));
        if (has_bias) {
            SP_TRY(sp__block_pack(pass, &step->bindings[2], 1, call.x.map, &operands.bias));
        }
    }
    return sp__block_add_call(pass, step, SP_KERNEL_ID_depthwise_blocked_f32, &call, &operands);
}

static sp_status block_any_conv(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    if (step->bindings[0].where != SP_PLACE_ARENA) return SP_OK;
    if (!sp__block_is_packable(pass, &step->bindings[1])) return SP_OK;
    return step->kernel == SP_KERNEL_ID_conv_f32 ? block_conv(pass, step, is_done)
                                                 : block_depthwise(pass, step, is_done);
}

/* ---- pools and normalisation ---- */

static sp_status block_max_pool(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_pool_constants *k = step->constants;
    const sp_image_form *from =
        sp__block_form(pass, &step->bindings[0], k->planes * k->in_h * k->in_w);
    sp_blocked_call call;
    if (from == NULL) return SP_OK;
    const sp_image_form form = sp__block_dense(from);
    if (!sp__blocked_max_pool(k, &form, &call)) return SP_OK;
    if (!sp__block_is_whole(pass, sp__block_output(step), sp__block_plain_count(&call.y)))
        return SP_OK;
    SP_TRY(sp__block_fuse_pool(pass, step, &call, is_done));
    if (*is_done) return SP_OK;
    *is_done = true;
    const sp_block_operands none = {0};
    return sp__block_add_call(pass, step, SP_KERNEL_ID_max_pool_blocked_f32, &call, &none);
}

static sp_status block_average_pool(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_window_constants *k = step->constants;
    const sp_image_form *from =
        sp__block_form(pass, &step->bindings[0], k->planes * k->in[0] * k->in[1] * k->in[2]);
    sp_average_blocked_constants constants;
    sp_blocked_call call;
    uint32_t x, y;
    if (from == NULL) return SP_OK;
    const sp_image_form form = sp__block_dense(from);
    if (!sp__blocked_average_pool(k, &form, &constants, &call)) return SP_OK;
    if (!is_whole_call(pass, step, &call)) return SP_OK;
    *is_done = true;
    SP_TRY(sp__block_read(pass, step, step->bindings[0].index, &call.x, &x));
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &call.y, &y));
    const sp_plan_binding bindings[2] = {sp__block_binding(x, &call.x, false),
                                         sp__block_binding(y, &call.y, true)};
    sp_plan_step blocked = *step;
    blocked.kernel = SP_KERNEL_ID_average_pool_blocked_f32;
    blocked.bindings = bindings;
    blocked.constants = &constants;
    blocked.constant_bytes = sizeof constants;
    return sp__plan_add_step(pass->builder, &blocked);
}

/* The four lists of a normalisation; by the map, if there is one. */
static sp_status bind_lists(sp_block_pass *pass, const sp_plan_step *step,
                            const sp_channel_map *map, sp_plan_binding *lists)
{
    for (uint32_t i = 0; i < 4; i++) {
        lists[i] = step->bindings[1 + i];
        if (map != NULL) SP_TRY(sp__block_pack(pass, &step->bindings[1 + i], 1, map, &lists[i]));
        else if (lists[i].where == SP_PLACE_ARENA) {
            SP_TRY(sp__block_read_plain(pass, step, lists[i].index));
        }
    }
    return SP_OK;
}

static sp_status add_norm(sp_block_pass *pass, const sp_plan_step *step, const sp_image_form *form,
                          const sp_norm_blocked_constants *constants)
{
    uint32_t x, y;
    sp_plan_binding bindings[6];
    SP_TRY(bind_lists(pass, step, form->map, &bindings[1]));
    SP_TRY(sp__block_read(pass, step, step->bindings[0].index, form, &x));
    SP_TRY(sp__block_write(pass, step->bindings[5].index, form, &y));
    sp__block_set_in_place(pass, step, 0, x, y);
    bindings[0] = sp__block_binding(x, form, false);
    bindings[5] = sp__block_binding(y, form, true);
    sp_plan_step blocked = *step;
    blocked.kernel = SP_KERNEL_ID_norm_blocked_f32;
    blocked.bindings = bindings;
    blocked.constants = constants;
    blocked.constant_bytes = sizeof *constants;
    return sp__plan_add_step(pass->builder, &blocked);
}

static sp_status block_norm(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_batch_norm_constants *norm = step->constants;
    const int64_t count = norm->planes * norm->plane;
    const sp_plan_binding *x = &step->bindings[0];
    sp_norm_blocked_constants constants;
    if (sp__block_form(pass, x, count) == NULL || norm->channels == 0) return SP_OK;
    if (!sp__block_is_whole(pass, sp__block_output(step), count)) return SP_OK;
    SP_TRY(sp__block_regroup(pass, x->index, norm->planes / norm->channels));
    sp_image_form form = sp__block_dense(&pass->values[x->index].form);
    for (uint32_t i = 1; i < 5; i++) {
        if (!sp__block_is_packable(pass, &step->bindings[i])) form.map = NULL;
    }
    if (!sp__blocked_norm(norm, &form, &constants)) return SP_OK;
    *is_done = true;
    bool is_fused = false;
    SP_TRY(sp__block_fuse_norm(pass, step, &constants, &is_fused));
    return is_fused ? SP_OK : add_norm(pass, step, &form, &constants);
}

/* In the lanes of x. */
static sp_status block_mean(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_reduce_constants *k = step->constants;
    const sp_image_form *from = sp__block_form(pass, &step->bindings[0], k->count * k->extent);
    sp_channels_constants constants;
    uint32_t x, y;
    if (from == NULL || !sp__block_is_whole(pass, sp__block_output(step), k->count)) return SP_OK;
    const sp_image_form form = sp__block_dense(from);
    if (!sp__blocked_mean(k, &form, &constants)) return SP_OK;
    sp_image_form means = form;
    means.pixels = 1;
    *is_done = true;
    SP_TRY(sp__block_read(pass, step, step->bindings[0].index, &form, &x));
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &means, &y));
    const sp_plan_binding bindings[2] = {sp__block_binding(x, &form, false),
                                         sp__block_binding(y, &means, true)};
    sp_plan_step blocked = *step;
    blocked.kernel = SP_KERNEL_ID_mean_blocked_f32;
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
        return block_any_conv(pass, step, is_done);
    case SP_KERNEL_ID_conv_transpose_f32:
        return sp__block_transposed(pass, step, is_done);
    case SP_KERNEL_ID_max_pool_f32:
        return block_max_pool(pass, step, is_done);
    case SP_KERNEL_ID_average_pool_f32:
        return block_average_pool(pass, step, is_done);
    case SP_KERNEL_ID_reduce_f32:
        return block_mean(pass, step, is_done);
    case SP_KERNEL_ID_copy_strided:
    case SP_KERNEL_ID_gather:
        return sp__block_view(pass, step, is_done);
    case SP_KERNEL_ID_split:
        return sp__block_view_parts(pass, step, is_done);
    case SP_KERNEL_ID_batch_norm_f32:
        return block_norm(pass, step, is_done);
    default:
        return sp__block_elements(pass, step, is_done);
    }
}
