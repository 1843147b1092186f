/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes and condition variables on pthreads. Conditions wait on the monotonic clock. */
#include "base/mutex.h"

#include <errno.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/lock_check.h"

void sp_mutex_init(sp_mutex *mutex, sp_lock_rank rank)
{
    sp__lock_check_init(mutex, rank);
    const int error = pthread_mutex_init(&mutex->impl, NULL);
    SP_ASSERT(error == 0); /* default attributes need no memory on the systems we run on */
    (void)error;
}

void sp_mutex_deinit(sp_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->impl);
}

void sp_mutex_lock(sp_mutex *mutex) SP_NO_LOCK_ANALYSIS
{
    sp__lock_check_order(mutex);
    const int error = pthread_mutex_lock(&mutex->impl);
    SP_ASSERT(error == 0);
    (void)error;
    sp__lock_check_taken(mutex);
}

bool sp_mutex_try_lock(sp_mutex *mutex) SP_NO_LOCK_ANALYSIS
{
    if (pthread_mutex_trylock(&mutex->impl) != 0) return false;
    sp__lock_check_taken(mutex); /* in any order: whoever does not wait closes no circle */
    return true;
}

void sp_mutex_unlock(sp_mutex *mutex) SP_NO_LOCK_ANALYSIS
{
    sp__lock_check_given(mutex);
    const int error = pthread_mutex_unlock(&mutex->impl);
    SP_ASSERT(error == 0);
    (void)error;
}

void sp_cond_init(sp_cond *cond)
{
    const int error = pthread_cond_init(&cond->impl, NULL);
    SP_ASSERT(error == 0);
    (void)error;
}

void sp_cond_deinit(sp_cond *cond)
{
    pthread_cond_destroy(&cond->impl);
}

/* Of all its locks the thread may sleep with this one only, which it does not hold meanwhile. */
static void begin_wait(sp_mutex *mutex)
{
    sp__lock_check_given(mutex);
    sp_lock_check_none("a wait for a condition");
}

void sp_cond_wait(sp_cond *cond, sp_mutex *mutex)
{
    begin_wait(mutex);
    pthread_cond_wait(&cond->impl, &mutex->impl);
    sp__lock_check_taken(mutex);
}

bool sp_cond_wait_until(sp_cond *cond, sp_mutex *mutex, uint64_t deadline_ns)
{
    if (deadline_ns == SP_NO_DEADLINE) {
        sp_cond_wait(cond, mutex);
        return true;
    }
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                   .tv_nsec = (long)(deadline_ns % 1000000000u)};
    /* The clock is named here and not in an attribute, so that zeroed conditions keep to it too. */
    begin_wait(mutex);
    const int error = pthread_cond_clockwait(&cond->impl, &mutex->impl, CLOCK_MONOTONIC, &until);
    sp__lock_check_taken(mutex);
    return error != ETIMEDOUT;
}

void sp_cond_signal(sp_cond *cond)
{
    pthread_cond_signal(&cond->impl);
}

void sp_cond_broadcast(sp_cond *cond)
{
    pthread_cond_broadcast(&cond->impl);
}
