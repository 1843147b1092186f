/* SPDX-License-Identifier: Apache-2.0 */
/* base/mutex.h and base/wait.h. A waiting thread is not ready; every function that changes this
 * updates the engine's sets. A wake-up on a word orders steps but publishes nothing: the code under
 * test must use acquire and release on the word itself. */
#include "base/clock.h"
#include "base/lock_check.h"
#include "base/mutex.h"
#include "base/wait.h"
#include "atomics.h"

static void thread_set_waiting(sp_sched_thread *thread, sp_thread_state state)
{
    thread->state = state;
    sp__engine.ready &= ~thread->bit;
}

static void thread_set_ready(sp_sched_thread *thread)
{
    thread->state = SP_THREAD_READY;
    sp__engine.ready |= thread->bit;
}

/* --- mutexes --- */

static bool mutex_is_locked(uintptr_t mutex)
{
    return ((const sp_mutex *)mutex)->impl.owner != 0;
}

/* Updates the state of all threads whose next step locks `mutex`. */
static void update_lockers(const sp_sched_thread *self, uintptr_t mutex, bool is_free)
{
    for (uint32_t i = 0; i < sp__engine.thread_count; i++) {
        sp_sched_thread *thread = &sp__engine.threads[i];
        if (thread == self || thread->op.kind != SP_OP_LOCK || thread->op.key[0] != mutex) continue;
        if (is_free && thread->state == SP_THREAD_WAITS_LOCK) thread_set_ready(thread);
        if (!is_free && thread->state == SP_THREAD_READY) {
            thread_set_waiting(thread, SP_THREAD_WAITS_LOCK);
        }
    }
}

static void mutex_acquire(sp_sched_thread *self, sp_mutex *mutex, const void *pc)
{
    mutex->impl.owner = self->id + 1;
    update_lockers(self, (uintptr_t)mutex, false);
    sp__sync_acquire(self, (uintptr_t)mutex, pc);
    sp__lock_check_taken(SP_LOCK_STATE(mutex));
}

/* Sets the next step of `thread` to locking `mutex`. */
static void thread_will_lock(sp_sched_thread *thread, uintptr_t mutex, const void *pc)
{
    thread->op =
        (sp_op){.kind = SP_OP_LOCK, .key_count = 1, .key = {mutex}, .is_write = {true}, .pc = pc};
    if (mutex_is_locked(mutex)) {
        thread_set_waiting(thread, SP_THREAD_WAITS_LOCK);
    } else {
        thread_set_ready(thread);
    }
}

static void mutex_release(sp_sched_thread *self, sp_mutex *mutex, const void *pc)
{
    if (mutex->impl.owner != self->id + 1) {
        sp__engine_fail(SP_SCHED_MISUSE, "thread %u unlocks a mutex that it does not hold, pc %#x",
                        self->id, sp__pc_offset(pc));
    }
    sp__lock_check_released(SP_LOCK_STATE(mutex));
    sp__sync_release(self, (uintptr_t)mutex, pc);
    mutex->impl.owner = 0;
    update_lockers(self, (uintptr_t)mutex, true);
}

void sp_mutex_init(sp_mutex *mutex, sp_lock_rank rank)
{
    sp_sched_thread *self = sp__engine.self;
    if (self != NULL) {
        sp__shadow_access(self, (uintptr_t)mutex, sizeof *mutex, true, __builtin_return_address(0));
    }
    mutex->impl.owner = 0;
    sp__lock_check_init(SP_LOCK_STATE(mutex), rank);
}

void sp_mutex_deinit(sp_mutex *mutex)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return;
    if (mutex->impl.owner != 0) {
        sp__engine_fail(SP_SCHED_MISUSE, "thread %u destroys a mutex that thread %u holds",
                        self->id, (uint32_t)mutex->impl.owner - 1);
    }
    sp__shadow_access(self, (uintptr_t)mutex, sizeof *mutex, true, __builtin_return_address(0));
}

SP_NO_LOCK_ANALYSIS void sp_mutex_lock(sp_mutex *mutex)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return;
    const void *pc = __builtin_return_address(0);
    (void)sp__shadow_atomic(self, (uintptr_t)mutex, 8, false, pc); /* before owner is read */
    sp__lock_check_order(SP_LOCK_STATE(mutex));
    thread_will_lock(self, (uintptr_t)mutex, pc);
    sp__engine_point(self);
    mutex_acquire(self, mutex, pc);
    sp__engine_done(self, true, 0);
}

