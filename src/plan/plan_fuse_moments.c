/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion of what a normalisation by moments, as JAX writes it, does for each element:
 *
 *     square = Mul(x, x), ReduceSum(square): one reduction
 *     y = Add(Mul(Sub(x, mean), Mul(factor, scale)), bias): one step
 *
 * where mean and factor have a number for each row, scale and bias one for each element of a row.
 * The moments between are numbers of rows and stay steps. */
#include "base/macros.h"
#include "ops/ops.h"
#include "plan/plan_fuse.h"

/* ---- sums of squares ---- */

/* The reduction squares elements as the product does: each square is rounded, then added. */
static sp_status fuse_squares(sp_plan_builder *builder, sp_plan_step *sum)
{
    const sp_reduce_constants *k = sum->constants;
    if (k->reduction != SP_REDUCE_SUM || k->has_shift) return SP_OK;
    sp_plan_step *square = sp__fuse_writer(builder, &sum->bindings[0], 2);
    if (square == NULL || square->kernel != SP_KERNEL_ID_mul_f32) return SP_OK;
    const sp_binary_constants *product = square->constants;
    const sp_plan_binding *x = &square->bindings[0], *other = &square->bindings[1];
    const bool is_list = product->rank == 1 && product->a[0] == 1 && product->b[0] == 1;
    const bool is_square = x->where == SP_PLACE_ARENA && x->index == other->index;
    if (!is_list || !is_square || x->bytes != sum->bindings[0].bytes) return SP_OK;
    sp_reduce_constants *squares;
    sp_plan_binding *bindings;
    const char *name = square->op_name;
    SP_TRY(sp__plan_append_name(builder, &name, sum->op_name));
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *squares, &squares));
    SP_TRY(sp__bump_array(&builder->plan->bump, 2, sizeof *bindings, &bindings));
    *squares = *k;
    squares->reduction = SP_REDUCE_SUM_SQUARE;
    bindings[0] = *x;
    bindings[1] = *sp__fuse_output(sum);
    builder->values[x->index].use_count--;
    sp__fuse_moves_read(builder, x, sum);
    sum->constants = squares;
    sum->bindings = bindings;
    sum->node_name = square->node_name;
    sum->op_name = name;
    square->kernel = SP_NO_KERNEL;
    return SP_OK;
}

/* ---- rows ---- */

/* The steps, and the operands of the one that takes their place. */
typedef struct affine_steps {
    sp_plan_step *distance, *factors, *product, *shifted;
    const sp_plan_binding *x, *mean, *factor, *scale, *bias;
    int64_t rows, extent;
} affine_steps;

/* What an operand has: an element, a number for each row, or a number for each element of a row. */
typedef enum operand_form { WHOLE, BY_ROW, BY_ELEMENT } operand_form;

static bool has_form(const affine_steps *s, const sp_binary_constants *k, uint32_t operand,
                     operand_form form)
{
    const int64_t *strides = operand == 0 ? k->a : k->b;
    if (s->rows == 1) return strides[0] == (form == BY_ROW ? 0 : 1);
    const int64_t row = form == WHOLE ? s->extent : form == BY_ROW ? 1 : 0;
    return strides[0] == row && strides[1] == (form == BY_ROW ? 0 : 1);
}

/* Does the step make rows * extent elements, of operands of these forms? */
static bool is_by_rows(const affine_steps *s, const sp_plan_step *step, sp_kernel_id kernel,
                       operand_form a, operand_form b)
{
    if (step == NULL || step->kernel != kernel) return false;
    const sp_binary_constants *k = step->constants;
    if (k->activation != SP_ACTIVATION_NONE || k->rank != (s->rows == 1 ? 1u : 2u)) return false;
    if (k->count != s->rows * s->extent || k->dims[k->rank - 1] != s->extent) return false;
    return has_form(s, k, 0, a) && has_form(s, k, 1, b);
}

/* The operands in the other order, too. */
static bool is_product_by_rows(const affine_steps *s, const sp_plan_step *step, operand_form a,
                               operand_form b, uint32_t *first)
{
    *first = is_by_rows(s, step, SP_KERNEL_ID_mul_f32, a, b) ? 0 : 1;
    return *first == 0 || is_by_rows(s, step, SP_KERNEL_ID_mul_f32, b, a);
}

