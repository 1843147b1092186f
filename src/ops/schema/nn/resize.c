/* SPDX-License-Identifier: Apache-2.0 */
/* Resize, and Upsample before version 10: one dispatch for each axis that changes, the last axis
 * first, through scratch. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/schema/math/elementwise.h"

/* Inputs from version 11 on. */
enum { INPUT_ROI = 1, INPUT_SCALES = 2, INPUT_SIZES = 3 };

typedef struct resize_plan {
    sp_resize_constants common; /* fields that all axes share */
    bool is_nearest, is_old;    /* old: before version 11, as Upsample */
    double scale[SP_MAX_RANK], start[SP_MAX_RANK], end[SP_MAX_RANK];
    double width[SP_MAX_RANK];  /* scale * input, not rounded; or the given size */
    bool is_sized[SP_MAX_RANK]; /* scale is width / input, rounded */
    int64_t out[SP_MAX_RANK];
} resize_plan;

/* ---- attributes ---- */

static sp_status find_name(const sp_op_call *call, const char *attribute, const char *fallback,
                           const char *const *names, uint32_t count, uint32_t *out)
{
    const sp_text text = sp__attribute_text(call->attributes, attribute, fallback);
    for (*out = 0; *out < count; (*out)++) {
        if (sp__text_is(text, names[*out])) return SP_OK;
    }
    return sp__fail(SP_UNSUPPORTED, "%s '%s' is not supported", attribute,
                    sp__text_print(text).text);
}

static sp_status read_modes(const sp_op_call *call, resize_plan *plan)
{
    /* In the order of sp_resize_coordinate and sp_resize_rounding. */
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
    sp_resize_constants *k = &plan->common;
    const bool is_old = plan->is_old = call->version < 11;
    uint32_t mode;
    SP_TRY(find_name(call, "mode", "nearest", modes, is_old ? 4 : 3, &mode));
    if (is_old && mode == 2) return sp__fail(SP_UNSUPPORTED, "mode 'cubic' is not supported");
    plan->is_nearest = mode == 0;
    k->is_cubic = mode == 2;
    SP_TRY(find_name(call, "coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel",
                     coordinates, SP_COUNT_OF(coordinates), &k->coordinate));
    SP_TRY(find_name(call, "nearest_mode", is_old ? "floor" : "round_prefer_floor", roundings,
                     SP_COUNT_OF(roundings), &k->rounding));
    k->cubic = sp__attribute_float(call->attributes, "cubic_coeff_a", -0.75f);
    k->excludes_outside = sp__attribute_int(call->attributes, "exclude_outside", 0) != 0;
    k->is_antialiased = sp__attribute_int(call->attributes, "antialias", 0) != 0;
    k->element_bytes = (uint32_t)sp_dtype_bytes(call->inputs[0].dtype);
    if (plan->is_nearest) k->is_antialiased = false;
    return SP_OK;
}

/* The compute type of an axis. */
static sp_dtype compute_type(const sp_op_call *call, const resize_plan *plan)
{
    const sp_dtype dtype = call->inputs[0].dtype;
    return plan->is_nearest ? dtype : sp__compute_type(dtype);
}

/* Converts extrapolation_value, which is always a float, as Cast does. */
static sp_status read_outside(const sp_op_call *call, const resize_plan *plan,
                              sp_resize_constants *k)
{
    float value = sp__attribute_float(call->attributes, "extrapolation_value", 0.0f);
    const sp_dtype dtype = compute_type(call, plan);
    if (dtype == SP_F32) memcpy(&k->outside, &value, sizeof(value));
    if (dtype == SP_F32 || k->coordinate != SP_RESIZE_CROP) return SP_OK;
    const sp_cast_constants cast = {.count = 1, .to = dtype};
    void *const bindings[2] = {&value, &k->outside};
    const sp_kernel *kernel = &sp__cpu_kernels(SP_CPU_PORTABLE)[SP_KERNEL_ID_cast_f32];
    return sp__kernel_run(kernel, bindings, &cast);
}

/* ---- sizes ---- */

static sp_status read_axes(const sp_op_call *call, uint32_t axes[SP_MAX_RANK], uint32_t *count)
{
    const sp_shape *x = &call->inputs[0].shape;
    const sp_attribute *attribute = sp__attribute_find(call->attributes, "axes");
    uint32_t seen = 0;
    *count = x->rank;
    for (uint32_t i = 0; i < x->rank; i++) axes[i] = i;
    if (!attribute) return SP_OK;
    if (attribute->count > x->rank) {
        return sp__fail(SP_MISMATCH, "%" PRIu32 " axes are given for shape %s", attribute->count,
                        sp__shape_print(x).text);
    }
    *count = attribute->count;
    for (uint32_t i = 0; i < *count; i++) {
        SP_TRY(sp__shape_axis(x, attribute->as.ints[i], &axes[i]));
        if ((seen & 1u << axes[i]) != 0) {
            return sp__fail(SP_MISMATCH, "axis %" PRIu32 " is given twice", axes[i]);
        }
        seen |= 1u << axes[i];
    }
    return SP_OK;
}

