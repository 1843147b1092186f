/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose operands are views. */
#include <string.h>

#include "base/macros.h"
#include "plan/plan_strides.h"

enum { A, B, Y, OPERANDS };

/* The operands with the dimensions of the batch, then rows, columns and depth. */
typedef struct product_views {
    sp_view of[OPERANDS];
    uint32_t batch;    /* dimensions */
    bool is_b_strided; /* not packed */
} product_views;

static void add_dim(product_views *p, int64_t count, int64_t a, int64_t b, int64_t y)
{
    const int64_t strides[OPERANDS] = {a, b, y};
    for (uint32_t i = 0; i < OPERANDS; i++) {
        sp_view *view = &p->of[i];
        view->dims[view->rank] = count;
        view->strides[view->rank++] = strides[i];
    }
}

static product_views product_read(const sp_gemm_constants *k)
{
    product_views p = {.batch = k->batch_rank, .is_b_strided = k->b_format == SP_PACK_NONE};
    int64_t y_batch = k->rows * k->columns, y[SP_KERNEL_RANK] = {0};
    for (uint32_t i = k->batch_rank; i-- > 0; y_batch *= k->batch_dims[i]) y[i] = y_batch;
    for (uint32_t i = 0; i < k->batch_rank; i++) {
        add_dim(&p, k->batch_dims[i], k->a_batch[i], k->b_batch[i], y[i]);
    }
    add_dim(&p, k->rows, k->a_row, 0, k->columns);
    add_dim(&p, k->columns, 0, p.is_b_strided ? 1 : 0, 1);
    add_dim(&p, k->depth, k->a_depth, p.is_b_strided ? k->b_depth : 0, 0);
    return p;
}

/* The strides of one operand in rows, columns or depth; 1 if there is one element. */
static int64_t inner_stride(const product_views *p, uint32_t operand, uint32_t dim)
{
    const sp_view *view = &p->of[operand];
    const uint32_t at = p->batch + dim;
    return view->dims[at] > 1 ? view->strides[at] : 1;
}

enum { ROWS, COLUMNS, DEPTH };

/* Reads or writes one operand through a view. Dimensions of the batch are split where that takes
 * it; others have one stride. */
static bool product_compose(product_views *p, uint32_t operand, const sp_view *of)
{
    product_views out = *p;
    const sp_view *view = &out.of[operand];
    uint32_t i = 0;
    while (i < view->rank) {
        const int64_t inner = sp__view_even(of, view->dims[i], view->strides[i]);
        if (inner == view->dims[i]) {
            i++;
            continue;
        }
        if (inner == 0 || i >= out.batch || out.batch == SP_KERNEL_RANK) return false;
        for (uint32_t k = 0; k < OPERANDS; k++) sp__view_split(&out.of[k], i, inner);
        out.batch++;
    }
    if (!sp__view_compose(of, &out.of[operand])) return false;
    *p = out;
    return true;
}

/* Can the kernel read or write the operand with these strides as fast as the copy? */
static bool is_fast(const product_views *p, uint32_t operand)
{
    const int64_t row = inner_stride(p, operand, ROWS), column = inner_stride(p, operand, COLUMNS),
                  depth = inner_stride(p, operand, DEPTH);
    switch (operand) {
    case A: /* elements are broadcast: neighbours are in one line of the cache */
        return depth == 1 || row == 1;
    case B: /* panels are transposed on the kernel's stack */
        return column == 1 ||
               (depth == 1 && p->of[B].dims[p->batch + DEPTH] <= SP_GEMM_STRIDED_DEPTH);
    default:
        return column == 1;
    }
}

