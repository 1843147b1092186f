/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion of attention: two products and the softmax between them, with scales of the queries, the
 * keys and the scores, a mask that is added to the scores, and a condition that replaces some. The
 * pattern is matched from the last step on. Runs after operands have become views: queries, keys
 * and values are parts of one tensor. */
#include "plan/plan_fuse.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "ops/activation.h"
#include "ops/ops.h"
#include "plan/plan_strides.h"

/* In the order of the step's bindings; the mask and the condition are NULL if there is none. */
enum { QUERY, KEY, VALUE, MASK, CONDITION, Y, OPERANDS };
enum { STEPS = 8 };

/* The steps, last one first, and the operands of the one that takes their place. Views have the
 * dimensions of the batch, then rows and columns. */
typedef struct attention {
    const sp_stride_pass *pass;
    sp_plan_step *steps[STEPS];
    uint32_t count;
    const sp_plan_binding *bindings[OPERANDS];
    sp_view views[OPERANDS];
    sp_stride_source sources[3]; /* of query, key and value: what the binding is a copy of, */
    bool has_source[3];          /* of which the views are then */
    uint32_t copy;   /* step that moves the result, as the view of y does, or SP_NO_STEP */
    sp_view weights; /* of the second product: what the softmax has written */
    int64_t batch;
    sp_attention_constants k;
} attention;

/* ---- steps ---- */

/* The step that writes exactly what `read` reads, if nothing else reads it; else NULL. */
static sp_plan_step *only_writer(const attention *of, const sp_plan_binding *read)
{
    if (read->where != SP_PLACE_ARENA) return NULL;
    const sp_stride_value *value = &of->pass->values[read->index];
    const bool is_read_elsewhere = value->reads != 1 && !SP_PLANTED(attention_wanted_value);
    if (is_read_elsewhere || value->writes != 1) return NULL;
    sp_plan_step *writer = &of->pass->builder->steps[value->writer];
    const sp_plan_binding *written = sp__fuse_output(writer);
    const bool is_whole = written->bytes == read->bytes &&
                          read->bytes == of->pass->builder->values[read->index].bytes;
    return written->index == read->index && is_whole ? writer : NULL;
}

/* Has the operand the same bytes in the last step? Each value is written once, before it is read.
 */
static bool is_kept(const attention *of, const sp_plan_binding *read)
{
    return read->where != SP_PLACE_ARENA || of->pass->values[read->index].writes <= 1;
}

static void set_operand(attention *of, uint32_t operand, const sp_plan_binding *binding,
                        const sp_view *view)
{
    of->bindings[operand] = binding;
    of->views[operand] = *view;
}

static int64_t rows_of(const sp_view *view)
{
    return view->dims[view->rank - 2];
}

static int64_t columns_of(const sp_view *view)
{
    return view->dims[view->rank - 1];
}

/* The view `view` of what `of` is a view of, if that cuts no rows and columns. */
static bool compose_matrix(const sp_view *of, sp_view *view)
{
    const int64_t rows = rows_of(view), columns = columns_of(view);
    sp_view *const views[] = {view};
    return sp__view_compose_split(of, views, 1, 0) && rows_of(view) == rows &&
           columns_of(view) == columns;
}

/* ---- products ---- */

/* A view of the batch, rows and columns. */
static sp_view matrix_view(const sp_gemm_constants *k, int64_t first, const int64_t *batch,
                           int64_t rows, int64_t row, int64_t columns, int64_t column)
{
    sp_view view = {.rank = k->batch_rank + 2, .first = first};
    memcpy(view.dims, k->batch_dims, sizeof k->batch_dims);
    memcpy(view.strides, batch, sizeof k->batch_dims);
    view.dims[view.rank - 2] = rows;
    view.strides[view.rank - 2] = row;
    view.dims[view.rank - 1] = columns;
    view.strides[view.rank - 1] = column;
    return view;
}

/* The operands of a product of matrices without a third one: a [rows][depth], b [depth][columns]
 * and y [rows][columns]. */
typedef struct product_views {
    sp_view a, b, y;
    uint8_t rounding;
} product_views;

