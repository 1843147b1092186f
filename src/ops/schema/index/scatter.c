/* SPDX-License-Identifier: Apache-2.0 */
/* ScatterElements (Scatter before version 11) and ScatterND: a copy of the data, then updates. A
 * reduction of f16 or bf16 is computed in f32 and rounded once at the end. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/schema/math/elementwise.h"
#include "tensor/collapse.h"

enum { INPUT_INDICES = 1, INPUT_UPDATES = 2 };

static sp_status read_reduction(const sp_op_call *call, uint32_t *out)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const sp_text text = sp__attribute_text(call->attributes, "reduction", "none");
    /* max and min exist from version 18 on. */
    const uint32_t known = call->version < 18 ? SP_SCATTER_MUL : SP_SCATTER_MIN;
    for (*out = SP_SCATTER_NONE; *out <= known; (*out)++) {
        if (sp__text_is(text, names[*out])) break;
    }
    if (*out > known) {
        return sp__fail(SP_UNSUPPORTED, "reduction '%s' is not supported",
                        sp__text_print(text).text);
    }
    return SP_OK;
}

static sp_status bad_updates(const sp_op_call *call)
{
    return sp__fail(SP_MISMATCH,
                    "updates of shape %s do not match indices of shape %s and data of shape %s",
                    sp__shape_print(&call->inputs[INPUT_UPDATES].shape).text,
                    sp__shape_print(&call->inputs[INPUT_INDICES].shape).text,
                    sp__shape_print(&call->inputs[0].shape).text);
}

static sp_status emit_copy(const sp_op_call *call, sp_lowering *lowering)
{
    const sp_flat_constants k = {.count = (int64_t)call->outputs[0].bytes};
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_copy_bytes, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* The operands of the updates; y has a copy of the data. */
typedef struct scatter_terms {
    sp_term updates, y;
} scatter_terms;

static sp_status scatter_begin(const sp_op_call *call, sp_lowering *lowering, uint32_t reduction,
                               scatter_terms *out)
{
    const sp_term x = sp__term_input(call, 0);
    *out = (scatter_terms){sp__term_input(call, INPUT_UPDATES), sp__term_output(call, 0)};
    if (reduction == SP_SCATTER_NONE || !sp__is_half(x.dtype)) return emit_copy(call, lowering);
    out->y = sp__term_result(call, lowering);
    SP_TRY(sp__emit_cast(lowering, &x, &out->y));
    return sp__emit_convert(lowering, &out->updates, SP_F32, &out->updates);
}

static sp_status emit_updates(const sp_op_call *call, sp_lowering *lowering, sp_kernel_id kernel,
                              const void *constants, uint32_t bytes, const scatter_terms *terms)
{
    sp_dispatch *dispatch;
    sp_operand y = terms->y.operand;
    y.is_write = true;
    SP_TRY(sp__lower_dispatch(lowering, kernel, constants, bytes, &dispatch));
    sp__lower_bind_input(dispatch, call, INPUT_INDICES);
    sp__lower_bind(dispatch, terms->updates.operand);
    sp__lower_bind(dispatch, y);
    return sp__emit_result(call, lowering, &terms->y);
}

/* ---- ScatterElements ---- */

static sp_status read_axis(const sp_op_call *call, uint32_t *axis)
{
    return sp__shape_axis(&call->inputs[0].shape, sp__attribute_int(call->attributes, "axis", 0),
                          axis);
}

sp_status sp__scatter_elements_infer(sp_op_call *call)
{
    uint32_t axis, reduction;
    SP_TRY(read_reduction(call, &reduction));
    SP_TRY(read_axis(call, &axis));
    SP_TRY(sp__elements_shapes(call, axis));
    if (!sp__shape_equal(&call->inputs[INPUT_INDICES].shape, &call->inputs[INPUT_UPDATES].shape)) {
        return bad_updates(call);
    }
    return sp__op_infer_same(call);
}

sp_status sp__scatter_elements_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_op_value *indices = &call->inputs[INPUT_INDICES];
    if (indices->bytes == 0) return emit_copy(call, lowering);
    scatter_terms terms;
    sp_scatter_elements_constants k = {.rank = indices->shape.rank,
                                       .index_bytes = (uint32_t)sp_dtype_bytes(indices->dtype)};
    SP_TRY(read_axis(call, &k.axis));
    SP_TRY(read_reduction(call, &k.reduction));
    SP_TRY(scatter_begin(call, lowering, k.reduction, &terms));
    k.dtype = terms.y.dtype;
    k.axis_size = call->inputs[0].shape.dims[k.axis];
    sp__shape_strides(&call->inputs[0].shape, k.y);
    for (uint32_t i = 0; i < k.rank; i++) k.dims[i] = indices->shape.dims[i];
    const int64_t length = k.dims[k.axis];
    k.lines = (int64_t)sp__shape_count(&indices->shape) / length;
    return emit_updates(call, lowering, SP_KERNEL_ID_scatter_elements, &k, sizeof(k), &terms);
}

