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
 *     threads > 0, free > 0   =>  the newest thread in the queue has a time-out
 *
 * To wake a thread costs more than a short run computes. So a releasing thread that is expected to
 * return soon leaves its slot free, although threads wait, and takes it again: until its quantum is
 * over. Then it calls the oldest waiter, which leaves the queue, and continues until that one is
 * awake and claims a slot. A thread that did not return soon the last time calls at once. A slot
 * that is left free for good is found by the newest waiter, which looks every two quanta.
 *
 * Submitted runs need no wake-up: a release passes the slot to the oldest one.
 *
 * Requests of one group may run as one batch: the owner of a slot takes them out of the queues, and
 * finishes them when they are done, or gives them back.
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

typedef struct sp_run_request sp_run_request;

/* Requests in the queues that may run as one batch, oldest first. Guarded by the lock of the slots,
 * but for the count. Zeroed: empty. */
typedef struct sp_run_group {
    sp_run_request *first;
    sp_run_request **end; /* NULL: the address of `first` */
    sp_atomic_u32 count;  /* relaxed: a hint without the lock */
    /* Threads that the last batch has woken, which may return soon; relaxed, a hint. */
    sp_atomic_u32 woken;
} sp_run_group;

/* A run that waits for a slot. On the stack of its thread, or part of a submitted run. */
struct sp_run_request {
    sp_wait_entry entry; /* in one of the queues; a submitted run's is resumed with a slot */
    sp_run_group *group; /* NULL: it runs alone */
    /* Addresses of the run's tensors in the plan's order, for the run that takes the request; an
     * output may be NULL. */
    const void *const *inputs;
    void *const *outputs;
    /* Guarded by the lock of the slots. */
    sp_run_request *group_next, **group_link;
    /* Of a submitted run: the run has been taken and is done. Of a thread: NULL. */
    void (*finish)(sp_run_request *request, sp_resume_list *ready);
    /* Of a submitted run: runs it without a slot. */
    void (*run_inline)(sp_run_request *request, sp_resume_list *ready);
    /* Of a submitted run: 1 once a host function or callback waits for it, which the runs in front
     * of it may depend on. The waiting thread exchanges it and then claims the entry; the thread
     * that gives the request back queues it and then reads this by a read-modify-write. Acquire and
     * release on both sides: one of the two sees the other. */
    sp_atomic_u32 is_awaited;
    /* Of a thread. */
    sp_parker *parker; /* type-stable: outlives the request */
    bool watches;      /* it has a time-out, or is awake; guarded by the lock of the slots */
    /* Other threads that are done, to be woken by this one; written before `state`. */
    sp_run_request *wakes;
    uint32_t wake_count;
    /* Changed under the lock while the request is in a queue. The last access by another thread is
     * a release; it pairs with the acquire of the waiting thread. */
    sp_atomic_u32 state;
};

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
    uint32_t called SP_GUARDED_BY(lock); /* threads that were called and have not answered yet */
} sp_run_slots;

void sp__run_slots_init(sp_run_slots *slots, uint32_t count);
void sp__run_slots_deinit(sp_run_slots *slots);

/* Takes a slot for the calling thread, which waits for as long as it takes. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__run_slots_acquire(sp_run_slots *slots);
/* The same in two steps: a free slot, without waiting; */
bool sp__run_slots_try_acquire(sp_run_slots *slots);
/* and the wait for one, with a zeroed request but for its group. *is_done: there is no slot, but
 * the request was taken and finished. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__run_slots_wait(sp_run_slots *slots, sp_run_request *request, bool *is_done);
/* By the thread that acquired it. A submitted run that has the slot now is returned: the caller
 * resumes it (sp__wait_entry_resume), with no lock held. Else NULL. */
SP_NODISCARD sp_wait_entry *sp__run_slots_release(sp_run_slots *slots);

/* Around the life of a submitted run. SP_BUSY if there are as many as may be. */
sp_status sp__run_slots_admit(sp_run_slots *slots);
void sp__run_slots_retire(sp_run_slots *slots);

/* Of a submitted run, without waiting: takes a slot, or false and the request is queued. Its resume
 * means that it has the slot. */
bool sp__run_slots_acquire_or_queue(sp_run_slots *slots, sp_run_request *request);
/* The slot of a submitted run, by any thread. Returns as sp__run_slots_release. */
SP_NODISCARD sp_wait_entry *sp__run_slots_release_submitted(sp_run_slots *slots);
/* For a wait inside a host function or callback: true if the run was queued and is the caller's
 * now. The request is not queued for a slot any more. */
SP_NODISCARD bool sp__run_request_claim(sp_run_request *request);
/* Removes a request whose entry the caller has claimed. */
void sp__run_slots_dequeue(sp_run_slots *slots, sp_run_request *request);

/* Whether a run would have to wait now; a hint. */
static inline bool sp__run_slots_is_full(const sp_run_slots *slots)
{
    return (sp_load_relaxed(&slots->word) & 0xffff) == 0;
}

/* ---- batches ---- */

/* Whether a request may be in the batch of the caller. Called with the lock held. */
typedef bool (*sp_run_accept_fn)(const sp_run_request *request, void *ctx);

/* Takes at most `most` requests of the group out of the queues, oldest first, for the owner of a
 * slot, and returns how many. They are the caller's until it finishes them or gives them back. */
uint32_t sp__run_slots_take(sp_run_slots *slots, sp_run_group *group, uint32_t most,
                            sp_run_accept_fn accept, void *ctx, sp_run_request **out);
/* Taken requests are done, with the effects of their runs: the last access to them. Threads are
 * woken as a tree: each wakes some of the others. */
void sp__run_requests_finish(sp_run_request *const *requests, uint32_t count,
                             sp_resume_list *ready);
/* A taken request is to run alone after all: it gets one of the next slots, or runs before the
 * return if a host function or callback waits for it. */
void sp__run_slots_give_back(sp_run_slots *slots, sp_run_request *request, sp_resume_list *ready);

/* ---- for tests ---- */

uint32_t sp__run_slots_waiting(const sp_run_slots *slots);

#endif
