/* SPDX-License-Identifier: Apache-2.0 */
/* Wait queue: the waiters for a shared resource (run slots, contexts) in order of arrival. A waiter
 * is an entry with a function that resumes it: it wakes a thread, or continues a run that has no
 * thread.
 *
 * The queue is guarded by its owner's lock. Under that lock the owner decides whether a resource is
 * free and pushes or pops, so no waiter is missed.
 *
 *     is_queued == 1  =>  the entry is linked; at most one party changes it to 0
 *
 * That party owns the waiter: the thread that pops the entry to pass the resource on, or the one
 * that cancels it (sp__wait_entry_claim) and removes it afterwards. A pop skips cancelled entries.
 *
 * Entries are resumed without a lock. A resumed run may end at once and release what it was given
 * to the next: it adds that entry to the list passed to it, instead of making a nested call, so a
 * chain of resumed runs uses a constant amount of stack. */
#ifndef SP_EXEC_WAIT_QUEUE_H
#define SP_EXEC_WAIT_QUEUE_H

#include <stdbool.h>

#include <streampool/status.h>

#include "base/macros.h"
#include "base/wait.h"

typedef struct sp_wait_entry sp_wait_entry;

/* Entries that were popped and are to be resumed, in order. Of one thread; zeroed: empty. */
typedef struct sp_resume_list {
    sp_wait_entry *first;
    sp_wait_entry *last; /* undefined if the list is empty */
} sp_resume_list;

struct sp_wait_entry {
    /* In a queue, guarded by the lock of its owner: the next entry, and the pointer to this one. In
     * none, of the party that resumes the entry: the next one that it is to resume, or NULL. */
    sp_wait_entry *next, **link;
    /* Continues the waiter; the entry may be freed on return. Constant while queued. */
    void (*resume)(sp_wait_entry *entry, sp_resume_list *ready);
    void *granted; /* the resource, set by its owner before the resume; run slots: unused */
    /* Push: release, pairs with the acquire of sp__wait_entry_claim, which gets the waiter's
     * fields. Pop: relaxed, under the lock. */
    sp_atomic_u32 is_queued;
};

/* Guarded by the lock of the owner, like all functions on it. */
typedef struct sp_wait_queue {
    sp_wait_entry *first; /* oldest first */
    sp_wait_entry **end;
} sp_wait_queue;

void sp__wait_queue_init(sp_wait_queue *queue);
void sp__wait_queue_push(sp_wait_queue *queue, sp_wait_entry *entry);
/* Whether the first one has arrived before the second one. */
typedef bool sp_wait_order(const sp_wait_entry *entry, const sp_wait_entry *other);
/* To its old place, of one that has left the queue: before the first one that it precedes. */
void sp__wait_queue_return(sp_wait_queue *queue, sp_wait_entry *entry, sp_wait_order *precedes);
/* The oldest entry that is not cancelled; the caller resumes it. NULL: none. */
SP_NODISCARD sp_wait_entry *sp__wait_queue_pop(sp_wait_queue *queue);
/* As a pop, of an entry anywhere in the queue: false if it is cancelled. */
SP_NODISCARD bool sp__wait_queue_take(sp_wait_queue *queue, sp_wait_entry *entry);
/* Unlinks an entry that the caller has claimed. */
void sp__wait_queue_remove(sp_wait_queue *queue, sp_wait_entry *entry);

/* Cancels the wait, without the lock: true if the caller owns the waiter now; false if it is not
 * queued or was popped. The caller must keep the entry alive. */
SP_NODISCARD bool sp__wait_entry_claim(sp_wait_entry *entry);

/* Resumes a popped entry, those that follow it, and everything that becomes ready through them, one
 * after the other. NULL: nothing. No lock may be held. */
void sp__wait_entry_resume(sp_wait_entry *entry);
/* The same in two steps, for resume functions and others that release several resources. Waking a
 * thread runs nothing else, so add does that at once. NULL: nothing. */
void sp__resume_list_add(sp_resume_list *ready, sp_wait_entry *entry);
void sp__resume_list_run(sp_resume_list *ready);

/* A waiting thread; lives on that thread's stack. */
typedef struct sp_thread_waiter {
    sp_wait_entry entry;
    sp_parker *parker;
    /* 1: resumed, and the last access to the waiter by another thread. Release pairs with the
     * acquire in sp__thread_waiter_wait. */
    sp_atomic_u32 is_resumed;
} sp_thread_waiter;

/* Errors: SP_OUT_OF_MEMORY. */
sp_status sp__thread_waiter_init(sp_thread_waiter *waiter);
/* Sleeps until the entry, which was pushed, is resumed. */
void sp__thread_waiter_wait(sp_thread_waiter *waiter);

#endif
