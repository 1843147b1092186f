/* SPDX-License-Identifier: Apache-2.0 */
/* If with a condition that is known before the run: a view of the outputs of the taken branch. Its
 * inputs are the condition, the outputs of the then-branch, those of the else-branch; only the
 * taken branch's are available. */
#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

/* The first input that is an output of the taken branch. */
static uint32_t chosen_input(const sp_op_call *call)
{
    const unsigned char *condition = call->inputs[0].data;
    return condition[0] != 0 ? 1 : 1 + call->output_count;
}

sp_status sp__if_infer(sp_op_call *call)
{
    const sp_op_value *condition = &call->inputs[0];
    if (sp__shape_count(&condition->shape) != 1) {
        return sp__fail(SP_MISMATCH, "the condition has shape %s; expected one element",
                        sp__shape_print(&condition->shape).text);
    }
    if (condition->data == NULL) {
        return sp__fail(SP_UNSUPPORTED, "not supported: If with a condition that depends on data");
    }
    const uint32_t first = chosen_input(call);
    for (uint32_t i = 0; i < call->output_count; i++) {
        const sp_op_value *result = &call->inputs[first + i];
        sp__op_set_output(call, i, result->dtype, &result->shape);
    }
    return SP_OK;
}

sp_status sp__if_lower(const sp_op_call *call, sp_lowering *lowering)
{
    sp__lower_alias(lowering, chosen_input(call));
    return SP_OK;
}

/* The outputs are those of the taken branch. */
const char *sp__if_rows(const sp_rows_call *call)
{
    const uint32_t first = chosen_input(call->many);
    if (first != chosen_input(call->single)) return "the batch size chooses another branch";
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        call->outputs[i] = call->inputs[first + i];
    }
    return NULL;
}
