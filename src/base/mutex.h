/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes and condition variables with thread-safety annotations. Zeroed memory is a valid unlocked
 * mutex and a valid condition variable. Not recursive: locking twice is a bug, a deadlock to the
 * sanitizer and the scheduler. docs/concurrency.md ranks every mutex of the library; no callback,
 * device wait or free is made while one is held. */
#ifndef SP_BASE_MUTEX_H
#define SP_BASE_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "backend_types.h"
#include "base/annotations.h"

typedef struct SP_CAPABILITY("mutex") sp_mutex {
    sp_mutex_impl impl;
} sp_mutex;

typedef struct sp_cond {
    sp_cond_impl impl;
} sp_cond;

void sp_mutex_init(sp_mutex *mutex);
void sp_mutex_deinit(sp_mutex *mutex);
void sp_mutex_lock(sp_mutex *mutex) SP_ACQUIRE(mutex);
bool sp_mutex_try_lock(sp_mutex *mutex) SP_TRY_ACQUIRE(true, mutex);
void sp_mutex_unlock(sp_mutex *mutex) SP_RELEASE(mutex);

/* A condition variable belongs to one mutex. Waits can end for no reason: loop on the condition. */
void sp_cond_init(sp_cond *cond);
void sp_cond_deinit(sp_cond *cond);
void sp_cond_wait(sp_cond *cond, sp_mutex *mutex) SP_REQUIRES(mutex);
/* False once `deadline_ns` (sp_clock_now) has passed; SP_NO_DEADLINE waits for ever. */
bool sp_cond_wait_until(sp_cond *cond, sp_mutex *mutex, uint64_t deadline_ns) SP_REQUIRES(mutex);
void sp_cond_signal(sp_cond *cond);
void sp_cond_broadcast(sp_cond *cond);

#endif
