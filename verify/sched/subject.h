/* SPDX-License-Identifier: Apache-2.0 */
/* What sched_tests explores. A subject is a small test of one protocol of the real library, in
 * verify/subjects/; subjects.c lists them. Each is explored by a portfolio, since every search has
 * a bad case. */
#ifndef SP_SCHED_SUBJECT_H
#define SP_SCHED_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "explore.h"

/* Explorations, by bit. */
#define SP_RUN_BOUNDED 1u   /* 3 preemptions for 2 threads, else 2 */
#define SP_RUN_DPOR 2u      /* exhaustive; for 2 threads it should end */
#define SP_RUN_DPOR_WEAK 4u /* the same with stale loads */
#define SP_RUN_PCT 8u
#define SP_RUN_WALK 16u
#define SP_RUN_WALK_WEAK 32u

typedef struct sp_subject {
    const char *name;
    sp_sched_test test;
    void *arg;
    uint32_t thread_count; /* that run at once, the test's own not counted */
    const char *planted;   /* bugs that this subject must find, separated by spaces */
    /* Zero is the default of all that follows. */
    uint32_t skip;              /* explorations left out */
    double seconds;             /* limit of each exploration: 1 */
    double dpor_seconds;        /* of dpor, where it differs */
    uint64_t random_schedules;  /* limit of pct and walk: 20,000 */
    sp_explore_options options; /* max_steps, time-outs, spurious wake-ups, cores */
    /* Why dpor with two threads cannot reach its end, at both levels, or at level weak alone; NULL:
     * it has to. */
    const char *inexhaustible;
    const char *inexhaustible_weak;
} sp_subject;

extern const sp_subject sp__subjects[];
extern const uint32_t sp__subject_count;

/* Checks of the engine itself, with code of their own. */
typedef struct sp_selftest {
    const char *name;
    bool (*run)(void); /* prints what is wrong */
} sp_selftest;

/* Each ends with a NULL name. */
extern const sp_selftest sp__selftests_litmus[];
extern const sp_selftest sp__selftests_verdicts[];
extern const sp_selftest sp__selftests_search[];
extern const sp_selftest sp__selftests_random[];

#endif
