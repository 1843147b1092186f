/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: the number of runs that compute on a device at the same time, and which run is next.
 *
 *     word = threads:16 | submitted:16 | is_urgent:1 | is_watched:1 | claimed:14 | free:16
 *
 *     threads     threads that sleep in a queue
 *     submitted   submitted runs in a queue
 *     is_urgent   one of the threads has high priority; a hint
 *     is_watched  one of the threads is the watcher
 *     claimed     threads that are awake and get the next slots
 *
 *     claimed > 0                 =>  free == 0: a claim is not overtaken
 *     submitted > 0               =>  free == 0, or the limit of their flows or of submitted runs
 *                                     of their priority is reached
 *     threads > 0, free > called  =>  one of the threads, the watcher, has a time-out
 *
 * A slot that a thread returns while nothing waits is not added to `free`, but kept for its lane
 * (device/free_slots.h); and so is one that is left to its owner, though threads wait, which counts
 * as free above. Who is to wait for a slot is in the word first, and then takes kept slots and
 * releases them; who keeps one looks at the word then, and takes it back if another waits. All four
 * are sequentially consistent: one of the two sees the other. See docs/decisions/0058.
 *
 * To wake a thread costs more than a short run computes. So a releasing thread that is expected to
 * return soon leaves its slot free, although threads wait, and takes it again: until its quantum is
 * over. Then it calls the waiter that is next, which leaves the queue, and continues until that one
 * is awake and claims a slot. A thread that did not return soon the last time calls at once. A slot
 * that is left free for good is found by the watcher, which looks every two quanta. That is the
 * first thread that has come since there was none: a time-out costs a third of a sleep. One that
 * sleeps is only woken to watch if a slot is left free before another comes. Where an owner has not
 * come back, others may not either, such as threads that all end now: until one does come back
 * soon, each release calls.
 *
 * Submitted runs need no wake-up: a release passes the slot to the one that is next. So they need
 * no more slots than there are cores, and those of one priority have no more: the others are for
 * threads that wake up, and high priority does not wait for normal runs.
 *
 * Next is the oldest request of high priority, then the oldest one. Requests of several flows
 * (models) take turns: next is the flow that has used its slots for the shortest time, divided by
 * its weight. A thread of high priority that arrives claims the next slot without a call, since it
 * is awake.
 *
 * Requests of one group may run as one batch: the owner of a slot takes them out of the queues, and
 * finishes them when they are done, or gives them back.
 * See docs/decisions/0038 and 0044. */
#ifndef SP_EXEC_RUN_SLOTS_H
#define SP_EXEC_RUN_SLOTS_H

#include <stdbool.h>

#include <streampool/status.h>

#include "base/macros.h"
#include "base/mutex.h"
#include "device/free_slots.h"
#include "device/thread_record.h"
#include "exec/run_yield.h"
#include "exec/wait_queue.h"

/* Submitted runs of a device that have not ended. */
#define SP_RUN_SLOTS_SUBMITTED 32768

/* How long a thread that returns soon keeps others waiting. */
#define SP_RUN_QUANTUM_NS 1000000u

/* Of requests: sp_priority. */
#define SP_RUN_PRIORITIES 2

typedef struct sp_run_request sp_run_request;
typedef struct sp_run_flow sp_run_flow;
typedef struct sp_rt_cancel_token sp_rt_cancel_token;

/* The runs of one model that wait for the slots of its device. Zeroed but for weight and limit at
 * first; guarded by the lock of the slots. */
struct sp_run_flow {
    uint32_t weight;      /* of its slot time against that of other flows; 0 is 1. Constant */
    uint32_t limit;       /* slots that it may have at the same time; 0: all. Constant */
    uint32_t most_queued; /* 0: any number. Constant */
    uint32_t active;      /* with a limit: runs that have a slot or were called for one */
    uint32_t queued;      /* requests in its queues */
    uint32_t reserved;    /* places of threads that prepare to wait */
    uint64_t used;        /* slot time, divided by the weight */
    sp_wait_queue threads[SP_RUN_PRIORITIES];
    sp_wait_queue submitted[SP_RUN_PRIORITIES];
    sp_run_flow *next, **link; /* in the list of the slots, while queued > 0 */
};

