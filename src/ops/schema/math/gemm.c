/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm and MatMul. A constant right-hand matrix is packed into panels once per model; the bits are
 * the same packed or not. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

static sp_status bad_shapes(const sp_op_call *call)
{
    return sp__fail(SP_MISMATCH, "cannot multiply shapes %s and %s",
                    sp__shape_print(&call->inputs[0].shape).text,
                    sp__shape_print(&call->inputs[1].shape).text);
}

/* ---- matrix b: a packed constant, unpacked, or packed by a dispatch ---- */

static sp_pack pack_of_b(const sp_op_call *call, sp_pack_format format, bool is_transposed)
{
    const int64_t *dims = call->inputs[1].shape.dims;
    return (sp_pack){.format = format,
                     .matrix = {.depth = dims[is_transposed ? 1 : 0],
                                .columns = dims[is_transposed ? 0 : 1],
                                .depth_stride = is_transposed ? 1 : dims[1],
                                .column_stride = is_transposed ? dims[1] : 1,
                                .is_half = call->inputs[1].dtype != SP_F32}};
}

static uint64_t gemm_multiply_adds(const sp_gemm_constants *k, uint64_t batch)
{
    return (uint64_t)k->rows * (uint64_t)k->columns * (uint64_t)k->depth * batch;
}

/* ---- narrow products (docs/decisions/0072) ---- */

/* Is the product so large that a kernel that rounds the left operand once costs less than it saves
 * (bench/NOTES.md)? Changes no bit. */
static bool is_left_packed(const sp_gemm_constants *k)
{
    const double outputs = (double)k->rows * (double)k->columns;
    return outputs >= 0x1p21 || outputs * (double)k->depth >= 0x1p31;
}

/* Emits a product by a packed constant, as emit_gemm. Elements of two bytes cannot be copied to
 * shared memory one by one, so f16 and bf16 are always packed. */
static sp_status emit_narrow(const sp_op_call *call, sp_lowering *lowering, sp_gemm_constants *k)
{
    const sp_narrow_kernels *kernels = sp__narrow_kernels(call);
    k->is_half = call->inputs[0].dtype != SP_F32;
    k->b_format = (uint8_t)sp__pack_format_of(kernels->product);
    k->is_b_constant = true;
    const bool is_packed = k->is_half || call->packs_left || is_left_packed(k);
    uint32_t packed = 0;
    if (is_packed) {
        const sp_pack left = {.format = sp__pack_format_of(kernels->of_packed),
                              .matrix = {.depth = k->depth,
                                         .columns = k->rows,
                                         .depth_stride = k->a_depth,
                                         .column_stride = k->a_row,
                                         .is_half = k->is_half}};
        SP_TRY(sp__lower_pack(lowering, call, 0, &left, &packed));
    }
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, is_packed ? kernels->of_packed : kernels->product, k,
                              sizeof(*k), &dispatch));
    dispatch->multiply_adds = gemm_multiply_adds(k, 1);
    if (is_packed) sp__lower_bind_scratch(dispatch, lowering, packed, false);
    else sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_packed(dispatch, call, lowering, 1, 0);
    if (k->has_c) sp__lower_bind_input(dispatch, call, 2);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

sp_kernel_id sp__gemm_any_kernel(sp_dtype dtype)
{
    static const sp_kernel_id kernels[SP_BOOL + 1] = {
        [SP_F64] = SP_KERNEL_ID_gemm_any_f64,   [SP_F16] = SP_KERNEL_ID_gemm_any_f16,
        [SP_BF16] = SP_KERNEL_ID_gemm_any_bf16, [SP_I32] = SP_KERNEL_ID_gemm_any_i32,
        [SP_I64] = SP_KERNEL_ID_gemm_any_i64,   [SP_U32] = SP_KERNEL_ID_gemm_any_u32,
        [SP_U64] = SP_KERNEL_ID_gemm_any_u64,
    };
    return kernels[dtype];
}

