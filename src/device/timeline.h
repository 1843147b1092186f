/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines and points. A stream owns one timeline: a 64-bit counter that its submissions raise as
 * they complete, in order. A point (timeline, value) means "done when the counter reaches value";
 * events, frees, futures and hazards are all points. Waiters of any kind (a host thread, a parked
 * stream) register a node and are fired once.
 *
 *     wanted == smallest value of a waiter, or UINT64_MAX
 *     every registered waiter has value > the `done` that its registration saw
 *
 * advance: write done, then read wanted.  register: write wanted, then read done. Both are
 * sequentially consistent, so one of the two sides sees the other and no wake-up is lost.
 *
 * A failed point keeps its fault (fault.h) on the timeline: whoever waits for it, early or late,
 * gets it. Internally synchronised; timelines live as long as the process. */
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

/* Called with each point that something waits for. */
typedef void (*sp_point_visitor)(void *ctx, sp_point point);

/* For a timeline that the host advances: what its points wait for, so that a search for a wait
 * cycle can follow them (wait_graph.h). */
typedef struct sp_timeline_source {
    /* Visits the points that must pass before `value` can; none if `value` has passed. Returns the
     * holder that will advance the timeline (thread_record.h), or 0 if none in particular will. */
    uint64_t (*each_wait)(sp_timeline *timeline, uint64_t value, sp_point_visitor visit, void *ctx);
} sp_timeline_source;

struct sp_timeline {
    /* Newest completed value. Written by the stream's executor, read by everybody; the write
     * publishes all that the completed commands wrote. */
    SP_CACHE_ALIGNED sp_atomic_u64 done;
    /* Smallest value a waiter is registered for. Written under the lock. */
    sp_atomic_u64 wanted;
    /* Number of failures ever; a wait looks for its fault only if this is not 0. Written before the
     * `done` of the failed value, so whoever sees that sees this. */
    sp_atomic_u64 failure_total;
    sp_queue *owner;                  /* constant; NULL if the host itself advances the timeline: */
    const sp_timeline_source *source; /* constant; NULL: its points depend on nothing known */
    /* What a search for a wait cycle knows of the timeline; guarded by the lock in wait_graph.c. */
    struct {
        uint64_t number;   /* of the last search that has reached it: the rest is of that search */
        uint64_t value;    /* the newest point that the wait depends on */
        uint64_t expanded; /* up to this value its waits have been followed */
        sp_timeline *next; /* to be expanded; NULL for the last, itself when it is in no list */
    } search;
    sp_mutex lock;
    sp_waiter_heap waiters SP_GUARDED_BY(lock);
    sp_failure_log failures SP_GUARDED_BY(lock);
    /* Values after this one that are not in the log failed with `loss`, which lost the device;
     * UINT64_MAX while it works. */
    uint64_t lost_after SP_GUARDED_BY(lock);
    sp_fault loss SP_GUARDED_BY(lock);
};

void sp__timeline_init(sp_timeline *timeline, sp_queue *owner);
void sp__timeline_deinit(sp_timeline *timeline);

/* The completed value is now `value`: fires every waiter up to it. One executor at a time. */
void sp__timeline_advance(sp_timeline *timeline, uint64_t value);

/* The two halves of an advance, for devices whose completions are noticed by several threads: those
 * exclude each other while they publish, and fire afterwards, with no lock held. Between the two
 * another thread may publish, and fire, more. */
void sp__timeline_publish(sp_timeline *timeline, uint64_t value);
void sp__timeline_fire(sp_timeline *timeline, uint64_t value);

/* Remembers that the submission `value` of `thread` failed. Called by the executor before it
 * advances to `value`. */
void sp__timeline_fail(sp_timeline *timeline, uint64_t value, uint64_t thread, sp_fault fault);

/* The device is lost: the values after `done` and up to `value` that have not failed by themselves
 * fail with `fault` now. Called before `value` is published, by whoever may publish; may be called
 * again for later values. */
void sp__timeline_lose(sp_timeline *timeline, uint64_t value, sp_fault fault);

/* Registers `waiter` for waiter->value; false, and not registered, if that has passed already. The
 * owner's device is told that it is watched. No lock may be held. */
bool sp__timeline_register(sp_timeline *timeline, sp_waiter *waiter);

/* Takes a registered waiter back; false if it has been, or is just being, fired. A `fire` whose
 * waiters may be cancelled leaves their links as they are. */
bool sp__timeline_cancel(sp_timeline *timeline, sp_waiter *waiter);

static inline bool sp__point_has_passed(sp_point point)
{
    /* Pairs with the write in advance: what the completed commands wrote is visible. */
    if (point.timeline == NULL) return true;
    if (sp_load_acquire(&point.timeline->done) < point.value) return false;
    sp_tsan_acquire(&point.timeline->done);
    return true;
}

/* The fault of a point that has passed; SP_NO_FAULT if all went well. */
sp_fault sp__point_fault(sp_point point);

/* Takes the failures with a value up to `value` that `thread` submitted and no earlier call has
 * taken. The first one, SP_NO_FAULT if there is none. */
sp_fault sp__timeline_take_failures(sp_timeline *timeline, uint64_t value, uint64_t thread);
/* How many failures no call has taken, of any thread; *first is the oldest one's fault. */
uint32_t sp__timeline_unreported(sp_timeline *timeline, sp_fault *first);

#endif
