/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's state and the functions that its parts call of each other. One instance, one
 * exploration at a time, and only one logical thread executes at any moment, so nothing here is
 * locked.
 *
 * A run is a sequence of steps. Each thread that is not executing is at a schedule point, with its
 * next operation in `op`, so the choice of the next step knows the next operation of every thread.
 * The code between two points of one thread is local to it (its plain accesses are checked for
 * races, which does not depend on the order of steps). */
#ifndef SP_SCHED_ENGINE_H
#define SP_SCHED_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/thread.h"
#include "explore.h"
#include "fiber.h"

#define SP_SCHED_STACK_BYTES ((size_t)256 * 1024)
#define SP_SCHED_ARENA_BYTES ((size_t)64 << 20)
#define SP_SCHED_STEPS_MAX (1u << 20) /* of one run */
#define SP_SCHED_SEEN_MAX 8u
#define SP_SCHED_REGION_BYTES (SP_SCHED_MAX_THREADS * SP_SCHED_STACK_BYTES + SP_SCHED_ARENA_BYTES)

/* Vector clock: one counter per logical thread. Fixed width, so that the loops become vectors. */
typedef struct sp_vclock {
    _Alignas(16) int32_t at[SP_SCHED_MAX_THREADS];
} sp_vclock;

static inline void sp__vclock_join(sp_vclock *into, const sp_vclock *from)
{
    for (uint32_t i = 0; i < SP_SCHED_MAX_THREADS; i++) {
        into->at[i] = into->at[i] > from->at[i] ? into->at[i] : from->at[i];
    }
}

/* True if some component of `a` is greater than in `b`: something in `a` did not happen before
 * `b`. */
static inline bool sp__vclock_exceeds(const sp_vclock *a, const sp_vclock *b)
{
    int32_t above = 0;
    for (uint32_t i = 0; i < SP_SCHED_MAX_THREADS; i++) above |= a->at[i] > b->at[i];
    return above != 0;
}

typedef enum sp_op_kind {
    SP_OP_NONE,
    SP_OP_LOAD,
    SP_OP_STORE,
    SP_OP_RMW,
    SP_OP_CAS,
    SP_OP_FENCE,
    SP_OP_LOCK,
    SP_OP_TRY_LOCK,
    SP_OP_UNLOCK,
    SP_OP_COND_WAIT,
    SP_OP_COND_SIGNAL,
    SP_OP_WORD_WAIT,
    SP_OP_WORD_WAKE,
    SP_OP_WAKE_UP, /* ends a wait by time-out or spuriously */
    SP_OP_JOIN,
    SP_OP_YIELD,
    SP_OP_COUNT
} sp_op_kind;

/* The locations that a step touches: two steps of different threads are dependent if they share a
 * key and one of them writes it. A key is an address; the sleepers on a word have the key address +
 * 1. */
typedef struct sp_op {
    sp_op_kind kind;
    uint32_t key_count;
    uintptr_t key[2];
    bool is_write[2];
    const void *pc;
} sp_op;

typedef enum sp_thread_state {
    SP_THREAD_UNUSED,
    SP_THREAD_READY, /* at a point, or executing */
    SP_THREAD_WAITS_LOCK,
    SP_THREAD_WAITS_JOIN,
    SP_THREAD_SLEEPS_COND,
    SP_THREAD_SLEEPS_WORD,
    SP_THREAD_DONE
} sp_thread_state;

/* The locations that one iteration of a spin, from one yield to the next, has read. */
typedef struct sp_seen {
    uintptr_t keys[SP_SCHED_SEEN_MAX];
    uint64_t filter; /* a bit for each key */
    uint32_t count;
    bool has_news; /* another thread changed one after it was read, or a load was stale */
} sp_seen;

typedef struct sp_sched_thread {
    uint32_t id;
    uint32_t bit; /* 1 << id */
    sp_thread_state state;
    bool has_timed_out;
    bool is_joined;
    /* While the thread runs ahead to its first point, right after it was created or woken: the
     * thread to return to. */
    struct sp_sched_thread *return_to;
    sp_op op;              /* the next step; of a sleeper, the step that wakes it */
    uintptr_t sleeps_on;   /* key of the cond or word */
    uintptr_t sleep_mutex; /* to lock again after a cond wait */
    uint64_t deadline;
    struct sp_sched_thread *joins; /* waits for that thread's end */
    uint64_t last_step;            /* when it last ran */
    sp_seen seen[2];               /* in this iteration of a spin, and in the previous one */
    uint32_t free_spins;
    uint32_t yields; /* since fair_since */
    uint64_t fair_since;
    uint32_t starved;          /* thread set: may not run while one of these can */
    sp_vclock clock;           /* C11 happens-before; own component ticks after each release */
    sp_vclock acquire_pending; /* what the next acquire fence joins */
    sp_vclock release_fence;   /* what relaxed stores publish since the last release fence */
    sp_vclock step_clock;      /* dependence order of steps, see deps.c */
    sp_fiber fiber;
    sp_thread_fn fn;
    void *arg;
    void *tls[SP_TLS_COUNT];
    void (*tls_destructor[SP_TLS_COUNT])(void *value);
    struct sp_sched_guard *guards; /* innermost first; on the thread's stack */
} sp_sched_thread;

