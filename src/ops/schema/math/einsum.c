/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of one or two inputs: each becomes matrices by a strided copy, unless it is some already,
 * and a product of matrices sums over all indices that the output does not have, in the order of
 * their first appearance. So the bits are those of MatMul (docs/decisions/0002). */
#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"
#include "ops/schema/math/equation.h"
#include "tensor/collapse.h"

/* Labels in the order of a matrix or of the output. */
typedef struct labels {
    uint8_t at[SP_EQUATION_LABELS];
    uint32_t count;
} labels;

/* The product [batch][rows][columns] of operands [batch][rows][sums] and [batch][sums][columns]. */
typedef struct product {
    uint32_t left; /* the operand with the rows */
    labels batch, rows, columns, sums;
} product;

static void add_label(labels *to, uint8_t label)
{
    to->at[to->count++] = label;
}

static void add_labels(labels *to, const labels *more)
{
    for (uint32_t i = 0; i < more->count; i++) add_label(to, more->at[i]);
}

/* Labels of one matrix, or of the output, so the product is bounded. */
static int64_t count_of(const sp_equation *e, const labels *l)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < l->count; i++) count *= e->sizes[l->at[i]];
    return count;
}

static void add_sums(const sp_equation *e, product *p)
{
    bool is_taken[SP_EQUATION_LABELS] = {false};
    for (uint32_t i = 0; i < SP_EQUATION_OPERANDS; i++) {
        for (uint32_t axis = 0; axis < e->operands[i].rank; axis++) {
            const uint8_t label = e->operands[i].labels[axis];
            if (is_taken[label] || sp__equation_place(e, label) < e->output_rank) continue;
            is_taken[label] = true;
            add_label(&p->sums, label);
        }
    }
}

/* The operand whose own indices come first in the output has the rows, which often needs no copy of
 * the product. */
static product product_of(const sp_equation *e)
{
    product p = {0};
    bool is_known = false;
    for (uint32_t i = 0; i < e->output_rank && !is_known; i++) {
        const bool in_first = e->operands[0].has[e->output[i]];
        is_known = in_first != e->operands[1].has[e->output[i]];
        p.left = is_known && !in_first;
    }
    for (uint32_t i = 0; i < e->output_rank; i++) {
        const uint8_t label = e->output[i];
        const bool in_left = e->operands[p.left].has[label];
        const bool in_right = e->operands[1 - p.left].has[label];
        add_label(in_left && in_right ? &p.batch : in_left ? &p.rows : &p.columns, label);
    }
    add_sums(e, &p);
    return p;
}

static labels matrices_of(const product *p, uint32_t operand)
{
    labels order = p->batch;
    if (operand == p->left) add_labels(&order, &p->rows);
    add_labels(&order, &p->sums);
    if (operand != p->left) add_labels(&order, &p->columns);
    return order;
}

static labels result_of(const product *p)
{
    labels order = p->batch;
    add_labels(&order, &p->rows);
    add_labels(&order, &p->columns);
    return order;
}

/* ---- shapes ---- */

static sp_status check_matrices(const sp_op_call *call, const sp_equation *e, const labels *order)
{
    sp_shape shape = {.rank = order->count};
    uint64_t bytes;
    if (order->count > SP_MAX_RANK) {
        return sp__fail(SP_UNSUPPORTED, "the equation needs an operand of more than %d axes",
                        SP_MAX_RANK);
    }
    for (uint32_t i = 0; i < order->count; i++) shape.dims[i] = e->sizes[order->at[i]];
    return sp__shape_bytes(&shape, call->inputs[0].dtype, &bytes);
}

sp_status sp__einsum_infer(sp_op_call *call)
{
    sp_equation e;
    if (call->input_count > SP_EQUATION_OPERANDS) {
        return sp__fail(SP_UNSUPPORTED, "Einsum of more than two inputs");
    }
    SP_TRY(sp__equation_read(call, &e));
    const product p = product_of(&e);
    for (uint32_t i = 0; i < SP_EQUATION_OPERANDS; i++) {
        const labels order = matrices_of(&p, i);
        SP_TRY(check_matrices(call, &e, &order));
    }
    sp_shape y = {.rank = e.output_rank};
    for (uint32_t i = 0; i < e.output_rank; i++) y.dims[i] = e.sizes[e.output[i]];
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    call->depth = (uint64_t)count_of(&e, &p.sums);
    return SP_OK;
}

/* ---- operands ---- */

