/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion of activations with other steps, and of sums with products. Bindings still name root
 * values, so views in between (Reshape, Flatten) do not matter: they are the same bytes. */
#include "plan/plan_fuse.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/macros.h"
#include "ops/activation.h"
#include "ops/ops.h"
#include "plan/plan_view.h"

/* ---- uses of values ---- */

static void count_uses(sp_plan_builder *builder)
{
    const sp_graph_plan *plan = builder->plan;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &builder->steps[s];
        for (uint32_t i = 0; i < step->binding_count; i++) {
            const sp_plan_binding *binding = &step->bindings[i];
            if (binding->where != SP_PLACE_ARENA) continue;
            sp_plan_value *root = &builder->values[binding->index];
            root->use_count++;
            if (binding->is_write) root->writer = s;
            else root->reader = s;
        }
    }
    for (uint32_t i = 0; i < builder->output_count; i++) {
        builder->values[builder->values[builder->outputs[i]].root].use_count++;
    }
}

/* ---- matching steps ---- */

sp_plan_step *sp__fuse_writer(const sp_plan_builder *builder, const sp_plan_binding *read,
                              uint32_t use_count)
{
    if (read->where != SP_PLACE_ARENA) return NULL;
    const sp_plan_value *value = &builder->values[read->index];
    const bool is_used_elsewhere = value->use_count != use_count && !SP_PLANTED(fuse_wanted_value);
    if (!value->is_computed || is_used_elsewhere) return NULL;
    sp_plan_step *writer = &builder->steps[value->writer];
    const sp_plan_binding *written = sp__fuse_output(writer);
    const bool is_whole = written->bytes == value->bytes && read->bytes == value->bytes;
    return written->index == read->index && is_whole ? writer : NULL;
}

bool sp__fuse_number(const sp_plan_builder *builder, const sp_plan_binding *read, float *out)
{
    if (read->bytes != sizeof *out || read->where != SP_PLACE_ARENA) return false;
    const sp_plan_value *value = &builder->values[read->index];
    if (value->data == NULL || value->is_computed || value->dtype != SP_F32) return false;
    memcpy(out, value->data, sizeof *out);
    return true;
}

void sp__fuse_moves_read(sp_plan_builder *builder, const sp_plan_binding *read,
                         const sp_plan_step *last)
{
    if (read->where != SP_PLACE_ARENA) return;
    sp_plan_value *value = &builder->values[read->index];
    const uint32_t reader = (uint32_t)(last - builder->steps);
    if (value->reader < reader) value->reader = reader;
}

void sp__fuse_reads(sp_plan_builder *builder, uint32_t x, const sp_plan_step *last)
{
    const sp_plan_binding read = {.where = SP_PLACE_ARENA, .index = x};
    builder->values[x].use_count--;
    sp__fuse_moves_read(builder, &read, last);
}

/* The activation field of a step that can apply one and does not yet; else NULL. */
static uint8_t *step_free_field(const sp_plan_step *step)
{
    uint8_t *field = sp__activation_field(step->kernel, (void *)(uintptr_t)step->constants);
    return field != NULL && *field == SP_ACTIVATION_NONE ? field : NULL;
}

sp_status sp__plan_append_name(sp_plan_builder *builder, const char **name, const char *more)
{
    char both[320];
    const int len = snprintf(both, sizeof(both), "%s+%s", *name, more);
    SP_ASSERT(len > 0 && (size_t)len < sizeof(both)); /* names of ops of the registry */
    const sp_text text = {.ptr = both, .len = (size_t)len};
    return sp__bump_text(&builder->plan->bump, text, name);
}

sp_status sp__fuse_into_last(sp_plan_builder *builder, sp_plan_step *const *steps, uint32_t count,
                             const char **op_name)
{
    *op_name = steps[0]->op_name;
    for (uint32_t i = 1; i < count; i++) {
        SP_TRY(sp__plan_append_name(builder, op_name, steps[i]->op_name));
        steps[i - 1]->kernel = SP_NO_KERNEL;
    }
    return SP_OK;
}

/* ---- fusing ---- */

/* `first` applies the activation and writes the output of `last`. A removed step has no kernel. */
static sp_status step_absorb(sp_plan_builder *builder, sp_plan_step *first, sp_plan_step *last,
                             sp_activation activation)
{
    SP_TRY(sp__plan_append_name(builder, &first->op_name, last->op_name));
    *step_free_field(first) = (uint8_t)activation;
    const sp_plan_value *between = &builder->values[sp__fuse_output(first)->index];
    sp_plan_value *output = &builder->values[sp__fuse_output(last)->index];
    output->writer = (uint32_t)(first - builder->steps);
    output->in_place = between->in_place;
    *sp__fuse_output(first) = *sp__fuse_output(last);
    last->kernel = SP_NO_KERNEL;
    return SP_OK;
}

static sp_status fuse_unary(sp_plan_builder *builder, sp_plan_step *step, sp_activation activation)
{
    sp_plan_step *first = sp__fuse_writer(builder, &step->bindings[0], 2);
    if (first == NULL || step_free_field(first) == NULL) return SP_OK;
    return step_absorb(builder, first, step, activation);
}

