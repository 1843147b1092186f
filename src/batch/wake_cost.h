/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread costs that sleeps until another one wakes it. */
#ifndef SP_BATCH_WAKE_COST_H
#define SP_BATCH_WAKE_COST_H

#include <stdint.h>

/* CPU time in nanoseconds of a thread that wakes another one and sleeps, once, measured with a
 * second thread, for a millisecond or some. */
uint64_t sp__wake_cost_measure(void);

#endif
