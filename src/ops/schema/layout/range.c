/* SPDX-License-Identifier: Apache-2.0 */
/* Range: its inputs must be known, since they determine the size of the output. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

enum { START, LIMIT, DELTA, RANGE_INPUTS };

typedef struct range_numbers {
    bool is_float;
    double floats[RANGE_INPUTS];
    int64_t ints[RANGE_INPUTS];
} range_numbers;

static void read_number(const sp_op_value *input, double *real, int64_t *integer)
{
    switch (input->dtype) {
    case SP_F32:
        *real = (double)*(const float *)input->data;
        break;
    case SP_F64:
        *real = *(const double *)input->data;
        break;
    case SP_I16:
        *integer = *(const int16_t *)input->data;
        break;
    case SP_I32:
        *integer = *(const int32_t *)input->data;
        break;
    default:
        *integer = *(const int64_t *)input->data;
        break;
    }
}

static sp_status read_numbers(const sp_op_call *call, range_numbers *out)
{
    const sp_dtype dtype = call->inputs[0].dtype;
    *out = (range_numbers){.is_float = dtype == SP_F32 || dtype == SP_F64};
    for (uint32_t i = 0; i < RANGE_INPUTS; i++) {
        const sp_op_value *input = &call->inputs[i];
        if (sp__shape_count(&input->shape) != 1) {
            return sp__fail(SP_MISMATCH, "input %" PRIu32 " has shape %s; expected one number", i,
                            sp__shape_print(&input->shape).text);
        }
        SP_TRY(sp__op_require_known(call, i));
        read_number(input, &out->floats[i], &out->ints[i]);
    }
    return SP_OK;
}

/* Steps from the start to the limit, rounded up; -1 if not finite or too large. */
static double count_floats(const double *n)
{
    const double steps = (n[LIMIT] - n[START]) / n[DELTA];
    if (!(steps < (double)SP_MAX_TENSOR_BYTES)) return -1;
    if (steps <= 0) return 0;
    const double whole = (double)(int64_t)steps;
    return whole < steps ? whole + 1 : whole;
}

static double count_ints(const int64_t *n)
{
    if (n[DELTA] == 0) return -1;
    const bool is_up = n[DELTA] > 0;
    if (is_up ? n[LIMIT] <= n[START] : n[LIMIT] >= n[START]) return 0;
    /* Unsigned, since the distance may exceed the largest signed number. */
    const uint64_t low = (uint64_t)(is_up ? n[START] : n[LIMIT]);
    const uint64_t high = (uint64_t)(is_up ? n[LIMIT] : n[START]);
    const uint64_t step = is_up ? (uint64_t)n[DELTA] : 0 - (uint64_t)n[DELTA];
    const uint64_t count = (high - low - 1) / step + 1;
    return count <= SP_MAX_TENSOR_BYTES ? (double)count : -1;
}

sp_status sp__range_infer(sp_op_call *call)
{
    range_numbers n;
    SP_TRY(read_numbers(call, &n));
    const double count = n.is_float ? count_floats(n.floats) : count_ints(n.ints);
    if (count < 0) {
        return sp__fail(SP_MISMATCH,
                        "a range with this start, limit and delta is infinite or too large");
    }
    const sp_shape y = {.rank = 1, .dims = {(int64_t)count}};
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__range_lower(const sp_op_call *call, sp_lowering *lowering)
{
    range_numbers n;
    SP_TRY(read_numbers(call, &n));
    const sp_range_constants k = {.count = call->outputs[0].shape.dims[0],
                                  .start_int = n.ints[START],
                                  .step_int = n.ints[DELTA],
                                  .start = n.floats[START],
                                  .step = n.floats[DELTA],
                                  .dtype = call->inputs[0].dtype};
    if (k.count == 0) return SP_OK;
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_range, &k, sizeof(k), &dispatch));
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}
