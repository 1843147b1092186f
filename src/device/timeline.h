/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines and points. A stream owns one timeline: a 64-bit counter that its submissions increase
 * as they complete, in order. A point (timeline, value) means "done when the counter reaches
 * value"; events, frees, futures and hazards are all points. Waiters of any kind (a host thread, a
 * parked stream) register a node and are fired once.
 *
 *     wanted == smallest value of a waiter, or UINT64_MAX
 *     every registered waiter has value > the `done` that its registration saw
 *
 * advance: write done, then read wanted.  register: write wanted, then read done. Both are
 * sequentially consistent, so one of the two sides sees the other and no wake-up is lost.
 *
 * The fault (fault.h) of a failed point is kept on the timeline, for waits before and after the
 * failure. Internally synchronised; timelines live as long as the process. */
#ifndef SP_DEVICE_TIMELINE_H
#define SP_DEVICE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/macros.h"
#include "base/mutex.h"
#include "base/tsan.h"
#include "device/failure_log.h"
#include "device/fault.h"
#include "device/waiter_heap.h"

typedef struct sp_queue sp_queue;
typedef struct sp_timeline sp_timeline;

typedef struct sp_point {
    sp_timeline *timeline; /* NULL: a point that has always passed */
    uint64_t value;
} sp_point;

/* Called with each awaited point. */
typedef void (*sp_point_visitor)(void *ctx, sp_point point);

/* For a timeline that the host advances: the points that its points depend on, for the search for
 * wait cycles (wait_graph.h). */
typedef struct sp_timeline_source {
    /* Visits the points that must pass before `value` can; none if `value` has passed. Returns the
     * holder that will advance the timeline (thread_record.h), or 0 if it may be any thread. */
    uint64_t (*each_wait)(sp_timeline *timeline, uint64_t value, sp_point_visitor visit, void *ctx);
} sp_timeline_source;

struct sp_timeline {
    /* Newest completed value. Written by the stream's executor, read by any thread; the write
     * publishes everything that the completed commands wrote. */
    SP_CACHE_ALIGNED sp_atomic_u64 done;
    /* Smallest value of a registered waiter. Written under the lock. */
    sp_atomic_u64 wanted;
    /* Number of failures so far; a wait looks up its fault only if this is not 0. Written before
     * the `done` of the failed value, which publishes it. */
    sp_atomic_u64 failure_total;
    sp_queue *owner;                  /* constant; NULL if the host advances the timeline: */
    const sp_timeline_source *source; /* constant; NULL: dependencies of its points unknown */
    /* State of a search for a wait cycle; guarded by the lock in wait_graph.c. */
    struct {
        uint64_t number;   /* of the last search that reached the timeline, whose state this is */
        uint64_t value;    /* the newest point that the wait depends on */
        uint64_t expanded; /* up to this value its waits have been followed */
        sp_timeline *next; /* to be expanded; NULL for the last, itself when in no list */
    } search;
    sp_mutex lock;
    sp_waiter_heap waiters SP_GUARDED_BY(lock);
    sp_failure_log failures SP_GUARDED_BY(lock);
    /* Values after this one that are not in the log failed with `loss`, the loss of the device;
     * UINT64_MAX while the device works. */
    uint64_t lost_after SP_GUARDED_BY(lock);
    sp_fault loss SP_GUARDED_BY(lock);
};

void sp__timeline_init(sp_timeline *timeline, sp_queue *owner);
void sp__timeline_deinit(sp_timeline *timeline);

/* Sets the completed value and fires every waiter up to it. One executor at a time. */
void sp__timeline_advance(sp_timeline *timeline, uint64_t value);

/* The two halves of an advance, for devices whose completions are detected by several threads:
 * publish under mutual exclusion, then fire with no lock held. Between the two another thread may
 * publish, and fire, more. */
void sp__timeline_publish(sp_timeline *timeline, uint64_t value);
void sp__timeline_fire(sp_timeline *timeline, uint64_t value);

/* Notes that the submission `value` of `thread`, 0 if a call returns the failure, failed. Called by
 * the executor before it advances to `value`. */
void sp__timeline_fail(sp_timeline *timeline, uint64_t value, uint64_t thread, sp_fault fault);

/* The device is lost: the values after `done` and up to `value` that have not failed by themselves
 * fail with `fault`. Called before `value` is published, with the right to publish; may be called
 * again for later values. */
void sp__timeline_lose(sp_timeline *timeline, uint64_t value, sp_fault fault);

/* Registers `waiter` for waiter->value; false, and not registered, if that has passed already.
 * Calls `watch` of the owner's device. No lock may be held. */
bool sp__timeline_register(sp_timeline *timeline, sp_waiter *waiter);

/* Removes a registered waiter; false if it has been, or is just being, fired. A `fire` whose
 * waiters may be cancelled must not change their links. */
bool sp__timeline_cancel(sp_timeline *timeline, sp_waiter *waiter);

static inline bool sp__point_has_passed(sp_point point)
{
    /* Pairs with the write in advance: the writes of the completed commands are visible. */
    if (point.timeline == NULL) return true;
    if (sp_load_acquire(&point.timeline->done) < point.value) return false;
    sp_tsan_acquire(&point.timeline->done);
    return true;
}

/* The fault of a point that has passed; SP_NO_FAULT if it succeeded. */
sp_fault sp__point_fault(sp_point point);

/* Takes the failures with a value up to `value` that `thread` submitted and no earlier call has
 * taken. Returns the first one, SP_NO_FAULT if there is none. */
sp_fault sp__timeline_take_failures(sp_timeline *timeline, uint64_t value, uint64_t thread);
/* Takes those with a value after `after` and up to `value`; false if there are none. *is_first: the
 * thread has no failures before them that no call has taken. */
bool sp__timeline_take_failures_between(sp_timeline *timeline, uint64_t after, uint64_t value,
                                        uint64_t thread, bool *is_first);
/* The fault of the loss of the device, if submissions up to `value` had been issued and were lost
 * with it: which thread had submitted them is not known any more. Else SP_NO_FAULT. */
sp_fault sp__timeline_loss(sp_timeline *timeline, uint64_t value);
/* Drops the records of all failures, for which nobody will ask any more. */
void sp__timeline_forget_failures(sp_timeline *timeline);
/* Number of failures of any thread that no call has taken; *first is the fault of the oldest. */
uint32_t sp__timeline_unreported(sp_timeline *timeline, sp_fault *first);

#endif
