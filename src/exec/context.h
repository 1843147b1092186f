/* SPDX-License-Identifier: Apache-2.0 */
/* Execution contexts: the mutable memory of one run of an executable. A context has an arena on
 * each target, the command lists recorded over these arenas, one for each segment of the plan
 * (segments.h), and, during a run, the addresses of the caller's tensors. One run uses a context at
 * a time; contexts are pooled by the executable. */
#ifndef SP_EXEC_CONTEXT_H
#define SP_EXEC_CONTEXT_H

#include "device/command.h"
#include "exec/executable.h"
#include "exec/staging.h"

struct sp_exec_context {
    sp_executable *executable;
    bool is_spare; /* created from memory that nothing else needed; runs take turns without it */
    /* By target; NULL if no step names it. The fallback's, the host arena, is the arena of the
     * model's device where that works in the host's memory. */
    sp_block *arenas[SP_MAX_TARGETS];
    sp_list **lists;     /* one per segment */
    sp_point *points;    /* of the lists, in the run that uses the context */
    sp_staging *staging; /* NULL on devices that see the caller's memory: */
    /* The caller's memory during a run: inputs, then outputs. */
    sp_memory *ports;
    sp_binding *slots;
    sp_block *unrequested; /* memory of unrequested outputs; NULL if the plan has one output */
    sp_exec_context *next; /* in the pool */
};

/* ---- the pool ---- */

/* An idle context, or a new one. Where there is no memory for one, or one per run slot exists: the
 * next that is released; with `may_wait` false, a new one or SP_OUT_OF_MEMORY. */
sp_status sp__exec_context_acquire(sp_executable *executable, bool may_wait, sp_exec_context **out);
/* If entries wait, the oldest one has it now (`granted`) and is returned: the caller
 * resumes it (sp__wait_entry_resume), with no lock held. Else NULL. */
SP_NODISCARD sp_wait_entry *sp__exec_context_release(sp_exec_context *context);

/* Without waiting: an idle context or a new one, or *out is NULL and the entry is queued. */
sp_status sp__exec_context_acquire_or_queue(sp_executable *executable, sp_wait_entry *entry,
                                            sp_exec_context **out);
/* Removes an entry that the caller has claimed. */
void sp__exec_context_dequeue(sp_executable *executable, sp_wait_entry *entry);

/* ---- its memory and lists ---- */

/* Not in the pool yet; with `is_spare` from free memory alone. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__exec_context_create(sp_executable *executable, bool is_spare, sp_exec_context **out);
void sp__exec_context_destroy(sp_exec_context *context);
/* Those of the pool. */
void sp__executable_destroy_contexts(sp_executable *executable);

/* Points each output that is NULL to memory of the context, for kernels that write into the
 * caller's memory. `is_spare`: must not wait for other runs. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__exec_context_cover_unrequested(sp_exec_context *context, bool is_spare,
                                             void **outputs);

/* The command lists of a context that has its memory. Destroy also after a failed create. */
sp_status sp__exec_context_create_lists(sp_exec_context *context);
void sp__exec_context_destroy_lists(sp_exec_context *context);

/* ---- a run ---- */

/* Runs on the stream and waits; also on an error, for all that was submitted. `inputs` and
 * `outputs` are addresses in the plan's order. */
sp_status sp__exec_context_run(sp_exec_context *context, const sp_stream_ref *stream,
                               const void *const *inputs, void *const *outputs);

/* The three steps of it, for runs without a waiting thread. `begin` binds the caller's tensors, or
 * copies the inputs in; `end` copies the outputs out. */
void sp__exec_context_begin(sp_exec_context *context, const void *const *inputs,
                            void *const *outputs);
/* Submits the lists: those of the model's device to the stream, others to the queue of their target
 * in `queues`. *last is the point of the last accepted list, also on an error; without a timeline
 * if none was. */
sp_status sp__exec_context_submit(const sp_exec_context *context, const sp_stream_ref *stream,
                                  sp_queue *const *queues, sp_point *last);
void sp__exec_context_end(const sp_exec_context *context, void *const *outputs);

/* Runs on the calling thread, without a stream: for host functions, which must not wait for the
 * stream that they block. The same kernels and bits. */
sp_status sp__exec_context_run_inline(sp_exec_context *context, const void *const *inputs,
                                      void *const *outputs);

#endif
