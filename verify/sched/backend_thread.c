/* SPDX-License-Identifier: Apache-2.0 */
/* base/thread.h and base/clock.h on logical threads and virtual time. A new thread runs ahead to
 * its first schedule point before its creator resumes. Thread numbers are not reused within a
 * run. */
#include <setjmp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fork.h"
#include "shadow.h"

#define CLOCK_STEP_NS 100 /* virtual time advances at each reading */
#define SPIN_STEP_NS 1000
#define YIELDS_TO_FAIRNESS 3

static void run_tls_destructors(sp_sched_thread *self)
{
    for (uint32_t slot = SP_TLS_COUNT; slot-- > 0;) {
        void *value = self->tls[slot];
        void (*destructor)(void *) = self->tls_destructor[slot];
        if (value == NULL || destructor == NULL) continue;
        self->tls[slot] = NULL;
        destructor(value);
        slot = SP_TLS_COUNT; /* a destructor may set any slot again */
    }
}

static void thread_main(void)
{
    sp_sched_thread *self = sp__engine.self;
    self->fn(self->arg);
    run_tls_destructors(self);
    sp__engine_thread_end(self);
}

/* ---- guards ---- */

typedef struct sp_sched_guard {
    struct sp_sched_guard *outer;
    sp_thread_ended_fn ended;
    void *arg;
    jmp_buf stay;
} sp_sched_guard;

/* The stack is not unwound: functions called here run above the frames that they end. */
void sp_thread_exit(void)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) abort();
    while (self->guards != NULL) {
        sp_sched_guard *guard = self->guards;
        self->guards = guard->outer;
        if (guard->ended(guard->arg)) longjmp(guard->stay, 1);
    }
    run_tls_destructors(self);
    sp__engine_thread_end(self);
}

void sp_thread_guard(sp_thread_fn fn, sp_thread_ended_fn ended, void *arg)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) {
        fn(arg);
        return;
    }
    sp_sched_guard guard = {.outer = self->guards, .ended = ended, .arg = arg};
    self->guards = &guard;
    if (setjmp(guard.stay) == 0) fn(arg);
    self->guards = guard.outer;
}

sp_sched_thread *sp__thread_start(sp_thread_fn fn, void *arg)
{
    sp_engine *engine = &sp__engine;
    const uint32_t id = engine->thread_count++;
    sp_sched_thread *thread = &engine->threads[id];
    thread->id = id;
    thread->bit = 1u << id;
    thread->state = SP_THREAD_READY;
    thread->fn = fn;
    thread->arg = arg;
    thread->clock.at[id] = 1;
    engine->ready |= thread->bit;
    sp__fiber_start(&thread->fiber, engine->region + id * SP_SCHED_STACK_BYTES,
                    SP_SCHED_STACK_BYTES, thread_main);
    return thread;
}

sp_status sp_thread_create(sp_thread *out, const char *name, sp_thread_fn fn, void *arg)
{
    (void)name;
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL || sp__engine.thread_count == SP_SCHED_MAX_THREADS) return SP_EXHAUSTED;
    sp_sched_thread *thread = sp__thread_start(fn, arg);
    sp__vclock_join(&thread->clock, &self->clock);
    self->clock.at[self->id]++;
    thread->step_clock = self->step_clock;
    sp__engine.unjoined++;
    out->impl = thread->id;
    sp__engine_run_ahead(thread);
    return SP_OK;
}

void sp_thread_join(sp_thread *thread)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return;
    const uint32_t id = thread->impl;
    sp_sched_thread *target = id < sp__engine.thread_count ? &sp__engine.threads[id] : NULL;
    if (target == NULL || target == self || target->is_joined) {
        sp__engine_fail(SP_SCHED_MISUSE,
                        "thread %u joins %u, which does not exist, is itself, or was joined",
                        self->id, id);
    }
    target->is_joined = true;
    self->op = (sp_op){.kind = SP_OP_JOIN, .pc = __builtin_return_address(0)};
    self->joins = target;
    if (target->state != SP_THREAD_DONE) {
        self->state = SP_THREAD_WAITS_JOIN;
        sp__engine.ready &= ~self->bit;
    }
    sp__engine_point(self);
    sp__vclock_join(&self->clock, &target->clock);
    sp__vclock_join(&self->step_clock, &target->step_clock);
    sp__engine_done(self, true, id);
    sp__engine.unjoined--;
}

static uint64_t filter_bit(uintptr_t key)
{
    return (uint64_t)1 << (((uint64_t)key * 0x9e3779b97f4a7c15u) >> 58);
}

static bool seen_has_key(const sp_seen *seen, uintptr_t key)
{
    if ((seen->filter & filter_bit(key)) == 0) return false;
    for (uint32_t i = 0; i < seen->count; i++) {
        if (seen->keys[i] == key) return true;
    }
    return false;
}

static void seen_note_read(sp_seen *seen, uintptr_t key)
{
    if (seen_has_key(seen, key)) return;
    if (seen->count == SP_SCHED_SEEN_MAX) {
        seen->has_news = true; /* table full: assume a change */
        return;
    }
    seen->keys[seen->count++] = key;
    seen->filter |= filter_bit(key);
}

