/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a batch beside that of a run of one row. */
#ifndef SP_BATCH_BATCH_TIME_H
#define SP_BATCH_BATCH_TIME_H

#include "batch/batch.h"

/* Batches that take longer keep others waiting: none is made. */
#define SP_BATCH_MAX_NS UINT64_C(20000000)

/* Of a batch, and of a run of one row right after it. */
typedef struct sp_batch_time {
    uint64_t batch_ns, lone_ns;
} sp_batch_time;

/* Times both on zeros, in turns: processor time, or on other devices than cpu the time until they
 * are done. `lone` is a batch of one row of the same plan; both are the caller's. Errors: those of
 * the runs. */
sp_status sp__batch_time_measure(const sp_batch *batch, const sp_batch *lone, sp_batch_time *out);

/* Batches of one plan in flight on a device that computes beside the processors, if a run of one
 * row takes so long. With fewer, few callers are slower than without batches; with more, many
 * callers are. Runs that take so long that nothing else shows keep the device busy with fewer,
 * which are larger. */
#define SP_BATCHES_IN_FLIGHT 8 /* at most */
uint32_t sp__batches_in_flight(uint64_t lone_ns);

/* The turn whose ratio of the two times is the median; reorders them. count > 0, times below 4 s.
 */
sp_batch_time sp__batch_time_median(sp_batch_time *turns, uint32_t count);

#endif
