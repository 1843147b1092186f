/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes and condition variables on word locks; the inline part is in backend_mutex.h. */
#include "base/mutex.h"

#include "base/assert.h"
#include "base/clock.h"

void sp_mutex_init(sp_mutex *mutex, sp_lock_rank rank)
{
    sp__lock_check_init(SP_LOCK_STATE(mutex), rank);
    mutex->impl = (sp_word_lock)SP_MUTEX_IMPL_INIT;
}

void sp_mutex_deinit(sp_mutex *mutex)
{
    SP_ASSERT(sp_load_relaxed(&mutex->impl.word) == SP_WORD_FREE);
    (void)mutex;
}

void sp_cond_init(sp_cond *cond)
{
    *cond = (sp_cond){0};
}

void sp_cond_deinit(sp_cond *cond)
{
    SP_ASSERT(sp_load_relaxed(&cond->impl.waiters) == 0);
    (void)cond;
}

void sp_cond_wait(sp_cond *cond, sp_mutex *mutex)
{
    (void)sp_cond_wait_until(cond, mutex, SP_NO_DEADLINE);
}

bool sp_cond_wait_until(sp_cond *cond, sp_mutex *mutex, uint64_t deadline_ns)
{
    /* The thread must hold no other lock; this one is released during the sleep. */
    sp__lock_check_released(SP_LOCK_STATE(mutex));
    sp_lock_check_none("a wait for a condition");
    const bool is_in_time = sp_word_cond_wait(&cond->impl, &mutex->impl, deadline_ns);
    sp__lock_check_taken(SP_LOCK_STATE(mutex));
    return is_in_time;
}

void sp_cond_signal(sp_cond *cond)
{
    sp_word_cond_signal(&cond->impl);
}

void sp_cond_broadcast(sp_cond *cond)
{
    sp_word_cond_broadcast(&cond->impl);
}
