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
 *
 * Timelines are never destroyed, since points may be read at any later time. */
#ifndef SP_EXEC_FUTURE_H
#define SP_EXEC_FUTURE_H

#include <streampool/future.h>

#include "base/handle.h"
#include "device/fault.h"
#include "device/host_executor.h"
#include "device/timeline.h"
#include "exec/run_slots.h"
#include "exec/context.h"

#define SP_FUTURE_PORTS 8 /* up to which a run needs no block */

typedef struct sp_rt_model sp_rt_model;
typedef struct sp_plan_entry sp_plan_entry;

typedef struct sp_rt_future sp_rt_future;

struct sp_rt_future {
    SP_CACHE_ALIGNED sp_object object;
    sp_timeline timeline; /* for all lives of the handle's slot */
    uint64_t value;       /* of this life: done when the timeline has it. Constant */
    sp_fault fault;       /* written before the timeline advances */
    /* 1 once the run is on a queue and `point` is set. The release of sp__future_start pairs with
     * the acquire of the waits, which help the run. */
    sp_atomic_u32 is_started;
    sp_point point;      /* the run's last */
    sp_run_slots *slots; /* the device's; constant in a life */
    /* The run. */
    sp_rt_model *model;        /* held */
    sp_plan_entry *plan_entry; /* in use */
    sp_exec_context *context;
    bool has_slot, has_queue, is_counted;
    uint32_t queue;    /* index of the submit queue */
    const void **data; /* addresses in the plan's order: inline_ports, or a block of the heap */
    void **outputs;    /* behind them */
    void *inline_ports[SP_FUTURE_PORTS];
    sp_run_request request; /* for a slot; its entry then for a context */
    /* For a wait inside a host function or callback, which the runs in front of this one may depend
     * on: ends the run if it is queued. */
    void (*end_queued)(sp_rt_future *future);
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
/* The future is done, with its `fault`: wakes waiters and calls callbacks. */
void sp__future_complete(sp_rt_future *future);
void sp__future_drop(sp_rt_future *future);

/* The future of a handle, with a hold. After a shutdown too: the caller has to know when the run's
 * buffers are free again. */
sp_status sp__future_hold(sp_future handle, sp_rt_future **out);
/* One reference of the handle more, or less. */
sp_status sp__future_retain(sp_future handle);
sp_status sp__future_release(sp_future handle);

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
/* Calls `fn` when the run has ended. On success takes over the caller's hold. */
sp_status sp__future_call_later(sp_rt_future *future, sp_future_function fn, void *ctx);

/* Frees the table: for tests, while no handle is in use. */
void sp__futures_deinit(void);

#endif
