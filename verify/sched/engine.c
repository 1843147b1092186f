/* SPDX-License-Identifier: Apache-2.0 */
/* The run loop: the choice of the next thread, the switch to it, and the end of a run. A thread
 * that blocks chooses the next one itself and switches directly to it.
 *
 * Spins: a thread that called sp_spin_hint is not chosen until another thread changes what it read
 * in its last iterations (nothing else could make its next iteration differ), or no other thread
 * can run. As in M. Musuvathi and S. Qadeer (Fair Stateless Model Checking, PLDI 2008), a thread
 * that keeps yielding may not run while threads can run that could have run in between and did
 * not. */
#include "engine.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "shadow.h"
#include "strategy.h"

sp_engine sp__engine;

static void thread_switch(sp_sched_thread *self, sp_sched_thread *next)
{
    sp__engine.self = next;
    sp__fiber_switch(&self->fiber, &next->fiber);
}

static _Noreturn void run_leave(void)
{
    sp_sched_thread *self = sp__engine.self;
    sp__engine.self = NULL;
    sp__fiber_switch(&self->fiber, &sp__engine.home);
    abort(); /* a run that has ended is never resumed */
}

_Noreturn void sp__engine_fail(sp_sched_verdict verdict, const char *format, ...)
{
    sp_engine *engine = &sp__engine;
    va_list args;
    va_start(args, format);
    vsnprintf(engine->message, sizeof engine->message, format, args);
    va_end(args);
    if (engine->self == NULL) {
        fprintf(stderr, "sched: outside a run: %s\n", engine->message);
        abort();
    }
    engine->verdict = verdict;
    run_leave();
}

_Noreturn void sp__engine_prune(void)
{
    sp__engine.is_pruned = true;
    run_leave();
}

_Noreturn void sp__assert_failed(const char *file, int line, const char *expr)
{
    sp__engine_fail(SP_SCHED_ASSERTION, "%s:%d: %s", file, line, expr);
}

static void choices_append(uint8_t choice)
{
    sp_engine *engine = &sp__engine;
    if (engine->choice_count == engine->choice_capacity) {
        sp__engine_fail(SP_SCHED_TOO_BIG, "more than %u choices in one run",
                        engine->choice_capacity);
    }
    engine->choices[engine->choice_count++] = choice;
}

uint32_t sp__engine_choose(uint32_t count)
{
    const uint32_t outcome = sp__engine.strategy->choose(count);
    choices_append((uint8_t)(0x80u | outcome));
    return outcome;
}

uint32_t sp__engine_choose_of(const uint32_t *outcomes, uint32_t count)
{
    const uint32_t outcome = outcomes[count > 1 ? sp__engine.strategy->choose(count) : 0];
    choices_append((uint8_t)(0x80u | outcome));
    return outcome;
}

/* Removes the threads of `mask` that may not run while others of `mask` can (`starved`). */
static uint32_t mask_without_starving(uint32_t mask)
{
    uint32_t kept = mask;
    for (uint32_t left = mask & sp__engine.starving; left != 0; left &= left - 1) {
        const sp_sched_thread *thread = &sp__engine.threads[__builtin_ctz(left)];
        if (thread->starved & mask) kept &= ~thread->bit;
    }
    return kept;
}

static uint32_t candidate_mask(void)
{
    const sp_engine *engine = &sp__engine;
    uint32_t mask = engine->ready & ~engine->yielded;
    if (SP_UNLIKELY((mask & engine->starving) != 0)) mask = mask_without_starving(mask);
    return mask | (engine->napping & engine->fresh);
}

static void thread_note_run(const sp_sched_thread *thread)
{
    sp_engine *engine = &sp__engine;
    for (uint32_t left = engine->starving; left != 0; left &= left - 1) {
        sp_sched_thread *other = &engine->threads[__builtin_ctz(left)];
        other->starved &= ~thread->bit;
        if (other->starved == 0) engine->starving &= ~other->bit;
    }
}

static _Noreturn void fail_deadlock(void)
{
    char blocked[256];
    size_t used = 0;
    bool has_sleeper = false;
    blocked[0] = '\0';
    for (uint32_t i = 0; i < sp__engine.thread_count && used < sizeof blocked; i++) {
        const sp_sched_thread *thread = &sp__engine.threads[i];
        if (thread->state == SP_THREAD_DONE) continue;
        const bool sleeps = thread->state >= SP_THREAD_SLEEPS_COND;
        has_sleeper = has_sleeper || sleeps;
        const char *what = sleeps                                  ? "sleeps"
                           : thread->state == SP_THREAD_WAITS_LOCK ? "waits for a mutex"
                                                                   : "waits for a join";
        used += (size_t)snprintf(blocked + used, sizeof blocked - used, "; thread %u %s at pc %#x",
                                 i, what, sp__pc_offset(thread->op.pc));
    }
    sp__engine_fail(has_sleeper ? SP_SCHED_LOST_WAKEUP : SP_SCHED_DEADLOCK, "no thread can run%s",
                    blocked);
}

