/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on futures. */
#include <streampool/future.h>
#include <streampool/model.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
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

/* ---- several ---- */

#define SET_ROOM 16 /* futures that need no memory of their own */

typedef struct future_set {
    sp_rt_future **list; /* each held */
    uint32_t count;
    sp_rt_future *room[SET_ROOM];
} future_set;

static void set_drop(future_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) sp__future_drop(set->list[i]);
    if (set->list != set->room) sp_free(set->list);
}

static sp_status set_hold(const sp_future *handles, uint32_t count, future_set *set)
{
    if (handles == NULL && count > 0) {
        return sp__fail(SP_INVALID, "a wait for %u futures: the array is NULL", count);
    }
    set->count = 0;
    set->list = count <= SET_ROOM ? set->room : sp_malloc(count * sizeof(sp_rt_future *));
    if (set->list == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory to wait for %u futures", count);
    }
    for (; set->count < count; set->count++) {
        const sp_status status = sp__future_hold(handles[set->count], &set->list[set->count]);
        if (status == SP_OK) continue;
        const uint32_t index = set->count;
        set_drop(set);
        return sp__fail_prefix(status, "futures[%u]: ", index);
    }
    return SP_OK;
}

sp_status sp_future_wait_all(const sp_future *futures, uint32_t count, int64_t timeout_ns)
{
    future_set set;
    SP_TRY(set_hold(futures, count, &set));
    const sp_status status = sp__futures_wait_all(set.list, count, sp_clock_deadline(timeout_ns));
    set_drop(&set);
    return status;
}

sp_status sp_future_wait_any(const sp_future *futures, uint32_t count, int64_t timeout_ns,
                             uint32_t *which)
{
    future_set set;
    if (which == NULL) return sp__fail(SP_INVALID, "sp_future_wait_any: which is NULL");
    *which = count;
    if (count == 0) {
        return sp__fail(SP_INVALID, "sp_future_wait_any: a wait for any of no futures never ends");
    }
    SP_TRY(set_hold(futures, count, &set));
    const sp_status status =
        sp__futures_wait_any(set.list, count, sp_clock_deadline(timeout_ns), which);
    set_drop(&set);
    return status;
}

/* ---- without waiting ---- */

sp_status sp_future_query(sp_future handle)
{
    sp_rt_future *future;
    SP_TRY(sp__future_hold(handle, &future));
    const sp_status status = sp__future_query(future);
    sp__future_drop(future);
    return status;
}

sp_status sp_future_take_output(sp_future handle, uint32_t index, sp_host_tensor *out)
{
    sp_rt_future *future;
    if (out == NULL) return sp__fail(SP_INVALID, "sp_future_take_output: out is NULL");
    SP_TRY(sp__future_hold(handle, &future));
    const sp_status status = sp__future_take_output(future, index, out);
    sp__future_drop(future);
    return status;
}

sp_status sp_future_on_complete(sp_future handle, sp_future_function fn, void *ctx)
{
    sp_rt_future *future;
    if (fn == NULL) return sp__fail(SP_INVALID, "sp_future_on_complete: fn is NULL");
    SP_TRY(sp__future_hold(handle, &future));
    const sp_status status = sp__future_call_later(future, fn, ctx);
    if (status != SP_OK) sp__future_drop(future);
    return status;
}

sp_status sp_future_cancel(sp_future handle)
{
    sp_rt_future *future;
    SP_TRY(sp__future_hold(handle, &future));
    sp__future_cancel(future);
    sp__future_drop(future);
    return SP_OK;
}
