/* SPDX-License-Identifier: Apache-2.0 */
/* Norm(Add(a, b)), as behind each part of a transformer: the norm adds while it reads, so the sum
 * is neither written nor read (docs/decisions/0093). One operand lies in rows one after the other,
 * the other one by two strides of rows, which a transposed batch has. Changes no bit. */
#include "base/macros.h"
#include "plan/plan_fuse.h"
#include "plan/plan_strides.h"

static bool is_plain(const sp_view_rows *rows, const sp_row_norm_constants *k)
{
    return k->rows == 1 || (rows->block == k->rows && rows->inner == k->extent);
}

/* The sum that only this norm reads, and all of it; or NULL. */
static const sp_plan_step *find_sum(const sp_stride_pass *pass, const sp_plan_step *norm)
{
    const sp_row_norm_constants *k = norm->constants;
    const sp_plan_binding *x = &norm->bindings[0];
    if (x->where != SP_PLACE_ARENA || k->has_addend) return NULL;
    const sp_stride_value *value = &pass->values[x->index];
    if (value->writes != 1 || value->reads != 1 || value->writer == SP_NO_STEP) return NULL;
    const sp_plan_step *sum = &pass->builder->steps[value->writer];
    if (sum->kernel != SP_KERNEL_ID_add_f32) return NULL;
    const sp_binary_constants *add = sum->constants;
    const bool is_whole = add->rank > 0 && add->count == k->rows * k->extent;
    return is_whole && add->activation == SP_ACTIVATION_NONE ? sum : NULL;
}

/* Is the operand still what it was at the sum? */
static bool is_kept(const sp_stride_pass *pass, const sp_plan_binding *operand)
{
    return operand->where != SP_PLACE_ARENA || pass->values[operand->index].writes <= 1;
}

typedef struct addend {
    const sp_plan_step *sum;
    uint32_t operand; /* of the sum; the other one is x */
    sp_view_rows rows;
    bool has_source; /* the addend is a copy, and the rows are those of what it was made from */
    sp_stride_source source;
} addend;

static sp_view operand_view(const sp_plan_step *sum, uint32_t operand)
{
    const sp_binary_constants *k = sum->constants;
    sp_view view = {.rank = k->rank};
    for (uint32_t i = 0; i < k->rank; i++) {
        view.dims[i] = k->dims[i];
        view.strides[i] = operand == 0 ? k->a[i] : k->b[i];
    }
    return view;
}

/* The rows of an operand; if it is all of a copy, rather of what that was made from. */
static bool find_addend(const sp_stride_pass *pass, const sp_row_norm_constants *k,
                        uint32_t operand, addend *of)
{
    const sp_plan_binding *binding = &of->sum->bindings[operand];
    const sp_view view = operand_view(of->sum, operand);
    of->operand = operand;
    of->has_source = sp__view_is_plain(&view) &&
                     sp__stride_find(pass, binding, sizeof(float), &of->source) &&
                     sp__view_find_rows(&of->source.view, k->extent, &of->rows);
    return of->has_source || sp__view_find_rows(&view, k->extent, &of->rows);
}

static bool match_addend(const sp_stride_pass *pass, const sp_plan_step *norm, addend *out)
{
    const sp_row_norm_constants *k = norm->constants;
    *out = (addend){.sum = find_sum(pass, norm)};
    if (out->sum == NULL) return false;
    const sp_plan_binding *operands = out->sum->bindings;
    if (!is_kept(pass, &operands[0]) || !is_kept(pass, &operands[1])) return false;
    bool is_found = false;
    for (uint32_t i = 0; i < 2; i++) { /* rather one that is a copy, which is not made then */
        const sp_view view = operand_view(out->sum, 1 - i);
        sp_view_rows x;
        addend found = *out;
        if (!sp__view_find_rows(&view, k->extent, &x) || !is_plain(&x, k)) continue;
        if (!find_addend(pass, k, i, &found)) continue;
        if (!is_found || found.has_source) *out = found;
        is_found = true;
    }
    return is_found;
}

/* The operands of the sum are read by the norm, after its own but the last, which it writes. */
static sp_status add_operands(sp_stride_pass *pass, sp_plan_step *norm, const addend *of)
{
    const uint32_t count = norm->binding_count;
    sp_plan_binding *bindings;
    SP_TRY(sp__bump_array(&pass->builder->plan->bump, count + 1, sizeof *bindings, &bindings));
    bindings[0] = of->sum->bindings[1 - of->operand];
    for (uint32_t i = 1; i + 1 < count; i++) bindings[i] = norm->bindings[i];
    bindings[count - 1] = of->sum->bindings[of->operand];
    bindings[count] = norm->bindings[count - 1];
    norm->bindings = bindings;
    norm->binding_count = count + 1;
    return SP_OK;
}

static void move_read(sp_stride_pass *pass, const sp_plan_binding *operand, uint32_t step)
{
    if (operand->where == SP_PLACE_ARENA) pass->values[operand->index].reader = step;
}

static sp_status fuse_addend(sp_stride_pass *pass, uint32_t s, const addend *of)
{
    sp_plan_builder *builder = pass->builder;
    sp_plan_step *norm = &builder->steps[s];
    sp_plan_step *sum = &builder->steps[of->sum - builder->steps];
    const char *name = sum->op_name;
    sp_row_norm_constants *k;
    SP_TRY(sp__plan_append_name(builder, &name, norm->op_name));
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(add_operands(pass, norm, of));
    *k = *(const sp_row_norm_constants *)norm->constants;
    k->has_addend = true;
    k->addend_block = of->rows.block;
    k->addend_outer = of->rows.outer;
    k->addend_inner = of->rows.inner;
    norm->node_name = sum->node_name;
    norm->op_name = name;
    norm->constants = k;
    norm->constant_bytes = sizeof *k;
    sum->kernel = SP_NO_KERNEL;
    const sp_plan_binding *x = &norm->bindings[0], *y = &norm->bindings[norm->binding_count - 1];
    move_read(pass, x, s);
    move_read(pass, y - 1, s);
    if (of->has_source) sp__stride_read(pass, s, norm->binding_count - 2, &of->source);
    /* Rows of x are read before they are written; other rows of the addend may be read later. */
    const bool is_apart = x->where == SP_PLACE_ARENA && x->index != (y - 1)->index;
    builder->values[y->index].in_place = is_apart ? x->index : SP_NO_VALUE;
    return SP_OK;
}

static sp_status visit_step(sp_stride_pass *pass, uint32_t s)
{
    addend of;
    const sp_plan_step *step = &pass->builder->steps[s];
    if (step->kernel != SP_KERNEL_ID_row_norm_f32 || !match_addend(pass, step, &of)) return SP_OK;
    return fuse_addend(pass, s, &of);
}

sp_status sp__plan_fuse_addends(sp_plan_builder *builder)
{
    return sp__stride_each(builder, visit_step);
}