/* Chooses schedules. pick: one of `mask`; choose: one of `count` >= 2 outcomes. */
typedef struct sp_strategy {
    bool wants_every_step; /* pick is called for a single candidate too */
    void (*begin)(void);
    uint32_t (*pick)(uint32_t mask);
    uint32_t (*choose)(uint32_t count);
    /* Prepares the next run; false when the search is exhausted. */
    bool (*advance)(void);
} sp_strategy;

typedef struct sp_engine {
    sp_sched_thread *self; /* the executing thread; NULL outside a run */
    sp_sched_thread threads[SP_SCHED_MAX_THREADS];
    uint32_t thread_count;
    /* Sets of threads, by bit. */
    uint32_t ready;    /* at a point and not blocked */
    uint32_t yielded;  /* spinning; not chosen until another thread changes what they read */
    uint32_t spinners; /* yielded at least once in this run */
    uint32_t fresh;    /* another thread changed something since the search last woke them */
    uint32_t starving; /* threads whose `starved` is not empty */
    uint32_t timed;    /* sleepers with a deadline */
    uint32_t napping;  /* sleepers that the search may wake by choice, if fresh */
    uint32_t spurious_left;
    uint32_t unjoined; /* threads that were created and not yet joined */
    bool is_solo;      /* no other thread exists: search and deps.c leave the step out */
    bool was_idle;     /* nothing has changed since only yielding threads could run */
    uint64_t step;
    uint64_t max_steps;
    uint64_t now_ns; /* virtual time */
    bool is_weak;
    bool tracks_steps; /* deps.c is on */
    bool is_tracing;
    const sp_strategy *strategy;
    sp_explore_options options;
    /* The choices of this run, for the schedule string: thread, or 0x80 | outcome. */
    uint8_t *choices;
    uint32_t choice_count;
    uint32_t choice_capacity;
    sp_sched_test test;
    void *test_arg;
    sp_sched_verdict verdict;
    bool is_pruned;
    char message[512];
    sp_fiber home;
    char *region; /* stacks, then the arena */
} sp_engine;

extern sp_engine sp__engine;

/* --- engine.c --- */
/* The calling thread's next step is in self->op: returns when that step has been chosen. If the
 * thread is not ready, it must first be made ready by another thread. */
void sp__engine_point(sp_sched_thread *self);
/* Runs `thread` up to its next point, then returns. */
void sp__engine_run_ahead(sp_sched_thread *thread);
_Noreturn void sp__engine_thread_end(sp_sched_thread *self);
/* The search's choice among `count` outcomes of the current step. */
uint32_t sp__engine_choose(uint32_t count);
/* The same among the `count` >= 1 outcomes listed in `outcomes`. */
uint32_t sp__engine_choose_of(const uint32_t *outcomes, uint32_t count);
/* Ends the run. */
_Noreturn void sp__engine_fail(sp_sched_verdict verdict, const char *format, ...) SP_PRINTF(2, 3);
_Noreturn void sp__engine_prune(void);
void sp__engine_run_once(void);
void sp__engine_setup(sp_sched_test test, void *arg, const sp_explore_options *options);

/* --- deps.c --- */
void sp__deps_begin(void);
void sp__deps_step(sp_sched_thread *self, uint64_t value);
/* `thread` resumes only because of what `cause` did; NULL: because no other thread could run. */
void sp__deps_follow(sp_sched_thread *thread, const sp_vclock *cause);
uint64_t sp__deps_trace_hash(void);

/* --- crash.c --- */
void sp__crash_catch(void);

/* --- replay.c --- */
void sp__trace_begin(void);
void sp__trace_step(const sp_sched_thread *thread);
void sp__trace_value(uint64_t value);
const char *sp__op_name(sp_op_kind kind);
void sp__trace_print(FILE *out, const sp_explore_result *result);
/* The choices of the last run. */
const char *sp__schedule_string(void);
/* The choices encoded in `text`, and the options it fixes; NULL if it is malformed. */
const uint8_t *sp__schedule_parse(const char *text, sp_explore_options *options, uint32_t *count);

/* --- backend_thread.c --- */
/* After a step of `self`: spinning threads may have read what it changed. */
void sp__spin_note_step(sp_sched_thread *self, bool has_changed);
sp_sched_thread *sp__thread_start(sp_thread_fn fn, void *arg);

/* --- backend_sync.c --- */
/* Removes a sleeper from its cond or word. True: it runs; false: it must lock a mutex first. */
bool sp__sync_wake_up(sp_sched_thread *thread);

/* Bookkeeping after a step of `self`. `has_changed`: other threads may observe a difference. */
static inline void sp__engine_done(sp_sched_thread *self, bool has_changed, uint64_t value)
{
    sp_engine *engine = &sp__engine;
    if (SP_UNLIKELY(engine->spinners != 0)) sp__spin_note_step(self, has_changed);
    if (has_changed) {
        engine->fresh |= ~self->bit;
        engine->was_idle = false;
    }
    if (SP_UNLIKELY(engine->tracks_steps && !engine->is_solo)) sp__deps_step(self, value);
    if (SP_UNLIKELY(engine->is_tracing)) sp__trace_value(value);
}

/* Sets the next step of `self`, which touches one key, and waits until it is chosen. */
static inline void sp__engine_step(sp_sched_thread *self, sp_op_kind kind, uintptr_t key,
                                   bool is_write, const void *pc)
{
    self->op.kind = kind;
    self->op.key_count = 1;
    self->op.key[0] = key;
    self->op.is_write[0] = is_write;
    self->op.pc = pc;
    sp__engine_point(self);
}

#endif