/* On which terms a run gets a slot. Zeroed: as any. */
typedef struct sp_run_terms {
    sp_run_flow *flow; /* NULL: of the slots */
    uint32_t priority;
    /* It is counted while it has a slot: it is submitted, its priority is high, or its flow has a
     * limit. */
    bool is_counted;
    bool is_submitted;           /* it has no thread */
    bool is_refused;             /* instead of waiting for a slot */
    bool is_bounded;             /* refused, if as many wait as the flow allows */
    bool is_timed;               /* see run_counters.h */
    uint32_t lane;               /* in which the run is counted */
    uint64_t deadline_ns;        /* to begin; 0 or SP_NO_DEADLINE: none */
    const sp_atomic_u32 *cancel; /* 1: the run is cancelled. NULL: it cannot be */
    /* Whose flag that is, held by the caller; a cancel unparks threads that wait. NULL: none */
    sp_rt_cancel_token *token;
} sp_run_terms;

/* SP_CANCELLED or SP_TIMEOUT, with the message, for a run that is not to begin any more. */
sp_status sp__run_terms_check(const sp_run_terms *terms);
/* The same without message. */
bool sp__run_terms_have_lapsed(const sp_run_terms *terms);
/* SP_BUSY, with the message, for a run that would have to wait, beside `waiting` runs of its model,
 * and is not to. */
sp_status sp__run_terms_refuse(const sp_run_terms *terms, uint32_t waiting);

/* Requests in the queues that may run as one batch, oldest first. Guarded by the lock of the slots,
 * but for the count. Zeroed: empty. */
typedef struct sp_run_group {
    sp_run_request *first;
    sp_run_request **end; /* NULL: the address of `first` */
    sp_atomic_u32 count;  /* relaxed: a hint without the lock */
    /* Requests of callers that the last batch has finished, and how often the owner of a slot may
     * still yield for them; relaxed, hints. */
    sp_atomic_u32 finished;
    sp_atomic_u32 patience;
} sp_run_group;

/* A run that waits for a slot. On the stack of its thread, or part of a submitted run. First are
 * the two cache lines that a thread needs which takes it, with the lock held. */
struct sp_run_request {
    sp_wait_entry entry; /* in one of the queues; a submitted run's is resumed with a slot */
    sp_run_group *group; /* NULL: it runs alone */
    /* Guarded by the lock of the slots. */
    sp_run_request *group_next, **group_link;
    /* Of a submitted run: the run has been taken and is done. Of a thread: NULL. */
    void (*finish)(sp_run_request *request, sp_resume_list *ready);
    sp_run_terms terms;
    /* Of a thread: changed under the lock while the request is in a queue. The last access by
     * another thread is a release; it pairs with the acquire of the waiting thread. */
    sp_atomic_u32 state;
    bool watches;      /* of a thread: it has a time-out, or is awake; guarded by the lock */
    bool has_place;    /* of a thread, which writes it: reserved for it */
    sp_parker *parker; /* of a thread; type-stable: outlives the request */
    /* Other threads that are done, to be woken by this one; written before `state`. */
    sp_run_request *wakes;
    uint32_t wake_count;
    uint64_t queued_ns;  /* when it was queued, or 0 */
    uint64_t granted_ns; /* when one that was queued got its slot, or was taken; else 0 */
    /* Addresses of the run's tensors in the plan's order, for the run that takes the request; an
     * output may be NULL. */
    const void *const *inputs;
    void *const *outputs;
    /* Of a thread: its large tensors in pinned memory of its plan (batch/batch_rows.h), where the
     * run that takes the request reads and writes them; or NULL. Constant while it is queued. */
    void *row;
    /* Of a submitted run: a count of waiting runs that has this one until it is queued for a slot,
     * which the lock of the slots makes one step, or begins. NULL: none. Of the run's thread. */
    sp_atomic_u32 *counted_in;
    /* Of a submitted run: runs it without a slot. */
    void (*run_inline)(sp_run_request *request, sp_resume_list *ready);
    /* Of a submitted run: 1 once it was cancelled, or a host function or callback waits for it,
     * which the runs in front of it may depend on. That thread exchanges it and then claims the
     * entry; a thread that has queued the request then reads this by a read-modify-write. Acquire
     * and release on both sides: one of the two sees the other. */
    sp_atomic_u32 is_awaited;
};

