/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of run slots share: run_slots.c takes and releases them, run_line.c has the queues
 * and the rule which request is next, run_wait.c the threads that wait, run_batches.c the requests
 * that run as one batch. All is guarded by the lock of the slots. */
#ifndef SP_EXEC_RUN_SLOTS_BUILD_H
#define SP_EXEC_RUN_SLOTS_BUILD_H

#include "exec/run_slots.h"

/* ---- the word ---- */

#define SP_RUN_FIELD 0xffffu
#define SP_RUN_ONE_FREE ((uint64_t)1)
#define SP_RUN_ONE_CLAIMED ((uint64_t)1 << 16)
#define SP_RUN_WATCHED ((uint64_t)1 << 30)
#define SP_RUN_URGENT ((uint64_t)1 << 31)
#define SP_RUN_ONE_SUBMITTED ((uint64_t)1 << 32)
#define SP_RUN_ONE_THREAD ((uint64_t)1 << 48)

static inline uint32_t sp__run_word_free(uint64_t word)
{
    return (uint32_t)word & SP_RUN_FIELD;
}

static inline uint32_t sp__run_word_submitted(uint64_t word)
{
    return (uint32_t)(word / SP_RUN_ONE_SUBMITTED) & SP_RUN_FIELD;
}

static inline uint32_t sp__run_word_threads(uint64_t word)
{
    return (uint32_t)(word / SP_RUN_ONE_THREAD);
}

/* Takes a slot, if one is free and `may_take`, or else adds `refused`. */
bool sp__run_word_acquire_locked(sp_run_slots *slots, bool may_take, uint64_t refused)
    SP_REQUIRES(&slots->lock);

/* By a thread that has queued a request, without the lock: releases the slots that are kept, so
 * that the requests that are next get them; for a claim and a submitted run those too that are left
 * to their owners. Submitted runs that have slots now are added to the list, or if it is NULL are
 * resumed. */
void sp__run_slots_sweep(sp_run_slots *slots, bool wants_left, sp_resume_list *ready);
/* Slots that are free for any thread, and kept ones. */
uint32_t sp__run_slots_free_locked(const sp_run_slots *slots) SP_REQUIRES(&slots->lock);

/* The watcher looks: if an owner has not come back, others are not expected to. */
void sp__run_slots_note_deserted(sp_run_slots *slots);

/* ---- run_line.c ---- */

/* Adds the request to its queue, as the newest one or, `is_again`, where it was. A new thread
 * becomes the watcher, if there is none. */
void sp__run_line_push_locked(sp_run_slots *slots, sp_run_request *request, bool is_again)
    SP_REQUIRES(&slots->lock);
/* The request that is next and may have a slot, of those with a thread or of the others; NULL:
 * there is none. It is out of its queue and counted. */
sp_run_request *sp__run_line_pop_locked(sp_run_slots *slots, bool has_thread)
    SP_REQUIRES(&slots->lock);
/* Starts the submitted runs for which there are free slots and room, after a limit has become lower
 * than before or a slot free: the first of them, or NULL. The caller resumes them. */
sp_wait_entry *sp__run_line_start_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock);
/* Out of its queue; false: it is not in it any more, or cancelled. */
bool sp__run_line_take_locked(sp_run_slots *slots, sp_run_request *request)
    SP_REQUIRES(&slots->lock);
/* The same of one of several: adds to *counted what the caller subtracts from the word for all of
 * them, under the lock. */
bool sp__run_line_unlist_locked(sp_run_slots *slots, sp_run_request *request, uint64_t *counted)
    SP_REQUIRES(&slots->lock);
/* The same for one whose entry the caller has claimed. */
void sp__run_line_remove_locked(sp_run_slots *slots, sp_run_request *request)
    SP_REQUIRES(&slots->lock);
/* After the watcher may have left the queues, or a slot may have become free: a thread that is to
 * be woken and is the watcher now, if one is needed. Else NULL. */
sp_parker *sp__run_line_find_watcher_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock);
/* A claim gets a slot that a queued thread could have had. True if such a thread is to be called
 * all the same, so that high priority leaves something to the others. */
bool sp__run_line_pass_over_locked(sp_run_slots *slots, const sp_run_request *claim)
    SP_REQUIRES(&slots->lock);

/* False: the request is to be refused if it cannot have a slot now. Its place, if any, is used.
 * *waiting: other requests of its flow. */
bool sp__run_line_may_wait_locked(sp_run_slots *slots, sp_run_request *request, uint32_t *waiting)
    SP_REQUIRES(&slots->lock);
/* Whether the limits of the flow and of submitted runs allow one more run. */
bool sp__run_line_has_room_locked(const sp_run_slots *slots, const sp_run_terms *terms)
    SP_REQUIRES(&slots->lock);
/* A run gets a slot or is called for one; and has none any more. */
void sp__run_line_count_locked(sp_run_slots *slots, const sp_run_terms *terms)
    SP_REQUIRES(&slots->lock);
void sp__run_line_uncount_locked(sp_run_slots *slots, const sp_run_terms *terms)
    SP_REQUIRES(&slots->lock);
/* The flow has used a slot for that long. */
void sp__run_line_charge_locked(sp_run_slots *slots, const sp_run_terms *terms, uint64_t ns)
    SP_REQUIRES(&slots->lock);
/* Whether nothing waits but runs of the flow, by threads of normal priority. */
bool sp__run_line_has_no_other_locked(sp_run_slots *slots, const sp_run_terms *terms)
    SP_REQUIRES(&slots->lock);

/* ---- run_wait.c ---- */

/* States of a thread's request. */
enum {
    SP_RUN_QUEUED,
    SP_RUN_CALLED,  /* left the queue, and is being woken */
    SP_RUN_CLAIMED, /* awake, and gets one of the next slots */
    SP_RUN_GRANTED,
    SP_RUN_TAKEN, /* is in another run's batch */
    SP_RUN_DONE
};

/* The last access to the request by another thread, unless the request is in a queue. */
void sp__run_thread_set(sp_run_request *request, uint32_t state);
/* The thread that is next leaves the queue, and is to be woken by sp__run_thread_set, without the
 * lock. NULL: no thread waits, or enough are called. */
sp_run_request *sp__run_thread_call_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock);
/* Wakes `count` threads whose requests are done, linked by group_next: each gets half of those that
 * are left to wake. */
void sp__run_threads_wake(sp_run_request *first, uint32_t count);

static inline sp_run_request *sp__run_request_of(sp_wait_entry *entry)
{
    return SP_CONTAINER_OF(entry, sp_run_request, entry);
}

static inline bool sp__run_request_has_thread(const sp_run_request *request)
{
    return request->finish == NULL;
}

#endif
