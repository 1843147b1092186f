/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: one word decides, a list keeps the order of those who wait. */
#include "exec/run_slots.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "device/thread_record.h"

#define ONE_FREE 1u
#define ONE_WAITING 0x10000u
#define FREE_MASK 0xffffu

void sp__run_slots_init(sp_run_slots *slots, uint32_t count)
{
    SP_ASSERT(count > 0 && count <= FREE_MASK);
    sp_store_relaxed(&slots->word, count);
    sp_store_relaxed(&slots->submitted, 0);
    sp_mutex_init(&slots->lock, SP_LOCK_RUN_SLOTS);
    sp_mutex_lock(&slots->lock);
    slots->first = NULL;
    slots->end = &slots->first;
    sp_mutex_unlock(&slots->lock);
}

void sp__run_slots_deinit(sp_run_slots *slots)
{
    sp_mutex_deinit(&slots->lock);
}

static bool take_free(sp_run_slots *slots)
{
    uint32_t word = sp_load_relaxed(&slots->word);
    while ((word & FREE_MASK) != 0) {
        if (SP_PLANTED(take_taken)) sp_store_relaxed(&slots->word, word - ONE_FREE);
        if (SP_PLANTED(take_taken) || sp_cas_acquire(&slots->word, &word, word - ONE_FREE)) {
            return true;
        }
    }
    return false;
}

/* Stands in line, unless a slot has become free meanwhile: then takes that. */
static bool stand_in_line(sp_run_slots *slots, sp_slot_waiter *waiter)
{
    sp_mutex_lock(&slots->lock);
    uint32_t word = sp_load_relaxed(&slots->word);
    bool is_waiting = false;
    for (;;) {
        is_waiting = SP_PLANTED(line_up_blindly) || (word & FREE_MASK) == 0;
        const uint32_t next = is_waiting ? word + ONE_WAITING : word - ONE_FREE;
        if (sp_cas_acquire(&slots->word, &word, next)) break;
    }
    if (is_waiting) {
        waiter->next = SP_PLANTED(newest_first) ? slots->first : NULL;
        *(SP_PLANTED(newest_first) ? &slots->first : slots->end) = waiter;
        if (waiter->next == NULL) slots->end = &waiter->next;
    }
    sp_mutex_unlock(&slots->lock);
    return is_waiting;
}

static SP_NOINLINE sp_status wait_for_slot(sp_run_slots *slots)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    sp_slot_waiter waiter = {.parker = &record->parker};
    if (!stand_in_line(slots, &waiter)) return SP_OK;
    sp_delay_point();
    while (sp_load_acquire(&waiter.has_slot) == 0) {
        sp_parker_park(&record->parker, SP_NO_DEADLINE);
    }
    return SP_OK;
}

sp_status sp__run_slots_take(sp_run_slots *slots)
{
    return SP_LIKELY(take_free(slots)) ? SP_OK : wait_for_slot(slots);
}

sp_status sp__run_slots_admit(sp_run_slots *slots)
{
    if (sp_fetch_add_relaxed(&slots->submitted, 1) < SP_RUN_SLOTS_SUBMITTED) return SP_OK;
    sp__run_slots_retire(slots);
    return sp__fail(SP_BUSY, "%d submitted runs of the device are not done; wait for some first",
                    SP_RUN_SLOTS_SUBMITTED);
}

void sp__run_slots_retire(sp_run_slots *slots)
{
    sp_fetch_sub_relaxed(&slots->submitted, 1);
}

bool sp__run_slots_take_or_line_up(sp_run_slots *slots, sp_slot_waiter *waiter)
{
    if (SP_LIKELY(take_free(slots))) return true;
    waiter->parker = NULL;
    return !stand_in_line(slots, waiter);
}

static void unlink_locked(sp_run_slots *slots, sp_slot_waiter **place) SP_REQUIRES(&slots->lock)
{
    *place = (*place)->next;
    if (*place == NULL) slots->end = place;
}

/* Leavers lower the word first and take the first of the line afterwards: as many as the word still
 * counts are promised to nobody. */
bool sp__run_slots_leave_line(sp_run_slots *slots, sp_slot_waiter *waiter)
{
    sp_mutex_lock(&slots->lock);
    sp_slot_waiter **place = &slots->first;
    while (*place != NULL && *place != waiter) place = &(*place)->next;
    uint32_t word = sp_load_relaxed(&slots->word);
    bool is_out = *place != NULL;
    while (is_out) {
        is_out = SP_PLANTED(leave_promised) || word >= ONE_WAITING;
        if (!is_out || sp_cas_relaxed(&slots->word, &word, word - ONE_WAITING)) break;
    }
    if (is_out) unlink_locked(slots, place);
    sp_mutex_unlock(&slots->lock);
    return is_out;
}

static SP_NOINLINE sp_slot_waiter *hand_over(sp_run_slots *slots)
{
    sp_mutex_lock(&slots->lock);
    sp_slot_waiter *waiter = slots->first;
    unlink_locked(slots, &slots->first);
    sp_mutex_unlock(&slots->lock);
    if (waiter->parker == NULL) return waiter;
    sp_parker *parker = waiter->parker; /* type-stable: outlives the node */
    sp_store_release(&waiter->has_slot, 1);
    sp_parker_unpark(parker);
    return NULL;
}

sp_slot_waiter *sp__run_slots_give(sp_run_slots *slots)
{
    uint32_t word = sp_load_relaxed(&slots->word);
    for (;;) {
        const bool is_waited_for = word >= ONE_WAITING;
        const uint32_t next = is_waited_for ? word - ONE_WAITING : word + ONE_FREE;
        /* Release: the session that the leaver put back is there for the next. Whoever counted
         * himself as waiting did so under the lock and is in the list before the lock is free. */
        if (!sp_cas_release(&slots->word, &word, next)) continue;
        return is_waited_for ? hand_over(slots) : NULL;
    }
}
