/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes and condition variables on pthreads. Conditions wait on the monotonic clock. */
#include "base/mutex.h"

#include <errno.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"

void sp_mutex_init(sp_mutex *mutex)
{
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
    const int error = pthread_mutex_lock(&mutex->impl);
    SP_ASSERT(error == 0);
    (void)error;
}

bool sp_mutex_try_lock(sp_mutex *mutex) SP_NO_LOCK_ANALYSIS
{
    return pthread_mutex_trylock(&mutex->impl) == 0;
}

void sp_mutex_unlock(sp_mutex *mutex) SP_NO_LOCK_ANALYSIS
{
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

void sp_cond_wait(sp_cond *cond, sp_mutex *mutex)
{
    pthread_cond_wait(&cond->impl, &mutex->impl);
}

bool sp_cond_wait_until(sp_cond *cond, sp_mutex *mutex, uint64_t deadline_ns)
{
    if (deadline_ns == SP_NO_DEADLINE) {
        pthread_cond_wait(&cond->impl, &mutex->impl);
        return true;
    }
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                   .tv_nsec = (long)(deadline_ns % 1000000000u)};
    /* The clock is named here and not in an attribute, so that zeroed conditions keep to it too. */
    return pthread_cond_clockwait(&cond->impl, &mutex->impl, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

void sp_cond_signal(sp_cond *cond)
{
    pthread_cond_signal(&cond->impl);
}

void sp_cond_broadcast(sp_cond *cond)
{
    pthread_cond_broadcast(&cond->impl);
}
