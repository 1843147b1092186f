/* SPDX-License-Identifier: Apache-2.0 */
/* Events. An event is a point behind a lock; waits and callbacks copy the point, so destroying or
 * recording the event again never affects them. The time of a record is written by a command, into
 * a stamp that is reused only when that command has completed. */
#include "runtime/event.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/handle.h"
#include "base/heap.h"
#include "device/device.h"
#include "device/host_executor.h"
#include "device/wait.h"
#include "runtime/checker.h"
#include "runtime/runtime_state.h"
#include "runtime/stream_pool.h"
#include "runtime/submit.h"

/* Where a timestamp command writes. Reused when its command has completed and it has no users. */
typedef struct sp_stamp {
    sp_atomic_u64 time; /* relaxed: written by the executor before its point passes, read after */
    /* The event whose last record it is, and the calls that read it. Incremented under that event's
     * lock; the drop to 0 (acq_rel) comes after all reads. */
    sp_atomic_u32 users;
    sp_point point; /* of the command */
    struct sp_stamp *next;
    sp_waiter waiter; /* while it waits for its point */
} sp_stamp;

typedef struct sp_rt_event {
    SP_CACHE_ALIGNED sp_object object;
    sp_mutex lock;
    bool has_timing SP_GUARDED_BY(lock);
    bool is_recorded SP_GUARDED_BY(lock);
    sp_point point SP_GUARDED_BY(lock);
    sp_stamp *stamp SP_GUARDED_BY(lock); /* of the last record, if timed */
} sp_rt_event;

static void event_make(sp_object *object);
static void event_destroy(sp_object *object);

static sp_handle_table events = {/* process-wide: the table of all event handles */
                                 .kind = SP_KIND_EVENT,
                                 .object_bytes = sizeof(sp_rt_event),
                                 .make = event_make,
                                 .destroy = event_destroy,
                                 .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

/* ---- stamps ---- */

/* Stamps without users, each in one of three places. An acquire checks `ready`, then TAKE_LOOKS
 * stamps of `recent`; one whose command has not completed by then leaves the list and is watched: a
 * waiter of its point, which moves it to `ready`. So a stamp whose command is far from complete is
 * polled once, and delays others by at most its share of one acquire. Mostly, commands have
 * completed when their stamps are polled, and nothing is registered.
 * process-wide: commands of any device may still write them. */
static struct {
    sp_mutex lock;
    sp_stamp *ready SP_GUARDED_BY(lock);
    sp_stamp *recent SP_GUARDED_BY(lock); /* oldest first; may not have completed */
    sp_stamp *newest SP_GUARDED_BY(lock);
} stamps = {.lock = SP_MUTEX_INIT(SP_LOCK_STAMPS)};

#define TAKE_LOOKS 2

static void ready_push(sp_stamp *stamp)
{
    sp_mutex_lock(&stamps.lock);
    stamp->next = stamps.ready;
    stamps.ready = stamp;
    sp_mutex_unlock(&stamps.lock);
}

static sp_stamp *ready_pop_locked(void) SP_REQUIRES(&stamps.lock)
{
    sp_stamp *stamp = stamps.ready;
    if (stamp != NULL) stamps.ready = stamp->next;
    return stamp;
}

static sp_stamp *recent_pop_locked(void) SP_REQUIRES(&stamps.lock)
{
    sp_stamp *stamp = stamps.recent;
    if (stamp == NULL) return NULL;
    stamps.recent = stamp->next;
    if (stamps.recent == NULL) stamps.newest = NULL;
    return stamp;
}

static void fire_stamp(sp_waiter *waiter)
{
    ready_push(SP_CONTAINER_OF(waiter, sp_stamp, waiter));
}

/* Whether the stamp's command has completed; if not, the stamp becomes a waiter of its point. */
static bool has_completed_or_watch(sp_stamp *stamp)
{
    if (sp__point_has_passed(stamp->point) || SP_PLANTED(early_stamp)) return true;
    stamp->waiter = (sp_waiter){.value = stamp->point.value, .fire = fire_stamp};
    return !sp__timeline_register(stamp->point.timeline, &stamp->waiter);
}

static sp_stamp *stamp_acquire(void)
{
    for (int look = 0; look < TAKE_LOOKS; look++) {
        sp_mutex_lock(&stamps.lock);
        sp_stamp *ready = ready_pop_locked();
        sp_stamp *stamp = ready != NULL ? ready : recent_pop_locked();
        sp_mutex_unlock(&stamps.lock);
        if (stamp == NULL) break;
        if (stamp == ready || has_completed_or_watch(stamp)) return stamp;
    }
    return sp_malloc(sizeof(sp_stamp));
}

static void stamp_release(sp_stamp *stamp)
{
    if (sp__point_has_passed(stamp->point)) {
        ready_push(stamp);
        return;
    }
    stamp->next = NULL;
    sp_mutex_lock(&stamps.lock);
    if (stamps.newest != NULL) {
        stamps.newest->next = stamp;
    } else {
        stamps.recent = stamp;
    }
    stamps.newest = stamp;
    sp_mutex_unlock(&stamps.lock);
}

/* Drops one use; NULL is ignored. */
static void stamp_drop(sp_stamp *stamp)
{
    if (stamp != NULL && sp_fetch_sub_acq_rel(&stamp->users, 1) == 1) stamp_release(stamp);
}

/* ---- create and destroy ---- */

static sp_rt_event *event_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, sp_rt_event, object);
}

