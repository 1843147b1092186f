/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, Split and Transpose of any element type, bit for bit. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "tensor/collapse.h"
#include "ops/ops.h"

/* ---- strided copies of the input ---- */

sp_status sp__lower_strided_copy(const sp_op_call *call, sp_lowering *lowering,
                                 sp_copy_constants *k)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    k->element_bytes = (uint32_t)sp_dtype_bytes(call->inputs[0].dtype);
    k->count = (int64_t)sp__shape_count(&call->outputs[0].shape);
    k->rank = sp__collapse(k->rank, k->dims, k->x, k->y);
    const bool is_plain = k->rank == 1 && (k->x[0] == 1 || k->dims[0] == 1);
    if (is_plain && call->inputs[0].bytes == call->outputs[0].bytes) {
        sp__lower_alias(lowering, 0); /* the same elements in the same order */
        return SP_OK;
    }
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_copy_strided, k, sizeof(*k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

sp_status sp__lower_view(const sp_op_call *call, sp_lowering *lowering, const sp_layout *view)
{
    sp_copy_constants k = {.rank = view->shape.rank,
                           .x_first = (int64_t)(view->offset / sp_dtype_bytes(view->dtype))};
    sp__shape_strides(&view->shape, k.y);
    for (uint32_t i = 0; i < k.rank; i++) {
        k.dims[i] = view->shape.dims[i];
        k.x[i] = view->strides[i];
    }
    return sp__lower_strided_copy(call, lowering, &k);
}

/* ---- Concat ---- */

sp_status sp__concat_infer(sp_op_call *call)
{
    const sp_op_value *first = &call->inputs[0];
    uint32_t axis;
    SP_TRY(sp__shape_axis(&first->shape, sp__attribute_int(call->attributes, "axis", 0), &axis));
    sp_shape y = first->shape;
    uint64_t total = (uint64_t)y.dims[axis];
    for (uint32_t i = 1; i < call->input_count; i++) {
        if (!sp__op_has_input(call, i)) {
            return sp__fail(SP_CORRUPT, "input %" PRIu32 " is missing", i);
        }
        const sp_op_value *input = &call->inputs[i];
        sp_shape rest = input->shape;
        if (rest.rank == y.rank) {
            total += (uint64_t)rest.dims[axis];
            /* Bounded, so the sum cannot overflow; refused below, with the shape. */
            if (total > SP_MAX_TENSOR_BYTES) total = SP_MAX_TENSOR_BYTES + 1;
            rest.dims[axis] = first->shape.dims[axis];
        }
        if (!sp__shape_equal(&rest, &first->shape) || input->dtype != first->dtype) {
            return sp__fail(SP_MISMATCH,
                            "input %" PRIu32 " is %s of shape %s; input 0 is %s of shape %s", i,
                            sp_dtype_name(input->dtype), sp__shape_print(&input->shape).text,
                            sp_dtype_name(first->dtype), sp__shape_print(&first->shape).text);
        }
    }
    y.dims[axis] = (int64_t)total;
    sp__op_set_output(call, 0, first->dtype, &y);
    return SP_OK;
}

/* ---- Split ---- */

/* The size of output `index` along the axis: from the attribute `split` (to version 12), input 1
 * (from 13), or equal parts, of which the last may be smaller. */
static sp_status split_size(const sp_op_call *call, int64_t total, uint32_t index, int64_t *out)
{
    const int64_t count = call->output_count;
    const sp_attribute *attribute = sp__attribute_find(call->attributes, "split");
    if (attribute) {
        if (attribute->count != call->output_count) {
            return sp__fail(SP_MISMATCH, "%" PRIu32 " sizes for %" PRIu32 " outputs",
                            attribute->count, call->output_count);
        }
        *out = attribute->as.ints[index];
    } else if (sp__op_has_input(call, 1)) {
        const sp_op_value *sizes = &call->inputs[1];
        if (sizes->shape.rank != 1 || sizes->shape.dims[0] != count) {
            return sp__fail(SP_MISMATCH, "sizes of shape %s for %" PRId64 " outputs",
                            sp__shape_print(&sizes->shape).text, count);
        }
        SP_TRY(sp__op_require_known(call, 1));
        *out = ((const int64_t *)sizes->data)[index];
    } else {
        /* Unequal parts exist from version 18 on. */
        if (call->version < 18 && total % count != 0) {
            return sp__fail(SP_MISMATCH, "%" PRId64 " does not split into %" PRId64 " equal parts",
                            total, count);
        }
        const int64_t part = (total + count - 1) / count;
        const int64_t left = total - part * index;
        *out = left < part ? left : part;
    }
    if (*out >= 0) return SP_OK;
    return sp__fail(SP_MISMATCH, "part %" PRIu32 " has the negative size %" PRId64, index, *out);
}

sp_status sp__split_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    uint32_t axis;
    SP_TRY(sp__shape_axis(&x->shape, sp__attribute_int(call->attributes, "axis", 0), &axis));
    const int64_t wanted = sp__attribute_int(call->attributes, "num_outputs", call->output_count);
    if (wanted != call->output_count) {
        return sp__fail(SP_MISMATCH, "num_outputs is %" PRId64 ", the node has %" PRIu32 " outputs",
                        wanted, call->output_count);
    }
    const int64_t total = x->shape.dims[axis];
    int64_t left = total;
    for (uint32_t i = 0; i < call->output_count; i++) {
        sp_shape part = x->shape;
        SP_TRY(split_size(call, total, i, &part.dims[axis]));
        if (part.dims[axis] > left) {
            return sp__fail(SP_MISMATCH,
                            "the sum of the parts is larger than the dimension of %" PRId64, total);
        }
        left -= part.dims[axis];
        sp__op_set_output(call, i, x->dtype, &part);
    }
    if (left == 0) return SP_OK;
    return sp__fail(SP_MISMATCH, "the sum of the parts is smaller than the dimension of %" PRId64,
                    total);
}

