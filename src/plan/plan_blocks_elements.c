/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that compute or move elements of images in blocks of channels: functions of one and of two
 * operands, Resize. */
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "plan/plan_blocks_maps.h"

/* ---- functions ---- */

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
    case SP_KERNEL_ID_erf_gate_f32:
    case SP_KERNEL_ID_clip_gate_f32:
    case SP_KERNEL_ID_hard_sigmoid_gate_f32:
    case SP_KERNEL_ID_softplus_gate_f32:
    case SP_KERNEL_ID_tanh_gate_f32:
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
        sp_gate_constants gate;
    } k;
    memcpy(&k, step->constants, step->constant_bytes);
    const sp_image_form *from = sp__block_form(pass, &step->bindings[0], k.flat.count);
    if (step->binding_count != 2 || from == NULL) return SP_OK;
    const sp_image_form form = sp__block_dense(from);
    if (!sp__block_is_whole(pass, sp__block_output(step), k.flat.count)) return SP_OK;
    k.flat.count = sp__image_form_count(&form);
    *is_done = true;
    uint32_t x, y;
    SP_TRY(sp__block_read(pass, step, step->bindings[0].index, &form, &x));
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &form, &y));
    sp__block_set_in_place(pass, step, 0, x, y);
    const sp_plan_binding bindings[2] = {sp__block_binding(x, &form, false),
                                         sp__block_binding(y, &form, true)};
    sp_plan_step blocked = *step;
    blocked.bindings = bindings;
    blocked.constants = &k;
    return sp__plan_add_step(pass->builder, &blocked);
}

/* How an operand of a step with two operands is read. */
typedef enum operand_kind {
    OPERAND_OTHER,
    OPERAND_WHOLE,   /* an element for each of y */
    OPERAND_CHANNEL, /* one for each channel of each image */
    OPERAND_SHARED,  /* one for each channel, for all images */
    OPERAND_ONE      /* one in all */
} operand_kind;

static operand_kind kind_of(const sp_binary_constants *k, const int64_t *strides)
{
    bool is_whole = true, is_one = true;
    int64_t count = 1;
    for (uint32_t i = k->rank; i-- > 0; count *= k->dims[i]) {
        is_whole = is_whole && strides[i] == count;
        is_one = is_one && strides[i] == 0;
    }
    if (is_whole) return OPERAND_WHOLE;
    if (is_one) return OPERAND_ONE;
    if (k->rank == 2 && strides[0] == 1 && strides[1] == 0) return OPERAND_CHANNEL;
    const bool is_shared = k->rank == 3 && strides[0] == 0 && strides[1] == 1 && strides[2] == 0;
    return is_shared ? OPERAND_SHARED : OPERAND_OTHER;
}

typedef struct binary {
    sp_binary_constants k;
    operand_kind kinds[2];
    sp_image_form form, forms[2]; /* of y, of the operands */
} binary;

/* The operand that is blocked decides the form; of two, the one that was computed last, since that
 * is the form of its like further on. */
static bool find_form(const sp_block_pass *pass, const sp_plan_step *step, binary *b)
{
    const sp_block_value *found = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        if (b->kinds[i] != OPERAND_WHOLE) continue;
        if (sp__block_form(pass, &step->bindings[i], b->k.count) == NULL) continue;
        const sp_block_value *value = &pass->values[step->bindings[i].index];
        /* SP_NO_STEP + 1 is 0. */
        if (found == NULL || value->writer + 1 > found->writer + 1) found = value;
    }
    if (found != NULL) b->form = sp__block_dense(&found->form);
    return found != NULL;
}