/* Fetches what a thread needs that takes the request soon. */
static inline void sp__run_request_prefetch(const sp_run_request *request)
{
    __builtin_prefetch(request, 1);
    __builtin_prefetch((const char *)request + 64, 1);
}

typedef struct sp_run_slots {
    /* Acquire by a run that takes a slot, release by one that returns it: the context that it has
     * released. Of the word, `free` changes at any time, the other fields under the lock only. */
    sp_free_slots free;
    uint32_t count;
    uint32_t width; /* runs that advance at the same time: a batch leaves work for so many */
    /* Submitted runs from admit to retire; orders nothing. */
    sp_atomic_u32 submitted_count;
    sp_mutex lock;
    sp_run_flow *flows SP_GUARDED_BY(lock); /* with queued requests */
    sp_run_flow own SP_GUARDED_BY(lock);    /* of requests without one */
    sp_wait_queue claims SP_GUARDED_BY(lock);
    sp_run_request *watcher SP_GUARDED_BY(lock); /* a queued thread, or NULL: there is none */
    /* 1: an owner has not come back to the slot that it had left, and none has come back soon
     * since. Relaxed: a hint. */
    sp_atomic_u32 is_deserted;
    sp_run_yields yields;
    uint32_t called SP_GUARDED_BY(lock); /* threads that were called and have not answered yet */
    uint32_t urgent SP_GUARDED_BY(lock); /* queued threads of high priority */
    /* Submitted runs that have a slot, by priority: at most `width` of each. */
    uint32_t active[SP_RUN_PRIORITIES] SP_GUARDED_BY(lock);
    uint32_t high SP_GUARDED_BY(lock); /* runs of high priority that have a slot or were called */
    /* Times that high priority was preferred, in a row: of submitted runs, of threads. */
    uint32_t passed_over[2] SP_GUARDED_BY(lock);
    uint64_t used SP_GUARDED_BY(lock); /* of the flow that was next the last time */
} sp_run_slots;

void sp__run_slots_init(sp_run_slots *slots, uint32_t count, uint32_t width);
void sp__run_slots_deinit(sp_run_slots *slots);

/* Takes a slot for the calling thread, which waits for as long as it takes. `terms` NULL: as any.
 * Errors: SP_OUT_OF_MEMORY; SP_BUSY, SP_TIMEOUT and SP_CANCELLED by the terms. */
sp_status sp__run_slots_acquire(sp_run_slots *slots, const sp_run_terms *terms);
/* The same in two steps: a free slot, without waiting; */
bool sp__run_slots_try_acquire(sp_run_slots *slots, const sp_run_terms *terms);
/* and the wait for one, with a zeroed request but for its terms, group and place. *is_done: there
 * is no slot, but the request was taken and finished. Errors: as sp__run_slots_acquire. */
sp_status sp__run_slots_wait(sp_run_slots *slots, sp_run_request *request, bool *is_done);
/* Reserves a place in the queue for a thread that prepares its run before it waits, so that
 * sp__run_slots_wait, which uses the place, does not refuse it. False: the queue has as many
 * requests as the terms allow. */
bool sp__run_slots_reserve(sp_run_slots *slots, sp_run_request *request);
/* Returns the place, if any, of a thread that has not called sp__run_slots_wait since. */
void sp__run_slots_unreserve(sp_run_slots *slots, sp_run_request *request);
/* By the thread that acquired it on these terms. Submitted runs that have slots now are returned,
 * the first of them: the caller resumes them (sp__wait_entry_resume), with no lock held. Else NULL.
 */
