/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps compute images in blocks of channels. Convolutions do wherever their kernel can;
 * other steps where their input is blocked already. Plain and blocked images have the same
 * elements, and the kernels the same bits, so the choice is one of speed alone. */
#include <string.h>

#include "base/macros.h"
#include "plan/plan_blocks.h"
#include "plan/plan_fuse.h"

static const sp_plan_binding *output_of(const sp_plan_step *step)
{
    return &step->bindings[step->binding_count - 1];
}

static sp_plan_binding binding_of(uint32_t value, const sp_image_form *form, bool is_write)
{
    return (sp_plan_binding){.where = SP_PLACE_ARENA,
                             .index = value,
                             .is_write = is_write,
                             .bytes = (uint64_t)sp__image_form_count(form) * sizeof(float)};
}

/* Is the operand a whole value of so many floats, at an address that the plan assigns? */
static bool is_whole(const sp_block_pass *pass, const sp_plan_binding *binding, int64_t count)
{
    if (binding->where != SP_PLACE_ARENA) return false;
    const uint64_t bytes = (uint64_t)count * sizeof(float);
    return binding->bytes == bytes && pass->builder->values[binding->index].bytes == bytes;
}

static int64_t plain_count(const sp_image_form *form)
{
    return form->images * form->channels * form->pixels;
}

/* The form of a blocked operand that has so many elements; NULL if it is not blocked. */
static const sp_image_form *form_of(const sp_block_pass *pass, const sp_plan_binding *binding,
                                    int64_t count)
{
    if (!is_whole(pass, binding, count)) return NULL;
    const sp_block_value *value = &pass->values[binding->index];
    return value->blocked != SP_NO_VALUE && plain_count(&value->form) == count ? &value->form
                                                                               : NULL;
}

/* The step writes its output over that operand if the recorded one would have. */
static void set_in_place(sp_block_pass *pass, const sp_plan_step *step, uint32_t operand,
                         uint32_t from, uint32_t to)
{
    sp_plan_value *values = pass->builder->values;
    const sp_plan_value *recorded = &values[output_of(step)->index];
    if (recorded->in_place != step->bindings[operand].index) return;
    if (to != output_of(step)->index) values[to].in_place = from;
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
        bindings[0] = binding_of(x, &call->x, false);
    }
    if (is_conv) SP_TRY(pack_weights(pass, &step->bindings[1], call, &bindings[1]));
    if (call->constants.of.has_bias) SP_TRY(sp__block_read_plain(pass, step, bindings[2].index));
    SP_TRY(sp__block_write(pass, output_of(step)->index, &call->y, &y));
    bindings[step->binding_count - 1] = binding_of(y, &call->y, true);
    sp_plan_step blocked = *step;
    blocked.kernel = kernel;
    blocked.bindings = bindings;
    blocked.constants = &call->constants;
    blocked.constant_bytes = sizeof call->constants;
    memcpy(blocked.grid, call->grid, sizeof blocked.grid);
    return sp__plan_add_step(pass->builder, &blocked);
}

