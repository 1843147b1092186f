/* SPDX-License-Identifier: Apache-2.0 */
/* Futures: life, waits and callbacks. What the run does is in submitted.c. */
#include "exec/future.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "exec/future_outputs.h"
#include "runtime/runtime_state.h"

static void future_make(sp_object *object);
static void future_destroy(sp_object *object);

static sp_handle_table futures = {/* process-wide: the table of all future handles */
                                  .kind = SP_KIND_FUTURE,
                                  .object_bytes = sizeof(sp_rt_future),
                                  .make = future_make,
                                  .destroy = future_destroy,
                                  .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

/* ---- life ---- */

static sp_rt_future *future_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, sp_rt_future, object);
}

/* The points that the run waits for, in the order in which they pass: that of its batch, then, if
 * it has been in none or the batch has failed, its own. Before them it waits for a run slot, which
 * is no point. */
static uint32_t points_find(const sp_rt_future *future, sp_point points[2])
{
    uint32_t count = 0;
    if (sp_load_acquire(&future->is_in_batch) != 0) points[count++] = future->batch_point;
    if (sp_load_acquire(&future->is_started) != 0) points[count++] = future->point;
    return count;
}

/* A run of partial plans waits for what its thread waits for. A wait for `value` holds the future,
 * so the fields are those of its life. */
static uint64_t future_each_wait(sp_timeline *timeline, uint64_t value, sp_point_visitor visit,
                                 void *ctx)
{
    const sp_rt_future *future = SP_CONTAINER_OF(timeline, sp_rt_future, timeline);
    sp_point points[2];
    (void)value;
    const uint32_t count = points_find(future, points);
    for (uint32_t i = 0; i < count; i++) visit(ctx, points[i]);
    return sp_load_relaxed(&future->partial.holder);
}

static const sp_timeline_source future_source = {.each_wait = future_each_wait};

static void future_make(sp_object *object)
{
    sp_timeline *timeline = &future_of(object)->timeline;
    sp__timeline_init(timeline, NULL);
    timeline->source = &future_source;
}

static void future_destroy(sp_object *object)
{
    if (sp__runtime_is_forked()) return;
    sp__future_outputs_deinit(&future_of(object)->results);
    sp__handle_recycle(&futures, object);
}

sp_status sp__future_create(sp_rt_future **out)
{
    sp_object *object;
    SP_TRY(sp__handle_acquire(&futures, &object));
    sp_rt_future *future = future_of(object);
    future->value = sp_load_relaxed(&future->timeline.done) + 1;
    future->fault = SP_NO_FAULT;
    sp_store_relaxed(&future->is_started, 0);
    sp_store_relaxed(&future->is_in_batch, 0);
    sp_store_relaxed(&future->request.entry.is_queued, 0);
    sp_store_relaxed(&future->is_cancelled, 0);
    future->end_queued = NULL;
    future->token = NULL;
    future->context = NULL;
    future->place = (sp_queue_place){0};
    future->begin_ns = 0;
    future->has_slot = future->has_queue = future->is_counted = false;
    future->results.count = 0;
    future->results.block = NULL;
    future->partial.state = 0;
    sp_store_relaxed(&future->partial.holder, 0);
    *out = future;
    return SP_OK;
}

void sp__future_discard(sp_rt_future *future)
{
    sp__future_outputs_deinit(&future->results);
    sp__handle_recycle(&futures, &future->object);
}

sp_future sp__future_publish(sp_rt_future *future)
{
    return (sp_future){sp__handle_publish_held(&futures, &future->object)};
}

void sp__future_start(sp_rt_future *future, sp_point point)
{
    future->point = point;
    if (SP_PLANTED(relaxed_start)) {
        sp_store_relaxed(&future->is_started, 1);
    } else {
        sp_store_release(&future->is_started, 1);
    }
}

void sp__future_start_in_batch(sp_rt_future *future, sp_point point)
{
    future->batch_point = point;
    if (SP_PLANTED(relaxed_batch_start)) {
        sp_store_relaxed(&future->is_in_batch, 1);
    } else {
        sp_store_release(&future->is_in_batch, 1);
    }
}