static sp_sched_thread *earliest_sleeper(void)
{
    sp_sched_thread *earliest = NULL;
    for (uint32_t left = sp__engine.timed; left != 0; left &= left - 1) {
        sp_sched_thread *thread = &sp__engine.threads[__builtin_ctz(left)];
        if (earliest == NULL || thread->deadline < earliest->deadline) earliest = thread;
    }
    return earliest;
}

/* No thread is a candidate. Returns a sleeper whose deadline was reached and that runs, or NULL
 * after a change of the candidates. */
static sp_sched_thread *run_idle(void)
{
    sp_engine *engine = &sp__engine;
    if (engine->ready != 0 && !(engine->was_idle && engine->timed != 0)) {
        engine->was_idle = true;
        engine->yielded = 0;
        for (uint32_t i = 0; i < engine->thread_count; i++) engine->threads[i].starved = 0;
        engine->starving = 0;
        return NULL;
    }
    if (engine->timed == 0) fail_deadlock();
    engine->was_idle = false;
    sp_sched_thread *thread = earliest_sleeper();
    if (engine->now_ns < thread->deadline) engine->now_ns = thread->deadline;
    thread->has_timed_out = true;
    if (engine->tracks_steps) sp__deps_follow(thread, NULL);
    return sp__sync_wake_up(thread) ? thread : NULL;
}

/* The search chose to wake a sleeper. */
static bool sleeper_wake_by_choice(sp_sched_thread *thread)
{
    sp_engine *engine = &sp__engine;
    engine->fresh &= ~thread->bit;
    thread->has_timed_out = engine->options.timeouts_are_choices && (engine->timed & thread->bit);
    if (thread->has_timed_out) {
        if (engine->now_ns < thread->deadline) engine->now_ns = thread->deadline;
    } else if (--engine->spurious_left == 0) {
        engine->napping &= engine->options.timeouts_are_choices ? engine->timed : 0;
    }
    sp__engine_done(thread, true, 0);
    return sp__sync_wake_up(thread);
}

static _Noreturn void fail_livelock(void)
{
    sp__engine_fail(SP_SCHED_LIVELOCK, "no end after %llu steps; thread %u is at pc %#x",
                    (unsigned long long)sp__engine.max_steps, sp__engine.self->id,
                    sp__pc_offset(sp__engine.self->op.pc));
}

/* Chooses the next step, and performs wake-ups, which run no code of their thread. */
static sp_sched_thread *next_thread(void)
{
    sp_engine *engine = &sp__engine;
    for (;;) {
        if (SP_UNLIKELY(engine->step >= engine->max_steps)) fail_livelock();
        const uint32_t mask = candidate_mask();
        if (SP_UNLIKELY(mask == 0)) {
            sp_sched_thread *thread = run_idle();
            if (thread != NULL) return thread;
            continue;
        }
        engine->step++;
        uint32_t id = (uint32_t)__builtin_ctz(mask);
        const bool is_choice = (mask & (mask - 1)) != 0;
        if (is_choice || engine->strategy->wants_every_step) id = engine->strategy->pick(mask);
        if (is_choice) choices_append((uint8_t)id);
        sp_sched_thread *thread = &engine->threads[id];
        thread->last_step = engine->step;
        if (SP_UNLIKELY(engine->starving != 0)) thread_note_run(thread);
        if (SP_UNLIKELY(engine->is_tracing)) sp__trace_step(thread);
        if (SP_LIKELY(thread->state == SP_THREAD_READY)) return thread;
        if (sleeper_wake_by_choice(thread)) return thread;
    }
}

/* While no other thread exists, nothing is chosen, and no step races with another: the search and
 * the dependence order leave these steps out. All later steps are ordered after them. */
static bool is_solo_step(const sp_sched_thread *self)
{
    return sp__engine.unjoined == 0 && self->state == SP_THREAD_READY &&
           self->op.kind != SP_OP_YIELD && self->op.kind != SP_OP_JOIN;
}

static void take_solo_step(sp_sched_thread *self)
{
    sp_engine *engine = &sp__engine;
    if (SP_UNLIKELY(engine->step >= engine->max_steps)) fail_livelock();
    self->last_step = ++engine->step;
    if (SP_UNLIKELY(engine->is_tracing)) sp__trace_step(self);
}

