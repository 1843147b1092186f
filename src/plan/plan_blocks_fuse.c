/* SPDX-License-Identifier: Apache-2.0 */
/* What a convolution in blocks of channels also computes where its sums are finished: the batch
 * normalisation of its result, and the sum of that and another image; and where its rows are, the
 * maxima over windows of them. */
#include <string.h>

#include "base/macros.h"
#include "plan/plan_blocks_maps.h"
#include "plan/plan_fuse.h"

/* The added step that computes a blocked value that only one step reads; SP_NO_STEP: none does. */
static uint32_t find_writer(const sp_block_pass *pass, uint32_t root)
{
    const sp_block_value *value = &pass->values[root];
    /* Its write and that read; unknown if steps are not fused. */
    const bool is_read_elsewhere = pass->builder->values[root].use_count != 2;
    if (is_read_elsewhere && !SP_PLANTED(fuse_read_convolution)) return SP_NO_STEP;
    return value->is_plain ? SP_NO_STEP : value->writer;
}

/* The same, if it is a convolution without activation. */
static uint32_t find_conv(const sp_block_pass *pass, uint32_t root)
{
    const uint32_t writer = find_writer(pass, root);
    if (writer == SP_NO_STEP) return SP_NO_STEP;
    const sp_plan_step *step = &pass->builder->steps[writer];
    const bool is_conv = step->kernel == SP_KERNEL_ID_conv_blocked_f32 ||
                         step->kernel == SP_KERNEL_ID_depthwise_blocked_f32;
    if (!is_conv) return SP_NO_STEP;
    const sp_blocked_constants *k = step->constants;
    const bool is_open = k->of.activation == SP_ACTIVATION_NONE && !k->has_other;
    return is_open ? writer : SP_NO_STEP;
}

/* Has the convolution one filter for each channel of `root`? A reshaped batch has others. */
static bool has_filters_of(const sp_block_pass *pass, uint32_t root, uint32_t conv)
{
    const sp_blocked_constants *k = pass->builder->steps[conv].constants;
    return pass->values[root].form.images == k->images;
}

/* What the convolution computes in place of `root`, from `count` more operands. */
typedef struct conv_more {
    uint32_t root, conv, count;
    const sp_plan_binding *operands;
    sp_blocked_constants constants;
} conv_more;

/* The convolution writes the output of `last`, the fused step, which has that form. */
static sp_status write_output(sp_block_pass *pass, const conv_more *more, const sp_plan_step *last,
                              const sp_image_form *form)
{
    sp_plan_builder *builder = pass->builder;
    const sp_plan_step conv = builder->steps[more->conv];
    const uint32_t output = sp__block_output(last)->index, old = conv.binding_count - 1;
    sp_plan_binding *bindings;
    uint32_t y;
    SP_TRY(
        sp__bump_array(&builder->plan->bump, old + more->count + 1, sizeof *bindings, &bindings));
    memcpy(bindings, conv.bindings, old * sizeof *bindings);
    if (more->count > 0) memcpy(bindings + old, more->operands, more->count * sizeof *bindings);
    pass->values[more->root].blocked = SP_NO_VALUE;
    SP_TRY(sp__block_write(pass, output, form, &y));
    pass->values[output].writer = more->conv;
    /* Sums wait in y between segments: it is over no operand. */
    builder->values[y].in_place = SP_NO_VALUE;
    bindings[old + more->count] = sp__block_binding(y, form, true);
    sp_plan_step *step = &builder->steps[more->conv];
    step->bindings = bindings;
    step->binding_count = old + more->count + 1;
    return sp__plan_append_name(builder, &step->op_name, last->op_name);
}

static sp_status extend_conv(sp_block_pass *pass, const conv_more *more, const sp_plan_step *last)
{
    const sp_image_form form = pass->values[more->root].form;
    sp_blocked_constants *k;
    SP_TRY(sp__bump_array(&pass->builder->plan->bump, 1, sizeof *k, &k));
    *k = more->constants;
    SP_TRY(write_output(pass, more, last, &form));
    pass->builder->steps[more->conv].constants = k;
    return SP_OK;
}