static bool read_product(const sp_plan_step *step, product_views *out)
{
    const bool is_strided = step->kernel == SP_KERNEL_ID_gemm_strided_f32;
    if (!is_strided && step->kernel != SP_KERNEL_ID_gemm_f32) return false;
    sp_gemm_strided_constants s = {.b_column = 1};
    if (is_strided) s = *(const sp_gemm_strided_constants *)step->constants;
    else s.of = *(const sp_gemm_constants *)step->constants;
    const sp_gemm_constants *k = &s.of;
    const bool is_packed = k->b_format != SP_PACK_NONE;
    if (is_packed || k->has_c || k->alpha != 1 || k->activation != SP_ACTIVATION_NONE) return false;
    if (!is_strided) {
        int64_t stride = k->rows * k->columns;
        for (uint32_t i = k->batch_rank; i-- > 0; stride *= k->batch_dims[i]) s.y_batch[i] = stride;
        s.y_row = k->columns;
    }
    out->rounding = k->rounding;
    out->a = matrix_view(k, s.a_first, k->a_batch, k->rows, k->a_row, k->depth, k->a_depth);
    out->b = matrix_view(k, s.b_first, k->b_batch, k->depth, k->b_depth, k->columns, s.b_column);
    out->y = matrix_view(k, 0, s.y_batch, k->rows, s.y_row, k->columns, 1);
    return true;
}

/* The product of the weights with the values, the last step. */
static bool match_values(attention *of, sp_plan_step *step)
{
    product_views p;
    if (!read_product(step, &p) || !sp__view_is_plain(&p.a)) return false;
    if (columns_of(&p.b) > 1 && p.b.strides[p.b.rank - 1] != 1) return false;
    of->weights = p.a;
    of->k.rows = rows_of(&p.a);
    of->k.keys = columns_of(&p.a);
    of->k.columns = columns_of(&p.b);
    of->k.rounding = p.rounding;
    if (of->k.rows < SP_ATTENTION_LEAST_ROWS || of->k.keys < 1) return false;
    if (of->k.columns > SP_ATTENTION_COLUMNS) return false;
    of->batch = sp__view_count(&p.a) / (of->k.rows * of->k.keys);
    set_operand(of, VALUE, &step->bindings[1], &p.b);
    set_operand(of, Y, &step->bindings[2], &p.y);
    of->steps[of->count++] = step;
    return of->k.keys <= SP_ATTENTION_KEYS && of->batch > 0;
}

/* The product of the queries with the keys, which are its columns. */
static bool match_scores(attention *of, sp_plan_step *step)
{
    product_views p;
    if (!read_product(step, &p) || !sp__view_is_plain(&p.y)) return false;
    if (p.rounding != of->k.rounding) return false;
    of->k.depth = columns_of(&p.a);
    if (rows_of(&p.a) != of->k.rows || columns_of(&p.b) != of->k.keys) return false;
    sp_view key = p.b; /* [keys][depth] */
    key.dims[key.rank - 2] = p.b.dims[key.rank - 1];
    key.dims[key.rank - 1] = p.b.dims[key.rank - 2];
    key.strides[key.rank - 2] = p.b.strides[key.rank - 1];
    key.strides[key.rank - 1] = p.b.strides[key.rank - 2];
    set_operand(of, QUERY, &step->bindings[0], &p.a);
    set_operand(of, KEY, &step->bindings[1], &key);
    of->steps[of->count++] = step;
    /* Constants of gemm_strided_f32 begin with those of gemm_f32. */
    return of->k.depth > 0 && of->k.depth <= SP_ATTENTION_DEPTH &&
           sp__gemm_batch(step->constants) == of->batch;
}

/* ---- between the products ---- */

static bool match_softmax(attention *of)
{
    sp_plan_step *step = only_writer(of, &of->steps[0]->bindings[0]);
    if (step == NULL || step->kernel != SP_KERNEL_ID_softmax_f32) return false;
    const sp_axis_constants *k = step->constants;
    of->steps[of->count++] = step;
    return k->extent == of->k.keys && k->inner == 1 && !k->is_log &&
           k->rows == of->batch * of->k.rows;
}

/* What a function of two operands reads as operand `which`. */
static sp_view read_binary(const sp_plan_step *step, uint32_t which)
{
    const sp_binary_constants *k = step->constants;
    sp_view view = {.rank = k->rank};
    memcpy(view.dims, k->dims, sizeof k->dims);
    memcpy(view.strides, which == 0 ? k->a : k->b, sizeof k->a);
    return view;
}

