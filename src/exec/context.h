/* SPDX-License-Identifier: Apache-2.0 */
/* Execution contexts: the mutable memory of one run of an executable. A context has an arena on
 * each target, the command lists recorded over these arenas, one for each segment of the plan
 * (segments.h), and, during a run, the addresses of the caller's tensors. One run uses a context at
 * a time; contexts are pooled by the executable. */
#ifndef SP_EXEC_CONTEXT_H
#define SP_EXEC_CONTEXT_H

#include "device/command.h"
#include "device/gpu_kernel.h"
#include "exec/executable.h"
#include "exec/staging.h"
#include "runtime/workspace.h"

/* Of a context whose lists name the arena as their only slot: each submission has a workspace of
 * the device there (runtime/workspace.h). */
typedef struct sp_context_workspace {
    sp_workspace_need need; /* held while the context exists */
    sp_workspace *former;   /* of the last submission, whose address the lists have; or NULL */
} sp_context_workspace;

struct sp_exec_context {
    sp_executable *executable;
    bool is_spare; /* created from free memory alone; optional */
    /* Of runs on tensors: each binds its storages as slots of the lists, or, where there are
     * several targets, copies between them and the staging buffers. */
    bool is_for_tensors;
    uint32_t home; /* where the run that uses the context returns it, or SP_NO_HOME */
    bool is_moved; /* it comes from elsewhere */
    /* The flag that cancels the run that uses the context, or NULL. Set by each run before it
     * submits; NULL in contexts outside of the pool. */
    const sp_atomic_u32 *cancel;
    sp_context_workspace *workspace; /* instead of the only target's arena, or NULL */
    /* By target; NULL if no step names it. The fallback's is the host arena, which is the model's
     * device's own arena if that device works in host memory. */
    sp_block *arenas[SP_MAX_TARGETS];
    sp_list **lists;        /* one per segment */
    sp_point *points;       /* of the lists, in the run that uses the context */
    sp_block *report_block; /* pinned memory of the reports, and its host address; or NULL */
    sp_gpu_report *reports;
    sp_staging *staging; /* NULL on devices that access the caller's memory: */
    /* The caller's memory during a run: inputs, then outputs. */
    sp_memory *ports;
    sp_binding *slots;
    sp_block *unrequested; /* memory of unrequested outputs; NULL if the plan has one output */
    sp_exec_context *next; /* in the pool */
    sp_point last;         /* of the newest run on tensors that has used it (tensor_context.h) */
};

/* Slots of its lists. */
static inline uint32_t sp__exec_context_slots(const sp_exec_context *context)
{
    const sp_graph_plan *plan = context->executable->plan;
    if (context->workspace != NULL) return 1;
    return context->staging == NULL ? plan->input_count + plan->output_count : 0;
}

/* ---- the pool ---- */

/* A run without a stream. */
#define SP_NO_HOME UINT32_MAX

static inline uint32_t sp__stream_home(const sp_rt_stream *stream)
{
    return stream->index;
}

static inline uint32_t sp__run_queue_home(uint32_t index)
{
    return SP_CONTEXT_HOMES / 2 + index;
}

/* An idle context, or a new one. Without memory for a new one, or with one per run slot already
 * created: waits for the next that is released; with `may_wait` false, creates one beyond that
 * limit or returns SP_OUT_OF_MEMORY. `home`: number of the stream or of the run queue, whose last
 * context is taken if it is idle, or SP_NO_HOME. */
sp_status sp__exec_context_acquire(sp_executable *executable, uint32_t home, bool may_wait,
                                   sp_exec_context **out);
/* If entries wait, the oldest one gets the context (`granted`) and is returned: the caller resumes
 * it (sp__wait_entry_resume), with no lock held. Else NULL. */
SP_NODISCARD sp_wait_entry *sp__exec_context_release(sp_exec_context *context);