/* Types other than f32; b is not packed. */
static sp_status emit_gemm_any(const sp_op_call *call, sp_lowering *lowering,
                               const sp_gemm_constants *gemm, bool is_transposed, uint64_t batch)
{
    sp_gemm_any_constants k = {.gemm = *gemm};
    k.gemm.b_depth = is_transposed ? 1 : gemm->columns;
    k.b_column = is_transposed ? gemm->depth : 1;
    sp_dispatch *dispatch;
    const sp_kernel_id kernel = sp__gemm_any_kernel(call->inputs[0].dtype);
    SP_TRY(sp__lower_dispatch(lowering, kernel, &k, sizeof(k), &dispatch));
    dispatch->multiply_adds = gemm_multiply_adds(gemm, batch);
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_input(dispatch, call, 1);
    if (gemm->has_c) sp__lower_bind_input(dispatch, call, 2);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* Emits the product; the caller has set all fields for a, c and the batch in `k`. */
static sp_status emit_gemm(const sp_op_call *call, sp_lowering *lowering, sp_gemm_constants *k,
                           bool is_transposed, uint64_t batch)
{
    if (call->inputs[1].is_packed && sp__may_be_narrow(call)) {
        return emit_narrow(call, lowering, k);
    }
    if (call->inputs[0].dtype != SP_F32) {
        return emit_gemm_any(call, lowering, k, is_transposed, batch);
    }
    const sp_kernel_id kernel = SP_KERNEL_ID_gemm_f32;
    const bool is_packed = call->inputs[1].is_packed || is_transposed;
    uint32_t packed = 0;
    k->is_b_constant = call->inputs[1].is_packed;
    if (is_packed) k->b_format = (uint8_t)sp__pack_format_of(kernel);
    else k->b_depth = k->columns;
    if (is_packed && !k->is_b_constant) {
        const sp_pack pack = pack_of_b(call, k->b_format, is_transposed);
        SP_TRY(sp__lower_pack(lowering, call, 1, &pack, &packed));
    }
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernel, k, sizeof(*k), &dispatch));
    dispatch->multiply_adds = gemm_multiply_adds(k, batch);
    sp__lower_bind_input(dispatch, call, 0);
    if (is_packed) sp__lower_bind_packed(dispatch, call, lowering, 1, packed);
    else sp__lower_bind_input(dispatch, call, 1);
    if (k->has_c) sp__lower_bind_input(dispatch, call, 2);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* ---- Gemm ---- */

static bool is_transposed(const sp_op_call *call, uint32_t input)
{
    return sp__attribute_int(call->attributes, input == 0 ? "transA" : "transB", 0) != 0;
}

sp_status sp__gemm_infer(sp_op_call *call)
{
    const sp_shape *a = &call->inputs[0].shape, *b = &call->inputs[1].shape;
    if (a->rank != 2 || b->rank != 2) return bad_shapes(call);
    const bool ta = is_transposed(call, 0), tb = is_transposed(call, 1);
    if (a->dims[ta ? 0 : 1] != b->dims[tb ? 1 : 0]) return bad_shapes(call);
    const sp_shape y = {.rank = 2, .dims = {a->dims[ta ? 1 : 0], b->dims[tb ? 0 : 1]}};
    if (sp__op_has_input(call, 2)) {
        sp_shape both;
        const bool repeats =
            call->version >= 7 || sp__attribute_int(call->attributes, "broadcast", 0) != 0;
        SP_TRY(sp__shape_broadcast(&call->inputs[2].shape, &y, &both));
        if (!sp__shape_equal(&both, &y) ||
            (!repeats && !sp__shape_equal(&call->inputs[2].shape, &y))) {
            return sp__fail(SP_MISMATCH, "input C of shape %s does not broadcast to %s",
                            sp__shape_print(&call->inputs[2].shape).text, sp__shape_print(&y).text);
        }
    }
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    call->depth = (uint64_t)a->dims[ta ? 0 : 1];
    return SP_OK;
}

void sp__gemm_pack(const sp_op_call *call, uint32_t input, sp_pack *out)
{
    if (input != 1) return;
    const sp_op_value *b = &call->inputs[1];
    const bool is_narrow = sp__may_be_narrow(call);
    if ((b->dtype != SP_F32 && !is_narrow) || b->shape.rank != 2) return;
    if (b->bytes == 0) return; /* its other dimension may be very large */
    const sp_kernel_id kernel =
        is_narrow ? sp__narrow_kernels(call)->product : SP_KERNEL_ID_gemm_f32;
    *out = pack_of_b(call, sp__pack_format_of(kernel), is_transposed(call, 1));
}

