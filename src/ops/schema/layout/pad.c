/* SPDX-License-Identifier: Apache-2.0 */
/* Pad: sizes from an attribute (to version 10) or from constant inputs (from 11). */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

/* Inputs from version 11 on; from version 18 on `axes` may name the dimensions that are padded. */
enum { INPUT_PADS = 1, INPUT_VALUE = 2, INPUT_AXES = 3 };

typedef struct pad_sizes {
    int64_t lead[SP_MAX_RANK], trail[SP_MAX_RANK]; /* negative crops */
    sp_pad_mode mode;
} pad_sizes;

static sp_status read_mode(const sp_op_call *call, sp_pad_mode *out)
{
    const sp_text text = sp__attribute_text(call->attributes, "mode", "constant");
    if (sp__text_is(text, "constant")) *out = SP_PAD_CONSTANT;
    else if (sp__text_is(text, "edge")) *out = SP_PAD_EDGE;
    else if (sp__text_is(text, "reflect")) *out = SP_PAD_REFLECT;
    else if (sp__text_is(text, "wrap") && call->version >= 19) *out = SP_PAD_WRAP;
    else {
        return sp__fail(SP_UNSUPPORTED, "mode '%s' is not supported", sp__text_print(text).text);
    }
    return SP_OK;
}

/* `count` leading pads, then `count` trailing ones, for the dimensions in `axes`. */
static sp_status read_pads(const sp_op_call *call, int64_t pads[2 * SP_MAX_RANK],
                           int64_t axes[SP_MAX_RANK], uint32_t *count)
{
    const uint32_t rank = call->inputs[0].shape.rank;
    for (uint32_t i = 0; i < rank; i++) axes[i] = i;
    *count = rank;
    if (call->version < 11) {
        return sp__attribute_ints(call->attributes, "pads", 2 * rank, 0, pads);
    }
    if (sp__op_has_input(call, INPUT_AXES)) {
        SP_TRY(sp__op_known_ints(call, INPUT_AXES, rank, axes, count));
    }
    uint32_t found;
    SP_TRY(sp__op_known_ints(call, INPUT_PADS, 2 * SP_MAX_RANK, pads, &found));
    if (found == 2 * *count) return SP_OK;
    return sp__fail(SP_MISMATCH,
                    "%" PRIu32 " pads are given for %" PRIu32 " dimensions; expected two for each",
                    found, *count);
}

static sp_status read_sizes(const sp_op_call *call, pad_sizes *out)
{
    const sp_shape *x = &call->inputs[0].shape;
    int64_t pads[2 * SP_MAX_RANK], axes[SP_MAX_RANK];
    uint32_t count;
    *out = (pad_sizes){0};
    SP_TRY(read_mode(call, &out->mode));
    SP_TRY(read_pads(call, pads, axes, &count));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        SP_TRY(sp__shape_axis(x, axes[i], &axis));
        const int64_t limit = (int64_t)SP_MAX_TENSOR_BYTES;
        const int64_t lead = pads[i], trail = pads[count + i];
        const bool is_bounded =
            lead <= limit && lead >= -limit && trail <= limit && trail >= -limit;
        if (!is_bounded || x->dims[axis] + lead + trail < 0) {
            return sp__fail(SP_MISMATCH,
                            "pads of %" PRId64 " and %" PRId64
                            " do not fit a dimension of %" PRId64,
                            lead, trail, x->dims[axis]);
        }
        if (out->mode != SP_PAD_CONSTANT && x->dims[axis] == 0 && lead + trail > 0) {
            return sp__fail(SP_MISMATCH,
                            "an empty dimension cannot be padded with its own elements");
        }
        out->lead[axis] = lead;
        out->trail[axis] = trail;
    }
    return SP_OK;
}