static sp_status block_conv(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_conv_constants *k = step->constants;
    const bool is_depthwise = step->kernel == SP_KERNEL_ID_conv_depthwise_f32;
    const sp_plan_binding *x = &step->bindings[0];
    sp_blocked_call call;
    if (x->where != SP_PLACE_ARENA || !is_packable(pass, &step->bindings[1])) return SP_OK;
    const bool is_blocked = sp__block_is_blocked(pass, x->index);
    const bool is_made =
        is_depthwise ? sp__blocked_depthwise(k, &call) : sp__blocked_conv(k, is_blocked, &call);
    if (!is_made || !is_whole(pass, x, plain_count(&call.x)) ||
        !is_whole(pass, output_of(step), plain_count(&call.y))) {
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
    const sp_image_form *form = form_of(pass, &step->bindings[0], k->planes * k->in_h * k->in_w);
    sp_blocked_call call;
    if (form == NULL || !sp__blocked_max_pool(k, form, &call)) return SP_OK;
    if (!is_whole(pass, output_of(step), plain_count(&call.y))) return SP_OK;
    *is_done = true;
    return add_call(pass, step, SP_KERNEL_ID_max_pool_blocked_f32, &call);
}

/* The convolution that computes the normalised value, if nothing else reads that; else NULL. */
static sp_plan_step *find_normed(const sp_block_pass *pass, const sp_plan_step *norm)
{
    const uint32_t root = norm->bindings[0].index;
    const sp_plan_builder *builder = pass->builder;
    /* Its write and this read; unknown if steps are not fused. */
    const bool is_read_elsewhere = builder->values[root].use_count != 2;
    if (is_read_elsewhere && !SP_PLANTED(fuse_read_convolution)) return NULL;
    const sp_block_value *value = &pass->values[root];
    if (value->writer == SP_NO_STEP || value->is_plain) return NULL;
    for (uint32_t i = 1; i < 5; i++) {
        const sp_plan_binding *list = &norm->bindings[i];
        const bool is_early = list->where == SP_PLACE_ARENA && list->index < SP_NO_VALUE &&
                              !builder->values[list->index].is_computed;
        if (!is_early) return NULL;
    }
    sp_plan_step *conv = &builder->steps[value->writer];
    const bool is_conv = conv->kernel == SP_KERNEL_ID_conv_blocked_f32 ||
                         conv->kernel == SP_KERNEL_ID_depthwise_blocked_f32;
    if (!is_conv) return NULL;
    const sp_blocked_constants *k = conv->constants;
    return k->of.activation == SP_ACTIVATION_NONE && !k->has_norm ? conv : NULL;
}

/* The convolution normalises what it has computed. */
static sp_status fuse_norm(sp_block_pass *pass, const sp_plan_step *norm, uint32_t conv_index,
                           const sp_norm_blocked_constants *constants)
{
    sp_plan_builder *builder = pass->builder;
    const sp_plan_step conv = builder->steps[conv_index];
    sp_block_value *between = &pass->values[norm->bindings[0].index];
    const sp_image_form form = between->form;
    sp_plan_binding *bindings;
    sp_blocked_constants *k;
    const uint32_t count = conv.binding_count + 4;
    SP_TRY(sp__bump_array(&builder->plan->bump, count, sizeof *bindings, &bindings));
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    memcpy(k, conv.constants, sizeof *k);
    k->has_norm = true;
    k->epsilon = constants->epsilon;
    k->of.activation = constants->activation;
    memcpy(bindings, conv.bindings, (conv.binding_count - 1) * sizeof *bindings);
    memcpy(&bindings[conv.binding_count - 1], &norm->bindings[1], 4 * sizeof *bindings);
    between->blocked = SP_NO_VALUE;
    uint32_t y;
    SP_TRY(sp__block_write(pass, norm->bindings[5].index, &form, &y));
    pass->values[norm->bindings[5].index].writer = conv_index;
    bindings[count - 1] = binding_of(y, &form, true);
    sp_plan_step *step = &builder->steps[conv_index];
    step->bindings = bindings;
    step->binding_count = count;
    step->constants = k;
    return sp__plan_append_name(builder, &step->op_name, norm->op_name);
}

static sp_status block_norm(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_batch_norm_constants *norm = step->constants;
    const int64_t count = norm->planes * norm->plane;
    const sp_image_form *from = form_of(pass, &step->bindings[0], count);
    sp_norm_blocked_constants constants;
    sp_plan_step blocked = *step;
    if (from == NULL || !sp__blocked_norm(norm, from, &constants, blocked.grid)) return SP_OK;
    if (!is_whole(pass, output_of(step), count)) return SP_OK;
    *is_done = true;
    const sp_image_form form = *from;
    const sp_plan_step *conv = find_normed(pass, step);
    if (conv != NULL) {
        return fuse_norm(pass, step, (uint32_t)(conv - pass->builder->steps), &constants);
    }
    uint32_t x, y;
    sp_plan_binding bindings[6];
    memcpy(bindings, step->bindings, sizeof bindings);
    for (uint32_t i = 1; i < 5; i++) {
        if (bindings[i].where != SP_PLACE_ARENA) continue;
        SP_TRY(sp__block_read_plain(pass, step, bindings[i].index));
    }
    SP_TRY(sp__block_read(pass, step, bindings[0].index, &form, &x));
    SP_TRY(sp__block_write(pass, bindings[5].index, &form, &y));
    set_in_place(pass, step, 0, x, y);
    bindings[0] = binding_of(x, &form, false);
    bindings[5] = binding_of(y, &form, true);
    blocked.kernel = SP_KERNEL_ID_norm_blocked_f32;
    blocked.bindings = bindings;
    blocked.constants = &constants;
    blocked.constant_bytes = sizeof constants;
    return sp__plan_add_step(pass->builder, &blocked);
}

/* ---- elements ---- */

/* Functions of each element by itself, whose constants begin with those of sp_flat_constants. */
static bool is_flat(sp_kernel_id kernel)
{
    switch (kernel) {
    case SP_KERNEL_ID_relu_f32:
    case SP_KERNEL_ID_sigmoid_f32:
    case SP_KERNEL_ID_tanh_f32:
    case SP_KERNEL_ID_exp_f32:
    case SP_KERNEL_ID_neg_f32:
    case SP_KERNEL_ID_abs_f32:
    case SP_KERNEL_ID_sqrt_f32:
    case SP_KERNEL_ID_softplus_f32:
    case SP_KERNEL_ID_softsign_f32:
    case SP_KERNEL_ID_mish_f32:
    case SP_KERNEL_ID_hard_swish_f32:
    case SP_KERNEL_ID_erf_f32:
    case SP_KERNEL_ID_gelu_f32:
    case SP_KERNEL_ID_gelu_tanh_f32:
    case SP_KERNEL_ID_leaky_relu_f32:
    case SP_KERNEL_ID_hard_sigmoid_f32:
    case SP_KERNEL_ID_clip_f32:
    case SP_KERNEL_ID_divide_f32:
    case SP_KERNEL_ID_elu_f32:
    case SP_KERNEL_ID_selu_f32:
        return true;
    default:
        return false;
    }
}

static sp_status block_flat(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    union {
        sp_flat_constants flat;
        sp_function_constants function;
    } k;
    memcpy(&k, step->constants, step->constant_bytes);
    const sp_image_form *from = form_of(pass, &step->bindings[0], k.flat.count);
    if (step->binding_count != 2 || from == NULL) return SP_OK;
    const sp_image_form form = *from;
    if (!is_whole(pass, output_of(step), k.flat.count)) return SP_OK;
    k.flat.count = sp__image_form_count(&form);
    const uint64_t tiles = sp__lower_tiles((uint64_t)k.flat.count, (uint64_t)k.flat.tile_count);
    if (tiles > UINT32_MAX) return SP_OK;
    *is_done = true;
    uint32_t x, y;
    SP_TRY(sp__block_read(pass, step, step->bindings[0].index, &form, &x));
    SP_TRY(sp__block_write(pass, output_of(step)->index, &form, &y));
    set_in_place(pass, step, 0, x, y);
    const sp_plan_binding bindings[2] = {binding_of(x, &form, false), binding_of(y, &form, true)};
    sp_plan_step blocked = *step;
    blocked.bindings = bindings;
    blocked.constants = &k;
    blocked.grid[0] = (uint32_t)tiles;
    return sp__plan_add_step(pass->builder, &blocked);
}

/* How an operand of an elementwise step with two operands is read. */
typedef enum operand_kind {
    OPERAND_OTHER,
    OPERAND_WHOLE,   /* an element for each of y */
    OPERAND_CHANNEL, /* one for each channel of each image */
    OPERAND_ONE      /* one in all */
} operand_kind;

static operand_kind kind_of(const sp_binary_constants *k, const int64_t *strides)
{
    if (k->rank == 1) {
        return strides[0] == 1 ? OPERAND_WHOLE : strides[0] == 0 ? OPERAND_ONE : OPERAND_OTHER;
    }
    if (k->rank != 2) return OPERAND_OTHER;
    if (strides[0] == k->dims[1] && strides[1] == 1) return OPERAND_WHOLE;
    if (strides[0] == 1 && strides[1] == 0) return OPERAND_CHANNEL;
    return strides[0] == 0 && strides[1] == 0 ? OPERAND_ONE : OPERAND_OTHER;
}

typedef struct binary {
    sp_binary_constants k;
    operand_kind kinds[2];
    sp_image_form form;
    sp_plan_binding bindings[3];
} binary;

/* The operand that is blocked decides the form. */
static bool find_form(const sp_block_pass *pass, const sp_plan_step *step, binary *b)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (b->kinds[i] != OPERAND_WHOLE) continue;
        const sp_image_form *form = form_of(pass, &step->bindings[i], b->k.count);
        if (form == NULL) continue;
        b->form = *form;
        return true;
    }
    return false;
}

