/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu and EyeLike: what lies on, above or below a diagonal of a matrix. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

/* Which diagonal, bounded by numbers that lie outside of every matrix. */
static int64_t bounded(int64_t k)
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
    k->tile_rows = k->columns < SP_TILE_ELEMENTS ? SP_TILE_ELEMENTS / k->columns : 1;
}

/* ---- Trilu ---- */

static sp_status read_diagonal(const sp_op_call *call, int64_t *k)
{
    uint32_t count = 1;
    *k = 0;
    if (sp__op_has_input(call, 1)) SP_TRY(sp__op_known_ints(call, 1, 1, k, &count));
    *k = bounded(*k);
    return count == 1 ? SP_OK : sp__fail(SP_MISMATCH, "the diagonal is not one number");
}

sp_status sp__trilu_infer(sp_op_call *call)
{
    int64_t k;
    SP_TRY(read_diagonal(call, &k));
    if (call->inputs[0].shape.rank < 2) {
        return sp__fail(SP_MISMATCH, "shape %s is no matrix",
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
    return sp__lower_cover(dispatch, k.rows, k.tile_rows);
}

/* ---- EyeLike ---- */

/* ONNX's number of a type, and the bits of its 1. */
typedef struct eye_type {
    int64_t number;
    sp_dtype dtype;
    uint64_t one;
} eye_type;

static const eye_type eye_types[] = {
    {1, SP_F32, 0x3f800000}, {11, SP_F64, 0x3ff0000000000000},
    {10, SP_F16, 0x3c00},    {16, SP_BF16, 0x3f80},
    {2, SP_U8, 1},           {3, SP_I8, 1},
    {4, SP_U16, 1},          {5, SP_I16, 1},
    {6, SP_I32, 1},          {7, SP_I64, 1},
    {12, SP_U32, 1},         {13, SP_U64, 1},
    {9, SP_BOOL, 1},
};

/* The attribute's type, or the input's. */
static const eye_type *find_type(const sp_op_call *call)
{
    const sp_attribute *attribute = sp__attribute_find(call->attributes, "dtype");
    for (size_t i = 0; i < SP_COUNT_OF(eye_types); i++) {
        const bool is_it = attribute ? attribute->as.ints[0] == eye_types[i].number
                                     : call->inputs[0].dtype == eye_types[i].dtype;
        if (is_it) return &eye_types[i];
    }
    return NULL;
}

sp_status sp__eye_like_infer(sp_op_call *call)
{
    const sp_shape *shape = &call->inputs[0].shape;
    const eye_type *type = find_type(call);
    if (!type) {
        return sp__fail(SP_UNSUPPORTED, "type %" PRId64 " is not supported",
                        sp__attribute_int(call->attributes, "dtype", 0));
    }
    if (shape->rank != 2) {
        return sp__fail(SP_MISMATCH, "shape %s is no matrix", sp__shape_print(shape).text);
    }
    sp__op_set_output(call, 0, type->dtype, shape);
    return SP_OK;
}

sp_status sp__eye_like_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_diagonal_constants k = {.element_bytes = (uint32_t)sp_dtype_bytes(call->outputs[0].dtype),
                               .diagonal = bounded(sp__attribute_int(call->attributes, "k", 0)),
                               .one = find_type(call)->one};
    set_rows(&call->outputs[0].shape, &k);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_eye, &k, sizeof(k), &dispatch));
    sp__lower_bind_output(dispatch, call, 0);
    return sp__lower_cover(dispatch, k.rows, k.tile_rows);
}