static void spinners_note_write(const sp_sched_thread *self, uintptr_t key)
{
    sp_engine *engine = &sp__engine;
    for (uint32_t left = engine->spinners & ~self->bit; left != 0; left &= left - 1) {
        sp_sched_thread *other = &engine->threads[__builtin_ctz(left)];
        for (uint32_t turn = 0; turn < 2; turn++) {
            if (!seen_has_key(&other->seen[turn], key)) continue;
            other->seen[turn].has_news = true;
            engine->yielded &= ~other->bit;
        }
    }
}

void sp__spin_note_step(sp_sched_thread *self, bool has_changed)
{
    const sp_op *op = &self->op;
    if (op->key_count > 0 && op->kind != SP_OP_STORE && (sp__engine.spinners & self->bit) != 0) {
        seen_note_read(&self->seen[0], op->key[0]);
    }
    for (uint32_t i = 0; i < op->key_count && has_changed; i++)
        spinners_note_write(self, op->key[i]);
}

/* Whether the next iteration of the spin can observe a change, or is allowed without one. The
 * previous iteration counts too: a compare-and-swap that fails there gives the value that this one
 * compares with. */
static bool spin_may_continue(sp_sched_thread *self)
{
    if (self->seen[0].has_news || self->seen[1].has_news) {
        self->free_spins = 0;
        return true;
    }
    return self->free_spins++ < sp__engine.options.free_spins;
}

/* Fairness: after YIELDS_TO_FAIRNESS yields a thread may not run while threads can run that were
 * ready all that time and did not run. */
static void thread_update_fairness(sp_sched_thread *self)
{
    sp_engine *engine = &sp__engine;
    if (++self->yields < YIELDS_TO_FAIRNESS) return;
    for (uint32_t left = engine->ready & ~self->bit; left != 0; left &= left - 1) {
        const sp_sched_thread *other = &engine->threads[__builtin_ctz(left)];
        if (other->last_step < self->fair_since) self->starved |= other->bit;
    }
    if (self->starved != 0) engine->starving |= self->bit;
    self->yields = 0;
    self->fair_since = engine->step;
}

/* A yield is a point at which the thread gives precedence to others, see engine.c. */
static void thread_yield(sp_sched_thread *self, const void *pc)
{
    sp_engine *engine = &sp__engine;
    self->op = (sp_op){.kind = SP_OP_YIELD, .pc = pc};
    if ((engine->spinners & self->bit) == 0) {
        engine->spinners |= self->bit;
        self->seen[0].has_news = true; /* reads were not recorded until now */
    }
    if (!spin_may_continue(self)) engine->yielded |= self->bit;
    thread_update_fairness(self);
    sp__engine_point(self);
    engine->yielded &= ~self->bit;
    self->seen[1] = self->seen[0];
    self->seen[0] = (sp_seen){.count = 0};
    sp__engine_done(self, false, 0);
}

void sp__sched_spin_hint(void)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return;
    sp__engine.now_ns += SPIN_STEP_NS;
    thread_yield(self, __builtin_return_address(0));
}

void sp_thread_yield(void)
{
    sp_sched_thread *self = sp__engine.self;
    if (self != NULL) thread_yield(self, __builtin_return_address(0));
}

uint64_t sp_clock_thread(void)
{
    return sp_clock_now();
}

uint64_t sp_clock_process(void)
{
    return sp_clock_now();
}

void sp_clock_sleep(uint64_t duration_ns)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return;
    sp__engine.now_ns += duration_ns;
    thread_yield(self, __builtin_return_address(0));
}

uint64_t sp_clock_now(void)
{
    return sp__engine.now_ns += CLOCK_STEP_NS;
}

bool sp_thread_at_exit(void (*fn)(void))
{
    (void)fn;
    return true;
}

bool sp_thread_is_main(void)
{
    return sp__engine.self == NULL || sp__engine.self->id == 0;
}

uint64_t sp_thread_number(void)
{
    return sp__engine.self == NULL ? 1 : sp__engine.self->id + 1;
}

uint32_t sp_thread_core_count(void)
{
    return sp__engine.options.core_count != 0 ? sp__engine.options.core_count : 2;
}

static void *outside_tls[SP_TLS_COUNT]; /* of code outside a run */

void *sp__sched_tls_get(sp_tls_slot slot)
{
    const sp_sched_thread *self = sp__engine.self;
    return self != NULL ? self->tls[slot] : outside_tls[slot];
}

bool sp_tls_set(sp_tls_slot slot, void *value, void (*destructor)(void *value))
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) {
        outside_tls[slot] = value;
        return true;
    }
    self->tls[slot] = value;
    self->tls_destructor[slot] = destructor;
    return true;
}

void sp_tls_end(sp_tls_slot slot)
{
    sp_sched_thread *self = sp__engine.self;
    void *value = self != NULL ? self->tls[slot] : outside_tls[slot];
    void (*destructor)(void *) = self != NULL ? self->tls_destructor[slot] : NULL;
    sp_tls_set(slot, NULL, NULL);
    if (value != NULL && destructor != NULL) destructor(value);
}

/* No test forks, so this is always 0. */
sp_atomic_u32 sp__fork_is_child;

bool sp_fork_on_child(void (*fn)(void))
{
    (void)fn;
    return true;
}
