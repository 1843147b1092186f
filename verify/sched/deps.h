/* SPDX-License-Identifier: Apache-2.0 */
/* The dependence order of a run's steps (the order that all runs of one Mazurkiewicz trace share),
 * used by DPOR and for trace hashes. Not C11's happens-before: a relaxed store and the load that
 * reads it are ordered here and not there. */
#ifndef SP_SCHED_DEPS_H
#define SP_SCHED_DEPS_H

#include "engine.h"

typedef struct sp_step {
    sp_vclock clock;  /* for each thread its last step that comes before or at this one */
    sp_op op;         /* as executed */
    uint32_t id;      /* thread */
    uint32_t ordinal; /* among the steps of its thread, from 1 */
} sp_step;

/* Steps of this run; [0] is unused. */
const sp_step *sp__deps_steps(void);
uint32_t sp__deps_step_count(void);
/* Whether the last write of this key and the next step of `self`, which touches it, may occur in
 * the other order: DPOR explores that order too. */
bool sp__deps_races_with_write(const sp_sched_thread *self, uintptr_t key);
bool sp__deps_are_dependent(const sp_op *a, const sp_op *b);

#endif