static bool is_activated(const sp_plan_step *step)
{
    return ((const sp_binary_constants *)step->constants)->activation != SP_ACTIVATION_NONE;
}

/* Is the step a product with, or a quotient by, one number? The operand that is scaled is
 * `scaled`. */
static bool find_scale(const attention *of, const sp_plan_step *step, sp_attention_scale *out,
                       uint32_t *scaled)
{
    const bool is_div = step->kernel == SP_KERNEL_ID_div_f32;
    if ((!is_div && step->kernel != SP_KERNEL_ID_mul_f32) || is_activated(step)) return false;
    out->kind = is_div ? SP_SCALE_DIVIDES : SP_SCALE_MULTIPLIES;
    for (uint32_t number = 2; number-- > (is_div ? 1 : 0);) {
        *scaled = 1 - number;
        if (sp__fuse_number(of->pass->builder, &step->bindings[number], &out->number)) return true;
    }
    return false;
}

/* What a function reads besides the scores, in their dimensions: rows of neighbours, or one row. */
static bool find_rows(const attention *of, const sp_view *scores, const sp_view *from, sp_view *out)
{
    *out = (sp_view){.rank = 3,
                     .dims = {of->batch, of->k.rows, of->k.keys},
                     .strides = {of->k.rows * of->k.keys, of->k.keys, 1}};
    if (!sp__view_is_plain(scores) || !compose_matrix(from, out)) return false;
    return of->k.keys == 1 || out->strides[out->rank - 1] == 1;
}

/* The mask is added to the scores, which are operand `which`. */
static bool match_mask(attention *of, sp_plan_step *add, uint32_t which)
{
    const sp_view scores = read_binary(add, which), mask = read_binary(add, 1 - which);
    sp_view view;
    if (!find_rows(of, &scores, &mask, &view)) return false;
    set_operand(of, MASK, &add->bindings[1 - which], &view);
    of->k.has_mask = true;
    return true;
}

/* Operand `which` of the choice is the scores, the other one a number. */
static bool match_choice(attention *of, const sp_plan_step *where, uint32_t which)
{
    const sp_select_constants *k = where->constants;
    sp_view scores = {.rank = k->rank}, condition = {.rank = k->rank}, view;
    memcpy(scores.dims, k->dims, sizeof k->dims);
    memcpy(condition.dims, k->dims, sizeof k->dims);
    memcpy(scores.strides, which == 1 ? k->x : k->y, sizeof k->x);
    memcpy(condition.strides, k->condition, sizeof k->condition);
    if (!sp__fuse_number(of->pass->builder, &where->bindings[3 - which], &of->k.fill)) return false;
    if (!find_rows(of, &scores, &condition, &view)) return false;
    set_operand(of, CONDITION, &where->bindings[0], &view);
    of->k.has_condition = true;
    of->k.fills_false = which == 1;
    return true;
}

/* The product of the queries with the keys writes `read`, or the scores that a step scales to it.
 */
static bool match_scaled_scores(attention *of, const sp_plan_binding *read)
{
    sp_plan_step *step = only_writer(of, read);
    sp_attention_scale scale;
    uint32_t scaled;
    if (step == NULL || !find_scale(of, step, &scale, &scaled)) {
        return step != NULL && match_scores(of, step);
    }
    const sp_view scores = read_binary(step, scaled);
    sp_plan_step *product = only_writer(of, &step->bindings[scaled]);
    if (product == NULL || !sp__view_is_plain(&scores)) return false;
    of->k.of_scores = scale;
    of->steps[of->count++] = step;
    return match_scores(of, product);
}

/* The same of what a choice leaves of the scores. */
static bool match_chosen_scores(attention *of, const sp_plan_binding *read)
{
    sp_plan_step *step = only_writer(of, read);
    if (step == NULL || step->kernel != SP_KERNEL_ID_where_32) return match_scaled_scores(of, read);
    of->steps[of->count++] = step;
    const attention before = *of;
    for (uint32_t which = 1; which <= 2; which++) {
        *of = before;
        if (!match_choice(of, step, which)) continue;
        if (match_scaled_scores(of, &step->bindings[which])) return true;
    }
    return false;
}