SP_NODISCARD sp_wait_entry *sp__run_slots_release(sp_run_slots *slots, const sp_run_terms *terms);

/* The calling thread, whose tenure it is, asks for a slot while others wait. */
void sp__run_slots_note_return(sp_run_slots *slots, sp_run_tenure *tenure);

/* Around the life of a submitted run. SP_BUSY if there are as many as may be. */
sp_status sp__run_slots_admit(sp_run_slots *slots);
void sp__run_slots_retire(sp_run_slots *slots);

/* The run waits no more in the queue before that for slots. */
static inline void sp__run_request_uncount(sp_run_request *request)
{
    if (request->counted_in != NULL) sp_fetch_sub_relaxed(request->counted_in, 1);
    request->counted_in = NULL;
}

/* Of a submitted run, without waiting: the request is resumed with a slot, before the return if one
 * is free. Errors: SP_BUSY by the terms; then it is not. */
sp_status sp__run_slots_submit(sp_run_slots *slots, sp_run_request *request);
/* The slot of a submitted run, by any thread. Returns as sp__run_slots_release. */
SP_NODISCARD sp_wait_entry *sp__run_slots_release_submitted(sp_run_slots *slots,
                                                            const sp_run_request *request);
/* For a cancel, and for a wait inside a host function or callback: true if the run was queued and
 * is the caller's now, which removes it from the queue that it was in. */
SP_NODISCARD bool sp__run_request_claim(sp_run_request *request);
/* Removes a request whose entry the caller has claimed. */
void sp__run_slots_dequeue(sp_run_slots *slots, sp_run_request *request);

/* Requests in the queues; a hint. */
uint32_t sp__run_slots_waiting(const sp_run_slots *slots);

/* Whether runs have so many slots now; a hint. */
static inline bool sp__run_slots_use(const sp_run_slots *slots, uint32_t least)
{
    const uint32_t free = (uint32_t)(sp_load_relaxed(&slots->free.word) & 0xffff);
    if (slots->count < free + least) return false;
    const uint32_t spare = slots->count - free - least;
    return sp__kept_slots_free(&slots->free, spare + 1) <= spare;
}

/* ---- batches ---- */

/* Whether a request may be in the batch of the caller. Called with the lock held. */
typedef bool (*sp_run_accept_fn)(const sp_run_request *request, void *ctx);

/* Takes at most `most` requests of the group out of the queues, oldest first, for the owner of a
 * slot, and returns how many. They are the caller's until it finishes them or gives them back. */
uint32_t sp__run_slots_take(sp_run_slots *slots, sp_run_group *group, uint32_t most,
                            sp_run_accept_fn accept, void *ctx, sp_run_request **out);
/* A batch has finished so many requests beside its lead's. */
void sp__run_group_finished(sp_run_group *group, uint32_t count);
/* Whether requests wait, or callers of the last batch may be on their way back. A hint. */
static inline bool sp__run_group_has_others(const sp_run_group *group)
{
    return (sp_load_relaxed(&group->count) | sp_load_relaxed(&group->finished)) != 0;
}
/* For the owner of a slot, before it takes requests: callers of the last batch are about to return,
 * if they get a processor, so it yields once. Otherwise whoever returned first would run alone, and
 * so on. True a few times for each batch, since not all callers return. */
bool sp__run_group_expects(sp_run_group *group);
/* Taken requests are done, with the effects of their runs: the last access to them. Threads are
 * woken as a tree: each wakes some of the others. */
void sp__run_requests_finish(sp_run_request *const *requests, uint32_t count,
                             sp_resume_list *ready);
/* A taken request is to run alone after all: it is queued again, a thread's as the oldest one; or
 * it runs before the return if a host function or callback waits for it. For the owner of a slot.
 */
void sp__run_slots_give_back(sp_run_slots *slots, sp_run_request *request, sp_resume_list *ready);

#endif