/* The same without a wait and without a new one: NULL if none is idle. */
sp_exec_context *sp__exec_context_try_acquire(sp_executable *executable, uint32_t home);
/* An idle context, or NULL. */
sp_exec_context *sp__exec_context_acquire_idle(sp_executable *executable);
/* Does not wait: *out is an idle context or a new one, or NULL, and then the entry is queued. An
 * entry that has got a context by then, perhaps this one, is added to `ready`. */
sp_status sp__exec_context_acquire_or_queue(sp_executable *executable, sp_wait_entry *entry,
                                            sp_exec_context **out, sp_resume_list *ready);
/* Removes an entry that the caller has claimed. */
void sp__exec_context_dequeue(sp_executable *executable, sp_wait_entry *entry);

/* ---- memory and command lists ---- */

/* The new context is not in the pool yet. `is_spare`: uses free memory alone. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__exec_context_create(sp_executable *executable, bool is_spare, sp_exec_context **out);
/* The same for runs on tensors. */
sp_status sp__exec_context_create_for_tensors(sp_executable *executable, sp_exec_context **out);
void sp__exec_context_destroy(sp_exec_context *context);
/* Destroys the contexts in the pool. */
void sp__executable_destroy_contexts(sp_executable *executable);

/* Points each output that is NULL to memory of the context, for kernels that write into the
 * caller's memory. `is_spare`: uses free memory alone, without waiting for other runs. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__exec_context_cover_unrequested(sp_exec_context *context, bool is_spare,
                                             void **outputs);

/* Records the command lists of a context that has its memory. Destroy is required after a failed
 * create, too. */
sp_status sp__exec_context_create_lists(sp_exec_context *context);
void sp__exec_context_destroy_lists(sp_exec_context *context);

/* ---- a run ---- */

/* Runs on the stream and waits for all that was submitted, also on an error. `inputs` and `outputs`
 * are addresses in the plan's order. */
sp_status sp__exec_context_run(sp_exec_context *context, const sp_stream_ref *stream,
                               const void *const *inputs, void *const *outputs);

/* The same on the queues of targets, by target, with the lists' tensors in place: bound
 * (sp__exec_context_begin) or in the staging buffers. */
sp_status sp__exec_context_run_bound(const sp_exec_context *context, sp_queue *const *queues);
/* In two steps: on success *last is the point of the last list. On an error nothing is left to wait
 * for. */
sp_status sp__exec_context_submit_bound(const sp_exec_context *context, sp_queue *const *queues,
                                        sp_point *last);
sp_status sp__exec_context_wait_bound(const sp_exec_context *context);

/* The three steps of sp__exec_context_run, for runs without a waiting thread. `begin` binds the
 * caller's tensors, or copies the inputs in; `end` copies the outputs out. */
void sp__exec_context_begin(sp_exec_context *context, const void *const *inputs,
                            void *const *outputs);
/* Submits the lists: those of the model's device to the stream, others to the queue of their target
 * in `queues`. *last is the point of the last accepted list, also on an error; its timeline is NULL
 * if none was accepted. */
sp_status sp__exec_context_submit(const sp_exec_context *context, const sp_stream_ref *stream,
                                  sp_queue *const *queues, sp_point *last);
void sp__exec_context_end(const sp_exec_context *context, void *const *outputs);
/* Submits the list of segment `g`, which is not the first: it follows context->points[g - 1], and
 * its point is context->points[g]. */
sp_status sp__exec_context_submit_segment(const sp_exec_context *context,
                                          const sp_stream_ref *stream, sp_queue *const *queues,
                                          uint32_t g);

/* Runs on the calling thread, without a stream: for host functions, which must not wait for the
 * stream that they block. The same kernels and bits, and the same cancel. */
sp_status sp__exec_context_run_inline(sp_exec_context *context, const void *const *inputs,
                                      void *const *outputs);
/* The same without a cancel, with the nanoseconds of each step in `step_ns`. */
sp_status sp__exec_context_run_timed(sp_exec_context *context, const void *const *inputs,
                                     void *const *outputs, uint64_t *step_ns);

#endif
