/* SPDX-License-Identifier: Apache-2.0 */
/* Slice: a strided copy of the input with a start and a step for each dimension. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

/* Inputs from version 10 on; attributes of the same names before. */
enum { INPUT_STARTS = 1, INPUT_ENDS = 2, INPUT_AXES = 3, INPUT_STEPS = 4 };

typedef struct slice_range {
    int64_t start, step, count;
} slice_range;

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The start is clamped to valid indices, the end to these and one past the last in the step's
 * direction. */
static slice_range range_of_slice(int64_t size, int64_t start, int64_t end, int64_t step)
{
    const int64_t limit = (int64_t)SP_MAX_TENSOR_BYTES;
    slice_range range = {.step = clamp(step, -limit, limit)};
    if (size == 0) return range;
    /* All numbers below -size become -1. */
    if (start < 0) start = start < -size ? -1 : start + size;
    if (end < 0) end = end < -size ? -1 : end + size;
    range.start = clamp(start, 0, step > 0 ? size : size - 1);
    end = clamp(end, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
    const int64_t reach = step > 0 ? end - range.start : range.start - end;
    const int64_t stride = step > 0 ? range.step : -range.step;
    range.count = reach > 0 ? (reach - 1) / stride + 1 : 0;
    if (range.count == 0) range.start = 0;
    return range;
}

static sp_status check_count(const char *name, uint32_t count, uint32_t expected)
{
    if (count == expected) return SP_OK;
    return sp__fail(SP_MISMATCH, "%" PRIu32 " starts and %" PRIu32 " %s", expected, count, name);
}

static sp_status read_ranges(const sp_op_call *call, slice_range out[SP_MAX_RANK])
{
    const sp_shape *x = &call->inputs[0].shape;
    int64_t starts[SP_MAX_RANK], ends[SP_MAX_RANK], axes[SP_MAX_RANK], steps[SP_MAX_RANK];
    uint32_t count, other;
    bool has_starts, has_ends, has_axes, has_steps = false, is_cut[SP_MAX_RANK] = {0};
    SP_TRY(sp__op_known_list(call, "starts", 10, INPUT_STARTS, starts, &count, &has_starts));
    SP_TRY(sp__op_known_list(call, "ends", 10, INPUT_ENDS, ends, &other, &has_ends));
    SP_TRY(check_count("ends", other, count));
    SP_TRY(sp__op_known_list(call, "axes", 10, INPUT_AXES, axes, &other, &has_axes));
    if (has_axes) SP_TRY(check_count("axes", other, count));
    if (call->version >= 10) {
        SP_TRY(sp__op_known_list(call, "steps", 10, INPUT_STEPS, steps, &other, &has_steps));
        if (has_steps) SP_TRY(check_count("steps", other, count));
    }
    for (uint32_t i = 0; i < x->rank; i++) out[i] = range_of_slice(x->dims[i], 0, x->dims[i], 1);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t step = has_steps ? steps[i] : 1;
        uint32_t axis;
        SP_TRY(sp__shape_axis(x, has_axes ? axes[i] : i, &axis));
        if (is_cut[axis]) return sp__fail(SP_MISMATCH, "axis %" PRIu32 " is given twice", axis);
        if (step == 0) return sp__fail(SP_MISMATCH, "the step along axis %" PRIu32 " is 0", axis);
        is_cut[axis] = true;
        out[axis] = range_of_slice(x->dims[axis], starts[i], ends[i], step);
    }
    return SP_OK;
}

sp_status sp__slice_infer(sp_op_call *call)
{
    slice_range ranges[SP_MAX_RANK] = {0};
    SP_TRY(read_ranges(call, ranges));
    sp_shape y = {.rank = call->inputs[0].shape.rank};
    for (uint32_t i = 0; i < y.rank; i++) y.dims[i] = ranges[i].count;
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__slice_lower(const sp_op_call *call, sp_lowering *lowering)
{
    slice_range ranges[SP_MAX_RANK] = {0};
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_op_value *x = &call->inputs[0];
    sp_layout view;
    SP_TRY(read_ranges(call, ranges));
    SP_TRY(sp__layout_init_contiguous(&view, x->dtype, &x->shape));
    for (uint32_t i = 0; i < x->shape.rank; i++) {
        const slice_range *r = &ranges[i];
        SP_TRY(sp__layout_slice(&view, i, r->start, r->count, r->step, &view));
    }
    return sp__lower_view(call, lowering, &view);
}

/* ---- rows ---- */

/* The counts agree since the output must grow (sp__rows_prove). */
static bool has_all_rows(const sp_rows_call *call, const sp_rows_axis *rows,
                         const slice_range *many, const slice_range *single)
{
    const int64_t period = (int64_t)(call->rows * rows->inner);
    return many->step == 1 && single->step == 1 && many->start % period == 0 &&
           many->count % period == 0 && many->start == single->start * (int64_t)call->rows;
}

/* Along the batch axis whole outer factors of the rows, most often all; along each other axis the
 * same range for any number of rows. */
const char *sp__slice_rows(const sp_rows_call *call)
{
    slice_range many[SP_MAX_RANK] = {0}, single[SP_MAX_RANK] = {0};
    const sp_shape *x = &call->many->inputs[0].shape;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 1u << INPUT_STARTS | 1u << INPUT_ENDS, &rows);
    if (why != NULL) return why;
    if (read_ranges(call->many, many) != SP_OK || read_ranges(call->single, single) != SP_OK) {
        return "its ranges are unknown";
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        const slice_range *range = &many[i];
        const bool is_same = range->start == single[i].start && range->step == single[i].step &&
                             range->count == single[i].count;
        if (i == rows.axis && !has_all_rows(call, &rows, range, &single[i])) {
            return "it slices the batch axis";
        }
        if (i != rows.axis && !is_same) return "it slices by the batch size";
    }
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}