/* Numbers that all images share say how many images there are. */
static sp_status regroup_operands(sp_block_pass *pass, const sp_plan_step *step, const binary *b)
{
    const bool is_shared = b->kinds[0] == OPERAND_SHARED || b->kinds[1] == OPERAND_SHARED;
    for (uint32_t i = 0; i < 2 && is_shared; i++) {
        if (b->kinds[i] != OPERAND_WHOLE || step->bindings[i].where != SP_PLACE_ARENA) continue;
        SP_TRY(sp__block_regroup(pass, step->bindings[i].index, b->k.dims[0]));
    }
    return SP_OK;
}

/* Has the operand, of b's form, an element where the kernel reads it? */
static bool is_operand(const sp_block_pass *pass, const sp_plan_step *step, uint32_t i, binary *b)
{
    const sp_image_form *form = &b->form;
    const int64_t *dims = b->k.dims;
    b->forms[i] = *form;
    switch (b->kinds[i]) {
    case OPERAND_WHOLE:
        break;
    case OPERAND_CHANNEL:
        b->forms[i].pixels = 1;
        if (dims[0] != form->images * form->channels) return false;
        break;
    case OPERAND_SHARED:
        b->forms[i].pixels = b->forms[i].images = 1;
        if (dims[0] != form->images || dims[1] != form->channels) return false;
        break;
    case OPERAND_ONE:
        return true;
    default:
        return false;
    }
    return sp__block_is_whole(pass, &step->bindings[i], sp__block_plain_count(&b->forms[i]));
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
    SP_TRY(sp__block_read(pass, step, binding->index, &b->forms[i], &value));
    *binding = sp__block_binding(value, &b->forms[i], false);
    return SP_OK;
}

/* Adds the step with blocked operands. `first` is the operand that it binds first. */
static sp_status add_binary(sp_block_pass *pass, const sp_plan_step *step, const binary *b,
                            uint32_t first, const sp_plan_step *blocked)
{
    sp_plan_step added = *blocked;
    sp_plan_binding bindings[3];
    uint32_t y;
    for (uint32_t i = 0; i < 2; i++) {
        SP_TRY(bind_operand(pass, step, i, b, &bindings[i == first ? 0 : 1]));
    }
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &b->form, &y));
    bindings[2] = sp__block_binding(y, &b->form, true);
    for (uint32_t i = 0; i < 2; i++) {
        if (b->kinds[i] != OPERAND_WHOLE) continue;
        sp__block_set_in_place(pass, step, i, bindings[i == first ? 0 : 1].index, y);
    }
    added.bindings = bindings;
    return sp__plan_add_step(pass->builder, &added);
}

/* One number a channel: a kernel of its own. */
static sp_status block_channel_op(sp_block_pass *pass, const sp_plan_step *step, const binary *b,
                                  bool *is_done)
{
    const uint32_t whole = b->kinds[0] == OPERAND_WHOLE ? 0 : 1;
    sp_channel_op_constants constants;
    sp_plan_step blocked = *step;
    if (b->kinds[whole] != OPERAND_WHOLE) return SP_OK;
    if (!sp__blocked_channel_op(step->kernel, whole == 1, b->k.activation, &b->form, &constants)) {
        return SP_OK;
    }
    constants.is_shared = b->kinds[1 - whole] == OPERAND_SHARED;
    *is_done = true;
    blocked.kernel = SP_KERNEL_ID_channel_op_f32;
    blocked.constants = &constants;
    blocked.constant_bytes = sizeof constants;
    return add_binary(pass, step, b, whole, &blocked);
}

/* A list of elements, or such a list and one number. */
static sp_status block_list(sp_block_pass *pass, const sp_plan_step *step, binary *b, bool *is_done)
{
    sp_binary_constants k = b->k;
    k.rank = 1;
    k.count = k.dims[0] = sp__image_form_count(&b->form);
    k.a[0] = b->kinds[0] == OPERAND_WHOLE;
    k.b[0] = b->kinds[1] == OPERAND_WHOLE;
    *is_done = true;
    sp_plan_step blocked = *step;
    blocked.constants = &k;
    return add_binary(pass, step, b, 0, &blocked);
}