typedef bool match_scores_fn(attention *of, const sp_plan_binding *read);

/* The sum of a mask and of scores that `match` finds. */
static bool match_sum(attention *of, sp_plan_step *add, match_scores_fn *match)
{
    if (is_activated(add)) return false;
    of->steps[of->count++] = add;
    const attention before = *of;
    for (uint32_t which = 0; which < 2; which++) {
        *of = before;
        if (match_mask(of, add, which) && match(of, &add->bindings[which])) return true;
    }
    return false;
}

/* A choice of a number or of masked scores. */
static bool match_chosen_sum(attention *of, sp_plan_step *where)
{
    of->steps[of->count++] = where;
    of->k.is_condition_last = true;
    const attention before = *of;
    for (uint32_t which = 1; which <= 2; which++) {
        *of = before;
        sp_plan_step *add = only_writer(of, &where->bindings[which]);
        if (add == NULL || add->kernel != SP_KERNEL_ID_add_f32) continue;
        if (match_choice(of, where, which) && match_sum(of, add, match_scaled_scores)) return true;
    }
    return false;
}

/* The steps from the softmax back to the product of the queries with the keys. */
static bool match_between(attention *of)
{
    const sp_plan_binding *read = &of->steps[1]->bindings[0];
    sp_plan_step *step = only_writer(of, read);
    if (step == NULL) return false;
    if (step->kernel == SP_KERNEL_ID_add_f32) return match_sum(of, step, match_chosen_scores);
    const attention before = *of;
    if (step->kernel == SP_KERNEL_ID_where_32 && match_chosen_sum(of, step)) return true;
    *of = before;
    return match_chosen_scores(of, read);
}

/* Reads through a copy of the operand, if it has strides: a copy of a copy, too. */
static void find_source(attention *of, uint32_t operand)
{
    const sp_plan_binding *read = of->bindings[operand];
    sp_stride_source source;
    while (sp__stride_find(of->pass, read, sizeof(float), &source)) {
        sp_view view = of->views[operand];
        if (!compose_matrix(&source.view, &view)) return;
        if (operand != KEY && columns_of(&view) > 1 && view.strides[view.rank - 1] != 1) return;
        of->views[operand] = view;
        of->sources[operand] = source;
        of->has_source[operand] = true;
        read = &of->sources[operand].binding;
    }
}

/* Writes the result where a copy of it would have, if nothing else reads it. */
static void find_result(attention *of)
{
    sp_view order, view = of->views[Y];
    uint32_t copy;
    if (!sp__stride_find_result(of->pass, of->bindings[Y], &copy, &order)) return;
    if (!compose_matrix(&order, &view)) return;
    if (columns_of(&view) > 1 && view.strides[view.rank - 1] != 1) return;
    of->views[Y] = view;
    of->copy = copy;
}

/* Where products do not read and write by strides, the step does so itself. */
static void find_copies(attention *of)
{
    if (of->pass->builder->request->is_strided) return;
    for (uint32_t i = QUERY; i <= VALUE; i++) {
        if (!of->has_source[i]) find_source(of, i);
    }
    find_result(of);
}

/* A scale of the queries or of the keys that nothing else reads is a part of it; others stay. */
static void match_scale(attention *of, uint32_t operand, sp_attention_scale *out)
{
    sp_plan_step *step = only_writer(of, of->bindings[operand]);
    sp_attention_scale scale;
    sp_view view = of->views[operand];
    uint32_t scaled;
    if (step == NULL || !find_scale(of, step, &scale, &scaled)) return;
    const sp_view from = read_binary(step, scaled);
    if (!compose_matrix(&from, &view) || !is_kept(of, &step->bindings[scaled])) return;
    if (operand == QUERY && of->k.depth > 1 && view.strides[view.rank - 1] != 1) return;
    set_operand(of, operand, &step->bindings[scaled], &view);
    *out = scale;
    of->steps[of->count++] = step;
    find_source(of, operand);
}

/* ---- the step ---- */

