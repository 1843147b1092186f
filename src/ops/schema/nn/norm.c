/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization, and the normalisations by a row's own mean and variance: LayerNormalization,
 * InstanceNormalization, GroupNormalization. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/schema/reduce/reduce.h"
#include "ops/ops.h"
#include "tensor/collapse.h"

/* SP_MISMATCH unless input `index` is a list of `count` numbers. */
static sp_status check_list(const sp_op_call *call, uint32_t index, int64_t count)
{
    const sp_shape *shape = &call->inputs[index].shape;
    if (shape->rank == 1 && shape->dims[0] == count) return SP_OK;
    return sp__fail(SP_MISMATCH, "input %" PRIu32 " has shape %s; expected [%" PRId64 "]", index,
                    sp__shape_print(shape).text, count);
}

/* ---- BatchNormalization ---- */

static bool is_training(const sp_op_call *call)
{
    if (call->version >= 14) return sp__attribute_int(call->attributes, "training_mode", 0) != 0;
    return call->version < 7 && sp__attribute_int(call->attributes, "is_test", 0) == 0;
}

/* A tensor of one dimension has one channel, as in ONNX. */
static int64_t channel_count(const sp_shape *x)
{
    return x->rank > 1 ? x->dims[1] : 1;
}

sp_status sp__batch_norm_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    if (x->shape.rank == 0) return sp__fail(SP_MISMATCH, "the input is a scalar; expected a batch");
    for (uint32_t i = 1; i < 5; i++) SP_TRY(check_list(call, i, channel_count(&x->shape)));
    if (sp__attribute_int(call->attributes, "spatial", 1) == 0) {
        return sp__fail(SP_UNSUPPORTED, "spatial = 0 (statistics per element) is not supported");
    }
    if (call->version < 14 && (is_training(call) || call->output_count > 1)) {
        return sp__fail(SP_UNSUPPORTED, "training before version 14 is not supported");
    }
    if (!is_training(call) && call->output_count > 1) {
        return sp__fail(SP_MISMATCH, "%" PRIu32 " outputs without training_mode; expected 1",
                        call->output_count);
    }
    sp__op_set_output(call, 0, x->dtype, &x->shape);
    for (uint32_t i = 1; i < call->output_count; i++) {
        sp__op_set_output(call, i, x->dtype, &call->inputs[3].shape);
    }
    return SP_OK;
}

/* `batch` has the statistics of a training step; NULL: they are inputs. */
static sp_status emit_batch_norm(const sp_op_call *call, sp_lowering *lowering,
                                 const sp_statistics *batch)
{
    const sp_shape *x = &call->inputs[0].shape;
    sp_batch_norm_constants k = {
        .channels = channel_count(x),
        .plane = (int64_t)sp__shape_range_count(x, 2, x->rank),
        .planes = (int64_t)sp__shape_range_count(x, 0, x->rank < 2 ? x->rank : 2),
        .epsilon = sp__attribute_float(call->attributes, "epsilon", 1e-5f),
    };
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_batch_norm_f32, &k, sizeof(k), &dispatch));
    for (uint32_t i = 0; i < 3; i++) sp__lower_bind_input(dispatch, call, i);
    if (batch != NULL) {
        sp__lower_bind_scratch(dispatch, lowering, batch->mean, false);
        sp__lower_bind_scratch(dispatch, lowering, batch->variance, false);
    } else {
        sp__lower_bind_input(dispatch, call, 3);
        sp__lower_bind_input(dispatch, call, 4);
    }
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

sp_status sp__batch_norm_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (!is_training(call)) {
        if (call->outputs[0].bytes == 0) return SP_OK;
        sp__lower_in_place(lowering, 0);
        return emit_batch_norm(call, lowering, NULL);
    }
    const sp_shape *x = &call->inputs[0].shape;
    sp_statistics batch = {0};
    const uint32_t channels = x->rank > 1 ? 1u << 1 : 0;
    SP_TRY(sp__reduce_statistics(call, lowering, ((1u << x->rank) - 1) & ~channels, &batch));
    for (uint32_t i = 1; i < call->output_count; i++) {
        const sp_blend_constants k = {
            .count = channel_count(x),
            .momentum = sp__attribute_float(call->attributes, "momentum", 0.9f),
        };
        sp_dispatch *dispatch;
        SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_blend_f32, &k, sizeof(k), &dispatch));
        sp__lower_bind_input(dispatch, call, 2 + i);
        sp__lower_bind_scratch(dispatch, lowering, i == 1 ? batch.mean : batch.variance, false);
        sp__lower_bind_output(dispatch, call, i);
    }
    if (call->outputs[0].bytes == 0) return SP_OK;
    return emit_batch_norm(call, lowering, &batch);
}