/* Operand `gate` of the multiplication is the sigmoid of the other operand, x. */
static sp_status fuse_silu(sp_plan_builder *builder, sp_plan_step *mul, uint32_t gate)
{
    const sp_plan_binding *x = &mul->bindings[1 - gate];
    sp_plan_step *sigmoid = sp__fuse_writer(builder, &mul->bindings[gate], 2);
    sp_plan_step *first = sp__fuse_writer(builder, x, 3);
    if (sigmoid == NULL || first == NULL || step_free_field(first) == NULL) return SP_OK;
    if (sigmoid->kernel != SP_KERNEL_ID_sigmoid_f32) return SP_OK;
    const bool is_of_x = sigmoid->bindings[0].index == x->index;
    /* All three have the same number of elements, so nothing is broadcast. */
    const bool is_whole = sp__fuse_output(mul)->bytes == x->bytes;
    if (!is_of_x || !is_whole) return SP_OK;
    SP_TRY(sp__plan_append_name(builder, &first->op_name, sigmoid->op_name));
    sigmoid->kernel = SP_NO_KERNEL;
    return step_absorb(builder, first, mul, SP_ACTIVATION_SILU);
}

/* ---- sums ---- */

/* Has the value its bytes before step `s`? */
static bool is_there_before(const sp_plan_builder *builder, const sp_plan_binding *read,
                            const sp_plan_step *step)
{
    if (read->where != SP_PLACE_ARENA) return true;
    const sp_plan_value *value = &builder->values[read->index];
    const bool is_before = value->writer < (uint32_t)(step - builder->steps);
    return !value->is_computed || is_before || SP_PLANTED(fuse_later_addend);
}

/* The strides of an operand of a sum in the rows and columns of the product that is the other
 * operand. False if its rows are not rows of neighbours: then a step of its own is faster. */
static bool find_addend(const sp_plan_step *add, uint32_t operand, sp_gemm_constants *gemm)
{
    const sp_binary_constants *k = add->constants;
    sp_view addend = {.rank = k->rank};
    sp_view rows = {.rank = 2, .dims = {gemm->rows, gemm->columns}, .strides = {gemm->columns, 1}};
    memcpy(addend.dims, k->dims, sizeof k->dims);
    memcpy(addend.strides, operand == 0 ? k->a : k->b, sizeof k->a);
    if (!sp__view_compose(&addend, &rows)) return false;
    gemm->has_c = true;
    gemm->beta = 1.0f;
    gemm->c_row = rows.strides[0];
    gemm->c_column = gemm->columns > 1 ? rows.strides[1] : 1;
    return gemm->c_column == 1;
}

static bool is_product(sp_kernel_id kernel)
{
    return kernel == SP_KERNEL_ID_gemm_f32 || sp__kernel_is_narrow_gemm(kernel);
}

/* Operand `operand` of the addition is added to the outputs of the product, which is the other
 * one: the same rounded sum. */
static sp_status fuse_sum(sp_plan_builder *builder, sp_plan_step *add, uint32_t operand)
{
    sp_plan_step *product = sp__fuse_writer(builder, &add->bindings[1 - operand], 2);
    if (product == NULL || !is_product(product->kernel)) return SP_OK;
    sp_gemm_constants *k = (sp_gemm_constants *)(uintptr_t)product->constants;
    const bool is_open = !k->has_c && k->activation == SP_ACTIVATION_NONE && sp__gemm_batch(k) == 1;
    const bool is_whole = sp__fuse_output(add)->bytes == sp__fuse_output(product)->bytes;
    if (!is_open || !is_whole) return SP_OK;
    if (!is_there_before(builder, &add->bindings[operand], product)) return SP_OK;
    sp_gemm_constants with_c = *k;
    if (!find_addend(add, operand, &with_c)) return SP_OK;
    sp_plan_binding *bindings;
    SP_TRY(sp__bump_array(&builder->plan->bump, 4, sizeof *bindings, &bindings));
    memcpy(bindings, product->bindings, 2 * sizeof *bindings);
    bindings[2] = add->bindings[operand];
    bindings[3] = *sp__fuse_output(product);
    product->bindings = bindings;
    product->binding_count = 4;
    *k = with_c;
    const sp_binary_constants *sum = add->constants;
    return step_absorb(builder, product, add, (sp_activation)sum->activation);
}

/* ---- the pass ---- */

static sp_status fuse_step(sp_plan_builder *builder, sp_plan_step *step)
{
    const sp_kernel_id kernel = step->kernel;
    const sp_activation activation = sp__activation_of(kernel, step->constants);
    if (activation != SP_ACTIVATION_NONE) return fuse_unary(builder, step, activation);
    for (uint32_t i = 0; i < 2 && kernel == SP_KERNEL_ID_mul_f32 && step->kernel != SP_NO_KERNEL;
         i++) {
        SP_TRY(fuse_silu(builder, step, i));
    }
    for (uint32_t i = 2;
         i-- > 0 && kernel == SP_KERNEL_ID_add_f32 && step->kernel != SP_NO_KERNEL;) {
        SP_TRY(fuse_sum(builder, step, i));
    }
    return SP_OK;
}

sp_status sp__plan_fuse(sp_plan_builder *builder)
{
    sp_graph_plan *plan = builder->plan;
    count_uses(builder);
    SP_TRY(sp__plan_fuse_norms(builder));
    SP_TRY(sp__plan_fuse_gates(builder));
    SP_TRY(sp__plan_fuse_moments(builder));
    for (uint32_t s = 0; s < plan->step_count; s++) SP_TRY(fuse_step(builder, &builder->steps[s]));
    SP_TRY(sp__plan_fuse_look_up(builder));
    uint32_t kept = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (builder->steps[s].kernel != SP_NO_KERNEL) builder->steps[kept++] = builder->steps[s];
    }
    plan->step_count = kept;
    return SP_OK;
}
