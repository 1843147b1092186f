/* SPDX-License-Identifier: Apache-2.0 */
/* The subjects of sched_tests. A subject is a small test of one protocol of the real library, in
 * verify/subjects/; each file there ends with the table of its subjects. Each is explored by a
 * portfolio, since every search is slow for some subjects. */
#ifndef SP_SCHED_SUBJECT_H
#define SP_SCHED_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "explore.h"

/* Explorations, by bit. */
#define SP_RUN_BOUNDED 1u   /* 3 preemptions for 2 threads, else 2 */
#define SP_RUN_DPOR 2u      /* exhaustive; must reach its end for 2 threads */
#define SP_RUN_DPOR_WEAK 4u /* the same with stale loads */
#define SP_RUN_PCT 8u
#define SP_RUN_WALK 16u
#define SP_RUN_WALK_WEAK 32u

typedef struct sp_subject {
    const char *name;
    sp_sched_test test;
    void *arg;
    uint32_t thread_count; /* concurrent threads, without the test's own */
    const char *planted;   /* planted bugs that this subject must find, separated by spaces */
    /* Zero is the default of all following fields. */
    uint32_t skip;              /* explorations to leave out */
    double seconds;             /* limit of each exploration: 1 */
    double dpor_seconds;        /* of dpor, where it differs */
    uint64_t random_schedules;  /* limit of pct and walk: 20,000 */
    sp_explore_options options; /* max_steps, time-outs, spurious wake-ups, cores */
    /* Why dpor with two threads cannot reach its end, at both levels, or at level weak alone; NULL:
     * it must reach it. */
    const char *inexhaustible;
    const char *inexhaustible_weak;
} sp_subject;

/* The argument of a subject that takes a number, such as a thread count. */
#define SP_SUBJECT_ARG(number)                                                                     \
    (void *)&(const uint32_t)                                                                      \
    {                                                                                              \
        number                                                                                     \
    }

/* Options for a worker, and for a thread that waits as a host does, naps or spins before it
 * sleeps. */
#define SP_SLEEPERS {.free_spins = 4, .timeouts_are_choices = true}
#define SP_SPINNERS {.free_spins = 4}

/* Reasons for `inexhaustible`. */
#define SP_ENDLESS_NAPS "a worker's naps end by choice, so its rounds repeat without a bound"
#define SP_ENDLESS_WATCH "a waiter's time-outs come by choice, and repeat"
#define SP_ENDLESS_CLAIM "a called thread yields until it has its slot: no end within 75,000 orders"
#define SP_ENDLESS_RUNTIME                                                                         \
    "two submissions pass through some hundred words: no end within 15,000 orders"
#define SP_ENDLESS_LINE                                                                            \
    "sharers line up, each with a parker of its own: no end within 130,000 orders"
#define SP_ENDLESS_ALLOCATOR "both threads walk over pools and caches: no end within 15,000 orders"

/* The tables: sp__subjects_<part> at the end of verify/subjects/subject_<part>.c, ended by an entry
 * without a name. */
/* clang-format off */
#define SP_SUBJECT_TABLES(X) \
    X(tagged_stack) X(handle) X(queue) X(timeline) X(park) \
    X(host) X(host_exit) X(gpu) X(gpu_gate) X(tiles) X(throttle) X(pool) \
    X(event) X(hazard) X(mirror) X(wait_graph) X(faults) X(returned) X(allocator) \
    X(wait_queue) X(slot_calls) X(slot_terms) X(slots) X(kept_slots) X(batches) X(batch_rows) X(batch_plans) \
    X(batch_queue) X(runs) X(plan_cache) \
    X(packed_weights) X(weight_store) X(workspace) X(base) X(word_lock) X(close) X(runtime) X(future) X(cancel) X(partial)
/* clang-format on */

#define SP_SUBJECT_TABLE(part) extern const sp_subject sp__subjects_##part[];
SP_SUBJECT_TABLES(SP_SUBJECT_TABLE)
#undef SP_SUBJECT_TABLE

/* The subjects of all tables in sequence; NULL after the last. */
const sp_subject *sp__subject_at(uint32_t index);

/* Checks of the engine itself, on their own code. */
typedef struct sp_selftest {
    const char *name;
    bool (*run)(void); /* prints the failure */
} sp_selftest;

/* Each ends with a NULL name. */
extern const sp_selftest sp__selftests_litmus[];
extern const sp_selftest sp__selftests_verdicts[];
extern const sp_selftest sp__selftests_search[];
extern const sp_selftest sp__selftests_random[];

#endif