static bool is_blockable(const sp_block_pass *pass, const sp_plan_step *step, binary *b)
{
    b->k = *(const sp_binary_constants *)step->constants;
    b->kinds[0] = kind_of(&b->k, b->k.a);
    b->kinds[1] = kind_of(&b->k, b->k.b);
    if (!find_form(pass, step, b) || !is_whole(pass, output_of(step), b->k.count)) return false;
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t channels = b->form.images * b->form.channels;
        switch (b->kinds[i]) {
        case OPERAND_WHOLE:
            if (!is_whole(pass, &step->bindings[i], b->k.count)) return false;
            break;
        case OPERAND_CHANNEL:
            if (b->k.dims[0] != channels || !is_whole(pass, &step->bindings[i], channels)) {
                return false;
            }
            break;
        case OPERAND_ONE:
            break;
        default:
            return false;
        }
    }
    return true;
}

/* y's dimensions are [blocks of all images][pixels][16], or all in one if no operand has one
 * element a channel. */
static void set_dims(binary *b)
{
    const bool is_flat_form = b->kinds[0] != OPERAND_CHANNEL && b->kinds[1] != OPERAND_CHANNEL;
    const int64_t block = SP_CHANNEL_BLOCK, pixels = b->form.pixels;
    int64_t *strides[2] = {b->k.a, b->k.b};
    b->k.count = sp__image_form_count(&b->form);
    b->k.rank = is_flat_form ? 1 : 3;
    b->k.dims[0] = is_flat_form ? b->k.count : b->k.count / block / pixels;
    b->k.dims[1] = pixels;
    b->k.dims[2] = block;
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_one = b->kinds[i] == OPERAND_ONE, is_wide = b->kinds[i] == OPERAND_WHOLE;
        strides[i][0] = is_one ? 0 : is_flat_form ? 1 : is_wide ? pixels * block : block;
        strides[i][1] = is_wide ? block : 0;
        strides[i][2] = is_one ? 0 : 1;
    }
}