sp_status sp__gemm_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *a = &call->inputs[0].shape, *y = &call->outputs[0].shape;
    const bool ta = is_transposed(call, 0);
    sp_gemm_constants k = {.rows = y->dims[0],
                           .columns = y->dims[1],
                           .depth = a->dims[ta ? 0 : 1],
                           .a_row = ta ? 1 : a->dims[1],
                           .a_depth = ta ? a->dims[1] : 1,
                           .alpha = sp__attribute_float(call->attributes, "alpha", 1.0f),
                           .beta = sp__attribute_float(call->attributes, "beta", 1.0f),
                           .has_c = sp__op_has_input(call, 2)};
    if (k.has_c) {
        int64_t strides[SP_MAX_RANK];
        sp__shape_broadcast_strides(&call->inputs[2].shape, y, strides);
        k.c_row = strides[0];
        k.c_column = strides[1];
    }
    return emit_gemm(call, lowering, &k, is_transposed(call, 1), 1);
}

/* ---- MatMul ---- */

/* An operand as matrices [rows, columns] in a batch. A vector is a row on the left and a column on
 * the right. */
typedef struct matrices {
    sp_shape batch;
    int64_t rows, columns;
    bool is_vector;
} matrices;

static matrices as_matrices(const sp_shape *shape, bool is_left)
{
    matrices m = {.batch = *shape, .is_vector = shape->rank == 1};
    const int64_t last = shape->dims[shape->rank - 1];
    m.batch.rank = m.is_vector ? 0 : shape->rank - 2;
    if (m.is_vector) {
        m.rows = is_left ? 1 : last;
        m.columns = is_left ? last : 1;
    } else {
        m.rows = shape->dims[shape->rank - 2];
        m.columns = last;
    }
    return m;
}

sp_status sp__matmul_infer(sp_op_call *call)
{
    const sp_shape *a = &call->inputs[0].shape, *b = &call->inputs[1].shape;
    if (a->rank == 0 || b->rank == 0) return bad_shapes(call);
    const matrices left = as_matrices(a, true), right = as_matrices(b, false);
    if (left.columns != right.rows) return bad_shapes(call);
    sp_shape y;
    if (sp__shape_broadcast(&left.batch, &right.batch, &y) != SP_OK) return bad_shapes(call);
    if (!left.is_vector) y.dims[y.rank++] = left.rows;
    if (!right.is_vector) y.dims[y.rank++] = right.columns;
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    call->depth = (uint64_t)left.columns;
    return SP_OK;
}

void sp__matmul_pack(const sp_op_call *call, uint32_t input, sp_pack *out)
{
    sp__gemm_pack(call, input, out); /* without transB: not transposed */
}

sp_status sp__matmul_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const matrices left = as_matrices(&call->inputs[0].shape, true);
    const matrices right = as_matrices(&call->inputs[1].shape, false);
    sp_gemm_constants k = {.rows = left.rows,
                           .columns = right.columns,
                           .depth = left.columns,
                           .a_row = left.columns,
                           .a_depth = 1,
                           .alpha = 1.0f,
                           .beta = 1.0f};
    if (!call->inputs[1].is_packed) k.rounding = (uint8_t)sp__product_rounding(call);
    if (right.batch.rank == 0) {
        /* One matrix on the right: all rows of all batches are rows of one product. */
        k.rows *= (int64_t)sp__shape_count(&left.batch);
        return emit_gemm(call, lowering, &k, false, 1);
    }
    sp_shape batch;
    SP_TRY(sp__shape_broadcast(&left.batch, &right.batch, &batch));
    k.batch_rank = batch.rank;
    sp__shape_broadcast_strides(&left.batch, &batch, k.a_batch);
    sp__shape_broadcast_strides(&right.batch, &batch, k.b_batch);
    for (uint32_t i = 0; i < batch.rank; i++) {
        k.batch_dims[i] = batch.dims[i];
        k.a_batch[i] *= left.rows * left.columns;
        k.b_batch[i] *= right.rows * right.columns;
    }
    return emit_gemm(call, lowering, &k, false, sp__shape_count(&batch));
}

