/* SPDX-License-Identifier: Apache-2.0 */
/* Common to subjects: simple queue devices, a log that commands write, groups of threads.
 *
 * A device created here has as many workers as a subject asks for, mostly none: then the subject's
 * own threads act as the worker (sp__subject_poll), which keeps the search small. */
#ifndef SP_SUBJECTS_SUPPORT_H
#define SP_SUBJECTS_SUPPORT_H

#include "base/thread.h"
#include "device/queue/queue.h"
#include "exec/run_slots.h"
#include "runtime/runtime_state.h"
#include "runtime/stream_pool.h"
#include "sched/explore.h"

#define SP_LOG_ITEMS 8u

/* Plain fields: an unordered read or write is reported as a race. */
typedef struct sp_subject_log {
    uint32_t count;
    uint32_t items[SP_LOG_ITEMS];
} sp_subject_log;

/* ---- threads ---- */

/* Runs the functions with `arg`, each on a thread, and joins them. */
void sp__subject_run(const sp_thread_fn *fns, uint32_t count, void *arg);
/* Frees what threads leave behind: records. The last line of a subject that makes waits. */
void sp__subject_end(void);

/* `finish` of a submitted run that is in no batch. */
void sp__subject_is_not_merged(sp_run_request *request, sp_resume_list *ready);

/* ---- devices ---- */

sp_queue_device *sp__subject_device(uint32_t worker_count);
/* Stops and frees it with its queues. */
void sp__subject_device_free(sp_queue_device *device);
/* Queue `index`; every submit flushes unless it gathers (`is_batching`). */
sp_command_queue *sp__subject_queue(sp_queue_device *device, uint32_t index, bool is_batching);

/* A dispatch that appends `item` to the log, after the points; its own point. */
sp_status sp__subject_append(sp_command_queue *queue, sp_subject_log *log, uint32_t item,
                             const sp_point *waits, uint32_t wait_count, sp_point *out);
/* The same by a thread that runs it, or waits for it next. */
sp_status sp__subject_append_and_run(sp_command_queue *queue, sp_subject_log *log, uint32_t item,
                                     sp_point *out);
/* A command with one binding and, if not NULL, one constant; `memory` has to outlive it. `bytes` is
 * what the command announces to the checker as written: 0 if `data` is only the command's context.
 */
sp_command sp__subject_dispatch(const sp_kernel *kernel, sp_binding *binding, sp_memory *memory,
                                void *data, uint64_t bytes, const uint32_t *constant);
sp_status sp__subject_submit(sp_command_queue *queue, const sp_command *command,
                             const sp_point *waits, uint32_t wait_count, sp_point *out);

/* Runs what can be claimed on the queues 0 ... count - 1 until the point has passed, with turns of
 * a spin where there is nothing: what a worker does, but it never sleeps. */
void sp__subject_poll(sp_queue_device *device, uint32_t queue_count, sp_point until);
/* One round of it; true if anything was run. */
bool sp__subject_work(sp_queue_device *device, uint32_t queue_count);

/* ---- runtime ---- */

/* A runtime that is up with this one device, as number 0, with four streams besides the default one
 * (main.c fixes the options). sp__subject_runtime_down takes both down again. */
sp_rt_device *sp__subject_runtime(sp_queue_device *device);
void sp__subject_runtime_down(void);
/* A device of no runtime, over a queue device without workers, and zeroed: a subject makes the
 * part that it is about, and frees it before. */
sp_rt_device *sp__subject_bare_device(void);
void sp__subject_bare_device_free(sp_rt_device *device);
/* A stream of its own for each taker. */
sp_stream_ref sp__subject_stream(sp_rt_device *device, sp_stream *out);

#endif