static SP_NOINLINE void token_leave(sp_rt_future *future)
{
    const bool is_removed = sp__cancel_token_remove(future->token, &future->listener);
    sp__cancel_token_drop(future->token);
    /* Else the canceller that has popped it has the hold. */
    if (is_removed || SP_PLANTED(hold_dropped_twice)) sp__future_drop(future);
}

void sp__future_complete(sp_rt_future *future)
{
    if (SP_UNLIKELY(future->token != NULL)) token_leave(future);
    sp__timeline_advance(&future->timeline, future->value);
}

void sp__future_drop(sp_rt_future *future)
{
    sp__object_drop(&futures, &future->object);
}

void sp__futures_deinit(void)
{
    sp__handle_table_reset(&futures);
}

sp_status sp__future_hold(sp_future handle, sp_rt_future **out)
{
    if (sp__runtime_is_forked()) SP_TRY(sp__runtime_enter()); /* fails, with the message */
    sp_object *object = sp__handle_hold(&futures, handle.bits, "future");
    if (object == NULL) return SP_INVALID;
    *out = future_of(object);
    return SP_OK;
}

sp_status sp__future_retain(sp_future handle)
{
    return sp__handle_retain(&futures, handle.bits, "future");
}

sp_status sp__future_release(sp_future handle)
{
    return sp__handle_release(&futures, handle.bits, "future");
}

/* ---- cancel ---- */

void sp__future_cancel(sp_rt_future *future)
{
    sp_store_release(&future->is_cancelled, 1);
    if (future->end_queued != NULL) future->end_queued(future);
}

/* Popped from the list, with its hold. */
static void listener_cancel(sp_cancel_listener *listener)
{
    sp_rt_future *future = SP_CONTAINER_OF(listener, sp_rt_future, listener);
    sp__future_cancel(future);
    sp__future_drop(future);
}

bool sp__future_follow_token(sp_rt_future *future)
{
    future->listener = (sp_cancel_listener){.cancel = listener_cancel};
    sp__object_hold(&future->object);
    if (sp__cancel_token_add(future->token, &future->listener)) return true;
    sp__future_drop(future);
    return false;
}

/* ---- wait ---- */

static sp_point future_end(sp_rt_future *future)
{
    return (sp_point){&future->timeline, future->value};
}

/* Waits for the points of the batch and of the run first, since these waits help. The points'
 * waiters make the future done. */
static sp_status end_wait(sp_rt_future *future, uint64_t deadline_ns)
{
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    if (deadline_ns == SP_NO_DEADLINE && sp__thread_is_inside_callback(record)) {
        future->end_queued(future);
    }
    if (sp_load_acquire(&future->is_in_batch) != 0 && !SP_PLANTED(batch_unhelped)) {
        SP_TRY(sp__point_wait_passed(future->batch_point, deadline_ns));
    }
    /* Read after the batch: it may have failed. */
    if (sp_load_acquire(&future->is_started) != 0) {
        SP_TRY(sp__point_wait_passed(future->point, deadline_ns));
    }
    return sp__point_wait_passed(future_end(future), deadline_ns);
}

/* Until the future is done, however the run went. */
static sp_status await_future(sp_rt_future *future, uint64_t deadline_ns)
{
    if (sp__point_has_passed(future_end(future))) return SP_OK;
    const sp_status status = end_wait(future, deadline_ns);
    if (status != SP_TIMEOUT) return status;
    return sp__fail(SP_TIMEOUT, "the run was not done in time; it continues");
}

sp_status sp__future_wait(sp_rt_future *future, uint64_t deadline_ns)
{
    SP_TRY(await_future(future, deadline_ns));
    return sp__fault_report(future->fault);
}

sp_status sp__futures_wait_all(sp_rt_future *const *list, uint32_t count, uint64_t deadline_ns)
{
    for (uint32_t i = 0; i < count; i++) SP_TRY(await_future(list[i], deadline_ns));
    for (uint32_t i = 0; i < count; i++) SP_TRY(sp__fault_report(list[i]->fault));
    return SP_OK;
}

/* Polls: a device may notice only then that the run has ended. */
static bool future_is_done(sp_rt_future *future)
{
    if (sp__point_has_passed(future_end(future))) return true;
    sp_point points[2];
    const uint32_t count = points_find(future, points);
    for (uint32_t i = 0; i < count; i++) (void)sp__point_poll(points[i]);
    return sp__point_has_passed(future_end(future));
}