/* ---- rows ---- */

/* The rows of A, which are the rows of Y. A column of B is never a row of a batch: the tiles of the
 * columns depend on their number. */
const char *sp__gemm_rows(const sp_rows_call *call)
{
    sp_rows_axis rows, bias;
    const sp_op_call *many = call->many;
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    if (call->inputs[1].kind == SP_ROWS_BATCHED) return "a parameter is batched";
    if (call->inputs[0].kind != SP_ROWS_BATCHED) return "its input has no rows";
    why = sp__rows_find_input(call, 0, &rows);
    if (why != NULL) return why;
    if (rows.axis != (is_transposed(many, 0) ? 1 : 0)) return "it sums over the batch axis";
    rows.axis = 0;
    if (sp__op_has_input(many, 2)) {
        const sp_shape *c = &many->inputs[2].shape;
        const bool repeats = c->rank < 2 || c->dims[0] == 1;
        const bool is_batched = call->inputs[2].kind == SP_ROWS_BATCHED;
        if (!is_batched && !repeats) return "a parameter has a size along the batch axis";
        if (is_batched) why = sp__rows_find_input(call, 2, &bias);
        if (why != NULL) return why;
        if (is_batched && (c->rank < 2 || !sp__rows_match(&rows, &bias))) {
            return "its inputs have their rows in different places";
        }
    }
    sp__rows_set_axis(call, 0, 0, &rows);
    return NULL;
}

/* The axis of Y where operand `index` has its rows: one of the batch, or the rows on the left. */
static const char *matmul_axis(const sp_rows_call *call, uint32_t index, sp_rows_axis *out)
{
    const sp_shape *x = &call->many->inputs[index].shape;
    const sp_shape *left = &call->many->inputs[0].shape, *right = &call->many->inputs[1].shape;
    const char *why = sp__rows_find_input(call, index, out);
    if (why != NULL) return why;
    const uint32_t y_rank = call->many->outputs[0].shape.rank;
    const uint32_t matrix = (left->rank > 1 ? 1u : 0u) + (right->rank > 1 ? 1u : 0u);
    if (x->rank > 2 && out->axis < x->rank - 2) {
        out->axis += y_rank - matrix - (x->rank - 2);
        return NULL;
    }
    const bool is_row = index == 0 && x->rank > 1 && out->axis == x->rank - 2;
    if (!is_row) return index == 0 ? "it sums over the batch axis" : "a parameter is batched";
    out->axis = y_rank - matrix;
    return NULL;
}

/* Has a shared operand one matrix for all rows along this axis of Y? */
static bool matmul_repeats(const sp_rows_call *call, uint32_t index, uint32_t axis)
{
    const sp_shape *x = &call->many->inputs[index].shape;
    const sp_shape *other = &call->many->inputs[1 - index].shape;
    const uint32_t y_rank = call->many->outputs[0].shape.rank;
    const uint32_t matrix = (x->rank > 1 ? 1u : 0u) + (other->rank > 1 ? 1u : 0u);
    const uint32_t batch_rank = y_rank - matrix;
    const uint32_t own = x->rank > 2 ? x->rank - 2 : 0;
    if (axis >= batch_rank || axis < batch_rank - own) return true;
    return x->dims[axis - (batch_rank - own)] == 1;
}

const char *sp__matmul_rows(const sp_rows_call *call)
{
    sp_rows_axis rows = {0};
    bool has_rows = false;
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    for (uint32_t i = 0; i < 2; i++) {
        sp_rows_axis axis;
        if (call->inputs[i].kind != SP_ROWS_BATCHED) continue;
        why = matmul_axis(call, i, &axis);
        if (why != NULL) return why;
        if (has_rows && !sp__rows_match(&axis, &rows)) {
            return "its inputs have their rows in different places";
        }
        rows = axis;
        has_rows = true;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (call->inputs[i].kind == SP_ROWS_SHARED && !matmul_repeats(call, i, rows.axis)) {
            return "a parameter has a size along the batch axis";
        }
    }
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}