SP_NO_LOCK_ANALYSIS bool sp_mutex_try_lock(sp_mutex *mutex)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return true;
    const void *pc = __builtin_return_address(0);
    sp__engine_step(self, SP_OP_TRY_LOCK, (uintptr_t)mutex, true, pc);
    (void)sp__shadow_atomic(self, (uintptr_t)mutex, 8, false, pc);
    const bool is_taken = !mutex_is_locked((uintptr_t)mutex);
    if (is_taken) {
        mutex_acquire(self, mutex, pc);
    } else {
        self->op.is_write[0] = false;
    }
    sp__engine_done(self, is_taken, is_taken);
    return is_taken;
}

SP_NO_LOCK_ANALYSIS void sp_mutex_unlock(sp_mutex *mutex)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return;
    const void *pc = __builtin_return_address(0);
    sp__engine_step(self, SP_OP_UNLOCK, (uintptr_t)mutex, true, pc);
    mutex_release(self, mutex, pc);
    sp__engine_done(self, true, 0);
}

/* --- sleeping --- */

/* Puts `self` to sleep after its current step, until another thread or the search wakes it. */
static void thread_sleep(sp_sched_thread *self, sp_thread_state state, uintptr_t key,
                         uint64_t deadline_ns, const void *pc)
{
    sp_engine *engine = &sp__engine;
    self->sleeps_on = key;
    self->deadline = deadline_ns;
    self->has_timed_out = false;
    self->op =
        (sp_op){.kind = SP_OP_WAKE_UP, .key_count = 1, .key = {key}, .is_write = {true}, .pc = pc};
    thread_set_waiting(self, state);
    const bool is_timed = deadline_ns != SP_NO_DEADLINE;
    if (is_timed) engine->timed |= self->bit;
    if ((is_timed && engine->options.timeouts_are_choices) || engine->spurious_left > 0) {
        engine->napping |= self->bit;
    }
    sp__engine_point(self);
}

bool sp__sync_wake_up(sp_sched_thread *thread)
{
    sp__engine.timed &= ~thread->bit;
    sp__engine.napping &= ~thread->bit;
    if (thread->state == SP_THREAD_SLEEPS_COND) {
        thread_will_lock(thread, thread->sleep_mutex, thread->op.pc);
        return false;
    }
    thread_set_ready(thread);
    return true;
}

static uint32_t sleepers_on(uintptr_t key, sp_thread_state state)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < sp__engine.thread_count; i++) {
        const sp_sched_thread *thread = &sp__engine.threads[i];
        if (thread->state == state && thread->sleeps_on == key) mask |= thread->bit;
    }
    return mask;
}

/* Wakes up to `count` sleepers, chosen by the search, and completes the step of `self`. */
static void sleepers_wake(sp_sched_thread *self, uintptr_t key, sp_thread_state state,
                          uint32_t count)
{
    uint32_t sleepers = sleepers_on(key, state);
    uint32_t woken = 0;
    for (; sleepers != 0 && count > 0; count--) {
        const uint32_t left = (uint32_t)__builtin_popcount(sleepers);
        uint32_t mask = sleepers;
        for (uint32_t skip = left > count ? sp__engine_choose(left) : 0; skip > 0; skip--) {
            mask &= mask - 1;
        }
        woken |= mask & (~mask + 1);
        sleepers &= ~woken;
    }
    sp__engine_done(self, woken != 0, woken);
    for (; woken != 0; woken &= woken - 1) {
        sp_sched_thread *thread = &sp__engine.threads[__builtin_ctz(woken)];
        sp__deps_follow(thread, &self->step_clock);
        if (sp__sync_wake_up(thread)) sp__engine_run_ahead(thread);
    }
}

/* --- condition variables --- */

void sp_cond_init(sp_cond *cond)
{
    sp_sched_thread *self = sp__engine.self;
    if (self != NULL) {
        sp__shadow_access(self, (uintptr_t)cond, sizeof *cond, true, __builtin_return_address(0));
    }
    cond->impl.unused = 0;
}

void sp_cond_deinit(sp_cond *cond)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return;
    if (sleepers_on((uintptr_t)cond, SP_THREAD_SLEEPS_COND) != 0) {
        sp__engine_fail(SP_SCHED_MISUSE, "thread %u destroys a cond on which threads sleep",
                        self->id);
    }
    sp__shadow_access(self, (uintptr_t)cond, sizeof *cond, true, __builtin_return_address(0));
}

