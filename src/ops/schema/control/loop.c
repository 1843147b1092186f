/* SPDX-License-Identifier: Apache-2.0 */
/* Loop and Scan: a run of a model computes their bodies, one plan at a time; a single call
 * cannot. */
#include "base/error.h"
#include "ops/ops.h"

sp_status sp__loop_infer(sp_op_call *call)
{
    return sp__fail(SP_UNSUPPORTED, "not supported: %s outside of a model, since it has a body",
                    call->op->name);
}

sp_status sp__loop_lower(const sp_op_call *call, sp_lowering *lowering)
{
    (void)lowering;
    return sp__fail(SP_UNSUPPORTED, "not supported: %s outside of a model, since it has a body",
                    call->op->name);
}
