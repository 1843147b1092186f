/* SPDX-License-Identifier: Apache-2.0 */
/* Controlled schedules: runs a test of the real C code under many interleavings, one logical thread
 * at a time, and reports the first failure with a string that replays it.
 *
 * A test creates all its state, creates its threads with sp_thread_create, joins them all and frees
 * everything. The code under test is compiled with -fsanitize=thread and linked with this engine in
 * place of the ThreadSanitizer run-time. One exploration at a time per process. */
#ifndef SP_SCHED_EXPLORE_H
#define SP_SCHED_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Logical threads of one run, the test's own thread included. */
#define SP_SCHED_MAX_THREADS 16

#define SP_SCHED_VERDICTS(X)                                                                       \
    X(SP_SCHED_OK, "ok")                                                                           \
    X(SP_SCHED_ASSERTION, "assertion")                                                             \
    X(SP_SCHED_RACE, "race")                                                                       \
    X(SP_SCHED_DEADLOCK, "deadlock")                                                               \
    X(SP_SCHED_LOST_WAKEUP, "lost wake-up")                                                        \
    X(SP_SCHED_LIVELOCK, "livelock")                                                               \
    X(SP_SCHED_USE_AFTER_FREE, "use after free")                                                   \
    X(SP_SCHED_OUT_OF_BOUNDS, "out of bounds")                                                     \
    X(SP_SCHED_DOUBLE_FREE, "double free")                                                         \
    X(SP_SCHED_LEAK, "leak")                                                                       \
    X(SP_SCHED_MISUSE, "misuse")                 /* of a mutex, a thread or the heap */            \
    X(SP_SCHED_CRASH, "crash")                   /* a signal */                                    \
    X(SP_SCHED_NONDETERMINISM, "nondeterminism") /* the same choices led to other steps */         \
    X(SP_SCHED_TOO_BIG, "too big")               /* a table of the engine is full */

typedef enum sp_sched_verdict {
#define SP_SCHED_VERDICT_ENUM(code, name) code,
    SP_SCHED_VERDICTS(SP_SCHED_VERDICT_ENUM)
#undef SP_SCHED_VERDICT_ENUM
} sp_sched_verdict;

typedef enum sp_sched_search {
    SP_SEARCH_BOUNDED, /* every schedule with at most `preemption_bound` preemptions */
    SP_SEARCH_DPOR,    /* one schedule at least of every Mazurkiewicz trace */
    SP_SEARCH_PCT,     /* random priorities with `pct_depth` - 1 changes */
    SP_SEARCH_WALK     /* uniform at each point */
} sp_sched_search;

typedef enum sp_sched_level {
    SP_LEVEL_HB,  /* loads return the newest store; races found by happens-before */
    SP_LEVEL_WEAK /* loads return any store that C11 allows, load buffering excepted */
} sp_sched_level;

#define SP_SCHED_NO_BOUND UINT32_MAX

/* Zero is the default of each field; NULL options are all defaults. */
typedef struct sp_explore_options {
    sp_sched_search search;
    sp_sched_level level;
    uint64_t seed;             /* of the random searches */
    uint64_t max_schedules;    /* 0: no limit */
    double max_seconds;        /* of processor time; 0: no limit */
    uint32_t preemption_bound; /* 0: 2; SP_SCHED_NO_BOUND: full search */
    uint32_t pct_depth;        /* 0: 3 */
    uint32_t max_steps;        /* of one run; more are a livelock; 0: 20,000 */
    uint32_t core_count;       /* the result of sp_thread_core_count */
    uint32_t free_spins; /* iterations of a spin that a thread may run although nothing changed: at
                            least the count of a bounded spin under test */
    uint32_t spurious_wakeups; /* how many waits of a run may end spuriously, by choice */
    bool timeouts_are_choices; /* else a time-out fires only when nothing else can run */
    bool use_os_threads;       /* real threads that pass a token, instead of fibers */
    /* Resets the globals before each run to their values before the exploration, for tests whose
     * runs may end early. Of instrumented code: writes by libc are not seen. */
    bool restores_globals;
    /* DPOR at level weak: also explores choices that an equivalent order of steps has. For
     * comparisons. */
    bool keeps_equivalent_choices;
    /* Called with the hash of each complete run's happens-before order. */
    void (*on_trace)(void *ctx, uint64_t hash);
    void *on_trace_ctx;
} sp_explore_options;

typedef struct sp_explore_result {
    sp_sched_verdict verdict;
    bool is_exhausted;  /* the search is complete; false: a limit or a bug ended it */
    uint64_t schedules; /* complete runs */
    uint64_t pruned;    /* runs that DPOR abandoned as equivalent to others */
    uint64_t steps;     /* schedule points passed, all runs */
    double seconds;
    char message[512]; /* "" when ok */
    const char
        *schedule; /* replays the last run; owned by the engine, valid until the next exploration */
} sp_explore_result;

typedef void (*sp_sched_test)(void *arg);

/* Explores until a verdict other than ok, a limit, or the end of the search. */
void sp_explore(sp_sched_test test, void *arg, const sp_explore_options *options,
                sp_explore_result *result);

/* Runs the one schedule that `schedule` encodes; level and wake-up options come from the string.
 * With `trace`, prints each step and the verdict to it. */
void sp_explore_replay(sp_sched_test test, void *arg, const sp_explore_options *options,
                       const char *schedule, FILE *trace, sp_explore_result *result);

const char *sp_sched_verdict_name(sp_sched_verdict verdict);
const char *sp_sched_search_name(sp_sched_search search);

/* For tests: ends the run with the verdict assertion. */
#define SP_SCHED_ASSERT(cond) ((cond) ? (void)0 : sp__assert_failed(__FILE__, __LINE__, #cond))

/* Also called by base/assert.h in this build. */
_Noreturn void sp__assert_failed(const char *file, int line, const char *expr);

#endif
