/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes and condition variables with thread-safety annotations. A mutex is initialised, with
 * SP_MUTEX_INIT or sp_mutex_init, and has a rank that defines when it may be locked; zeroed memory
 * is a valid condition variable. Not recursive: locking twice is a bug. No callback, kernel or wait
 * runs while a mutex is held; debug builds check this and the ranks. */
#ifndef SP_BASE_MUTEX_H
#define SP_BASE_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "backend_types.h"
#include "base/annotations.h"
#include "base/lock_check.h"

typedef struct SP_CAPABILITY("mutex") sp_mutex {
    sp_mutex_impl impl;
#if SP_LOCK_CHECKS
    sp_lock_state state;
#endif
} sp_mutex;

/* Initialiser of a mutex with static storage, or inside a larger initialiser. */
#if SP_LOCK_CHECKS
#define SP_MUTEX_INIT(rank_)                                                                       \
    {                                                                                              \
        .impl = SP_MUTEX_IMPL_INIT, .state = {.rank = (rank_) }                                    \
    }
#else
#define SP_MUTEX_INIT(rank_) {.impl = SP_MUTEX_IMPL_INIT}
#endif

typedef struct sp_cond {
    sp_cond_impl impl;
} sp_cond;

void sp_mutex_init(sp_mutex *mutex, sp_lock_rank rank);
void sp_mutex_deinit(sp_mutex *mutex);
SP_MUTEX_INLINE void sp_mutex_lock(sp_mutex *mutex) SP_ACQUIRE(mutex);
SP_MUTEX_INLINE bool sp_mutex_try_lock(sp_mutex *mutex) SP_TRY_ACQUIRE(true, mutex);
SP_MUTEX_INLINE void sp_mutex_unlock(sp_mutex *mutex) SP_RELEASE(mutex);

/* Sets the place (> 0) of an initialised, unused mutex among those of its rank. One thread may hold
 * several of these, locked in ascending order of place. */
static inline void sp_mutex_set_place(sp_mutex *mutex, uint64_t place)
{
#if SP_LOCK_CHECKS
    mutex->state.place = place;
#else
    (void)mutex, (void)place;
#endif
}

/* A condition variable belongs to one mutex. Waits can end spuriously: loop on the condition. */
void sp_cond_init(sp_cond *cond);
void sp_cond_deinit(sp_cond *cond);
void sp_cond_wait(sp_cond *cond, sp_mutex *mutex) SP_REQUIRES(mutex);
/* False once `deadline_ns` (sp_clock_now) has passed; SP_NO_DEADLINE: no limit. */
bool sp_cond_wait_until(sp_cond *cond, sp_mutex *mutex, uint64_t deadline_ns) SP_REQUIRES(mutex);
void sp_cond_signal(sp_cond *cond);
void sp_cond_broadcast(sp_cond *cond);

#include "backend_mutex.h"

#endif