void sp__engine_point(sp_sched_thread *self)
{
    sp_engine *engine = &sp__engine;
    engine->is_solo = is_solo_step(self);
    if (engine->is_solo) {
        take_solo_step(self);
        return;
    }
    sp_sched_thread *next = self->return_to;
    self->return_to = NULL;
    if (next == NULL) next = next_thread();
    if (next != self) thread_switch(self, next);
}

void sp__engine_run_ahead(sp_sched_thread *thread)
{
    sp_sched_thread *self = sp__engine.self;
    thread->return_to = self;
    thread_switch(self, thread);
}

static _Noreturn void run_end(void)
{
    const sp_engine *engine = &sp__engine;
    for (uint32_t i = 1; i < engine->thread_count; i++) {
        if (engine->threads[i].is_joined) continue;
        sp__engine_fail(SP_SCHED_LEAK, "thread %u is never joined", i);
    }
    sp__heap_check_leaks();
    run_leave();
}

_Noreturn void sp__engine_thread_end(sp_sched_thread *self)
{
    sp_engine *engine = &sp__engine;
    if (self->id == 0) run_end();
    self->state = SP_THREAD_DONE;
    engine->ready &= ~self->bit;
    engine->yielded = 0; /* an end is a change that spinning threads may wait for */
    for (uint32_t i = 0; i < engine->thread_count; i++) {
        sp_sched_thread *other = &engine->threads[i];
        if (other->state != SP_THREAD_WAITS_JOIN || other->joins != self) continue;
        other->state = SP_THREAD_READY;
        engine->ready |= other->bit;
    }
    sp__engine_point(self); /* never chosen again */
    abort();
}

void sp__engine_setup(sp_sched_test test, void *arg, const sp_explore_options *options)
{
    sp_engine *engine = &sp__engine;
    if (engine->region == NULL) {
        engine->region = sp__reserve(SP_SCHED_REGION_BYTES);
        sp__shadow_setup();
        sp__heap_setup();
        sp__crash_catch();
        sp__fiber_init_home(&engine->home);
    }
    engine->test = test;
    engine->test_arg = arg;
    engine->options = options != NULL ? *options : (sp_explore_options){0};
    sp_explore_options *o = &engine->options;
    if (o->preemption_bound == 0) o->preemption_bound = 2;
    if (o->pct_depth == 0) o->pct_depth = 3;
    if (o->max_steps == 0) o->max_steps = 20000;
    if (o->max_steps > SP_SCHED_STEPS_MAX) o->max_steps = SP_SCHED_STEPS_MAX;
    if (o->core_count == 0) o->core_count = 2;
    engine->max_steps = o->max_steps;
    engine->is_weak = o->level == SP_LEVEL_WEAK;
    engine->tracks_steps = o->search == SP_SEARCH_DPOR || o->on_trace != NULL;
    engine->is_tracing = false;
    engine->message[0] = '\0';
    engine->verdict = SP_SCHED_OK;
    const uint32_t capacity = 2 * o->max_steps + 64; /* a step has at most one choice of outcome */
    if (engine->choice_capacity < capacity) {
        free(engine->choices);
        engine->choices = malloc(capacity);
        if (engine->choices == NULL) abort();
        engine->choice_capacity = capacity;
    }
    sp__fiber_use_os_threads(o->use_os_threads);
}

static void reset_threads(void)
{
    sp_engine *engine = &sp__engine;
    for (uint32_t i = 0; i < engine->thread_count; i++) {
        sp_sched_thread *thread = &engine->threads[i];
        memset(thread, 0, offsetof(sp_sched_thread, fiber));
        memset(thread->tls, 0, sizeof thread->tls);
        thread->guards = NULL;
    }
    engine->thread_count = 0;
    engine->unjoined = 0;
    engine->is_solo = false;
    engine->ready = engine->yielded = engine->starving = engine->timed = engine->napping = 0;
    engine->spinners = 0;
    engine->fresh = UINT32_MAX;
    engine->was_idle = false;
}

static void run_test(void *unused)
{
    (void)unused;
    sp__engine.test(sp__engine.test_arg);
}

void sp__engine_run_once(void)
{
    sp_engine *engine = &sp__engine;
    reset_threads();
    sp__shadow_begin();
    sp__heap_begin();
    if (engine->tracks_steps) sp__deps_begin();
    if (engine->is_tracing) sp__trace_begin();
    engine->step = 0;
    engine->now_ns = 1000000;
    engine->choice_count = 0;
    engine->is_pruned = false;
    engine->spurious_left = engine->options.spurious_wakeups;
    engine->strategy->begin();
    sp_sched_thread *first = sp__thread_start(run_test, NULL);
    engine->self = first;
    sp__fiber_switch(&engine->home, &first->fiber);
}
