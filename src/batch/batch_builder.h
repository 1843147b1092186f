/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that makes the larger plans of plans for which runs wait often. It proves that rows
 * are separable, compiles the buckets one after the other, measures them, and attaches those that
 * are faster than as many runs. No run waits for it. It starts with the first request, and ends
 * with the shutdown. */
#ifndef SP_BATCH_BATCH_BUILDER_H
#define SP_BATCH_BATCH_BUILDER_H

#include "exec/model_object.h"

/* For a plan in use. Does nothing without memory, or during a shutdown. */
void sp__batch_builder_request(sp_rt_model *model, const sp_plan_entry *entry);

/* Waits until nothing is requested or being built: for tests and benchmarks. */
void sp__batch_builder_drain(void);

#endif
