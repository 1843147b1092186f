/* SPDX-License-Identifier: Apache-2.0 */
#include "base/word_lock.h"

#include "base/clock.h"
#include "base/thread.h"
#include "base/tsan.h"
#include "base/wait.h"

/* How often a held lock is looked at before a thread sleeps for it, some microseconds: a section is
 * shorter than a sleep, unless its thread is preempted. */
#define SPINS SP_SPIN_TURNS(100u)

/* Also where others sleep: who comes first takes it. The sleeper that was woken marks the lock. */
static bool taken_soon(sp_word_lock *lock)
{
    for (uint32_t turn = 0; turn < SPINS; turn++) {
        if (sp_load_relaxed(&lock->word) == SP_WORD_FREE && sp_word_try_lock(lock)) return true;
        sp_spin_hint();
    }
    return false;
}

void sp__word_lock_slow(sp_word_lock *lock)
{
    if (taken_soon(lock)) return;
    uint32_t mark = SP_WORD_WAITED;
    while (sp_exchange_acquire(&lock->word, mark) != SP_WORD_FREE) {
        sp__word_sleep(&lock->word, mark, SP_NO_DEADLINE);
        if (SP_PLANTED(held_after_sleep)) mark = SP_WORD_HELD;
    }
    sp_tsan_acquire(&lock->word);
}

void sp__word_unlock_slow(sp_word_lock *lock)
{
    sp_word_wake(&lock->word, 1);
}

bool sp_word_cond_wait(sp_word_cond *cond, sp_word_lock *lock, uint64_t deadline_ns)
{
    uint32_t seen = sp_load_relaxed(&cond->signals);
    sp_fetch_add_relaxed(&cond->waiters, 1);
    sp_word_lock_release(lock);
    if (SP_PLANTED(look_after_unlock)) seen = sp_load_relaxed(&cond->signals);
    const bool is_in_time = sp__word_sleep(&cond->signals, seen, deadline_ns);
    sp_word_lock_acquire(lock);
    sp_fetch_sub_relaxed(&cond->waiters, 1);
    return is_in_time;
}

static void cond_wake(sp_word_cond *cond, uint32_t count)
{
    if (sp_load_relaxed(&cond->waiters) == 0) return;
    sp_fetch_add_relaxed(&cond->signals, 1);
    sp_word_wake(&cond->signals, count);
}

void sp_word_cond_signal(sp_word_cond *cond)
{
    cond_wake(cond, 1);
}

void sp_word_cond_broadcast(sp_word_cond *cond)
{
    cond_wake(cond, SP_WAKE_ALL);
}