static void event_make(sp_object *object)
{
    sp_mutex_init(&event_of(object)->lock, SP_LOCK_EVENT);
}

static void event_destroy(sp_object *object)
{
    sp_rt_event *event = event_of(object);
    if (sp__runtime_is_forked()) return;
    sp_mutex_lock(&event->lock);
    sp_stamp *stamp = event->stamp;
    sp_mutex_unlock(&event->lock);
    if (!SP_PLANTED(lost_stamp)) stamp_drop(stamp);
    if (SP_UNLIKELY(sp__check_is_on())) sp__check_forget_token(event);
    sp__handle_recycle(&events, object);
}

sp_status sp_event_create(const sp_event_options *options, sp_event *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_event_create: out is NULL");
    *out = (sp_event){0};
    SP_TRY(sp__runtime_enter());
    sp_object *object;
    SP_TRY(sp__handle_acquire(&events, &object));
    sp_rt_event *event = event_of(object);
    sp_mutex_lock(&event->lock);
    event->has_timing = options != NULL && options->enable_timing;
    event->is_recorded = false;
    event->point = (sp_point){0};
    event->stamp = NULL;
    sp_mutex_unlock(&event->lock);
    out->bits = sp__handle_publish(&events, object);
    return SP_OK;
}

sp_status sp_event_retain(sp_event event)
{
    SP_TRY(sp__runtime_enter());
    return sp__handle_retain(&events, event.bits, "event");
}

sp_status sp_event_release(sp_event event)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__handle_release(&events, event.bits, "event");
}

/* ---- look-up ---- */

/* The event of a handle, not locked; NULL, with the error, if the handle is stale. */
static sp_rt_event *event_peek(sp_event handle)
{
    sp_object *object = sp__handle_peek(&events, handle.bits);
    if (SP_LIKELY(object != NULL)) return event_of(object);
    sp__handle_refuse(SP_KIND_EVENT, handle.bits, "event");
    return NULL;
}

/* False, and not locked, if the event is NULL or its handle has become stale. */
static bool event_lock(sp_rt_event *event, sp_event handle) SP_TRY_ACQUIRE(true, &event->lock);

static bool event_lock(sp_rt_event *event, sp_event handle) SP_NO_LOCK_ANALYSIS
{
    if (event == NULL) return false;
    sp_mutex_lock(&event->lock);
    if (SP_LIKELY(sp__handle_is_current(&event->object, handle.bits))) return true;
    sp_mutex_unlock(&event->lock);
    sp__handle_refuse(SP_KIND_EVENT, handle.bits, "event");
    return false;
}

sp_status sp__event_point(sp_event handle, sp_point *out)
{
    SP_TRY(sp__runtime_enter());
    sp_rt_event *event = event_peek(handle);
    if (!event_lock(event, handle)) return SP_INVALID;
    const bool is_recorded = event->is_recorded;
    *out = event->point;
    sp_mutex_unlock(&event->lock);
    if (SP_UNLIKELY(sp__check_is_on())) sp_check_happens_after(event);
    if (SP_LIKELY(is_recorded)) return SP_OK;
    return sp__fail(SP_INVALID, "the event was never recorded: record it on a stream first");
}

/* ---- record ---- */

/* `*point` becomes the event's: the last submission before the stamp's command, which has the
 * failure, as without timing. */
