/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that makes the larger plans of plans for which runs wait often. It proves that rows
 * are separable, compiles the buckets one after the other, measures them, and publishes each that
 * is faster than as many runs at once. It creates batches again that were reclaimed. No run waits
 * for it. It starts with the first request, and ends with the shutdown. */
#ifndef SP_BATCH_BATCH_BUILDER_H
#define SP_BATCH_BATCH_BUILDER_H

#include "exec/model_object.h"

/* For a plan in use: makes its larger plans or, if it has them, their missing batches. False:
 * nothing will be done, without memory or during a shutdown. */
bool sp__batch_builder_request(sp_rt_model *model, const sp_plan_entry *entry);

/* By a lead that has looked for a batch: requests the missing ones if enough leads have found none.
 */
void sp__batch_builder_refill(sp_rt_model *model, const sp_plan_entry *entry);

/* Ends the thread, and frees what was requested. Returns when that is done, however many threads
 * stop it: the shutdown, and the one that ends the process. */
void sp__batch_builder_stop(void);

/* Waits until nothing is requested or being built: for tests and benchmarks. */
void sp__batch_builder_drain(void);

#endif
