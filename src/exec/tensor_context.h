/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts of runs on tensors. Such a run is queued on a stream and may wait there for as long
 * as the stream does, so it has neither a run slot nor a context that other runs may be waiting
 * for. What it needs instead is that one run follows the other on the device:
 *
 *     the next run may use a context if it is submitted behind `last`: on that queue, or after that
 *     point
 *
 * So the runs of one stream share a context and no thread waits for one: there are about as many as
 * streams that run the plan. A context is out of the list only while a call submits to it. */
#ifndef SP_EXEC_TENSOR_CONTEXT_H
#define SP_EXEC_TENSOR_CONTEXT_H

#include "exec/context.h"

/* A context for a run that is submitted to the queue, and what that has to follow: a point, or none
 * (NULL timeline). Without memory for a new one: one that another stream uses. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__tensor_context_acquire(sp_executable *executable, const sp_queue *queue,
                                     sp_exec_context **out, sp_point *after);
/* The run's lists have been submitted, and `last` is the last point; without a timeline: nothing
 * was. */
void sp__tensor_context_release(sp_exec_context *context, sp_point last);

/* Destroys one whose runs have ended; false: there is none. */
bool sp__tensor_context_reclaim(sp_executable *executable);

/* Updates the number of contexts that is shown. */
void sp__executable_note_contexts_locked(sp_executable *executable) SP_REQUIRES(&executable->lock);

#endif