static sp_status bind_operand(sp_block_pass *pass, const sp_plan_step *step, uint32_t i,
                              const binary *b, sp_plan_binding *binding)
{
    uint32_t value;
    *binding = step->bindings[i];
    if (b->kinds[i] == OPERAND_ONE) {
        if (binding->where != SP_PLACE_ARENA) return SP_OK;
        return sp__block_read_plain(pass, step, binding->index);
    }
    sp_image_form form = b->form;
    if (b->kinds[i] == OPERAND_CHANNEL) form.pixels = 1;
    SP_TRY(sp__block_read(pass, step, binding->index, &form, &value));
    *binding = binding_of(value, &form, false);
    return SP_OK;
}

static sp_status block_binary(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    binary b;
    if (step->binding_count != 3 || !is_blockable(pass, step, &b)) return SP_OK;
    set_dims(&b);
    const uint64_t tiles = sp__lower_tiles((uint64_t)b.k.count, (uint64_t)b.k.tile_count);
    if (tiles > UINT32_MAX) return SP_OK;
    *is_done = true;
    for (uint32_t i = 0; i < 2; i++) SP_TRY(bind_operand(pass, step, i, &b, &b.bindings[i]));
    uint32_t y;
    SP_TRY(sp__block_write(pass, output_of(step)->index, &b.form, &y));
    b.bindings[2] = binding_of(y, &b.form, true);
    for (uint32_t i = 0; i < 2; i++) {
        if (b.kinds[i] == OPERAND_WHOLE) set_in_place(pass, step, i, b.bindings[i].index, y);
    }
    sp_plan_step blocked = *step;
    blocked.bindings = b.bindings;
    blocked.constants = &b.k;
    blocked.grid[0] = (uint32_t)tiles;
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
    case SP_KERNEL_ID_add_f32:
    case SP_KERNEL_ID_sub_f32:
    case SP_KERNEL_ID_mul_f32:
    case SP_KERNEL_ID_div_f32:
    case SP_KERNEL_ID_max_f32:
    case SP_KERNEL_ID_min_f32:
        return block_binary(pass, step, is_done);
    default:
        return is_flat(step->kernel) ? block_flat(pass, step, is_done) : SP_OK;
    }
}
