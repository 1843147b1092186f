/* SPDX-License-Identifier: Apache-2.0 */
/* A lock and a condition in words of their own; base/mutex.h is made of them on POSIX.
 *
 *     lock->word:  FREE    nobody has it
 *                  HELD    one thread has it, nobody sleeps for it
 *                  WAITED  one thread has it, and somebody may sleep for it
 *
 * Whoever goes to sleep sets WAITED first; whoever finds WAITED when letting go wakes one sleeper.
 * A thread that slept takes the lock as WAITED, since it cannot know whether it was the last: that
 * costs at most one wake-up for nobody, and no sleeper is forgotten. After U. Drepper, "Futexes Are
 * Tricky" (2011), section 6. Zeroed memory is a free lock, and a condition. */
#ifndef SP_BASE_WORD_LOCK_H
#define SP_BASE_WORD_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/macros.h"
#include "base/tsan.h"

enum { SP_WORD_FREE = 0, SP_WORD_HELD = 1, SP_WORD_WAITED = 2 };

typedef struct sp_word_lock {
    /* As above. Who takes it acquires what the last holder released with it. */
    sp_atomic_u32 word;
} sp_word_lock;

typedef struct sp_word_cond {
    /* Signals so far. Raised by whoever signals; a waiter reads it while it has the lock, and
     * sleeps only while it stays. Relaxed: the lock orders it with the state that is waited for.
     * 2^32 signals between a waiter's read and its sleep would be taken for none. */
    sp_atomic_u32 signals;
    /* Threads that wait, counted under the lock. Relaxed: a signaller has had the lock since the
     * waiters that it is for began, so it sees them. */
    sp_atomic_u32 waiters;
} sp_word_cond;

/* The parts that sleep. */
void sp__word_lock_slow(sp_word_lock *lock);
void sp__word_unlock_slow(sp_word_lock *lock);

static inline bool sp_word_try_lock(sp_word_lock *lock)
{
    uint32_t seen = SP_WORD_FREE;
    if (!sp_cas_acquire(&lock->word, &seen, SP_WORD_HELD)) return false;
    sp_tsan_acquire(&lock->word);
    return true;
}

static inline void sp_word_lock_acquire(sp_word_lock *lock)
{
    if (SP_UNLIKELY(!sp_word_try_lock(lock))) sp__word_lock_slow(lock);
}

/* The lock's memory may be gone once another thread can have taken it: only its address is used
 * after the exchange. */
static inline void sp_word_lock_release(sp_word_lock *lock)
{
    sp_tsan_release(&lock->word);
    const uint32_t former = SP_PLANTED(relaxed_unlock)
                                ? sp_exchange_relaxed(&lock->word, SP_WORD_FREE)
                                : sp_exchange_release(&lock->word, SP_WORD_FREE);
    if (SP_UNLIKELY(former == SP_WORD_WAITED)) sp__word_unlock_slow(lock);
}

/* Lets go of the lock, sleeps until a signal, and takes the lock again; false once `deadline_ns`
 * has passed. Can return for no reason. */
bool sp_word_cond_wait(sp_word_cond *cond, sp_word_lock *lock, uint64_t deadline_ns);
/* The caller has changed the state under the lock, and may still hold it. */
void sp_word_cond_signal(sp_word_cond *cond);
void sp_word_cond_broadcast(sp_word_cond *cond);

#endif
