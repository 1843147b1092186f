/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: the number of runs that compute on a device at the same time, and which run is next.
 *
 *     word = threads:16 | submitted:16 | claimed:16 | free:16
 *
 *     threads    threads that sleep in the queue `threads`
 *     submitted  submitted runs in the queue of that name
 *     claimed    called threads that are awake and get the next slots
 *
 *     claimed > 0             =>  free == 0: a claim is not overtaken
 *     submitted > 0           =>  free == 0
 *     threads > 0, free > 0   =>  the newest waiting thread has a time-out
 *
 * To wake a thread costs more than a short run computes. So a releasing thread that is expected to
 * return soon leaves its slot free, although threads wait, and takes it again: until its quantum is
 * over. Then it calls the oldest waiter, which leaves the queue, and continues until that one is
 * awake and claims a slot. A thread that did not return soon the last time calls at once. A slot
 * that is left free for good is found by the newest waiter, which looks every two quanta.
 *
 * Submitted runs need no wake-up: a release passes the slot to the oldest one.
 * See docs/decisions/0038. */
#ifndef SP_EXEC_RUN_SLOTS_H
#define SP_EXEC_RUN_SLOTS_H

#include <stdbool.h>

#include <streampool/status.h>

#include "base/macros.h"
#include "base/mutex.h"
#include "exec/wait_queue.h"

/* Submitted runs of a device that have not ended. */
#define SP_RUN_SLOTS_SUBMITTED 32768

/* How long a thread that returns soon keeps others waiting. */
#define SP_RUN_QUANTUM_NS 1000000u

typedef struct sp_run_slots {
    /* Acquire by a run that takes a slot, release by one that returns it: the context that it has
     * released. `free` changes at any time, the other fields under the lock only. */
    SP_CACHE_ALIGNED sp_atomic_u64 word;
    uint32_t count;
    /* Submitted runs from admit to retire; orders nothing. */
    sp_atomic_u32 submitted_count;
    sp_mutex lock;
    sp_wait_queue threads SP_GUARDED_BY(lock);
    sp_wait_queue claims SP_GUARDED_BY(lock);
    sp_wait_queue submitted SP_GUARDED_BY(lock);
    uint64_t newest SP_GUARDED_BY(lock); /* number of the thread that was queued last */
    uint32_t called SP_GUARDED_BY(lock); /* threads that were called and have not answered yet */
} sp_run_slots;

void sp__run_slots_init(sp_run_slots *slots, uint32_t count);
void sp__run_slots_deinit(sp_run_slots *slots);

/* Takes a slot for the calling thread, which waits for as long as it takes. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__run_slots_acquire(sp_run_slots *slots);
/* By the thread that acquired it. A submitted run that has the slot now is returned: the caller
 * resumes it (sp__wait_entry_resume), with no lock held. Else NULL. */
SP_NODISCARD sp_wait_entry *sp__run_slots_release(sp_run_slots *slots);

/* Around the life of a submitted run. SP_BUSY if there are as many as may be. */
sp_status sp__run_slots_admit(sp_run_slots *slots);
void sp__run_slots_retire(sp_run_slots *slots);

/* Of a submitted run, without waiting: takes a slot, or false and the entry is queued. Its resume
 * means that it has the slot. */
bool sp__run_slots_acquire_or_queue(sp_run_slots *slots, sp_wait_entry *entry);
/* The slot of a submitted run, by any thread. Returns as sp__run_slots_release. */
SP_NODISCARD sp_wait_entry *sp__run_slots_release_submitted(sp_run_slots *slots);
/* Removes an entry that the caller has claimed. */
void sp__run_slots_dequeue(sp_run_slots *slots, sp_wait_entry *entry);

/* ---- for tests ---- */

uint32_t sp__run_slots_waiting(const sp_run_slots *slots);

#endif
