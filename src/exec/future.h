/* SPDX-License-Identifier: Apache-2.0 */
/* A future and its run. The future is a timeline that the host advances, one value for each life of
 * the handle's slot: so waits, time-outs and callbacks are those of points.
 *
 * The run belongs to one party at a time: the submitter, the wait queue that has its entry, the
 * thread that pops or claims the entry, its last point, and the thread that fires the point's
 * waiter. That party alone accesses the fields of the run; it has one hold on the future, and drops
 * it when the run has ended:
 *
 *     queued for a slot -> [queued for a context] -> on a submit queue -> ended
 *                       -> in a batch -> ended, or queued for a slot again
 *
 * Timelines are never destroyed, since points may be read at any later time. */
#ifndef SP_EXEC_FUTURE_H
#define SP_EXEC_FUTURE_H

#include <streampool/future.h>
#include <streampool/model.h>

#include "base/handle.h"
#include "device/fault.h"
#include "device/host_executor.h"
#include "device/timeline.h"
#include "exec/cancel_token.h"
#include "exec/context.h"
#include "exec/run_slots.h"

#define SP_FUTURE_PORTS 8   /* up to which a run needs no block */
#define SP_FUTURE_OUTPUTS 2 /* the same for the outputs that the caller may take */

typedef struct sp_rt_model sp_rt_model;
typedef struct sp_plan_entry sp_plan_entry;

typedef struct sp_rt_batch_queue sp_rt_batch_queue;
typedef struct sp_batch_group sp_batch_group;

typedef struct sp_rt_future sp_rt_future;

/* Where a run is in a batch queue (batch/batch_queue.h). Guarded by the lock of the queue, but for
 * what is constant. Zeroed: the run is in none. */
typedef struct sp_queue_place {
    sp_rt_batch_queue *queue; /* held; constant */
    sp_batch_group *group;    /* of the requests that it is queued with or leads */
    uint64_t number;          /* in order of arrival; constant */
    uint64_t arrived_ns;      /* constant */
    bool is_waiting;          /* it has not started */
    bool is_due;              /* it waits for no others */
    bool is_lead, is_pending; /* it counts among `leads` of the queue, `pending` of the group */
    /* The run's entry is in the group. Of the party that has the run; written before the push. */
    bool is_in_group;
} sp_queue_place;
/* The outputs of the call, in its order: what sp_model_run writes to the caller's array. Written
 * by the call and by the run, constant once the future is done. */
typedef struct sp_future_outputs {
    sp_host_tensor *tensors; /* the room below, or `block` */
    /* Of each output, see future_outputs.c. Relaxed: the end of the future publishes the tensor,
     * and one taker gets it. */
    sp_atomic_u32 *states;
    uint32_t count;
    void *block; /* of the heap; NULL: none */
    sp_host_tensor tensor_room[SP_FUTURE_OUTPUTS];
    sp_atomic_u32 state_room[SP_FUTURE_OUTPUTS];
} sp_future_outputs;

/* What computes a run of partial plans (batch/partial_threads.h). */
typedef struct sp_partial_work {
    /* Sets the fault and the outputs. `is_inline`: on the thread of a host function or callback. */
    void (*execute)(sp_rt_future *run, bool is_inline);
    void (*end)(sp_rt_future *run); /* makes the future done; drops the run's holds */
} sp_partial_work;

/* A run of partial plans. */
typedef struct sp_partial_job {
    const sp_partial_work *work;
    const sp_host_tensor *inputs; /* names are the graph's */
    uint32_t input_count;
    /* Guarded by the lock of the threads that compute such runs. */
    uint32_t state;
    bool has_ended_waits;
    sp_rt_future *next, **link; /* in the queue, or among those that are computed */
    /* 1 in a shutdown and at the end of the process: the run is to end. Relaxed: only polled. */
    const sp_atomic_u32 *is_stopping;
    /* The wait for a slot or context, see partial_waits.h. */
    sp_parker *parker;         /* of the thread that computes; type-stable */
    sp_executable *executable; /* whose context is waited for; NULL: a slot is */
    /* Release by the party that ends the wait, as its last access; acquire by the thread. */
    sp_atomic_u32 answer;
    /* The thread that computes, as the holder of host accesses, or 0: for the search for wait
     * cycles. Relaxed: the lock of the graph orders it before the thread's waits. */
    sp_atomic_u64 holder;
} sp_partial_job;