static sp_status wrong_count(const char *what, uint32_t count, uint32_t wanted)
{
    return sp__fail(SP_MISMATCH, "%" PRIu32 " %s are given for %" PRIu32 " axes", count, what,
                    wanted);
}

static sp_status set_scales(const sp_op_call *call, const double *scales, const uint32_t *axes,
                            uint32_t count, resize_plan *plan)
{
    for (uint32_t i = 0; i < count; i++) {
        const int64_t in = call->inputs[0].shape.dims[axes[i]];
        const double out = (double)in * scales[i];
        if (!(scales[i] > 0) || !(out < (double)SP_MAX_TENSOR_BYTES)) {
            return sp__fail(SP_MISMATCH, "a scale of %g does not fit a dimension of %" PRId64,
                            scales[i], in);
        }
        plan->scale[axes[i]] = scales[i];
        plan->width[axes[i]] = out;
        plan->out[axes[i]] = (int64_t)out;
    }
    return SP_OK;
}

/* keep_aspect_ratio_policy: one scale for all axes, unless it is stretch. */
static sp_status keep_ratio(const sp_op_call *call, const uint32_t *axes, uint32_t count,
                            resize_plan *plan)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    uint32_t policy;
    SP_TRY(find_name(call, "keep_aspect_ratio_policy", "stretch", policies, 3, &policy));
    if (policy == 0 || count == 0) return SP_OK;
    double scale = plan->scale[axes[0]];
    for (uint32_t i = 1; i < count; i++) {
        const double other = plan->scale[axes[i]];
        if (policy == 1 ? other < scale : other > scale) scale = other;
    }
    for (uint32_t i = 0; i < count; i++) {
        const double out = (double)call->inputs[0].shape.dims[axes[i]] * scale + 0.5;
        if (!(out < (double)SP_MAX_TENSOR_BYTES)) {
            return sp__fail(SP_EXHAUSTED, "with a scale of %g the output is too large", scale);
        }
        plan->out[axes[i]] = (int64_t)out;
        if (plan->scale[axes[i]] == scale) continue; /* the given size */
        plan->scale[axes[i]] = scale;
        plan->is_sized[axes[i]] = false;
        plan->width[axes[i]] = (double)call->inputs[0].shape.dims[axes[i]] * scale;
    }
    return SP_OK;
}

static sp_status read_sizes(const sp_op_call *call, const uint32_t *axes, uint32_t count,
                            resize_plan *plan)
{
    int64_t sizes[SP_MAX_RANK];
    uint32_t found;
    SP_TRY(sp__op_known_ints(call, INPUT_SIZES, SP_MAX_RANK, sizes, &found));
    if (found != count) return wrong_count("sizes", found, count);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t in = call->inputs[0].shape.dims[axes[i]];
        if (sizes[i] < 0 || sizes[i] > (int64_t)SP_MAX_TENSOR_BYTES || (in == 0 && sizes[i] > 0)) {
            return sp__fail(SP_MISMATCH,
                            "a size of %" PRId64 " does not fit a dimension of %" PRId64, sizes[i],
                            in);
        }
        plan->out[axes[i]] = sizes[i];
        plan->width[axes[i]] = (double)sizes[i];
        if (in > 0) plan->scale[axes[i]] = (double)sizes[i] / (double)in;
        plan->is_sized[axes[i]] = true;
    }
    return keep_ratio(call, axes, count, plan);
}

static bool has_values(const sp_op_call *call, uint32_t index)
{
    return sp__op_has_input(call, index) && sp__shape_count(&call->inputs[index].shape) > 0;
}

/* Before version 11: input 1, in version 7 an attribute. */
static sp_status read_old_scales(const sp_op_call *call, const uint32_t *axes, uint32_t count,
                                 resize_plan *plan)
{
    const sp_attribute *attribute = sp__attribute_find(call->attributes, "scales");
    double scales[SP_MAX_RANK];
    uint32_t found = attribute ? attribute->count : 0;
    if (!attribute) SP_TRY(sp__op_known_floats(call, 1, SP_MAX_RANK, scales, &found));
    if (found != count) return wrong_count("scales", found, count);
    for (uint32_t i = 0; attribute && i < count; i++) scales[i] = (double)attribute->as.floats[i];
    return set_scales(call, scales, axes, count, plan);
}