/* A sum of two images becomes a part of the convolution that computes the later one. */
static sp_status fuse_add(sp_block_pass *pass, const sp_plan_step *step, const binary *b,
                          bool *is_done)
{
    if (step->kernel != SP_KERNEL_ID_add_f32) return SP_OK;
    if (b->kinds[0] != OPERAND_WHOLE || b->kinds[1] != OPERAND_WHOLE) return SP_OK;
    for (uint32_t i = 0; i < 2 && !*is_done; i++) {
        SP_TRY(sp__block_fuse_add(pass, step, i, b->k.activation, is_done));
    }
    return SP_OK;
}

static sp_status block_binary(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    binary b = {.k = *(const sp_binary_constants *)step->constants};
    b.kinds[0] = kind_of(&b.k, b.k.a);
    b.kinds[1] = kind_of(&b.k, b.k.b);
    SP_TRY(regroup_operands(pass, step, &b));
    if (!find_form(pass, step, &b)) return SP_OK;
    if (!sp__block_is_whole(pass, sp__block_output(step), b.k.count)) return SP_OK;
    bool is_list = true;
    for (uint32_t i = 0; i < 2; i++) {
        if (!is_operand(pass, step, i, &b)) return SP_OK;
        is_list = is_list && (b.kinds[i] == OPERAND_WHOLE || b.kinds[i] == OPERAND_ONE);
    }
    SP_TRY(fuse_add(pass, step, &b, is_done));
    if (*is_done) return SP_OK;
    return is_list ? block_list(pass, step, &b, is_done)
                   : block_channel_op(pass, step, &b, is_done);
}

/* ---- moving ---- */

/* The nearest element along rows or columns of images. */
static sp_status block_resize(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    sp_resize_constants k = *(const sp_resize_constants *)step->constants;
    const sp_image_form *from = sp__block_form(pass, &step->bindings[0], k.outer * k.in * k.inner);
    if (from == NULL || step->binding_count != 2 || k.element_bytes != sizeof(float)) return SP_OK;
    const int64_t planes = from->images * from->channels;
    /* The axis is inside a plane. */
    if (k.outer % planes != 0 || k.outer / planes * k.in * k.inner != from->pixels) return SP_OK;
    const sp_image_form x = sp__block_dense(from);
    const sp_image_form y = {x.images, x.channels, x.pixels / k.in * k.out, x.map};
    if (!sp__block_is_whole(pass, sp__block_output(step), sp__block_plain_count(&y))) return SP_OK;
    k.outer = k.outer / planes * x.images * sp__image_form_blocks(&x);
    k.inner *= SP_CHANNEL_BLOCK;
    k.lanes = SP_CHANNEL_BLOCK;
    *is_done = true;
    uint32_t values[2];
    SP_TRY(sp__block_read(pass, step, step->bindings[0].index, &x, &values[0]));
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &y, &values[1]));
    const sp_plan_binding bindings[2] = {sp__block_binding(values[0], &x, false),
                                         sp__block_binding(values[1], &y, true)};
    sp_plan_step blocked = *step;
    blocked.bindings = bindings;
    blocked.constants = &k;
    return sp__plan_add_step(pass->builder, &blocked);
}

sp_status sp__block_elements(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    switch (step->kernel) {
    case SP_KERNEL_ID_add_f32:
    case SP_KERNEL_ID_sub_f32:
    case SP_KERNEL_ID_mul_f32:
    case SP_KERNEL_ID_div_f32:
    case SP_KERNEL_ID_max_f32:
    case SP_KERNEL_ID_min_f32:
        return block_binary(pass, step, is_done);
    case SP_KERNEL_ID_concat:
        return sp__block_join(pass, step, is_done);
    case SP_KERNEL_ID_resize_nearest:
        return block_resize(pass, step, is_done);
    default:
        return is_flat(step->kernel) ? block_flat(pass, step, is_done) : SP_OK;
    }
}
