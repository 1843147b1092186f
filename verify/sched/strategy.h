/* SPDX-License-Identifier: Apache-2.0 */
/* The searches. Each has its own state between runs, initialised by its `start`. */
#ifndef SP_SCHED_STRATEGY_H
#define SP_SCHED_STRATEGY_H

#include "engine.h"

/* Depth-first over all schedules with few preemptions. */
const sp_strategy *sp__bounded_start(void);
/* Source-set DPOR with sleep sets. */
const sp_strategy *sp__dpor_start(void);
/* The two random searches; they never end by themselves. */
const sp_strategy *sp__pct_start(void);
const sp_strategy *sp__walk_start(void);
/* Follows the choices of a schedule string, which are borrowed. */
const sp_strategy *sp__replay_start(const uint8_t *choices, uint32_t count);

/* Called after each step, for DPOR: `step` races with each of `racing`. */
void sp__dpor_races(uint32_t step, const uint32_t *racing, uint32_t count);

#endif