static sp_status read_plan(const sp_op_call *call, resize_plan *plan)
{
    const sp_shape *x = &call->inputs[0].shape;
    uint32_t axes[SP_MAX_RANK] = {0}, count, found;
    double numbers[2 * SP_MAX_RANK];
    *plan = (resize_plan){0};
    SP_TRY(read_modes(call, plan));
    SP_TRY(read_outside(call, plan, &plan->common));
    SP_TRY(read_axes(call, axes, &count));
    for (uint32_t i = 0; i < x->rank; i++) {
        plan->out[i] = x->dims[i];
        plan->width[i] = (double)x->dims[i];
        plan->scale[i] = plan->end[i] = 1;
    }
    if (call->version < 11) return read_old_scales(call, axes, count, plan);
    if (plan->common.coordinate == SP_RESIZE_CROP && has_values(call, INPUT_ROI)) {
        SP_TRY(sp__op_known_floats(call, INPUT_ROI, 2 * SP_MAX_RANK, numbers, &found));
        if (found != 2 * count) return wrong_count("numbers of the roi", found, count);
        for (uint32_t i = 0; i < count; i++) {
            plan->start[axes[i]] = numbers[i];
            plan->end[axes[i]] = numbers[count + i];
        }
    }
    if (has_values(call, INPUT_SIZES)) return read_sizes(call, axes, count, plan);
    if (!has_values(call, INPUT_SCALES)) {
        return sp__fail(SP_MISMATCH, "neither sizes nor scales are given");
    }
    SP_TRY(sp__op_known_floats(call, INPUT_SCALES, SP_MAX_RANK, numbers, &found));
    if (found != count) return wrong_count("scales", found, count);
    return set_scales(call, numbers, axes, count, plan);
}

/* ---- shape rule ---- */

/* Is the axis resized? One that keeps its size and scale is not. */
static bool is_resized(const resize_plan *plan, const sp_shape *x, uint32_t axis)
{
    return plan->common.coordinate == SP_RESIZE_CROP
               ? plan->start[axis] != 0 || plan->end[axis] != 1 || plan->scale[axis] != 1
               : plan->scale[axis] != 1 || plan->out[axis] != x->dims[axis];
}

/* The axes to resize, the last one first, and the bytes of the two intermediate buffers. */
typedef struct resize_order {
    uint32_t axes[SP_MAX_RANK], count;
    uint64_t scratch[2];
} resize_order;

static sp_status order_axes(const resize_plan *plan, const sp_op_call *call, resize_order *out)
{
    sp_shape x = call->inputs[0].shape;
    uint64_t bytes = 0;
    *out = (resize_order){0};
    for (uint32_t axis = x.rank; axis-- > 0;) {
        if (!is_resized(plan, &x, axis)) continue;
        /* So the result of the previous axis is not the output. */
        uint64_t *scratch = &out->scratch[(out->count + 1) % 2];
        if (out->count > 0 && bytes > *scratch) *scratch = bytes;
        x.dims[axis] = plan->out[axis];
        SP_TRY(sp__shape_bytes(&x, compute_type(call, plan), &bytes));
        out->axes[out->count++] = axis;
    }
    return SP_OK;
}

/* Intermediate results count as work: they may be far larger than input and output. */
static sp_status count_work(const resize_plan *plan, sp_op_call *call, const sp_shape *y)
{
    resize_order order;
    uint64_t bytes;
    SP_TRY(order_axes(plan, call, &order));
    SP_TRY(sp__shape_bytes(y, call->inputs[0].dtype, &bytes));
    call->depth = 1 + (order.scratch[0] + order.scratch[1]) / sp__shape_count(y);
    return SP_OK;
}

