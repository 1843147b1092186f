/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on futures. */
#include <streampool/future.h>

#include "base/clock.h"
#include "base/error.h"
#include "exec/future.h"
#include "runtime/runtime_state.h"

sp_status sp_future_retain(sp_future future)
{
    SP_TRY(sp__runtime_enter());
    return sp__future_retain(future);
}

sp_status sp_future_release(sp_future future)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__future_release(future);
}

static sp_status wait_until(sp_future handle, uint64_t deadline_ns)
{
    sp_rt_future *future;
    SP_TRY(sp__future_hold(handle, &future));
    const sp_status status = sp__future_wait(future, deadline_ns);
    sp__future_drop(future);
    return status;
}

sp_status sp_future_wait(sp_future future)
{
    return wait_until(future, SP_NO_DEADLINE);
}

sp_status sp_future_wait_for(sp_future future, int64_t timeout_ns)
{
    return wait_until(future, sp_clock_deadline(timeout_ns));
}

sp_status sp_future_query(sp_future handle)
{
    sp_rt_future *future;
    SP_TRY(sp__future_hold(handle, &future));
    const sp_status status = sp__future_query(future);
    sp__future_drop(future);
    return status;
}

sp_status sp_future_on_complete(sp_future handle, sp_future_function fn, void *ctx)
{
    sp_rt_future *future;
    if (fn == NULL) return sp__fail(SP_INVALID, "sp_future_on_complete needs a function");
    SP_TRY(sp__future_hold(handle, &future));
    const sp_status status = sp__future_call_later(future, fn, ctx);
    if (status != SP_OK) sp__future_drop(future);
    return status;
}