/* ---- ScatterND ---- */

sp_status sp__scatter_nd_infer(sp_op_call *call)
{
    const sp_shape *x = &call->inputs[0].shape, *indices = &call->inputs[INPUT_INDICES].shape;
    uint32_t reduction;
    SP_TRY(read_reduction(call, &reduction));
    const int64_t depth = indices->rank > 0 ? indices->dims[indices->rank - 1] : 0;
    if (depth < 1 || depth > (int64_t)x->rank) {
        return sp__fail(SP_MISMATCH, "indices of shape %s do not match data of shape %s",
                        sp__shape_print(indices).text, sp__shape_print(x).text);
    }
    const uint32_t lead = indices->rank - 1, rest = x->rank - (uint32_t)depth;
    const sp_shape *updates = &call->inputs[INPUT_UPDATES].shape;
    bool fits = updates->rank == lead + rest;
    for (uint32_t i = 0; fits && i < updates->rank; i++) {
        fits =
            updates->dims[i] == (i < lead ? indices->dims[i] : x->dims[(uint32_t)depth + i - lead]);
    }
    return fits ? sp__op_infer_same(call) : bad_updates(call);
}

/* The element where slice i of the updates goes, by indices that are known; false if there is none.
 */
static bool find_place(const sp_op_value *indices, const sp_scatter_nd_constants *k, int64_t i,
                       int64_t *out)
{
    *out = 0;
    for (uint32_t d = 0; d < k->depth; d++) {
        const int64_t at = i * k->depth + d;
        int64_t index = k->index_bytes == sizeof(int32_t) ? ((const int32_t *)indices->data)[at]
                                                          : ((const int64_t *)indices->data)[at];
        if (index < 0) index += k->dims[d];
        if (index < 0 || index >= k->dims[d]) return false;
        *out += index * k->strides[d];
    }
    return true;
}

/* Are slices of `slice` elements at these strides apart from each other? */
static bool are_apart(const int64_t *dims, const int64_t *strides, uint32_t rank, int64_t slice)
{
    bool is_done[SP_KERNEL_RANK] = {false};
    int64_t span = slice; /* of the dimensions with smaller strides */
    for (uint32_t n = 0; n < rank; n++) {
        uint32_t least = rank;
        for (uint32_t i = 0; i < rank; i++) {
            if (!is_done[i] && (least == rank || strides[i] < strides[least])) least = i;
        }
        is_done[least] = true;
        if (dims[least] == 1) continue;
        if (strides[least] < span) return false;
        span += (dims[least] - 1) * strides[least];
    }
    return true;
}

/* Known indices that step through y evenly along each of their dimensions: what an exporter writes
 * for an assignment to a slice. Then the updates are one copy by strides. */
static bool find_slice(const sp_op_value *indices, const sp_scatter_nd_constants *k,
                       sp_copy_constants *out)
{
    const uint32_t lead = indices->shape.rank - 1;
    if (indices->data == NULL || lead + 1 > SP_KERNEL_RANK) return false;
    *out = (sp_copy_constants){.rank = lead + 1,
                               .element_bytes = (uint32_t)sp_dtype_bytes((sp_dtype)k->dtype),
                               .count = k->count * k->slice};
    if (!find_place(indices, k, 0, &out->y_first)) return false;
    int64_t weight = 1;
    for (uint32_t i = lead; i-- > 0; weight *= out->dims[i]) {
        int64_t next = 0;
        out->dims[i] = indices->shape.dims[i];
        out->x[i] = weight * k->slice;
        if (out->dims[i] > 1 && !find_place(indices, k, weight, &next)) return false;
        if (out->dims[i] > 1) out->y[i] = next - out->y_first;
        if (out->y[i] < 0) return false;
    }
    out->dims[lead] = k->slice;
    out->x[lead] = out->y[lead] = 1;
    int64_t at[SP_KERNEL_RANK] = {0}, even = out->y_first;
    for (int64_t i = 0; i < k->count; i++) {
        int64_t place;
        if (!find_place(indices, k, i, &place)) return false;
        if (place != even && !SP_PLANTED(scatter_takes_even)) return false;
        for (uint32_t d = lead; d-- > 0;) {
            even += out->y[d];
            if (++at[d] < out->dims[d]) break;
            even -= at[d] * out->y[d];
            at[d] = 0;
        }
    }
    return are_apart(out->dims, out->y, lead, k->slice);
}