/* ---- rows with their own mean and variance ---- */

static sp_operand input_operand(const sp_op_call *call, uint32_t index)
{
    return (sp_operand){SP_OPERAND_INPUT, index, false, call->inputs[index].bytes};
}

/* scale_bias: the operands for scale and, if there is one, bias. */
static sp_status emit_norm(const sp_op_call *call, sp_lowering *lowering, sp_norm_constants *k,
                           const sp_operand scale_bias[2])
{
    k->epsilon = sp__attribute_float(call->attributes, "epsilon", 1e-5f);
    k->has_bias = sp__op_has_input(call, 2);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_norm_f32, k, sizeof(*k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    for (uint32_t i = 0; i < (k->has_bias ? 2 : 1); i++) sp__lower_bind(dispatch, scale_bias[i]);
    for (uint32_t i = 0; i < call->output_count; i++) sp__lower_bind_output(dispatch, call, i);
    return SP_OK;
}

/* With the inputs scale and bias, which both ops require. */
static sp_status emit_channel_norm(const sp_op_call *call, sp_lowering *lowering,
                                   sp_norm_constants *k)
{
    const sp_operand given[2] = {input_operand(call, 1), input_operand(call, 2)};
    return emit_norm(call, lowering, k, given);
}

/* ---- LayerNormalization ---- */

static sp_shape row_shape(const sp_shape *x, uint32_t axis)
{
    sp_shape row = {.rank = x->rank - axis};
    for (uint32_t i = 0; i < row.rank; i++) row.dims[i] = x->dims[axis + i];
    return row;
}

/* The shape of a scale or bias without leading 1s beyond the rank of a row. */
static sp_shape without_batch(const sp_shape *shape, uint32_t rank)
{
    sp_shape given = *shape;
    while (given.rank > rank && given.dims[0] == 1) {
        given.rank--;
        for (uint32_t i = 0; i < given.rank; i++) given.dims[i] = given.dims[i + 1];
    }
    return given;
}

/* Scale and bias broadcast to the normalised dimensions. */
static sp_status check_row_shape(const sp_op_call *call, uint32_t index, uint32_t axis)
{
    const sp_shape *shape = &call->inputs[index].shape;
    const sp_shape row = row_shape(&call->inputs[0].shape, axis);
    const sp_shape given = without_batch(shape, row.rank);
    bool fits = given.rank <= row.rank;
    for (uint32_t i = 0; i < given.rank && fits; i++) {
        const int64_t size = given.dims[given.rank - 1 - i];
        fits = size == 1 || size == row.dims[row.rank - 1 - i];
    }
    if (fits) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "input %" PRIu32 " of shape %s does not broadcast to rows of shape %s", index,
                    sp__shape_print(shape).text, sp__shape_print(&row).text);
}

/* The operand of a scale or bias with one element per element of a row: the input, or an expanded
 * copy if it broadcasts. */
static sp_status expand_to_row(const sp_op_call *call, sp_lowering *lowering, uint32_t index,
                               const sp_shape *row, sp_operand *out)
{
    const sp_shape given = without_batch(&call->inputs[index].shape, row->rank);
    const int64_t count = (int64_t)sp__shape_count(row);
    *out = input_operand(call, index);
    if (count == 0 || count == (int64_t)sp__shape_count(&given)) return SP_OK;
    sp_copy_constants k = {.rank = row->rank, .element_bytes = sizeof(float), .count = count};
    for (uint32_t i = 0; i < row->rank; i++) k.dims[i] = row->dims[i];
    sp__shape_broadcast_strides(&given, row, k.x);
    sp__shape_strides(row, k.y);
    k.rank = sp__collapse(k.rank, k.dims, k.x, k.y);
    const uint64_t bytes = (uint64_t)count * sizeof(float);
    *out = (sp_operand){SP_OPERAND_SCRATCH, sp__lower_scratch(lowering, bytes), false, bytes};
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_copy_strided, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, index);
    sp__lower_bind_scratch(dispatch, lowering, out->index, true);
    return SP_OK;
}