/* A depthwise convolution reads lists by lanes; the other one reads them by filters. */
static const sp_channel_map *lane_map(const sp_block_pass *pass, const conv_more *more)
{
    const sp_plan_step *conv = &pass->builder->steps[more->conv];
    return conv->kernel == SP_KERNEL_ID_depthwise_blocked_f32 ? pass->values[more->root].form.map
                                                              : NULL;
}

sp_status sp__block_fuse_norm(sp_block_pass *pass, const sp_plan_step *norm,
                              const sp_norm_blocked_constants *constants, bool *is_done)
{
    sp_plan_binding lists[4];
    conv_more more = {.root = norm->bindings[0].index, .count = 4, .operands = lists};
    more.conv = find_conv(pass, more.root);
    if (more.conv == SP_NO_STEP || !has_filters_of(pass, more.root, more.conv)) return SP_OK;
    const sp_channel_map *map = lane_map(pass, &more);
    for (uint32_t i = 0; i < more.count; i++) {
        /* Lists that are there before the convolution. */
        lists[i] = norm->bindings[1 + i];
        if (lists[i].where != SP_PLACE_ARENA) return SP_OK;
        if (pass->builder->values[lists[i].index].is_computed) return SP_OK;
        if (map != NULL && !sp__block_is_packable(pass, &lists[i])) return SP_OK;
    }
    more.constants = *(const sp_blocked_constants *)pass->builder->steps[more.conv].constants;
    if (more.constants.has_norm) return SP_OK;
    more.constants.has_norm = true;
    more.constants.epsilon = constants->epsilon;
    more.constants.of.activation = constants->activation;
    *is_done = true;
    for (uint32_t i = 0; i < more.count && map != NULL; i++) {
        SP_TRY(sp__block_pack(pass, &norm->bindings[1 + i], 1, map, &lists[i]));
    }
    return extend_conv(pass, &more, norm);
}

sp_status sp__block_fuse_add(sp_block_pass *pass, const sp_plan_step *add, uint32_t operand,
                             uint8_t activation, bool *is_done)
{
    conv_more more = {.root = add->bindings[operand].index, .count = 1};
    more.conv = find_conv(pass, more.root);
    if (more.conv == SP_NO_STEP) return SP_OK;
    const sp_block_value *value = &pass->values[more.root];
    const sp_block_value *other = &pass->values[add->bindings[1 - operand].index];
    if (other->blocked == SP_NO_VALUE || !sp__image_form_equal(&other->form, &value->form)) {
        return SP_OK;
    }
    /* The other image is there before the convolution. */
    if (other->writer == SP_NO_STEP || other->writer >= more.conv) return SP_OK;
    const sp_plan_binding image = sp__block_binding(other->blocked, &other->form, false);
    more.operands = &image;
    more.constants = *(const sp_blocked_constants *)pass->builder->steps[more.conv].constants;
    more.constants.has_other = true;
    more.constants.of.activation = activation;
    *is_done = true;
    return extend_conv(pass, &more, add);
}

/* ---- maxima ---- */

sp_status sp__block_fuse_pool(sp_block_pass *pass, const sp_plan_step *pool,
                              const sp_blocked_call *call, bool *is_done)
{
    conv_more more = {.root = pool->bindings[0].index};
    more.conv = find_writer(pass, more.root);
    if (more.conv == SP_NO_STEP) return SP_OK;
    sp_plan_builder *builder = pass->builder;
    const sp_plan_step *conv = &builder->steps[more.conv];
    if (conv->kernel != SP_KERNEL_ID_conv_blocked_f32) return SP_OK;
    if (!builder->request->pools_any_size && !sp__blocked_conv_pool_pays(conv->constants)) {
        return SP_OK;
    }
    if (!sp__image_form_equal(&call->x, &pass->values[more.root].form)) return SP_OK;
    if (!has_filters_of(pass, more.root, more.conv)) return SP_OK;
    sp_conv_pool_constants *k;
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    if (!sp__blocked_conv_pool(conv->constants, call, k)) return SP_OK;
    *is_done = true;
    SP_TRY(write_output(pass, &more, pool, &call->y));
    sp_plan_step *step = &builder->steps[more.conv];
    step->kernel = SP_KERNEL_ID_conv_pool_blocked_f32;
    step->constants = k;
    step->constant_bytes = sizeof *k;
    return SP_OK;
}
