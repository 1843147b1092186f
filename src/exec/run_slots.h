/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: the number of runs that may compute on a device at the same time. FIFO: a finishing
 * run passes its slot to the oldest waiter in the wait queue, so a slot is never idle while a run
 * waits.
 *
 *     word = waiting:16 | free:16        an entry waits that is not cancelled  =>  free == 0
 *
 * `waiting` counts the entries of the queue, and changes under the lock only. */
#ifndef SP_EXEC_RUN_SLOTS_H
#define SP_EXEC_RUN_SLOTS_H

#include <stdbool.h>

#include <streampool/status.h>

#include "base/macros.h"
#include "base/mutex.h"
#include "exec/wait_queue.h"

/* Limit of submitted runs of a device that have not ended; the rest of the 16-bit count of waiters
 * is for threads. */
#define SP_RUN_SLOTS_SUBMITTED 32768

typedef struct sp_run_slots {
    /* Written by each acquire and release of a slot; a taker's acquire pairs with the release of
     * the slot's last user. */
    SP_CACHE_ALIGNED sp_atomic_u32 word;
    /* Submitted runs between admit and retire; relaxed, a limit. */
    sp_atomic_u32 submitted;
    sp_mutex lock;
    sp_wait_queue queue SP_GUARDED_BY(lock);
} sp_run_slots;

void sp__run_slots_init(sp_run_slots *slots, uint32_t count);
void sp__run_slots_deinit(sp_run_slots *slots);

/* Acquires a slot; waits without a time limit. */
sp_status sp__run_slots_acquire(sp_run_slots *slots);
/* Releases the slot. If entries wait, the oldest one gets the slot and is returned: the caller
 * resumes it (sp__wait_entry_resume), with no lock held. Else NULL. */
SP_NODISCARD sp_wait_entry *sp__run_slots_release(sp_run_slots *slots);

/* Count a submitted run in and out. Errors: SP_BUSY at SP_RUN_SLOTS_SUBMITTED. */
sp_status sp__run_slots_admit(sp_run_slots *slots);
void sp__run_slots_retire(sp_run_slots *slots);

/* Does not wait: true with a slot, or false and the entry is queued. Once resumed, the waiter has
 * the slot. */
bool sp__run_slots_acquire_or_queue(sp_run_slots *slots, sp_wait_entry *entry);
/* Removes an entry that the caller has claimed. */
void sp__run_slots_dequeue(sp_run_slots *slots, sp_wait_entry *entry);

#endif