/* The copy to a contiguous value in this order, of one that has these strides, by label. */
static sp_copy_constants copy_of(const sp_op_call *call, const sp_equation *e, const labels *order,
                                 const int64_t *strides)
{
    sp_copy_constants k = {.rank = order->count,
                           .element_bytes = (uint32_t)sp_dtype_bytes(call->inputs[0].dtype),
                           .count = count_of(e, order)};
    int64_t stride = 1;
    for (uint32_t i = order->count; i-- > 0;) {
        k.dims[i] = e->sizes[order->at[i]];
        k.x[i] = strides[order->at[i]];
        k.y[i] = stride;
        stride *= k.dims[i];
    }
    k.rank = sp__collapse(k.rank, k.dims, k.x, k.y);
    return k;
}

/* Are the elements in this order already, and no others? */
static bool is_plain_copy(const sp_copy_constants *k, uint64_t from_bytes)
{
    const bool is_plain = k->rank == 1 && (k->x[0] == 1 || k->dims[0] == 1);
    return is_plain && from_bytes == (uint64_t)k->count * k->element_bytes;
}

static sp_status emit_copy(sp_lowering *lowering, const sp_copy_constants *k, sp_operand from,
                           sp_operand to)
{
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_copy_strided, k, sizeof(*k), &dispatch));
    sp__lower_bind(dispatch, from);
    sp__lower_bind(dispatch, to);
    return SP_OK;
}

static sp_operand scratch_of(sp_lowering *lowering, uint64_t bytes)
{
    return (sp_operand){.kind = SP_OPERAND_SCRATCH,
                        .index = sp__lower_scratch(lowering, bytes),
                        .is_write = true,
                        .bytes = bytes};
}

static sp_status emit_fill(const sp_op_call *call, sp_lowering *lowering, uint64_t value,
                           sp_operand to)
{
    const uint32_t element_bytes = (uint32_t)sp_dtype_bytes(call->inputs[0].dtype);
    const sp_fill_constants k = {.value = value,
                                 .count = (int64_t)(to.bytes / element_bytes),
                                 .element_bytes = element_bytes};
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_fill, &k, sizeof(k), &dispatch));
    sp__lower_bind(dispatch, to);
    return SP_OK;
}

/* Operand `index` as matrices, for reading. The second operand of an Einsum of one input is ones.
 */
static sp_status emit_matrices(const sp_op_call *call, sp_lowering *lowering, const sp_equation *e,
                               const product *p, uint32_t index, sp_operand *out)
{
    const labels order = matrices_of(p, index);
    const sp_copy_constants k = copy_of(call, e, &order, e->operands[index].strides);
    const uint64_t bytes = (uint64_t)k.count * k.element_bytes;
    if (index >= call->input_count) {
        *out = scratch_of(lowering, bytes);
        SP_TRY(emit_fill(call, lowering, sp__lower_one(call->inputs[0].dtype), *out));
    } else {
        const sp_operand input = {
            .kind = SP_OPERAND_INPUT, .index = index, .bytes = call->inputs[index].bytes};
        const bool is_plain = is_plain_copy(&k, input.bytes);
        *out = is_plain ? input : scratch_of(lowering, bytes);
        if (!is_plain) SP_TRY(emit_copy(lowering, &k, input, *out));
    }
    out->is_write = false;
    return SP_OK;
}

/* ---- the product ---- */

static sp_gemm_constants gemm_of(const sp_equation *e, const product *p, int64_t *batch)
{
    sp_gemm_constants k = {.rows = count_of(e, &p->rows),
                           .columns = count_of(e, &p->columns),
                           .depth = count_of(e, &p->sums),
                           .a_depth = 1,
                           .alpha = 1.0f,
                           .beta = 1.0f};
    *batch = count_of(e, &p->batch);
    k.a_row = k.depth;
    k.b_depth = k.columns;
    k.batch_rank = 1;
    k.batch_dims[0] = *batch;
    k.a_batch[0] = k.rows * k.depth;
    k.b_batch[0] = k.depth * k.columns;
    return k;
}

static sp_status emit_product(const sp_op_call *call, sp_lowering *lowering, const sp_equation *e,
                              const product *p, const sp_operand bindings[3])
{
    int64_t batch;
    sp_gemm_any_constants k = {.b_column = 1};
    k.gemm = gemm_of(e, p, &batch);
    const bool is_f32 = call->inputs[0].dtype == SP_F32;
    const sp_kernel_id kernel =
        is_f32 ? SP_KERNEL_ID_gemm_f32 : sp__gemm_any_kernel(call->inputs[0].dtype);
    const uint32_t bytes = is_f32 ? sizeof(k.gemm) : sizeof(k);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernel, &k, bytes, &dispatch));
    dispatch->multiply_adds = (uint64_t)(k.gemm.rows * k.gemm.columns * batch) * call->depth;
    for (int i = 0; i < 3; i++) sp__lower_bind(dispatch, bindings[i]);
    return SP_OK;
}

