/* SPDX-License-Identifier: Apache-2.0 */
/* Wait queue: the FIFO of entries, claims, and the list of entries to resume. */
#include "exec/wait_queue.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/delay.h"
#include "base/lock_check.h"
#include "base/tsan.h"
#include "device/thread_record.h"

/* ---- the queue ---- */

void sp__wait_queue_init(sp_wait_queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static void entry_link(sp_wait_queue *queue, sp_wait_entry *entry, sp_wait_entry **link)
{
    entry->link = link;
    entry->next = *entry->link;
    *entry->link = entry;
    *(entry->next != NULL ? &entry->next->link : &queue->end) = &entry->next;
}

static void entry_unlink(sp_wait_queue *queue, sp_wait_entry *entry)
{
    *entry->link = entry->next;
    *(entry->next != NULL ? &entry->next->link : &queue->end) = entry->link;
    entry->next = NULL;
}

static void entry_push(sp_wait_queue *queue, sp_wait_entry *entry, sp_wait_entry **link)
{
    entry_link(queue, entry, link);
    if (SP_PLANTED(relaxed_line)) {
        sp_store_relaxed(&entry->is_queued, 1);
    } else {
        sp_store_release(&entry->is_queued, 1);
    }
}

void sp__wait_queue_push(sp_wait_queue *queue, sp_wait_entry *entry)
{
    entry_push(queue, entry, SP_PLANTED(newest_first) ? &queue->first : queue->end);
}

void sp__wait_queue_return(sp_wait_queue *queue, sp_wait_entry *entry, sp_wait_order *precedes)
{
    sp_wait_entry **link = &queue->first;
    while (*link != NULL && !precedes(entry, *link)) link = &(*link)->next;
    entry_push(queue, entry, link);
}

sp_wait_entry *sp__wait_queue_pop(sp_wait_queue *queue)
{
    for (sp_wait_entry *entry = queue->first; entry != NULL; entry = entry->next) {
        if (sp__wait_queue_take(queue, entry)) return entry;
    }
    return NULL;
}

bool sp__wait_queue_take(sp_wait_queue *queue, sp_wait_entry *entry)
{
    uint32_t is_queued = 1;
    if (!sp_cas_relaxed(&entry->is_queued, &is_queued, 0)) return false; /* cancelled */
    entry_unlink(queue, entry);
    return true;
}

void sp__wait_queue_remove(sp_wait_queue *queue, sp_wait_entry *entry)
{
    entry_unlink(queue, entry);
}

bool sp__wait_entry_claim(sp_wait_entry *entry)
{
    uint32_t is_queued = 1;
    if (SP_PLANTED(leave_promised)) {
        is_queued = sp_load_acquire(&entry->is_queued);
        sp_store_relaxed(&entry->is_queued, 0);
        return is_queued != 0;
    }
    return sp_cas_acquire(&entry->is_queued, &is_queued, 0);
}

/* ---- threads ---- */

static void wake_thread(sp_wait_entry *entry, sp_resume_list *ready)
{
    sp_thread_waiter *waiter = SP_CONTAINER_OF(entry, sp_thread_waiter, entry);
    (void)ready;
    sp_parker *parker = waiter->parker; /* type-stable: outlives the waiter */
    sp_tsan_release(&waiter->is_resumed);
    if (SP_PLANTED(relaxed_resume)) {
        sp_store_relaxed(&waiter->is_resumed, 1);
    } else {
        sp_store_release(&waiter->is_resumed, 1);
    }
    sp_parker_unpark(SP_PLANTED(touch_resumed) ? waiter->parker : parker);
}

sp_status sp__thread_waiter_init(sp_thread_waiter *waiter)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    *waiter = (sp_thread_waiter){.entry = {.resume = wake_thread}, .parker = &record->parker};
    return SP_OK;
}

void sp__thread_waiter_wait(sp_thread_waiter *waiter)
{
    sp_delay_point();
    while (sp_load_acquire(&waiter->is_resumed) == 0) {
        sp_parker_park(waiter->parker, SP_NO_DEADLINE);
    }
    sp_tsan_acquire(&waiter->is_resumed);
}

/* ---- resuming ---- */

void sp__resume_list_add(sp_resume_list *ready, sp_wait_entry *entry)
{
    while (SP_UNLIKELY(entry != NULL)) {
        sp_wait_entry *next = entry->next;
        entry->next = NULL;
        if (entry->resume == wake_thread || SP_PLANTED(nested_resume)) {
            entry->resume(entry, ready);
        } else {
            *(ready->first == NULL ? &ready->first : &ready->last->next) = entry;
            ready->last = entry;
        }
        entry = next;
    }
}

void sp__resume_list_run(sp_resume_list *ready)
{
    sp_lock_check_none("resuming a waiter");
    while (ready->first != NULL) {
        sp_wait_entry *entry = ready->first;
        ready->first = entry->next;
        entry->next = NULL;
        entry->resume(entry, ready);
    }
}

void sp__wait_entry_resume(sp_wait_entry *entry)
{
    if (SP_LIKELY(entry == NULL)) return;
    sp_resume_list ready = {0};
    sp__resume_list_add(&ready, entry);
    sp__resume_list_run(&ready);
}