/* ---- Concat and Split: between a whole and its parts ---- */

/* Constants of the whole tensor for parts along `axis`; *step_bytes are the bytes of one index
 * along it. */
static sp_concat_constants concat_constants(const sp_op_value *whole, uint32_t axis,
                                            uint64_t *step_bytes)
{
    const sp_shape *shape = &whole->shape;
    *step_bytes =
        sp__shape_range_count(shape, axis + 1, shape->rank) * sp_dtype_bytes(whole->dtype);
    sp_concat_constants k = {
        .outer = (int64_t)sp__shape_range_count(shape, 0, axis),
        .row_bytes = (int64_t)(*step_bytes * (uint64_t)shape->dims[axis]),
    };
    return k;
}

static sp_status lower_parts(const sp_op_call *call, sp_lowering *lowering, bool is_split)
{
    const sp_op_value *whole = is_split ? &call->inputs[0] : &call->outputs[0];
    const sp_op_value *parts = is_split ? call->outputs : call->inputs;
    const uint32_t count = is_split ? call->output_count : call->input_count;
    if (whole->bytes == 0) return SP_OK; /* no bytes, with any number of rows */
    uint32_t axis;
    uint64_t step_bytes;
    SP_TRY(sp__shape_axis(&whole->shape, sp__attribute_int(call->attributes, "axis", 0), &axis));
    sp_concat_constants k = concat_constants(whole, axis, &step_bytes);
    int64_t offset = 0;
    /* One dispatch for as many parts as it can bind. */
    for (uint32_t first = 0; first < count; first += k.parts) {
        k.parts = count - first < SP_CONCAT_MAX_PARTS ? count - first : SP_CONCAT_MAX_PARTS;
        for (uint32_t i = 0; i < k.parts; i++) {
            k.part_bytes[i] = parts[first + i].shape.dims[axis] * (int64_t)step_bytes;
            k.part_offset[i] = offset;
            offset += k.part_bytes[i];
        }
        const sp_kernel_id kernel = is_split ? SP_KERNEL_ID_split : SP_KERNEL_ID_concat;
        sp_dispatch *dispatch;
        SP_TRY(sp__lower_dispatch(lowering, kernel, &k, sizeof(k), &dispatch));
        if (is_split) sp__lower_bind_input(dispatch, call, 0);
        for (uint32_t i = 0; i < k.parts; i++) {
            if (is_split) sp__lower_bind_output(dispatch, call, first + i);
            else sp__lower_bind_input(dispatch, call, first + i);
        }
        if (!is_split) sp__lower_bind_output(dispatch, call, 0);
    }
    return SP_OK;
}