static sp_status emit_slice(const sp_op_call *call, sp_lowering *lowering, sp_copy_constants *k)
{
    sp_dispatch *dispatch;
    const bool is_all = (uint64_t)k->count == sp__shape_count(&call->inputs[0].shape);
    k->rank = sp__collapse(k->rank, k->dims, k->x, k->y);
    if (!is_all) SP_TRY(emit_copy(call, lowering));
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_copy_strided, k, sizeof *k, &dispatch));
    sp__lower_bind_input(dispatch, call, INPUT_UPDATES);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

sp_status sp__scatter_nd_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape;
    const sp_op_value *indices = &call->inputs[INPUT_INDICES];
    if (call->inputs[INPUT_UPDATES].bytes == 0) return emit_copy(call, lowering);
    const uint32_t lead = indices->shape.rank - 1;
    sp_scatter_nd_constants k = {.depth = (uint32_t)indices->shape.dims[lead],
                                 .index_bytes = (uint32_t)sp_dtype_bytes(indices->dtype),
                                 .count = (int64_t)sp__shape_range_count(&indices->shape, 0, lead)};
    scatter_terms terms;
    k.dtype = call->inputs[0].dtype;
    k.slice = (int64_t)sp__shape_range_count(x, k.depth, x->rank);
    sp__shape_strides(x, k.strides);
    for (uint32_t i = 0; i < k.depth; i++) k.dims[i] = x->dims[i];
    SP_TRY(read_reduction(call, &k.reduction));
    sp_copy_constants slice;
    if (k.reduction == SP_SCATTER_NONE && find_slice(indices, &k, &slice)) {
        return emit_slice(call, lowering, &slice);
    }
    SP_TRY(scatter_begin(call, lowering, k.reduction, &terms));
    k.dtype = terms.y.dtype;
    return emit_updates(call, lowering, SP_KERNEL_ID_scatter_nd, &k, sizeof(k), &terms);
}

/* ---- rows ---- */

/* Data, indices and updates have the rows in the same place, another axis than that of the op. */
const char *sp__scatter_elements_rows(const sp_rows_call *call)
{
    uint32_t axis;
    sp_rows_axis rows = {0}, other;
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    if (read_axis(call->many, &axis) != SP_OK) return "its axis is unknown";
    for (uint32_t i = 0; i < 3; i++) {
        if (call->inputs[i].kind != SP_ROWS_BATCHED) return "an input is the same for all rows";
        why = sp__rows_find_input(call, i, &other);
        if (why != NULL) return why;
        if (i == 0) rows = other;
        if (!sp__rows_match(&rows, &other)) return "its inputs have their rows in different places";
    }
    if (rows.axis == axis) return "it writes along the batch axis";
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}

/* Data and updates have the rows in the slices that shared indices select. */
const char *sp__scatter_nd_rows(const sp_rows_call *call)
{
    const sp_shape *indices = &call->many->inputs[INPUT_INDICES].shape;
    sp_rows_axis rows, updates;
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    if (call->inputs[INPUT_INDICES].kind == SP_ROWS_BATCHED) return "its indices are batched";
    for (uint32_t i = 0; i < 3; i += INPUT_UPDATES) {
        if (call->inputs[i].kind != SP_ROWS_BATCHED) return "an input is the same for all rows";
        why = sp__rows_find_input(call, i, i == 0 ? &rows : &updates);
        if (why != NULL) return why;
    }
    const uint32_t lead = indices->rank - 1;
    const uint32_t depth = (uint32_t)indices->dims[lead];
    if (rows.axis < depth) return "it writes along the batch axis";
    updates.axis += depth - lead;
    if (!sp__rows_match(&rows, &updates)) return "its inputs have their rows in different places";
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}
