/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu and EyeLike: elements on, above or below a diagonal of a matrix. */
#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"
#include "tensor/onnx_dtype.h"

/* The diagonal, clamped to a range that includes every matrix. */
static int64_t clamp_diagonal(int64_t k)
{
    const int64_t limit = (int64_t)SP_MAX_TENSOR_BYTES;
    return k > limit ? limit : k < -limit ? -limit : k;
}

/* Tiles of whole rows. */
static void set_rows(const sp_shape *shape, sp_diagonal_constants *k)
{
    k->columns = shape->dims[shape->rank - 1];
    k->matrix_rows = shape->dims[shape->rank - 2];
    k->rows = (int64_t)sp__shape_range_count(shape, 0, shape->rank - 1);
}

/* ---- Trilu ---- */

static sp_status read_diagonal(const sp_op_call *call, int64_t *k)
{
    uint32_t count = 1;
    *k = 0;
    if (sp__op_has_input(call, 1)) SP_TRY(sp__op_known_ints(call, 1, 1, k, &count));
    *k = clamp_diagonal(*k);
    return count == 1 ? SP_OK : sp__fail(SP_MISMATCH, "the diagonal must be one number");
}

sp_status sp__trilu_infer(sp_op_call *call)
{
    int64_t k;
    SP_TRY(read_diagonal(call, &k));
    if (call->inputs[0].shape.rank < 2) {
        return sp__fail(SP_MISMATCH, "shape %s is not a matrix",
                        sp__shape_print(&call->inputs[0].shape).text);
    }
    return sp__op_infer_same(call);
}

sp_status sp__trilu_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_diagonal_constants k = {.element_bytes = (uint32_t)sp_dtype_bytes(call->inputs[0].dtype),
                               .is_upper = sp__attribute_int(call->attributes, "upper", 1) != 0};
    SP_TRY(read_diagonal(call, &k.diagonal));
    set_rows(&call->outputs[0].shape, &k);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_trilu, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

const char *sp__trilu_rows(const sp_rows_call *call)
{
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    const bool is_matrix = rows.axis + 2 >= call->many->inputs[0].shape.rank;
    if (is_matrix) return "the batch axis is one of the matrix";
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}

/* ---- EyeLike ---- */

sp_status sp__eye_like_infer(sp_op_call *call)
{
    const sp_shape *shape = &call->inputs[0].shape;
    const sp_attribute *attribute = sp__attribute_find(call->attributes, "dtype");
    sp_dtype dtype = call->inputs[0].dtype;
    if (attribute) SP_TRY(sp__onnx_dtype(attribute->as.ints[0], &dtype));
    if (shape->rank != 2) {
        return sp__fail(SP_MISMATCH, "shape %s is not a matrix", sp__shape_print(shape).text);
    }
    sp__op_set_output(call, 0, dtype, shape);
    return SP_OK;
}

sp_status sp__eye_like_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_diagonal_constants k = {.element_bytes = (uint32_t)sp_dtype_bytes(call->outputs[0].dtype),
                               .diagonal =
                                   clamp_diagonal(sp__attribute_int(call->attributes, "k", 0)),
                               .one = sp__lower_one(call->outputs[0].dtype)};
    set_rows(&call->outputs[0].shape, &k);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_eye, &k, sizeof(k), &dispatch));
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}