sp_status sp__concat_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_parts(call, lowering, false);
}

sp_status sp__split_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_parts(call, lowering, true);
}

/* ---- Transpose ---- */

/* `perm[i]` is the input's dimension that becomes dimension i; reversed order by default. */
static sp_status read_permutation(const sp_op_call *call, int64_t perm[SP_MAX_RANK])
{
    const uint32_t rank = call->inputs[0].shape.rank;
    const sp_attribute *attribute = sp__attribute_find(call->attributes, "perm");
    if (attribute && attribute->count != rank) {
        return sp__fail(SP_MISMATCH, "perm has %" PRIu32 " entries; the input has shape %s",
                        attribute->count, sp__shape_print(&call->inputs[0].shape).text);
    }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t from = attribute ? attribute->as.ints[i] : (int64_t)(rank - 1 - i);
        if (from < 0 || from >= (int64_t)rank || (seen & (1u << from)) != 0) {
            return sp__fail(SP_MISMATCH, "perm is not a permutation: entry %" PRIu32 " is %" PRId64,
                            i, from);
        }
        seen |= 1u << from;
        perm[i] = from;
    }
    return SP_OK;
}

sp_status sp__transpose_infer(sp_op_call *call)
{
    int64_t perm[SP_MAX_RANK] = {0};
    SP_TRY(read_permutation(call, perm));
    sp_shape y = call->inputs[0].shape;
    for (uint32_t i = 0; i < y.rank; i++) y.dims[i] = call->inputs[0].shape.dims[perm[i]];
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__transpose_lower(const sp_op_call *call, sp_lowering *lowering)
{
    const sp_op_value *x = &call->inputs[0];
    int64_t perm[SP_MAX_RANK] = {0};
    sp_layout view;
    SP_TRY(read_permutation(call, perm));
    SP_TRY(sp__layout_init_contiguous(&view, x->dtype, &x->shape));
    SP_TRY(sp__layout_permute(&view, perm, x->shape.rank, &view));
    return sp__lower_view(call, lowering, &view);
}

/* ---- rows ---- */

const char *sp__transpose_rows(const sp_rows_call *call)
{
    int64_t perm[SP_MAX_RANK] = {0};
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (read_permutation(call->many, perm) != SP_OK) return "its permutation is unknown";
    uint32_t axis = 0;
    while (perm[axis] != rows.axis) axis++;
    sp__rows_set_axis(call, 0, axis, &rows);
    return NULL;
}

/* Along another axis, or into parts that each have outer factors of all rows. */
const char *sp__split_rows(const sp_rows_call *call)
{
    uint32_t axis;
    sp_rows_axis rows;
    const int64_t given = sp__attribute_int(call->many->attributes, "axis", 0);
    const char *why = sp__rows_only_first(call, 1u << 1, &rows);
    if (why != NULL) return why;
    if (sp__shape_axis(&call->many->inputs[0].shape, given, &axis) != SP_OK) {
        return "its axis is unknown";
    }
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        const uint64_t size = (uint64_t)call->many->outputs[i].shape.dims[axis];
        if (axis == rows.axis && size % (call->rows * rows.inner) != 0) {
            return "it splits the batch axis";
        }
        sp__rows_set_axis(call, i, rows.axis, &rows);
    }
    return NULL;
}

/* All parts have the rows in one place. If they are joined along that axis, they are outer factors
 * of the rows. */
const char *sp__concat_rows(const sp_rows_call *call)
{
    sp_rows_axis rows = {0};
    const char *why = sp__rows_check_sizes(call, 0);
    for (uint32_t i = 0; why == NULL && i < call->many->input_count; i++) {
        sp_rows_axis part;
        if (call->inputs[i].kind != SP_ROWS_BATCHED) return "a constant is joined to the rows";
        why = sp__rows_find_input(call, i, &part);
        if (i == 0) rows = part;
        if (why == NULL && !sp__rows_match(&part, &rows)) {
            why = "its inputs have their rows in different places";
        }
    }
    if (why == NULL) sp__rows_set_axis(call, 0, rows.axis, &rows);
    return why;
}