sp_status sp__pad_infer(sp_op_call *call)
{
    pad_sizes sizes;
    SP_TRY(read_sizes(call, &sizes));
    const sp_op_value *x = &call->inputs[0];
    if (call->version >= 11 && sp__op_has_input(call, INPUT_VALUE)) {
        const sp_op_value *value = &call->inputs[INPUT_VALUE];
        if (sp__shape_count(&value->shape) != 1) {
            return sp__fail(SP_MISMATCH, "the constant has shape %s; expected one element",
                            sp__shape_print(&value->shape).text);
        }
    }
    sp_shape y = x->shape;
    for (uint32_t i = 0; i < y.rank; i++) y.dims[i] += sizes.lead[i] + sizes.trail[i];
    sp__op_set_output(call, 0, x->dtype, &y);
    return SP_OK;
}

/* Joins dimension i, which is not padded, with the one before it, if that one is not either, or is
 * padded with a constant: rows get longer and fewer, up to MOST_JOINED elements, since a row is
 * copied by one thread. */
enum { MOST_JOINED = 65536 };

static bool join_dimension(const sp_shape *x, uint32_t i, bool is_constant, sp_pad_constants *k)
{
    const uint32_t last = k->rank - 1;
    const bool is_last_padded = k->lead[last] != 0 || k->in[last] != k->out[last];
    int64_t lead;
    if (is_last_padded && !is_constant && !SP_PLANTED(pad_joins_edges)) return false;
    if (k->out[last] > MOST_JOINED / x->dims[i]) return false;
    if (__builtin_mul_overflow(k->lead[last], x->dims[i], &lead)) return false;
    k->in[last] *= x->dims[i];
    k->out[last] *= x->dims[i];
    k->lead[last] = lead;
    return true;
}

/* Sets the dimensions of the call; a scalar has one. */
static void set_dimensions(const sp_shape *x, const sp_shape *y, const pad_sizes *sizes,
                           sp_pad_constants *k)
{
    k->rank = 1;
    k->in[0] = k->out[0] = 1;
    for (uint32_t i = 0; i < y->rank; i++) {
        const bool is_padded = sizes->lead[i] != 0 || sizes->trail[i] != 0;
        if (!is_padded && join_dimension(x, i, sizes->mode == SP_PAD_CONSTANT, k)) continue;
        const bool is_first = k->rank == 1 && k->in[0] == 1 && k->out[0] == 1 && k->lead[0] == 0;
        const uint32_t next = is_first ? 0 : k->rank++;
        k->in[next] = x->dims[i];
        k->out[next] = y->dims[i];
        k->lead[next] = sizes->lead[i];
    }
}

sp_status sp__pad_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    pad_sizes sizes;
    SP_TRY(read_sizes(call, &sizes));
    const sp_shape *x = &call->inputs[0].shape, *y = &call->outputs[0].shape;
    sp_pad_constants k = {.element_bytes = (uint32_t)sp_dtype_bytes(call->inputs[0].dtype),
                          .mode = sizes.mode,
                          .has_value = call->version >= 11 && sp__op_has_input(call, INPUT_VALUE)};
    set_dimensions(x, y, &sizes, &k);
    if (call->version < 11) {
        const float value = sp__attribute_float(call->attributes, "value", 0.0f);
        const double wide = (double)value;
        if (call->inputs[0].dtype == SP_F32) memcpy(&k.value, &value, sizeof(value));
        else memcpy(&k.value, &wide, sizeof(wide));
    }
    const int64_t width = k.out[k.rank - 1];
    k.rows = (int64_t)sp__shape_count(y) / width;
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_pad, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    if (k.has_value) sp__lower_bind_input(dispatch, call, INPUT_VALUE);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* No pad along the batch axis; along each other axis the same for any number of rows. */
const char *sp__pad_rows(const sp_rows_call *call)
{
    pad_sizes many, single;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 1u << INPUT_PADS, &rows);
    if (why != NULL) return why;
    if (read_sizes(call->many, &many) != SP_OK || read_sizes(call->single, &single) != SP_OK) {
        return "its pads are unknown";
    }
    for (uint32_t i = 0; i < call->many->inputs[0].shape.rank; i++) {
        const bool is_padded = many.lead[i] != 0 || many.trail[i] != 0;
        if (i == rows.axis && is_padded) return "it pads the batch axis";
        if (many.lead[i] != single.lead[i] || many.trail[i] != single.trail[i]) {
            return "it pads by the batch size";
        }
    }
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}