/* The strides of the batch over each operand, in dimensions that all have. */
static bool find_batch(attention *of)
{
    sp_attention_constants *k = &of->k;
    sp_attention_operand *const all[] = {&k->query, &k->key,       &k->value,
                                         &k->mask,  &k->condition, &k->y};
    sp_attention_operand *out[OPERANDS];
    sp_view batches[OPERANDS], *views[OPERANDS], matrices[OPERANDS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < OPERANDS; i++) {
        if (of->bindings[i] == NULL) continue;
        matrices[count] = of->views[i];
        out[count] = all[i];
        batches[count] = (sp_view){.rank = 1, .dims = {of->batch}, .strides = {1}};
        views[count] = &batches[count];
        count++;
    }
    for (uint32_t i = 0; i < count; i++) {
        sp_view batch = matrices[i];
        const uint32_t rank = batch.rank -= 2;
        *out[i] = (sp_attention_operand){
            .first = batch.first, .row = batch.strides[rank], .column = batch.strides[rank + 1]};
        batch.first = 0;
        if (rank == 0) batch = (sp_view){.rank = 1, .dims = {1}};
        if (!sp__view_compose_split(&batch, views, count, i)) return false;
    }
    k->batch_rank = batches[0].rank;
    if (k->batch_rank > SP_ATTENTION_RANK) return false;
    memcpy(k->batch_dims, batches[0].dims, sizeof k->batch_dims);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(out[i]->batch, batches[i].strides, sizeof out[i]->batch);
    }
    return true;
}

static sp_status join_names(sp_plan_builder *builder, const attention *of, const char **name)
{
    *name = of->steps[of->count - 1]->op_name;
    for (uint32_t i = of->count - 1; i-- > 0;) {
        SP_TRY(sp__plan_append_name(builder, name, of->steps[i]->op_name));
    }
    return SP_OK;
}

/* In the place of the last step, number `s`, where all operands are there. */
static sp_status fuse_attention(sp_stride_pass *pass, uint32_t s, attention *of)
{
    sp_plan_builder *builder = pass->builder;
    sp_attention_constants *k;
    sp_plan_binding *bindings;
    sp_plan_step fused = {.kernel = SP_KERNEL_ID_attention_f32,
                          .constant_bytes = sizeof *k,
                          .node_name = of->steps[of->count - 1]->node_name};
    SP_TRY(join_names(builder, of, &fused.op_name));
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(&builder->plan->bump, OPERANDS, sizeof *bindings, &bindings));
    *k = of->k;
    for (uint32_t i = 0; i < OPERANDS; i++) {
        if (of->bindings[i] != NULL) bindings[fused.binding_count++] = *of->bindings[i];
    }
    builder->values[of->bindings[Y]->index].in_place = SP_NO_VALUE;
    fused.constants = k;
    fused.bindings = bindings;
    for (uint32_t i = 0; i < of->count; i++) {
        fused.multiply_adds += of->steps[i]->multiply_adds;
        of->steps[i]->kernel = SP_NO_KERNEL;
    }
    *of->steps[0] = fused;
    for (uint32_t i = QUERY; i <= VALUE; i++) {
        if (of->has_source[i]) sp__stride_read(pass, s, i, &of->sources[i]);
    }
    if (of->copy != SP_NO_STEP) sp__stride_absorb(pass, s, of->copy);
    return SP_OK;
}

static bool match_attention(attention *of, sp_plan_step *last)
{
    if (!match_values(of, last) || !match_softmax(of) || !match_between(of)) return false;
    const sp_view *query = &of->views[QUERY];
    match_scale(of, QUERY, &of->k.of_query);
    match_scale(of, KEY, &of->k.of_key);
    find_copies(of);
    if (of->k.depth > 1 && query->strides[query->rank - 1] != 1) return false;
    for (uint32_t i = 0; i < OPERANDS; i++) {
        if (of->bindings[i] != NULL && !is_kept(of, of->bindings[i])) return false;
    }
    return find_batch(of);
}

static sp_status visit_step(sp_stride_pass *pass, uint32_t s)
{
    attention of = {.pass = pass, .copy = SP_NO_STEP};
    sp_plan_step *step = &pass->builder->steps[s];
    if (step->kernel == SP_NO_KERNEL || !match_attention(&of, step)) return SP_OK;
    return fuse_attention(pass, s, &of);
}

sp_status sp__plan_fuse_attention(sp_plan_builder *builder)
{
    return sp__stride_each(builder, visit_step);
}