sp_status sp__future_query(sp_rt_future *future)
{
    return future_is_done(future) ? sp__fault_report(future->fault) : SP_NOT_READY;
}

sp_status sp__future_take_output(sp_rt_future *future, uint32_t index, sp_host_tensor *out)
{
    if (!future_is_done(future)) {
        return sp__fail(SP_NOT_READY, "the run is not done; wait for its future first");
    }
    SP_TRY(sp__fault_report(future->fault));
    return sp__future_outputs_take(&future->results, index, out);
}

/* ---- wait for any ---- */

static uint32_t find_done(sp_rt_future *const *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (future_is_done(list[i])) return i;
    }
    return count;
}

/* On a queue that waits for no other run: a batch may fail, and its runs be queued. */
static bool is_any_started(sp_rt_future *const *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sp_load_acquire(&list[i]->is_started) != 0) return true;
    }
    return false;
}

/* For the ends of the runs: a run may start only during the wait, so it has no other point yet. */
static sp_status wait_for_first(sp_rt_future *const *list, uint32_t count, uint64_t deadline_ns,
                                uint32_t *which)
{
    sp_point *points = sp_malloc(count * sizeof *points);
    if (points == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to wait for %u runs", count);
    for (uint32_t i = 0; i < count; i++) points[i] = future_end(list[i]);
    const uint32_t waited = SP_PLANTED(any_of_first) ? 1 : count;
    const sp_status status = sp__point_wait_any(points, waited, deadline_ns, which);
    sp_free(points);
    if (status != SP_TIMEOUT) return status;
    return sp__fail(SP_TIMEOUT, "none of %u runs was done in time; they continue", count);
}

sp_status sp__futures_wait_any(sp_rt_future *const *list, uint32_t count, uint64_t deadline_ns,
                               uint32_t *which)
{
    *which = count;
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    uint32_t done = find_done(list, count);
    if (done == count) {
        const bool is_bare =
            deadline_ns != SP_NO_DEADLINE || !sp__thread_is_inside_callback(record);
        if (!is_bare && !is_any_started(list, count)) list[0]->end_queued(list[0]);
        SP_TRY(wait_for_first(list, count, deadline_ns, &done));
    }
    *which = done;
    return sp__fault_report(list[done]->fault);
}

/* ---- callbacks ---- */

typedef struct future_callback {
    sp_waiter waiter;
    sp_host_job job;
    sp_rt_future *future; /* held */
    sp_future_function fn;
    void *ctx;
} future_callback;

static void callback_call(sp_host_job *job)
{
    future_callback *callback = SP_CONTAINER_OF(job, future_callback, job);
    const future_callback copy = *callback;
    const sp_status status = sp__fault_report(copy.future->fault);
    sp__future_drop(copy.future);
    sp_free(callback);
    copy.fn(copy.ctx, status);
}

/* The executor has stopped only if a run was refused after a shutdown, when another thread released
 * the slot that the run had waited for. */
static void callback_fire(sp_waiter *waiter)
{
    future_callback *callback = SP_CONTAINER_OF(waiter, future_callback, waiter);
    if (!sp__host_executor_post(&callback->job)) sp__host_executor_run_apart(&callback->job);
}

sp_status sp__future_call_later(sp_rt_future *future, sp_future_function fn, void *ctx)
{
    future_callback *callback = sp_malloc(sizeof *callback);
    if (callback == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a callback");
    *callback = (future_callback){.waiter = {.value = future->value, .fire = callback_fire},
                                  .job = {.run = callback_call},
                                  .future = future,
                                  .fn = fn,
                                  .ctx = ctx};
    sp_point points[2];
    const uint32_t count = points_find(future, points);
    for (uint32_t i = 0; i < count; i++) sp__point_flush(points[i]);
    /* The callback may be called, and freed, as soon as it is registered. */
    if (!future_is_done(future) && sp__timeline_register(&future->timeline, &callback->waiter)) {
        return SP_OK;
    }
    if (sp__host_executor_post(&callback->job)) return SP_OK;
    sp_free(callback);
    return sp__fail(SP_CLOSED, "streampool was shut down (sp_shutdown) during the call");
}
