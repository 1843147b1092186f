/* SPDX-License-Identifier: Apache-2.0 */
/* A lock and a condition variable, each of 32-bit words; base/mutex.h uses them on POSIX.
 *
 *     lock->word:  FREE    not held
 *                  HELD    held, without sleepers
 *                  WAITED  held, possibly with sleepers
 *
 * A thread sets WAITED before it sleeps; an unlock that finds WAITED wakes one sleeper. A thread
 * that slept takes the lock as WAITED, since it may not be the last sleeper: at most one wake-up is
 * superfluous, and none is lost. After U. Drepper, "Futexes Are Tricky" (2011), section 6. Zeroed
 * memory is a free lock, and a condition variable. */
#ifndef SP_BASE_WORD_LOCK_H
#define SP_BASE_WORD_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/macros.h"
#include "base/tsan.h"

enum { SP_WORD_FREE = 0, SP_WORD_HELD = 1, SP_WORD_WAITED = 2 };

typedef struct sp_word_lock {
    /* As above. Lock acquires what the last holder's unlock released. */
    sp_atomic_u32 word;
} sp_word_lock;

typedef struct sp_word_cond {
    /* Number of signals. Incremented by signallers; a waiter reads it under the lock, and sleeps
     * only while it is unchanged. Relaxed: the lock orders it with the awaited state. Limit: 2^32
     * signals between a waiter's read and its sleep are seen as none. */
    sp_atomic_u32 signals;
    /* Number of waiting threads, counted under the lock. Relaxed: a signaller has held the lock
     * after its waiters began to wait, so it sees them. */
    sp_atomic_u32 waiters;
} sp_word_cond;

/* Slow paths, which sleep or wake. */
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

/* The lock's memory may be freed once another thread can acquire it: only its address is used after
 * the exchange. */
static inline void sp_word_lock_release(sp_word_lock *lock)
{
    sp_tsan_release(&lock->word);
    const uint32_t former = SP_PLANTED(relaxed_unlock)
                                ? sp_exchange_relaxed(&lock->word, SP_WORD_FREE)
                                : sp_exchange_release(&lock->word, SP_WORD_FREE);
    if (SP_UNLIKELY(former == SP_WORD_WAITED)) sp__word_unlock_slow(lock);
}

/* Releases the lock, sleeps until a signal, and acquires the lock again; false once `deadline_ns`
 * has passed. Can return spuriously. */
bool sp_word_cond_wait(sp_word_cond *cond, sp_word_lock *lock, uint64_t deadline_ns);
/* Called after the state was changed under the lock, which the caller may still hold. */
void sp_word_cond_signal(sp_word_cond *cond);
void sp_word_cond_broadcast(sp_word_cond *cond);

#endif
