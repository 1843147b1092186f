/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: how many runs compute on a device at the same time. Who finds no slot waits; who
 * leaves hands his slot to the oldest waiter, so nobody is overtaken while waiting and a slot is
 * never idle while somebody waits. A waiter is a thread that sleeps, or a run that was submitted:
 * nobody waits there, and whoever hands it the slot starts it.
 *
 *     word = waiting:16 | free:16        waiting > 0  =>  free == 0 */
#ifndef SP_EXEC_RUN_SLOTS_H
#define SP_EXEC_RUN_SLOTS_H

#include <stdbool.h>

#include <streampool/status.h>

#include "base/macros.h"
#include "base/mutex.h"
#include "base/wait.h"

typedef struct sp_slot_waiter {
    struct sp_slot_waiter *next; /* guarded by the lock while it stands in line */
    sp_parker *parker;           /* NULL: a submitted run */
    /* Of a thread: 1 once the slot is its own, the last access to the node. Release pairs with the
     * acquire in wait_for_slot. */
    sp_atomic_u32 has_slot;
} sp_slot_waiter;

/* Submitted runs of a device that have not ended; the rest of a line's room is for threads. */
#define SP_RUN_SLOTS_SUBMITTED 32768

typedef struct sp_run_slots {
    /* Takers and leavers; the acquire of a taker follows the release of the leaver before it. */
    SP_CACHE_ALIGNED sp_atomic_u32 word;
    /* Submitted runs from admit to retire; orders nothing. */
    sp_atomic_u32 submitted;
    sp_mutex lock;
    sp_slot_waiter *first SP_GUARDED_BY(lock); /* oldest first */
    sp_slot_waiter **end SP_GUARDED_BY(lock);
} sp_run_slots;

void sp__run_slots_init(sp_run_slots *slots, uint32_t count);
void sp__run_slots_deinit(sp_run_slots *slots);

/* Takes a slot, waiting for as long as it takes. */
sp_status sp__run_slots_take(sp_run_slots *slots);
/* Hands the slot to the next in line. That may be a submitted run: then it is returned, with the
 * slot, and the caller starts it; else NULL. */
sp_slot_waiter *sp__run_slots_give(sp_run_slots *slots);

/* Around the life of a submitted run. SP_BUSY if there are as many as may be. */
sp_status sp__run_slots_admit(sp_run_slots *slots);
void sp__run_slots_retire(sp_run_slots *slots);

/* For a submitted run, without waiting: takes a slot, or false and the waiter is in line. From then
 * on it belongs to whoever hands it a slot, unless somebody takes it out. */
bool sp__run_slots_take_or_line_up(sp_run_slots *slots, sp_slot_waiter *waiter);
/* Takes it out of the line; false if it is not there, or a slot is on its way to it. */
bool sp__run_slots_leave_line(sp_run_slots *slots, sp_slot_waiter *waiter);

#endif
