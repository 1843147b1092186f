/* SPDX-License-Identifier: Apache-2.0 */
/* Events: a recorded point of a stream, optionally with a timestamp. */
#ifndef STREAMPOOL_EVENT_H
#define STREAMPOOL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/stream.h>

SP_EXTERN_C_BEGIN

typedef struct sp_event {
    uint64_t bits;
} sp_event;

typedef struct sp_event_options {
    bool enable_timing; /* records also take the time */
} sp_event_options;

/* Creates an event without a record. NULL options are all defaults. */
SP_API sp_status sp_event_create(const sp_event_options *options, sp_event *out);
/* One more reference. SP_EXHAUSTED past 65,535. */
SP_API sp_status sp_event_retain(sp_event event);
/* One reference less; pending waits and callbacks keep their point. The zero handle is fine. */
SP_API sp_status sp_event_release(sp_event event);

/* Records in `event` everything submitted to `stream` so far. Pending waits for an earlier record
 * keep waiting for that one. Of concurrent records on one stream the newest is kept. With timing
 * the record is a command: SP_BUSY if the stream is full. */
SP_API sp_status sp_event_record(sp_event event, sp_stream stream);

/* SP_OK if the last record has been reached, SP_NOT_READY if not yet, SP_INVALID if there is none;
 * the status of the last submission before the record if that failed. sp_stream_synchronize reports
 * that failure, too, and earlier ones; but for those of runs that sp_model_run has returned. */
SP_API sp_status sp_event_query(sp_event event);

/* Waits on the host for the last record. Errors as sp_event_query; SP_DEADLOCK. */
SP_API sp_status sp_event_synchronize(sp_event event);
/* The same, at most `timeout_ns` (negative: no limit), then SP_TIMEOUT. */
SP_API sp_status sp_event_synchronize_for(sp_event event, int64_t timeout_ns);

/* Waits until all events have been reached; returns the status of the first failed one. Errors of
 * the call: SP_TIMEOUT; SP_INVALID for a count of 0, a handle that does not work, or an event that
 * was never recorded; SP_DEADLOCK; SP_OUT_OF_MEMORY. */
SP_API sp_status sp_event_wait_all(const sp_event *events, uint32_t count, int64_t timeout_ns);
/* Waits until one of the events has been reached; `*which` is its index and its status is returned.
 * Errors of the call are those of sp_event_wait_all, and `*which` is `count` then; SP_DEADLOCK
 * inside a host function that all of the events are ordered after. */
SP_API sp_status sp_event_wait_any(const sp_event *events, uint32_t count, int64_t timeout_ns,
                                   uint32_t *which);

/* Makes later commands of `stream` wait, on the device, for `event`'s last record; returns at once.
 * The event may be of another device. A failure of the event marks the stream's lease as failed,
 * also if it is of another lease of the same stream (see sp_stream_synchronize).
 * Errors: SP_INVALID if the event was never recorded; SP_BUSY if the stream is full. */
SP_API sp_status sp_stream_wait_event(sp_stream stream, sp_event event);

/* Nanoseconds from the record of `start` to that of `end`; negative if `end` came first. Waits for
 * the records that are the last ones at the call, even if the events are recorded again during the
 * wait. SP_INVALID if either has no timing or was never recorded; SP_DEADLOCK inside a host
 * function that a record comes after. */
SP_API sp_status sp_event_elapsed(sp_event start, sp_event end, int64_t *ns);

/* `status` is as returned by sp_event_query for that record. Rules for callbacks: see
 * sp_host_function. */
typedef void (*sp_event_function)(void *ctx, sp_status status);

/* Calls `fn(ctx, status)` once, on a host thread of the library, when the event's last record has
 * been reached; at once if it has been already. */
SP_API sp_status sp_event_on_complete(sp_event event, sp_event_function fn, void *ctx);

SP_EXTERN_C_END

#endif