/* The strides of a contiguous value in this order, by label. */
static void strides_of(const sp_equation *e, const labels *order, int64_t *out)
{
    int64_t stride = 1;
    for (uint32_t i = order->count; i-- > 0;) {
        out[order->at[i]] = stride;
        stride *= e->sizes[order->at[i]];
    }
}

static labels output_of(const sp_equation *e)
{
    labels order = {.count = e->output_rank};
    for (uint32_t i = 0; i < e->output_rank; i++) order.at[i] = e->output[i];
    return order;
}

static bool is_same_order(const labels *a, const labels *b)
{
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->at[i] != b->at[i]) return false;
    }
    return a->count == b->count;
}

/* One input whose elements are moved only. */
static sp_status lower_move(const sp_op_call *call, sp_lowering *lowering, const sp_equation *e,
                            sp_operand y)
{
    const labels order = output_of(e);
    const sp_operand x = {.kind = SP_OPERAND_INPUT, .bytes = call->inputs[0].bytes};
    const sp_copy_constants k = copy_of(call, e, &order, e->operands[0].strides);
    if (!is_plain_copy(&k, x.bytes)) return emit_copy(lowering, &k, x, y);
    sp__lower_alias(lowering, 0);
    return SP_OK;
}

/* The product, in the order of the output. */
static sp_status lower_product(const sp_op_call *call, sp_lowering *lowering, const sp_equation *e,
                               const product *p, sp_operand y)
{
    sp_operand bindings[3];
    SP_TRY(emit_matrices(call, lowering, e, p, p->left, &bindings[0]));
    SP_TRY(emit_matrices(call, lowering, e, p, 1 - p->left, &bindings[1]));
    const labels result = result_of(p), order = output_of(e);
    const bool is_direct = is_same_order(&result, &order);
    bindings[2] = is_direct ? y : scratch_of(lowering, y.bytes);
    SP_TRY(emit_product(call, lowering, e, p, bindings));
    if (is_direct) return SP_OK;
    int64_t strides[SP_EQUATION_LABELS] = {0};
    strides_of(e, &result, strides);
    const sp_copy_constants k = copy_of(call, e, &order, strides);
    bindings[2].is_write = false;
    return emit_copy(lowering, &k, bindings[2], y);
}

sp_status sp__einsum_lower(const sp_op_call *call, sp_lowering *lowering)
{
    const sp_operand y = {
        .kind = SP_OPERAND_OUTPUT, .is_write = true, .bytes = call->outputs[0].bytes};
    if (y.bytes == 0) return SP_OK;
    if (call->depth == 0) return emit_fill(call, lowering, 0, y);
    sp_equation e;
    SP_TRY(sp__equation_read(call, &e));
    const product p = product_of(&e);
    if (call->input_count == 1 && p.sums.count == 0) return lower_move(call, lowering, &e, y);
    return lower_product(call, lowering, &e, &p, y);
}

/* ---- rows ---- */

/* The label of a batched operand's rows; else the reason. */
static const char *rows_label(const sp_rows_call *call, const sp_equation *e, const product *p,
                              uint32_t index, sp_rows_axis *axis, uint8_t *label)
{
    const sp_equation_operand *o = &e->operands[index];
    const char *why = sp__rows_find_input(call, index, axis);
    if (why != NULL) return why;
    *label = o->labels[axis->axis];
    for (uint32_t i = 0; i < o->rank; i++) {
        if (i != axis->axis && o->labels[i] == *label) return "it takes a diagonal of the batch";
    }
    if (sp__equation_place(e, *label) == e->output_rank) return "it sums over the batch axis";
    /* As of MatMul. */
    return e->operands[p->left].has[*label] ? NULL : "its rows are columns of the product";
}

const char *sp__einsum_rows(const sp_rows_call *call)
{
    sp_equation e;
    sp_rows_axis rows = {0};
    uint8_t label = SP_EQUATION_LABELS;
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    if (sp__equation_read(call->many, &e) != SP_OK) return "its equation does not fit its inputs";
    const product p = product_of(&e);
    for (uint32_t i = 0; i < call->many->input_count; i++) {
        sp_rows_axis axis;
        uint8_t own;
        if (call->inputs[i].kind != SP_ROWS_BATCHED) continue;
        why = rows_label(call, &e, &p, i, &axis, &own);
        if (why != NULL) return why;
        if (label != SP_EQUATION_LABELS && (own != label || !sp__rows_match(&axis, &rows))) {
            return "its inputs have their rows in different places";
        }
        label = own;
        rows = axis;
    }
    for (uint32_t i = 0; i < call->many->input_count; i++) {
        const bool is_shared = call->inputs[i].kind == SP_ROWS_SHARED;
        if (is_shared && e.operands[i].strides[label] != 0) {
            return "a parameter has a size along the batch axis";
        }
    }
    sp__rows_set_axis(call, 0, sp__equation_place(&e, label), &rows);
    return NULL;
}