static void product_write(const product_views *p, const sp_gemm_constants *from,
                          sp_gemm_strided_constants *out)
{
    *out = (sp_gemm_strided_constants){.of = *from,
                                       .a_first = p->of[A].first,
                                       .b_first = p->of[B].first,
                                       .b_column = inner_stride(p, B, COLUMNS),
                                       .y_row = inner_stride(p, Y, ROWS)};
    sp_gemm_constants *k = &out->of;
    k->batch_rank = p->batch;
    for (uint32_t i = 0; i < p->batch; i++) {
        k->batch_dims[i] = p->of[A].dims[i];
        k->a_batch[i] = p->of[A].strides[i];
        k->b_batch[i] = p->of[B].strides[i];
        out->y_batch[i] = p->of[Y].strides[i];
    }
    k->a_row = inner_stride(p, A, ROWS);
    k->a_depth = inner_stride(p, A, DEPTH);
    if (!p->is_b_strided) {
        out->b_column = 1;
        return;
    }
    k->b_depth = inner_stride(p, B, DEPTH);
}

bool sp__stride_find_result(const sp_stride_pass *pass, const sp_plan_binding *y, uint32_t *copy,
                            sp_view *out)
{
    const sp_plan_builder *builder = pass->builder;
    const sp_stride_value *value = &pass->values[y->index];
    if (value->reads != 1 || value->writes != 1 || value->reader == SP_NO_STEP) return false;
    const sp_plan_step *step = &builder->steps[value->reader];
    if (step->kernel != SP_KERNEL_ID_copy_strided) return false;
    const sp_copy_constants *k = step->constants;
    const sp_view from = sp__view_of_copy(k, false), to = sp__view_of_copy(k, true);
    *copy = value->reader;
    /* Not a part of a value whose other parts are there before. */
    const uint32_t result = step->bindings[1].index;
    if (pass->values[result].writes != 1 && !SP_PLANTED(absorb_part)) return false;
    return k->element_bytes == sizeof(float) && sp__view_is_plain(&to) &&
           (uint64_t)k->count * sizeof(float) == builder->values[y->index].bytes &&
           sp__view_invert(&from, out);
}

void sp__stride_absorb(sp_stride_pass *pass, uint32_t s, uint32_t copy)
{
    sp_plan_step *steps = pass->builder->steps;
    sp_plan_binding *y = &sp__stride_bindings(&steps[s])[steps[s].binding_count - 1];
    pass->values[y->index] = (sp_stride_value){.writer = SP_NO_STEP, .reader = SP_NO_STEP};
    *y = steps[copy].bindings[1];
    pass->values[y->index].writer = s;
    steps[copy].kernel = SP_NO_KERNEL;
}

sp_status sp__stride_product(sp_stride_pass *pass, uint32_t s)
{
    sp_plan_step *step = &pass->builder->steps[s];
    const sp_gemm_constants *gemm = step->constants;
    product_views now = product_read(gemm);
    bool is_changed = false;
    for (uint32_t i = A; i <= B; i++) {
        product_views next = now;
        sp_stride_source source;
        if (i == B && !now.is_b_strided) continue;
        if (!sp__stride_find(pass, &step->bindings[i], sizeof(float), &source)) continue;
        if (!product_compose(&next, i, &source.view) || !is_fast(&next, i)) continue;
        if (i == B && !source.is_only) continue;
        sp__stride_read(pass, s, i, &source);
        now = next;
        is_changed = true;
    }
    uint32_t copy;
    sp_view order;
    product_views next = now;
    if (sp__stride_find_result(pass, &step->bindings[step->binding_count - 1], &copy, &order) &&
        product_compose(&next, Y, &order) && is_fast(&next, Y)) {
        sp__stride_absorb(pass, s, copy);
        now = next;
        is_changed = true;
    }
    if (!is_changed) return SP_OK;
    sp_gemm_strided_constants *k;
    SP_TRY(sp__bump_array(&pass->builder->plan->bump, 1, sizeof *k, &k));
    product_write(&now, gemm, k);
    step->kernel = SP_KERNEL_ID_gemm_strided_f32;
    step->constants = k;
    step->constant_bytes = sizeof *k;
    return SP_OK;
}