sp_status sp__layer_norm_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    uint32_t axis;
    SP_TRY(sp__shape_axis(&x->shape, sp__attribute_int(call->attributes, "axis", -1), &axis));
    if (sp__attribute_int(call->attributes, "stash_type", 1) != 1) {
        return sp__fail(SP_UNSUPPORTED, "stash_type is %" PRId64 "; only 1 (f32) is supported",
                        sp__attribute_int(call->attributes, "stash_type", 1));
    }
    SP_TRY(check_row_shape(call, 1, axis));
    if (sp__op_has_input(call, 2)) SP_TRY(check_row_shape(call, 2, axis));
    sp_shape statistic = x->shape;
    for (uint32_t i = axis; i < statistic.rank; i++) statistic.dims[i] = 1;
    sp__op_set_output(call, 0, x->dtype, &x->shape);
    for (uint32_t i = 1; i < call->output_count; i++) {
        sp__op_set_output(call, i, SP_F32, &statistic);
    }
    return SP_OK;
}

/* The mean of a row without elements is NaN. */
sp_status sp__layer_norm_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[call->output_count - 1].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape;
    uint32_t axis;
    SP_TRY(sp__shape_axis(x, sp__attribute_int(call->attributes, "axis", -1), &axis));
    sp_norm_constants k = {.rows = (int64_t)sp__shape_range_count(x, 0, axis),
                           .extent = (int64_t)sp__shape_range_count(x, axis, x->rank),
                           .scale_rows = 1,
                           .span = 1,
                           .has_mean = call->output_count > 1,
                           .has_inverse = call->output_count > 2};
    const sp_shape row = row_shape(x, axis);
    sp_operand scale_bias[2] = {0};
    SP_TRY(expand_to_row(call, lowering, 1, &row, &scale_bias[0]));
    if (sp__op_has_input(call, 2)) {
        SP_TRY(expand_to_row(call, lowering, 2, &row, &scale_bias[1]));
    }
    return emit_norm(call, lowering, &k, scale_bias);
}

/* ---- InstanceNormalization and GroupNormalization ---- */

sp_status sp__instance_norm_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    if (x->shape.rank < 3) {
        return sp__fail(SP_MISMATCH, "the input has shape %s; expected 3 dimensions or more",
                        sp__shape_print(&x->shape).text);
    }
    SP_TRY(check_list(call, 1, x->shape.dims[1]));
    SP_TRY(check_list(call, 2, x->shape.dims[1]));
    return sp__op_infer_same(call);
}

sp_status sp__instance_norm_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape;
    const int64_t plane = (int64_t)sp__shape_range_count(x, 2, x->rank);
    sp_norm_constants k = {.rows = x->dims[0] * x->dims[1],
                           .extent = plane,
                           .scale_rows = x->dims[1],
                           .scale_row = 1,
                           .span = plane};
    return emit_channel_norm(call, lowering, &k);
}

/* Scale and bias are given for each group up to version 20, for each channel from 21 on. */
sp_status sp__group_norm_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    const int64_t groups = sp__attribute_int(call->attributes, "num_groups", 0);
    if (x->shape.rank < 3 || groups < 1 || x->shape.dims[1] % groups != 0) {
        return sp__fail(SP_MISMATCH,
                        "num_groups is %" PRId64 ", which does not divide the channels of shape %s",
                        groups, sp__shape_print(&x->shape).text);
    }
    const int64_t scales = call->version < 21 ? groups : x->shape.dims[1];
    SP_TRY(check_list(call, 1, scales));
    SP_TRY(check_list(call, 2, scales));
    return sp__op_infer_same(call);
}

sp_status sp__group_norm_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape;
    const int64_t groups = sp__attribute_int(call->attributes, "num_groups", 0);
    const int64_t channels = x->dims[1] / groups;
    const int64_t plane = (int64_t)sp__shape_range_count(x, 2, x->rank);
    sp_norm_constants k = {.rows = x->dims[0] * groups,
                           .extent = channels * plane,
                           .scale_rows = groups,
                           .scale_row = call->version < 21 ? 1 : channels,
                           .span = call->version < 21 ? channels * plane : plane};
    return emit_channel_norm(call, lowering, &k);
}

/* ---- rows ---- */

const char *sp__batch_norm_rows(const sp_rows_call *call)
{
    if (is_training(call->many)) return "it normalises along the batch axis";
    return sp__image_rows(call);
}

const char *sp__layer_norm_rows(const sp_rows_call *call)
{
    uint32_t axis;
    sp_rows_axis rows;
    const int64_t given = sp__attribute_int(call->many->attributes, "axis", -1);
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (sp__shape_axis(&call->many->inputs[0].shape, given, &axis) != SP_OK) {
        return "its axis is unknown";
    }
    if (rows.axis >= axis) return "it normalises along the batch axis";
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        sp__rows_set_axis(call, i, rows.axis, &rows);
    }
    return NULL;
}