sp_status sp__resize_infer(sp_op_call *call)
{
    resize_plan plan;
    SP_TRY(read_plan(call, &plan));
    sp_shape y = call->inputs[0].shape;
    bool is_empty = false;
    for (uint32_t i = 0; i < y.rank; i++) {
        y.dims[i] = plan.out[i];
        is_empty = is_empty || y.dims[i] == 0;
    }
    if (!is_empty) SP_TRY(count_work(&plan, call, &y));
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

/* ---- lowering ---- */

/* For nearest, the rounding of a coordinate between two pixels selects the pixel, so it is as in
 * ONNX's reference; before version 11 as in the implementations of that time, which used the next
 * pixel if an axis becomes shorter. */
static void set_nearest_rounding(const resize_plan *plan, uint32_t axis, sp_resize_constants *k)
{
    if (plan->is_old) {
        k->coordinate = SP_RESIZE_ASYMMETRIC_F32;
        k->rounding = k->scale < 1 ? SP_RESIZE_CEIL : SP_RESIZE_FLOOR;
    }
    if (k->coordinate == SP_RESIZE_CROP) k->coordinate = SP_RESIZE_CROP_F32;
    if (plan->is_sized[axis]) {
        k->numerator = (double)k->in;
        k->denominator = k->width;
    }
}

static sp_resize_constants axis_constants(const resize_plan *plan, const sp_shape *x, uint32_t axis)
{
    sp_resize_constants k = plan->common;
    k.outer = (int64_t)sp__shape_range_count(x, 0, axis);
    k.in = x->dims[axis];
    k.out = plan->out[axis];
    k.inner = (int64_t)sp__shape_range_count(x, axis + 1, x->rank);
    k.lanes = 1;
    k.scale = plan->scale[axis];
    k.width = plan->width[axis];
    k.numerator = 1;
    k.denominator = k.scale;
    k.crop_start = plan->start[axis];
    k.crop_end = plan->end[axis];
    if (plan->is_nearest) set_nearest_rounding(plan, axis, &k);
    return k;
}

/* Emits the axes in order: from the input, through intermediate buffers, to the output. */
static sp_status resize_axes(const sp_op_call *call, const resize_plan *plan,
                             const resize_order *order, sp_lowering *lowering, const sp_term *from,
                             const sp_term *to)
{
    const sp_kernel_id kernel = plan->is_nearest        ? SP_KERNEL_ID_resize_nearest
                                : from->dtype == SP_F64 ? SP_KERNEL_ID_resize_f64
                                                        : SP_KERNEL_ID_resize_f32;
    sp_shape x = call->inputs[0].shape;
    uint32_t scratch[2] = {0};
    for (uint32_t i = 0; i < 2 && i + 1 < order->count; i++) {
        scratch[i] = sp__lower_scratch(lowering, order->scratch[i]);
    }
    for (uint32_t i = 0; i < order->count; i++) {
        const sp_resize_constants k = axis_constants(plan, &x, order->axes[i]);
        sp_dispatch *dispatch;
        sp_operand y = to->operand;
        y.is_write = true;
        SP_TRY(sp__lower_dispatch(lowering, kernel, &k, sizeof(k), &dispatch));
        if (i == 0) sp__lower_bind(dispatch, from->operand);
        else sp__lower_bind_scratch(dispatch, lowering, scratch[(i - 1) % 2], false);
        if (i + 1 == order->count) sp__lower_bind(dispatch, y);
        else sp__lower_bind_scratch(dispatch, lowering, scratch[i % 2], true);
        x.dims[order->axes[i]] = plan->out[order->axes[i]];
    }
    return SP_OK;
}

sp_status sp__resize_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    resize_plan plan;
    resize_order order;
    SP_TRY(read_plan(call, &plan));
    SP_TRY(order_axes(&plan, call, &order));
    if (order.count == 0) {
        sp__lower_alias(lowering, 0);
        return SP_OK;
    }
    sp_term x = sp__term_input(call, 0), y = sp__term_output(call, 0);
    if (!plan.is_nearest) {
        SP_TRY(sp__emit_input(call, lowering, 0, &x));
        y = sp__term_result(call, lowering);
    }
    SP_TRY(resize_axes(call, &plan, &order, lowering, &x, &y));
    return sp__emit_result(call, lowering, &y);
}

/* ---- rows ---- */

/* The batch axis keeps its size; each other axis is resized alike for any number of rows. */
const char *sp__resize_rows(const sp_rows_call *call)
{
    resize_plan many, single;
    const sp_shape *x = &call->many->inputs[0].shape;
    sp_rows_axis rows;
    const uint32_t sizes = 1u << INPUT_ROI | 1u << INPUT_SCALES | 1u << INPUT_SIZES;
    const char *why = sp__rows_only_first(call, sizes, &rows);
    if (why != NULL) return why;
    if (read_plan(call->many, &many) != SP_OK || read_plan(call->single, &single) != SP_OK) {
        return "its sizes are unknown";
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i == rows.axis && is_resized(&many, x, i)) return "it resizes the batch axis";
        if (i == rows.axis) continue;
        const bool is_same = many.scale[i] == single.scale[i] && many.width[i] == single.width[i] &&
                             many.start[i] == single.start[i] && many.end[i] == single.end[i] &&
                             many.out[i] == single.out[i];
        if (!is_same) return "it resizes by the batch size";
    }
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}
