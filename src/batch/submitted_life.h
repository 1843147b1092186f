/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files of submitted runs: what a new run needs of its later life. */
#ifndef SP_BATCH_SUBMITTED_LIFE_H
#define SP_BATCH_SUBMITTED_LIFE_H

#include "exec/future.h"

/* The run's request, not in a queue yet, and what happens to it there. */
void sp__submitted_prepare(sp_rt_future *run);

/* After the run was queued by a thread with a hold on it: one that was cancelled meanwhile leaves
 * the queue and ends. */
void sp__submitted_check_queued(sp_rt_future *run, sp_resume_list *ready);

/* The run has ended, with the future's fault. Everything is released before the future is done. */
void sp__submitted_end(sp_rt_future *run, sp_resume_list *ready);

#endif
