/* SPDX-License-Identifier: Apache-2.0 */
/* A future with the run behind it. The future is a timeline that the host advances, one value for
 * each life of the slot: so waits, time-outs and callbacks are those of points.
 *
 * The run belongs to one party at a time: the submitter, the wait queue that has its entry, the
 * thread that pops or claims the entry, its last point, and whoever that fires on. That party alone
 * touches the fields of the run; it has one hold on the future, and drops it when the run has
 * ended:
 *
 *     waits for a slot -> [waits for a context] -> on a queue -> ended
 *
 * Timelines are never taken down, since points may be looked at for ever after. */
#ifndef SP_EXEC_FUTURE_H
#define SP_EXEC_FUTURE_H

#include <streampool/future.h>

#include "base/handle.h"
#include "device/fault.h"
#include "device/host_executor.h"
#include "device/timeline.h"
#include "exec/run_slots.h"
#include "exec/context.h"

#define SP_FUTURE_PORTS 8 /* that need no memory of their own */

typedef struct sp_rt_model sp_rt_model;
typedef struct sp_plan_entry sp_plan_entry;

typedef struct sp_rt_future {
    SP_CACHE_ALIGNED sp_object object;
    sp_timeline timeline; /* for all lives of the slot */
    uint64_t value;       /* of this life: done when the timeline has it. Constant */
    sp_fault fault;       /* written before the timeline advances */
    /* 1 once the run is on a queue and `point` stands. The release of sp__future_start pairs with
     * the acquire of those who wait and help it. */
    sp_atomic_u32 is_started;
    sp_point point;      /* the run's last */
    sp_run_slots *slots; /* the device's; constant in a life */
    /* The run. */
    sp_rt_model *model;        /* held */
    sp_plan_entry *plan_entry; /* in use */
    sp_exec_context *context;
    bool has_slot, has_queue, is_counted;
    uint32_t queue;    /* its place */
    const void **data; /* addresses in the plan's order: here, or a block of the heap */
    void **outputs;    /* behind them */
    void *inline_ports[SP_FUTURE_PORTS];
    sp_wait_entry wait_entry; /* for a slot, then for a context */
    sp_waiter waiter;         /* for the last point */
    sp_host_job job;          /* where the model ends with the run */
} sp_rt_future;

/* A future that nobody knows yet, not done; its run is the caller's to fill in. */
sp_status sp__future_create(sp_rt_future **out);
/* Gives it back instead. */
void sp__future_discard(sp_rt_future *future);
/* Makes its handle work, with a hold for the run. */
sp_future sp__future_publish(sp_rt_future *future);
/* The run is on a queue, and `point` is its last: waiters may help it. */
void sp__future_start(sp_rt_future *future, sp_point point);
/* Done, with the fault that stands there: waiters wake and callbacks are called. */
void sp__future_complete(sp_rt_future *future);
void sp__future_drop(sp_rt_future *future);

/* The future of a handle, with a hold. After a shutdown too: the owner of a run's buffers must
 * learn when they are free again. */
sp_status sp__future_hold(sp_future handle, sp_rt_future **out);
/* One use of the handle more, or less. */
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
/* Calls `fn` once the run has ended. Takes the caller's hold over, unless it fails. */
sp_status sp__future_call_later(sp_rt_future *future, sp_future_function fn, void *ctx);

/* Frees the table: for tests, when no handle is in use. */
void sp__futures_deinit(void);

#endif
