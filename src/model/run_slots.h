/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: how many runs compute on a device at the same time. Who finds no slot waits; who
 * leaves hands his slot to the oldest waiter, so nobody is overtaken while waiting and a slot is
 * never idle while somebody waits.
 *
 *     word = waiting:16 | free:16        waiting > 0  =>  free == 0 */
#ifndef SP_MODEL_RUN_SLOTS_H
#define SP_MODEL_RUN_SLOTS_H

#include <streampool/status.h>

#include "base/macros.h"
#include "base/mutex.h"
#include "base/wait.h"

typedef struct sp_slot_waiter sp_slot_waiter;

typedef struct sp_run_slots {
    /* Takers and leavers; the acquire of a taker follows the release of the leaver before it. */
    SP_CACHE_ALIGNED sp_atomic_u32 word;
    sp_mutex lock;
    sp_slot_waiter *first SP_GUARDED_BY(lock); /* oldest first */
    sp_slot_waiter **end SP_GUARDED_BY(lock);
} sp_run_slots;

void sp__run_slots_init(sp_run_slots *slots, uint32_t count);
void sp__run_slots_deinit(sp_run_slots *slots);

/* Takes a slot, waiting for as long as it takes. */
sp_status sp__run_slots_take(sp_run_slots *slots);
void sp__run_slots_give(sp_run_slots *slots);

#endif
