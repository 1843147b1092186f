/* SPDX-License-Identifier: Apache-2.0 */
/* Executables: a plan on a device. An executable belongs to a model and is immutable but for its
 * pool of execution contexts (context.h). Any thread; created and destroyed by the plan cache. */
#ifndef SP_EXEC_EXECUTABLE_H
#define SP_EXEC_EXECUTABLE_H

#include "exec/packed_weights.h"
#include "exec/port_rows.h"
#include "exec/run_slots.h"
#include "exec/target.h"
#include "exec/wait_queue.h"

typedef struct sp_exec_context sp_exec_context;

/* Half of them for streams, half for run queues (runtime/run_queue.h); beyond this number they
 * share homes. */
#define SP_CONTEXT_HOMES 64

/* The place of an idle context whose last run was on a certain stream or run queue: its memory is
 * in the cache of that thread's processor, and no other thread writes to this line. */
typedef struct sp_context_home {
    /* Release by the run that returns the context, acquire by the one that takes it. Sequentially
     * consistent with `waiting`: a releaser writes this and reads `waiting`, a waiter writes
     * `waiting` and reads this; one of the two sees the other. */
    SP_CACHE_ALIGNED SP_ATOMIC(sp_exec_context *) context;
} sp_context_home;

typedef struct sp_executable {
    sp_context_home homes[SP_CONTEXT_HOMES];
    const sp_graph_plan *plan; /* owned */
    sp_segments segments;
    sp_target targets[SP_MAX_TARGETS]; /* by sp_segment.device */
    uint32_t target_count;
    sp_packed_weights *packed_table;
    bool holds_weights; /* those that steps read in the file's layout */
    /* For runs on the calling thread: packed weights for the host, by packing of the plan. Written
     * by `host_packing`. */
    sp_once host_packing;
    void **host_packed;
    char **labels;       /* one per step: "node 'x' (Conv)" */
    uint32_t *reporting; /* steps whose kernels report (reports.h); constant */
    uint32_t reporting_count;
    sp_port_rows rows; /* of a batch; set before the first context is created */
    sp_mutex lock;
    sp_exec_context *idle SP_GUARDED_BY(lock); /* those that are in no home */
    /* Contexts that exist, idle or in a run: at least one after sp__executable_prepare. */
    uint32_t alive SP_GUARDED_BY(lock);
    /* `alive`, plus contexts that are being created. */
    uint32_t wanted SP_GUARDED_BY(lock);
    /* Contexts of runs on tensors that no call is submitting to, and how many there are in all
     * (tensor_context.h). */
    sp_exec_context *for_tensors SP_GUARDED_BY(lock);
    uint32_t for_tensors_count SP_GUARDED_BY(lock);
    /* Runs that wait for a context. While a context is idle the queue has cancelled entries at
     * most. */
    sp_wait_queue queue SP_GUARDED_BY(lock);
    sp_atomic_u32 waiting; /* entries in the queue; written under the lock. See sp_context_home */
    sp_atomic_u32 context_count; /* of both kinds; relaxed, for information */
    sp_run_group group;          /* runs of the plan that wait for a slot, and may be merged */
} sp_executable;

/* Takes ownership of the plan, also on an error. The steps of `cpu_ops` (op_list.h) run on the
 * fallback. Errors: SP_OUT_OF_MEMORY, SP_CLOSED. */
sp_status sp__executable_create(const sp_graph_plan *plan, sp_rt_device *device,
                                const sp_memory *weights, const char *cpu_ops, sp_executable **out);
/* Precondition: no context is in use. */
void sp__executable_destroy(sp_executable *executable);

/* Finds the plan's packed weights in the model's table, which creates the missing ones, and holds
 * those that steps read in the file's layout until the executable ends. Call before
 * sp__executable_prepare. `may_wait` is false for callers that must not wait for other threads.
 * Errors: SP_OUT_OF_MEMORY; the executable can only be destroyed then. */
sp_status sp__executable_pack(sp_executable *executable, sp_packed_weights *table, bool may_wait);
void sp__executable_unpack(sp_executable *executable);
/* The plan's packed weights in host memory, by packing, for a run on the calling thread: made by
 * the first one. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__executable_host_packed(sp_executable *executable, void *const **out);

/* Creates the first context; runs need at least one. */
sp_status sp__executable_prepare(sp_executable *executable);
/* Preallocates one context per run slot, or as many as memory allows: with fewer, runs wait for
 * each other's. On devices with staging memory contexts are costly, and are created by the runs
 * that find none idle. Other threads may use the executable already. */
void sp__executable_preallocate(sp_executable *executable);

/* Whether contexts of runs (but for those on tensors) have no arenas, and use the workspaces of the
 * device: its arenas are large, and it has ranges. */
bool sp__executable_uses_workspaces(const sp_executable *executable);

/* Destroys an idle context to free its memory, unless it is the last context. False: none was
 * destroyed. */
bool sp__executable_reclaim_context(sp_executable *executable);

/* The submit queues of all targets: one for each index that the model's device has, before any is
 * used (errors: SP_CLOSED, SP_OUT_OF_MEMORY; see sp__submit_queues_open); and those with the
 * model's device's index `index`, by target. */
sp_status sp__executable_open_queues(const sp_executable *executable);
void sp__executable_queues(const sp_executable *executable, uint32_t index, sp_queue **queues);

/* The device of the model. */
static inline sp_rt_device *sp__executable_device(const sp_executable *executable)
{
    return executable->targets[SP_SEGMENT_MODEL].device;
}

#endif