SP_NO_LOCK_ANALYSIS static bool cond_wait(sp_cond *cond, sp_mutex *mutex, uint64_t deadline_ns,
                                          const void *pc)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return true;
    self->op = (sp_op){.kind = SP_OP_COND_WAIT,
                       .key_count = 2,
                       .key = {(uintptr_t)cond, (uintptr_t)mutex},
                       .is_write = {true, true},
                       .pc = pc};
    sp__engine_point(self);
    (void)sp__shadow_atomic(self, (uintptr_t)cond, 8, false, pc);
    mutex_release(self, mutex, pc);
    sp_lock_check_none("a wait for a condition");
    sp__engine_done(self, true, 0);
    if (deadline_ns > sp__engine.now_ns) {
        self->sleep_mutex = (uintptr_t)mutex;
        thread_sleep(self, SP_THREAD_SLEEPS_COND, (uintptr_t)cond, deadline_ns, pc);
    } else {
        self->has_timed_out = true;
        thread_will_lock(self, (uintptr_t)mutex, pc);
        sp__engine_point(self);
    }
    mutex_acquire(self, mutex, pc); /* the step set by sp__sync_wake_up */
    const bool is_in_time = !self->has_timed_out;
    sp__engine_done(self, true, is_in_time);
    return is_in_time;
}

SP_NO_LOCK_ANALYSIS void sp_cond_wait(sp_cond *cond, sp_mutex *mutex)
{
    (void)cond_wait(cond, mutex, SP_NO_DEADLINE, __builtin_return_address(0));
}

SP_NO_LOCK_ANALYSIS bool sp_cond_wait_until(sp_cond *cond, sp_mutex *mutex, uint64_t deadline_ns)
{
    return cond_wait(cond, mutex, deadline_ns, __builtin_return_address(0));
}

static void cond_wake(sp_cond *cond, uint32_t count, const void *pc)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return;
    sp__engine_step(self, SP_OP_COND_SIGNAL, (uintptr_t)cond, true, pc);
    (void)sp__shadow_atomic(self, (uintptr_t)cond, 8, false, pc);
    sleepers_wake(self, (uintptr_t)cond, SP_THREAD_SLEEPS_COND, count);
}

void sp_cond_signal(sp_cond *cond)
{
    cond_wake(cond, 1, __builtin_return_address(0));
}

void sp_cond_broadcast(sp_cond *cond)
{
    cond_wake(cond, UINT32_MAX, __builtin_return_address(0));
}

/* --- words --- */

static bool word_sleep(sp_atomic_u32 *word, uint32_t seen, uint64_t deadline_ns, const void *pc)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return true;
    const uintptr_t addr = (uintptr_t)word;
    self->op = (sp_op){.kind = SP_OP_WORD_WAIT,
                       .key_count = 2,
                       .key = {addr, addr + 1},
                       .is_write = {false, true},
                       .pc = pc};
    sp__engine_point(self);
    (void)sp__shadow_atomic(self, addr, sizeof *word, false, pc);
    const uint32_t value = word->value;
    const bool sleeps = value == seen && deadline_ns > sp__engine.now_ns;
    if (!sleeps) self->op.key_count = 1;
    sp__engine_done(self, sleeps, value);
    if (!sleeps) return value != seen;
    thread_sleep(self, SP_THREAD_SLEEPS_WORD, addr + 1, deadline_ns, pc);
    return !self->has_timed_out;
}

bool sp_word_wait(sp_atomic_u32 *word, uint32_t seen, uint64_t deadline_ns)
{
    sp_lock_check_none("a wait on a word");
    return word_sleep(word, seen, deadline_ns, __builtin_return_address(0));
}

bool sp__word_sleep(sp_atomic_u32 *word, uint32_t seen, uint64_t deadline_ns)
{
    return word_sleep(word, seen, deadline_ns, __builtin_return_address(0));
}

void sp_word_wake(sp_atomic_u32 *word, uint32_t count)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return;
    const uintptr_t key = (uintptr_t)word + 1;
    sp__engine_step(self, SP_OP_WORD_WAKE, key, true, __builtin_return_address(0));
    sleepers_wake(self, key, SP_THREAD_SLEEPS_WORD, count);
}