/* A product of all elements: of one list, whatever its rows are. */
static bool is_whole_product(const affine_steps *s, const sp_plan_step *step)
{
    if (step == NULL || step->kernel != SP_KERNEL_ID_mul_f32) return false;
    const sp_binary_constants *k = step->constants;
    const bool is_list = k->rank == 1 && k->a[0] == 1 && k->b[0] == 1;
    return is_list && k->activation == SP_ACTIVATION_NONE && k->count == s->rows * s->extent;
}

/* The factors are operand `factors` of the product, the distances the other one. */
static bool match_operands(const sp_plan_builder *builder, affine_steps *s, uint32_t factors)
{
    uint32_t factor;
    s->factors = sp__fuse_writer(builder, &s->product->bindings[factors], 2);
    s->distance = sp__fuse_writer(builder, &s->product->bindings[1 - factors], 2);
    if (!is_by_rows(s, s->distance, SP_KERNEL_ID_sub_f32, WHOLE, BY_ROW)) return false;
    if (!is_product_by_rows(s, s->factors, BY_ROW, BY_ELEMENT, &factor)) return false;
    s->x = &s->distance->bindings[0];
    s->mean = &s->distance->bindings[1];
    s->factor = &s->factors->bindings[factor];
    s->scale = &s->factors->bindings[1 - factor];
    return true;
}

static bool match_affine(const sp_plan_builder *builder, sp_plan_step *shifted, affine_steps *s)
{
    const sp_binary_constants *k = shifted->constants;
    *s = (affine_steps){.shifted = shifted, .rows = 1};
    if (k->rank != 1 && k->rank != 2) return false;
    if (k->rank == 2) s->rows = k->dims[0];
    s->extent = k->dims[k->rank - 1];
    if (s->extent < 2) return false;
    for (uint32_t i = 0; i < 2; i++) {
        s->bias = &shifted->bindings[1 - i];
        if (!is_by_rows(s, shifted, SP_KERNEL_ID_add_f32, i == 0 ? WHOLE : BY_ELEMENT,
                        i == 0 ? BY_ELEMENT : WHOLE)) {
            continue;
        }
        s->product = sp__fuse_writer(builder, &shifted->bindings[i], 2);
        if (!is_whole_product(s, s->product)) continue;
        if (match_operands(builder, s, 0) || match_operands(builder, s, 1)) return true;
    }
    return false;
}

static sp_status fuse_names(sp_plan_builder *builder, const affine_steps *s, const char **name)
{
    *name = s->distance->op_name;
    SP_TRY(sp__plan_append_name(builder, name, s->factors->op_name));
    SP_TRY(sp__plan_append_name(builder, name, s->product->op_name));
    return sp__plan_append_name(builder, name, s->shifted->op_name);
}

/* In the place of the last step, where all operands are there. */
static sp_status fuse_affine(sp_plan_builder *builder, affine_steps *s)
{
    const sp_plan_binding *operands[] = {s->x, s->mean, s->factor, s->scale, s->bias};
    sp_row_affine_constants *k;
    sp_plan_binding *bindings;
    const char *name;
    SP_TRY(fuse_names(builder, s, &name));
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(&builder->plan->bump, 6, sizeof *bindings, &bindings));
    *k = (sp_row_affine_constants){.rows = s->rows, .extent = s->extent};
    for (uint32_t i = 0; i < SP_COUNT_OF(operands); i++) {
        bindings[i] = *operands[i];
        sp__fuse_moves_read(builder, operands[i], s->shifted);
    }
    bindings[5] = *sp__fuse_output(s->shifted);
    builder->values[bindings[5].index].in_place = s->x->index;
    *s->shifted = (sp_plan_step){.kernel = SP_KERNEL_ID_row_affine_f32,
                                 .binding_count = 6,
                                 .bindings = bindings,
                                 .constants = k,
                                 .constant_bytes = sizeof *k,
                                 .node_name = s->distance->node_name,
                                 .op_name = name};
    s->distance->kernel = s->factors->kernel = s->product->kernel = SP_NO_KERNEL;
    return SP_OK;
}

sp_status sp__plan_fuse_moments(sp_plan_builder *builder)
{
    for (uint32_t i = 0; i < builder->plan->step_count; i++) {
        sp_plan_step *step = &builder->steps[i];
        affine_steps s;
        if (step->kernel == SP_KERNEL_ID_reduce_f32) SP_TRY(fuse_squares(builder, step));
        if (step->kernel != SP_KERNEL_ID_add_f32) continue;
        if (match_affine(builder, step, &s)) SP_TRY(fuse_affine(builder, &s));
    }
    return SP_OK;
}