struct sp_rt_future {
    SP_CACHE_ALIGNED sp_object object;
    sp_timeline timeline; /* for all lives of the handle's slot */
    uint64_t value;       /* of this life: done when the timeline has it. Constant */
    sp_fault fault;       /* written before the timeline advances */
    /* 1 once the run is on a queue and `point` is set. The release of sp__future_start pairs with
     * the acquire of the waits, which help the run. */
    sp_atomic_u32 is_started;
    sp_point point; /* the run's last */
    /* The same of the batch that the run is a row of. Stays set if the batch fails, whose point has
     * passed then: the run is not started until it starts alone. */
    sp_atomic_u32 is_in_batch;
    sp_point batch_point;
    sp_run_slots *slots; /* the device's; constant in a life */
    /* The run. */
    sp_rt_model *model;        /* held, by the batch queue if it is in one */
    sp_plan_entry *plan_entry; /* in use */
    sp_exec_context *context;
    bool has_slot, has_queue, is_counted;
    uint32_t queue;    /* index of the submit queue */
    uint64_t begin_ns; /* of its computation, if it is timed; else 0 */
    const void **data; /* addresses in the plan's order: inline_ports, or a block of the heap */
    void **outputs;    /* behind them */
    void *inline_ports[SP_FUTURE_PORTS];
    sp_queue_place place;
    sp_run_request request; /* for a slot; its entry then for a context */
    /* Ends the run if it is queued: with SP_CANCELLED if it is cancelled, else for a wait inside a
     * host function or callback, which the runs in front of this one may depend on. If a thread
     * computes it, its waits for other runs end. Constant in a life; NULL: the run is never queued.
     */
    void (*end_queued)(sp_rt_future *future);
    /* 1 once cancelled (release); it publishes nothing, and end_queued orders it before its search.
     */
    sp_atomic_u32 is_cancelled;
    sp_rt_cancel_token *token;   /* held by the run; NULL: none */
    sp_cancel_listener listener; /* in the token's list it has a hold on the future */
    sp_future_outputs results;
    sp_partial_job partial;
    sp_waiter waiter; /* for the last point */
    sp_host_job job;  /* destroys the model, if the run had the last hold */
};

/* A future that is not published and not done; the caller fills in its run. */
sp_status sp__future_create(sp_rt_future **out);
/* Instead of publishing it. */
void sp__future_discard(sp_rt_future *future);
/* Makes the handle valid; the run has one hold. */
sp_future sp__future_publish(sp_rt_future *future);
/* The run is on a queue, and `point` is its last: waits help it. */
void sp__future_start(sp_rt_future *future, sp_point point);
/* A batch that computes the run is on a queue, and `point` is its last: waits help it. At most once
 * in a life, before sp__future_start. */
void sp__future_start_in_batch(sp_rt_future *future, sp_point point);
/* Of a published run with a token, before anything else can end it: the token's cancel cancels the
 * run, until the future is complete. False: the token is cancelled already. */
SP_NODISCARD bool sp__future_follow_token(sp_rt_future *future);
/* The future is done, with its `fault`: wakes waiters and calls callbacks. */
void sp__future_complete(sp_rt_future *future);
void sp__future_drop(sp_rt_future *future);

/* The future of a handle, with a hold. After a shutdown too: the caller has to know when the run's
 * buffers are free again. */
sp_status sp__future_hold(sp_future handle, sp_rt_future **out);
/* One reference of the handle more, or less. */
sp_status sp__future_retain(sp_future handle);
sp_status sp__future_release(sp_future handle);

/* Sets the flag of the run, and ends it if it is queued. Nothing happens to a run that has ended.
 */
void sp__future_cancel(sp_rt_future *future);
static inline bool sp__future_is_cancelled(const sp_rt_future *future)
{
    return sp_load_relaxed(&future->is_cancelled) != 0;
}

/* Waits for the end of the run. The status is the run's; SP_TIMEOUT at the deadline. */
sp_status sp__future_wait(sp_rt_future *future, uint64_t deadline_ns);
/* Waits for the end of all runs. The status is that of the first one that failed. */
sp_status sp__futures_wait_all(sp_rt_future *const *list, uint32_t count, uint64_t deadline_ns);
/* Waits for the end of one run of `count` > 0. *which is its index, and the status is the run's; at
 * the deadline, and on an error of the wait itself, *which is `count`. */
sp_status sp__futures_wait_any(sp_rt_future *const *list, uint32_t count, uint64_t deadline_ns,
                               uint32_t *which);
/* The run's status, or SP_NOT_READY. */
sp_status sp__future_query(sp_rt_future *future);
/* See sp_future_take_output. */
sp_status sp__future_take_output(sp_rt_future *future, uint32_t index, sp_host_tensor *out);
/* Calls `fn` when the run has ended. On success takes over the caller's hold. */
sp_status sp__future_call_later(sp_rt_future *future, sp_future_function fn, void *ctx);

/* Frees the table: for tests, while no handle is in use. */
void sp__futures_deinit(void);

#endif