static sp_status record_timed(const sp_stream_ref *stream, sp_point *point, sp_stamp **out)
{
    sp_stamp *stamp = stamp_acquire();
    if (stamp == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a timestamp");
    sp_store_relaxed(&stamp->time, 0);
    const sp_command command = {.type = SP_COMMAND_TIMESTAMP, .timestamp = &stamp->time};
    const sp_submission submission = {.commands = &command, .command_count = 1};
    const sp_status status = sp__submit_plain_with_room(stream, &submission, &stamp->point);
    if (status != SP_OK) {
        sp_free(stamp);
        return status;
    }
    *point = stamp->point;
    if (!SP_PLANTED(stamp_hides_failure)) point->value--;
    sp_store_relaxed(&stamp->users, 1); /* published by the event's lock */
    *out = stamp;
    return SP_OK;
}

/* A record without timing stores the stream's last point. */
static sp_status record_plain(sp_rt_event *event, sp_event handle, const sp_stream_ref *stream,
                              bool *has_timing)
{
    if (!event_lock(event, handle)) return SP_INVALID;
    *has_timing = event->has_timing;
    if (!event->has_timing) {
        event->point = sp__queue_last_point(stream->queue);
        if (SP_PLANTED(record_too_early)) event->point.value--;
        event->is_recorded = true;
    }
    sp_mutex_unlock(&event->lock);
    return SP_OK;
}

/* Whether the event has a record of the same stream that came after `point`. Timed records get
 * their points before the event's lock. Going back would put the event before work that the thread
 * of the newer record has submitted; the newer record covers that of the older one. Records on
 * different streams have no order: the last one to lock stays. */
static bool has_newer_locked(const sp_rt_event *event, sp_point point) SP_REQUIRES(&event->lock)
{
    return event->is_recorded && event->point.timeline == point.timeline &&
           event->point.value > point.value && !SP_PLANTED(older_record);
}

sp_status sp_event_record(sp_event handle, sp_stream stream)
{
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    sp_rt_event *event = event_peek(handle);
    if (SP_UNLIKELY(sp__check_is_on()) && event != NULL) sp_check_happens_before(event);
    bool has_timing = false;
    SP_TRY(record_plain(event, handle, &ref, &has_timing));
    if (!has_timing) return SP_OK;

    sp_point point;
    sp_stamp *stamp = NULL;
    SP_TRY(record_timed(&ref, &point, &stamp));
    sp_status status = SP_INVALID;
    if (event_lock(event, handle)) {
        if (!has_newer_locked(event, point)) {
            sp_stamp *former = event->stamp;
            event->stamp = stamp;
            event->point = point;
            event->is_recorded = true;
            stamp = former;
        }
        sp_mutex_unlock(&event->lock);
        status = SP_OK;
    }
    stamp_drop(stamp);
    return status;
}

/* ---- wait ---- */

sp_status sp_event_query(sp_event event)
{
    sp_point point;
    SP_TRY(sp__event_point(event, &point));
    if (!sp__point_poll(point)) return SP_NOT_READY;
    return sp__fault_report(sp__point_fault(point));
}

sp_status sp_event_synchronize(sp_event event)
{
    return sp_event_synchronize_for(event, SP_FOREVER);
}

sp_status sp_event_synchronize_for(sp_event event, int64_t timeout_ns)
{
    sp_point point;
    SP_TRY(sp__event_point(event, &point));
    SP_TRY(sp__point_wait_bare(point, sp_clock_deadline(timeout_ns)));
    return sp__fault_report(sp__point_fault(point));
}

static sp_status points_of(const sp_event *handles, uint32_t count, sp_point **out)
{
    if (handles == NULL || count == 0) {
        return sp__fail(SP_INVALID, "a wait for several events was given none: pass at least one");
    }
    sp_point *points = sp_calloc(count, sizeof *points);
    if (points == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to wait for %u events", count);
    for (uint32_t i = 0; i < count; i++) {
        const sp_status status = sp__event_point(handles[i], &points[i]);
        if (status == SP_OK) continue;
        sp_free(points);
        return sp__fail_prefix(status, "event %u of %u: ", i, count);
    }
    *out = points;
    return SP_OK;
}

sp_status sp_event_wait_all(const sp_event *handles, uint32_t count, int64_t timeout_ns)
{
    sp_point *points;
    SP_TRY(sp__runtime_enter());
    SP_TRY(points_of(handles, count, &points));
    const sp_status status = sp__point_wait_all(points, count, sp_clock_deadline(timeout_ns));
    sp_free(points);
    return status;
}

sp_status sp_event_wait_any(const sp_event *handles, uint32_t count, int64_t timeout_ns,
                            uint32_t *which)
{
    sp_point *points;
    if (which == NULL) return sp__fail(SP_INVALID, "sp_event_wait_any: which is NULL");
    *which = count;
    SP_TRY(sp__runtime_enter());
    SP_TRY(points_of(handles, count, &points));
    const sp_status status =
        sp__point_wait_any(points, count, sp_clock_deadline(timeout_ns), which);
    sp_free(points);
    return status;
}

sp_status sp_stream_wait_event(sp_stream stream, sp_event event)
{
    sp_stream_ref ref;
    sp_point point;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    SP_TRY(sp__event_point(event, &point));
    const bool is_done = sp__point_has_passed(point) && sp__point_fault(point) == SP_NO_FAULT;
    if (is_done) {
        sp__point_observed(point);
        return SP_OK;
    }
    /* Needed also on the stream's own timeline, although it is ordered: another lease may have
     * failed. */
    const sp_submission submission = {.waits = &point, .wait_count = 1, .fault_count = 1};
    sp_point mine;
    return sp__submit_plain_with_room(&ref, &submission, &mine);
}

/* ---- time ---- */

/* The stamp of the event's last record, with a use: it stays that record's, whatever is recorded
 * later. */
static sp_status hold_stamp(sp_event handle, sp_stamp **out)
{
    sp_point point;
    SP_TRY(sp__event_point(handle, &point)); /* SP_INVALID if it was never recorded */
    sp_rt_event *event = event_peek(handle);
    if (!event_lock(event, handle)) return SP_INVALID;
    sp_stamp *stamp = event->stamp;
    if (stamp != NULL && !SP_PLANTED(unheld_stamp)) sp_fetch_add_relaxed(&stamp->users, 1);
    sp_mutex_unlock(&event->lock);
    *out = stamp;
    if (stamp != NULL) return SP_OK;
    return sp__fail(SP_INVALID, "the event has no timing: create it with enable_timing");
}

static void stamp_drop_held(sp_stamp *stamp)
{
    if (!SP_PLANTED(unheld_stamp)) stamp_drop(stamp);
}

static sp_status stamp_wait_time(const sp_stamp *stamp, uint64_t *out)
{
    SP_TRY(sp__point_wait_passed(stamp->point, SP_NO_DEADLINE));
    *out = sp_load_relaxed(&stamp->time);
    return SP_OK;
}

sp_status sp_event_elapsed(sp_event start, sp_event end, int64_t *ns)
{
    if (ns == NULL) return sp__fail(SP_INVALID, "sp_event_elapsed: ns is NULL");
    /* Misuse is reported before any wait, which may be for work that is far from complete. */
    sp_stamp *first;
    sp_stamp *second;
    SP_TRY(hold_stamp(start, &first));
    sp_status status = hold_stamp(end, &second);
    if (status == SP_OK) {
        uint64_t from = 0;
        uint64_t to = 0;
        status = stamp_wait_time(first, &from);
        if (status == SP_OK) status = stamp_wait_time(second, &to);
        if (status == SP_OK) *ns = (int64_t)(to - from);
        stamp_drop_held(second);
    }
    stamp_drop_held(first);
    return status;
}

/* ---- callbacks ---- */

typedef struct event_callback {
    sp_waiter waiter;
    sp_host_job job;
    sp_point point;
    sp_event_function fn;
    void *ctx;
} event_callback;

static void callback_free(event_callback *callback)
{
    if (SP_UNLIKELY(sp__check_is_on())) sp__check_forget_token(callback);
    sp_free(callback);
}

static void call_user(sp_host_job *job)
{
    event_callback *callback = SP_CONTAINER_OF(job, event_callback, job);
    const event_callback copy = *callback;
    if (SP_UNLIKELY(sp__check_is_on())) {
        sp_check_happens_after(callback);
        sp__point_observed(copy.point);
    }
    callback_free(callback);
    copy.fn(copy.ctx, sp__fault_report(sp__point_fault(copy.point)));
}

/* Devices are drained before the executor stops, so a job that waits for a point is always
 * accepted. */
static void fire_callback(sp_waiter *waiter)
{
    event_callback *callback = SP_CONTAINER_OF(waiter, event_callback, waiter);
    if (!sp__host_executor_post(&callback->job)) callback_free(callback);
}

sp_status sp_event_on_complete(sp_event event, sp_event_function fn, void *ctx)
{
    if (fn == NULL) return sp__fail(SP_INVALID, "sp_event_on_complete: fn is NULL");
    sp_point point;
    SP_TRY(sp__event_point(event, &point));
    event_callback *callback = sp_malloc(sizeof *callback);
    if (callback == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a callback");
    *callback = (event_callback){.waiter = {.value = point.value, .fire = fire_callback},
                                 .job = {.run = call_user},
                                 .point = point,
                                 .fn = fn,
                                 .ctx = ctx};
    if (SP_UNLIKELY(sp__check_is_on())) sp_check_happens_before(callback);
    sp__point_flush(point);
    const bool is_waiting =
        !sp__point_has_passed(point) && sp__timeline_register(point.timeline, &callback->waiter);
    if (is_waiting || sp__host_executor_post(&callback->job)) return SP_OK;
    callback_free(callback);
    return sp__fail(SP_CLOSED, "streampool was shut down (sp_shutdown) during the call");
}

void sp__events_deinit(void)
{
    sp__handle_table_reset(&events);
    sp_mutex_lock(&stamps.lock);
    sp_stamp *lists[] = {stamps.ready, stamps.recent};
    stamps.ready = stamps.recent = stamps.newest = NULL;
    sp_mutex_unlock(&stamps.lock);
    for (int i = 0; i < 2; i++) {
        while (lists[i] != NULL) {
            sp_stamp *next = lists[i]->next;
            sp_free(lists[i]);
            lists[i] = next;
        }
    }
}
