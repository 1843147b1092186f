/* SPDX-License-Identifier: Apache-2.0 */
/* Queries, keys and values that one narrow product computes and attention rounds to the type of
 * that product (docs/decisions/0089): the product scales and rounds them instead, so that half the
 * bytes are written and read (docs/decisions/0093). Changes no bit. */
#include "base/macros.h"
#include "ops/ops.h"
#include "plan/plan_fuse.h"
#include "plan/plan_strides.h"

enum { QUERY, KEY, VALUE, OPERANDS };

/* Elements that are copied at once. */
enum { UNIT = 8 };

/* A product that only an attention reads, as all three operands. */
typedef struct halves {
    sp_plan_step *product, *attention;
    const sp_gemm_constants *k;
    const sp_attention_constants *of;
} halves;

/* Those of two packed operands have kernels for it. */
static bool is_product(const sp_plan_step *step, sp_rounding rounding)
{
    return step->kernel == (rounding == SP_ROUNDING_F16 ? SP_KERNEL_ID_gemm_packed_f16
                                                        : SP_KERNEL_ID_gemm_packed_bf16);
}

static bool find_halves(const sp_stride_pass *pass, uint32_t s, halves *out)
{
    sp_plan_step *step = &pass->builder->steps[s];
    if (step->kernel != SP_KERNEL_ID_attention_f32) return false;
    *out = (halves){.attention = step, .of = step->constants};
    const sp_plan_binding *operands = step->bindings;
    if (out->of->rounding == SP_ROUNDING_NONE) return false;
    if (operands[0].where != SP_PLACE_ARENA) return false;
    for (uint32_t i = 1; i < OPERANDS; i++) {
        if (operands[i].where != SP_PLACE_ARENA || operands[i].index != operands[0].index)
            return false;
    }
    const sp_stride_value *value = &pass->values[operands[0].index];
    if (value->writes != 1 || value->reads != OPERANDS || value->writer == SP_NO_STEP) return false;
    out->product = &pass->builder->steps[value->writer];
    out->k = out->product->constants;
    return is_product(out->product, out->of->rounding);
}

static bool is_open(const sp_gemm_constants *k)
{
    return !k->is_half && k->y_format == SP_PACK_NONE && k->activation == SP_ACTIVATION_NONE &&
           k->batch_rank == 0 && k->columns % UNIT == 0 &&
           (!k->has_c || (k->c_row == 0 && k->c_column == 1));
}

/* ---- the columns of an operand ---- */

/* Columns [first, end) of the product's rows. */
typedef struct column_range {
    int64_t first, end;
} column_range;

/* False if elements of the operand are not in columns of their own of whole rows, or cannot be
 * copied by units. */
static bool find_columns(const halves *h, const sp_attention_operand *operand, int64_t size,
                         column_range *out)
{
    const int64_t width = h->k->columns;
    if (operand->column != 1 || size % UNIT != 0 || operand->first % UNIT != 0) return false;
    if (operand->row % width != 0) return false;
    *out = (column_range){operand->first % width, operand->first % width + size};
    for (uint32_t i = 0; i < h->of->batch_rank; i++) {
        if (operand->batch[i] % UNIT != 0) return false;
        if (operand->batch[i] % width == 0) continue;
        if (operand->batch[i] < 0 || operand->batch[i] > width) return false;
        out->end += (h->of->batch_dims[i] - 1) * operand->batch[i];
    }
    return out->end <= width;
}

/* What the product does to the columns: those that are scaled come first, the queries' before the
 * keys'. */
static bool find_scales(const halves *h, sp_gemm_constants *k)
{
    const sp_attention_constants *of = h->of;
    column_range at[OPERANDS];
    if (!find_columns(h, &of->query, of->depth, &at[QUERY])) return false;
    if (!find_columns(h, &of->key, of->depth, &at[KEY])) return false;
    if (!find_columns(h, &of->value, of->columns, &at[VALUE])) return false;
    k->scales[0] = of->of_query;
    k->scales[1] = of->of_key;
    const bool has_key_scale = of->of_key.kind != SP_SCALE_NONE;
    if (of->of_query.kind != SP_SCALE_NONE || has_key_scale) {
        if (at[QUERY].first != 0 || at[KEY].first < at[QUERY].end) return false;
        k->scaled[0] = k->scaled[1] = at[QUERY].end;
    }
    if (has_key_scale) {
        if (at[KEY].first != at[QUERY].end) return false;
        k->scaled[1] = at[KEY].end;
    }
    return at[VALUE].first >= k->scaled[1];
}

/* ---- fusing ---- */

static void halve(sp_plan_binding *binding)
{
    binding->bytes /= 2;
}

static sp_status round_operands(sp_stride_pass *pass, const halves *h,
                                const sp_gemm_constants *with)
{
    sp_bump *bump = &pass->builder->plan->bump;
    sp_gemm_constants *k;
    sp_attention_constants *of;
    SP_TRY(sp__bump_array(bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(bump, 1, sizeof *of, &of));
    *k = *with;
    *of = *h->of;
    k->is_y_half = of->is_half = true;
    of->of_query.kind = of->of_key.kind = SP_SCALE_NONE;
    h->product->constants = k;
    h->product->constant_bytes = sizeof *k;
    h->attention->constants = of;
    h->attention->constant_bytes = sizeof *of;
    sp_plan_binding *operands = sp__stride_bindings(h->attention);
    pass->builder->values[operands[0].index].bytes /= 2;
    halve(&sp__stride_bindings(h->product)[h->product->binding_count - 1]);
    for (uint32_t i = 0; i < OPERANDS; i++) halve(&operands[i]);
    return SP_OK;
}

static sp_status visit_step(sp_stride_pass *pass, uint32_t s)
{
    halves h;
    if (!find_halves(pass, s, &h) || !is_open(h.k)) return SP_OK;
    sp_gemm_constants k = *h.k;
    return find_scales(&h, &k) ? round_operands(pass, &h, &k) : SP_OK;
}

sp_status sp__plan_fuse_halves(sp_plan_builder *builder)
{
    if (builder->request->precision == SP_PRECISION_DEFAULT) return SP_OK;
    return sp__stride_each(builder, visit_step);
}
