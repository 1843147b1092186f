/* SPDX-License-Identifier: Apache-2.0 */
/* Executables and contexts: how a plan gets onto a device.
 *
 * An executable belongs to a model and is immutable but for its pool of contexts. A context is
 * the mutable memory of one run: an arena on each target, the command lists recorded over these,
 * one for each segment of the plan (segments.h), and the names of the caller's tensors while it
 * runs. A context is used by one run at a time. */
#ifndef SP_EXEC_SESSION_H
#define SP_EXEC_SESSION_H

#include "device/command.h"
#include "exec/packed_weights.h"
#include "exec/staging.h"
#include "exec/target.h"
#include "exec/wait_queue.h"

typedef struct sp_executable sp_executable;

typedef struct sp_exec_context {
    sp_executable *executable;
    bool is_spare; /* made from memory that nobody else needed: others take turns without it */
    /* By target; NULL if no step names it. That of the fallback, the host arena, is the model's
     * device's own if that works in the host's memory. */
    sp_block *arenas[SP_MAX_TARGETS];
    sp_list **lists;     /* one per segment */
    sp_point *points;    /* theirs, of the run that is going on */
    sp_staging *staging; /* NULL on devices that see the caller's memory: */
    /* The caller's memory during a run: inputs, then outputs. */
    sp_memory *ports;
    sp_binding *slots;
    sp_block *unrequested; /* where outputs go that nobody asks for; NULL if there is one only */
    struct sp_exec_context *next; /* in the pool */
} sp_exec_context;

struct sp_executable {
    const sp_graph_plan *plan; /* owned */
    sp_segments segments;
    sp_target targets[SP_MAX_TARGETS]; /* by sp_segment.device */
    uint32_t target_count;
    void **host_packed; /* packed weights, by packing of the plan, for runs on the calling thread */
    char **labels;      /* one per step: "node 'x' (Conv)" */
    sp_mutex lock;
    sp_exec_context *idle SP_GUARDED_BY(lock);
    /* contexts, idle or not: one at least, once it is prepared. And with those being made. */
    uint32_t alive SP_GUARDED_BY(lock);
    uint32_t wanted SP_GUARDED_BY(lock);
    /* Runs that found no memory for one more context; none while one is idle, but cancelled ones.
     */
    sp_wait_queue queue SP_GUARDED_BY(lock);
    sp_atomic_u32 context_count; /* as `alive`, for information */
};

/* Takes the plan over, also when it fails. */
sp_status sp__executable_create(const sp_graph_plan *plan, sp_rt_device *device,
                                const sp_memory *weights, sp_executable **out);
/* Finds the plan's packed weights in the model's table, which makes those that are missing. Before
 * sp__executable_prepare. `may_wait` is false for callers that must not wait for other threads.
 * Errors: SP_OUT_OF_MEMORY; the executable can only be destroyed then. */
sp_status sp__executable_pack(sp_executable *executable, sp_packed_weights *table, bool may_wait);
void sp__executable_unpack(sp_executable *executable);
/* No context is out. */
void sp__executable_release(sp_executable *executable);

/* Makes the first context, without which there are no runs. */
sp_status sp__executable_prepare(sp_executable *executable);
/* Makes as many more as runs can be going on, so that no later run makes one, or as there is memory
 * for: runs take turns then. Others may use the plan already. */
void sp__executable_preallocate(sp_executable *executable);

/* Ends an idle context for others who need its memory, unless it is the last one alive. */
bool sp__executable_reclaim_context(sp_executable *executable);

/* An idle context, or a new one. Without memory for that, and where there are as many as runs: the
 * next one that comes back, or, for a caller that must not wait for other runs, one of its own or
 * SP_OUT_OF_MEMORY. */
sp_status sp__exec_context_acquire(sp_executable *executable, bool may_wait, sp_exec_context **out);
/* Releases it. If entries wait, the oldest one has it now (`granted`) and is returned: the caller
 * resumes it (sp__wait_entry_resume), with no lock held. Else NULL. */
SP_NODISCARD sp_wait_entry *sp__exec_context_release(sp_exec_context *context);

/* Without waiting: an idle context or a new one, or *out is NULL and the entry is queued. */
sp_status sp__exec_context_acquire_or_queue(sp_executable *executable, sp_wait_entry *entry,
                                            sp_exec_context **out);
/* Removes an entry that the caller has claimed. */
void sp__exec_context_dequeue(sp_executable *executable, sp_wait_entry *entry);

/* Memory of the context for every output whose address is NULL: for kernels that write into the
 * caller's memory. `is_spare`: the caller must wait for nothing. */
sp_status sp__exec_context_cover_unrequested(sp_exec_context *context, bool is_spare,
                                             void **outputs);

/* The lists of a new context whose memory is there; free: also where making failed. */
sp_status sp__exec_context_create_lists(sp_exec_context *context);
void sp__exec_context_release_lists(sp_exec_context *context);

/* Runs on the stream and waits, for all that it has submitted also where it fails. `inputs` and
 * `outputs` are addresses in the plan's order. */
sp_status sp__exec_context_run(sp_exec_context *context, const sp_stream_ref *stream,
                               const void *const *inputs, void *const *outputs);

/* The parts of it, for runs that no thread waits for. Names the caller's tensors, or takes the
 * inputs in; submits all lists, those of the model's device to the stream, the others to the queue
 * in `queues` of their target: *last is the point of the last one that was accepted, also where the
 * next one was refused, or has no timeline; hands the outputs out. */
void sp__exec_context_begin(sp_exec_context *context, const void *const *inputs,
                            void *const *outputs);
sp_status sp__exec_context_submit(const sp_exec_context *context, const sp_stream_ref *stream,
                                  sp_queue *const *queues, sp_point *last);
void sp__exec_context_end(const sp_exec_context *context, void *const *outputs);

/* Runs on the calling thread, past all streams: for host functions, which must not wait for the
 * stream that waits for them. The same kernels, the same bits. */
sp_status sp__exec_context_run_inline(sp_exec_context *context, const void *const *inputs,
                                      void *const *outputs);

#endif
