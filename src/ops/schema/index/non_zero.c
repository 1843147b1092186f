/* SPDX-License-Identifier: Apache-2.0 */
/* NonZero: its elements must be known, since their number of nonzeros is a dimension of the
 * output. */
#include "base/error.h"
#include "base/macros.h"
#include "ops/schema/index/non_zero.h"
#include "ops/ops.h"

static sp_non_zero_constants read_elements(const sp_op_value *x)
{
    sp_non_zero_constants k = {.rank = x->shape.rank,
                               .element_bytes = (uint32_t)sp_dtype_bytes(x->dtype),
                               .count = (int64_t)sp__shape_count(&x->shape)};
    const bool is_float =
        x->dtype == SP_F32 || x->dtype == SP_F64 || x->dtype == SP_F16 || x->dtype == SP_BF16;
    k.mask = UINT64_MAX >> (64 - 8 * k.element_bytes);
    if (is_float) k.mask >>= 1; /* -0 is 0 */
    for (uint32_t i = 0; i < k.rank; i++) k.dims[i] = x->shape.dims[i];
    return k;
}

sp_status sp__non_zero_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    SP_TRY(sp__op_require_known(call, 0));
    const sp_non_zero_constants k = read_elements(x);
    sp_shape y = {.rank = 2, .dims = {k.rank, 0}};
    for (int64_t i = 0; i < k.count; i++) {
        y.dims[1] += sp_is_non_zero(&k, x->data, i);
    }
    sp__op_set_output(call, 0, SP_I64, &y);
    return SP_OK;
}

sp_status sp__non_zero_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_non_zero_constants k = read_elements(&call->inputs[0]);
    k.found = call->outputs[0].shape.dims[1];
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_non_zero, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}
