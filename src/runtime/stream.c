/* SPDX-License-Identifier: Apache-2.0 */
/* Public calls on streams and whole devices: synchronize, query, flush, host functions,
 * statistics. */
#include <streampool/stream.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "runtime/checker.h"
#include "runtime/failures.h"
#include "runtime/runtime_state.h"
#include "runtime/submit.h"

sp_status sp_stream_synchronize(sp_stream stream)
{
    return sp_stream_synchronize_for(stream, SP_FOREVER);
}

sp_status sp_stream_synchronize_for(sp_stream stream, int64_t timeout_ns)
{
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    const sp_point point = sp__queue_last_point(ref.queue);
    SP_TRY(sp__point_wait_bare(point, sp_clock_deadline(timeout_ns)));
    return sp__failures_report(point);
}

sp_status sp_stream_query(sp_stream stream)
{
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    return sp__point_poll(sp__queue_last_point(ref.queue)) ? SP_OK : SP_NOT_READY;
}

sp_status sp_stream_flush(sp_stream stream)
{
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    ref.queue->device->vtable->flush(ref.queue);
    return SP_OK;
}

sp_status sp_stream_set_batching(sp_stream stream, bool is_on)
{
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    ref.queue->device->vtable->queue_set_batching(ref.queue, is_on);
    return SP_OK;
}

sp_status sp_stream_get_info(sp_stream stream, sp_stream_info *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_stream_get_info: out is NULL");
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    sp_queue_stats stats;
    /* In this order: no count exceeds the one that it is part of, except for the failure of a
     * submission that is just completing. */
    const uint64_t failures = sp_load_relaxed(&ref.queue->timeline.failure_total);
    const uint64_t completed = SP_PLANTED(relaxed_info)
                                   ? sp_load_relaxed(&ref.queue->timeline.done)
                                   : sp_load_acquire(&ref.queue->timeline.done);
    const uint64_t failed = failures < completed ? failures : completed;
    const sp_device_vtable *vtable = ref.queue->device->vtable;
    vtable->queue_stats(ref.queue, &stats);
    *out = (sp_stream_info){
        .device = sp__rt_device_handle(ref.stream->device),
        .index = ref.stream->index,
        .holders = sp_load_relaxed(&ref.stream->holders),
        .submissions = stats.submissions,
        .done = completed - failed,
        .failed = failed,
        .commits = stats.commits,
        .by_workers = stats.by_workers,
        .by_helpers = stats.by_helpers,
        .by_host = stats.by_host,
        .native = vtable->queue_native != NULL ? vtable->queue_native(ref.queue) : NULL,
    };
    return SP_OK;
}

/* ---- whole devices ---- */

/* Of each stream in use the newest point. */
static uint32_t device_points(sp_rt_device *device, sp_point points[SP_POOL_STREAMS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < device->pool.count; i++) {
        sp_queue *queue = sp__stream_queue_if_made(&device->pool.streams[i]);
        if (queue != NULL) points[count++] = sp__queue_last_point(queue);
    }
    return count;
}

/* Of the commands up to the point those that are done. */
static sp_point point_reached(sp_point point)
{
    const uint64_t done = sp_load_acquire(&point.timeline->done);
    return (sp_point){point.timeline, done < point.value ? done : point.value};
}

/* After a time-out too each point is visited, for the failures of commands that are done. */
static sp_status points_wait(const sp_point *points, uint32_t count, uint64_t deadline_ns)
{
    sp_status status = SP_OK;
    bool is_late = false;
    for (uint32_t i = 0; i < count; i++) {
        const sp_status waited = sp__point_wait_bare(points[i], deadline_ns);
        if (waited == SP_TIMEOUT) is_late = true;
        else SP_TRY(waited);
        const sp_status failure = sp__failures_report(point_reached(points[i]));
        if (status == SP_OK) status = failure;
    }
    return status == SP_OK && is_late ? sp__fail(SP_TIMEOUT, "the device has work left") : status;
}

sp_status sp_device_synchronize(sp_device device)
{
    return sp_device_synchronize_for(device, SP_FOREVER);
}

sp_status sp_device_synchronize_for(sp_device handle, int64_t timeout_ns)
{
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    sp_point points[SP_POOL_STREAMS];
    /* All points are read before the wait: work that is submitted later does not prolong it. */
    const uint32_t count = device_points(device, points);
    for (uint32_t i = 0; i < count; i++) sp__point_flush(points[i]);
    const sp_status status = points_wait(points, count, sp_clock_deadline(timeout_ns));
    /* After the wait: accepted work has been skipped by now, so no memory is accessed any more. */
    SP_TRY(sp__device_check(device->dev));
    return status;
}

/* ---- host functions ---- */

typedef struct host_call {
    sp_host_function fn;
    void *ctx;
} host_call;

static sp_status run_host_call(void *ctx, sp_fault fault)
{
    const host_call call = *(host_call *)ctx;
    sp_free(ctx);
    const sp_thread_record *record = SP_UNLIKELY(sp__check_is_on()) ? sp__thread_record() : NULL;
    const bool is_checked = record != NULL && record->inside != NULL;
    const sp_point point = is_checked ? *record->inside : (sp_point){0};
    if (is_checked) sp__check_host_begins(point);
    call.fn(call.ctx, sp__fault_report(fault));
    if (is_checked) sp__check_host_ends(point);
    return SP_OK;
}

sp_status sp_stream_host_function(sp_stream stream, sp_host_function fn, void *ctx)
{
    if (fn == NULL) return sp__fail(SP_INVALID, "sp_stream_host_function: fn is NULL");
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    host_call *call = sp_malloc(sizeof *call);
    if (call == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a host function");
    *call = (host_call){fn, ctx};
    const sp_command command = {.type = SP_COMMAND_HOST, .host = run_host_call, .ctx = call};
    const sp_submission submission = {.commands = &command, .command_count = 1};
    sp_point point;
    const sp_status status = sp__submit_plain(&ref, &submission, &point);
    if (status != SP_OK) sp_free(call);
    return status;
}
