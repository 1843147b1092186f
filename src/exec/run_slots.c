/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: one word with the counts, and a wait queue in FIFO order. */
#include "exec/run_slots.h"

#include "base/assert.h"
#include "base/error.h"

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
    sp__wait_queue_init(&slots->queue);
    sp_mutex_unlock(&slots->lock);
}

void sp__run_slots_deinit(sp_run_slots *slots)
{
    sp_mutex_deinit(&slots->lock);
}

static bool slot_acquire_free(sp_run_slots *slots)
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

/* True with a slot that has become free since; false: the entry is queued. */
static bool slot_acquire_or_queue(sp_run_slots *slots, sp_wait_entry *entry)
{
    sp_mutex_lock(&slots->lock);
    uint32_t word = sp_load_relaxed(&slots->word);
    bool is_free = false;
    for (;;) {
        is_free = !SP_PLANTED(line_up_blindly) && (word & FREE_MASK) != 0;
        const uint32_t next = is_free ? word - ONE_FREE : word + ONE_WAITING;
        if (sp_cas_acquire(&slots->word, &word, next)) break;
    }
    if (!is_free) sp__wait_queue_push(&slots->queue, entry);
    sp_mutex_unlock(&slots->lock);
    return is_free;
}

static SP_NOINLINE sp_status slot_wait(sp_run_slots *slots)
{
    sp_thread_waiter waiter;
    SP_TRY(sp__thread_waiter_init(&waiter));
    if (!slot_acquire_or_queue(slots, &waiter.entry)) sp__thread_waiter_wait(&waiter);
    return SP_OK;
}

sp_status sp__run_slots_acquire(sp_run_slots *slots)
{
    return SP_LIKELY(slot_acquire_free(slots)) ? SP_OK : slot_wait(slots);
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

bool sp__run_slots_acquire_or_queue(sp_run_slots *slots, sp_wait_entry *entry)
{
    return SP_LIKELY(slot_acquire_free(slots)) || slot_acquire_or_queue(slots, entry);
}

void sp__run_slots_dequeue(sp_run_slots *slots, sp_wait_entry *entry)
{
    sp_mutex_lock(&slots->lock);
    sp__wait_queue_remove(&slots->queue, entry);
    sp_fetch_sub_relaxed(&slots->word, ONE_WAITING);
    sp_mutex_unlock(&slots->lock);
}

static SP_NOINLINE sp_wait_entry *slot_pass_on(sp_run_slots *slots)
{
    sp_mutex_lock(&slots->lock);
    sp_wait_entry *entry = sp__wait_queue_pop(&slots->queue);
    if (entry != NULL) {
        sp_fetch_sub_relaxed(&slots->word, ONE_WAITING);
    } else { /* all entries are cancelled or removed */
        sp_fetch_add_release(&slots->word, ONE_FREE);
    }
    sp_mutex_unlock(&slots->lock);
    return entry;
}

sp_wait_entry *sp__run_slots_release(sp_run_slots *slots)
{
    uint32_t word = sp_load_relaxed(&slots->word);
    while (word < ONE_WAITING) {
        /* Release: the next taker finds the context that the run has released. */
        if (sp_cas_release(&slots->word, &word, word + ONE_FREE)) return NULL;
    }
    return slot_pass_on(slots);
}
