/* SPDX-License-Identifier: Apache-2.0 */
/* Inline parts of base/mutex.h on POSIX. Included at its end only. */
#ifndef SP_BACKEND_MUTEX_H
#define SP_BACKEND_MUTEX_H

static inline void sp_mutex_lock(sp_mutex *mutex) SP_NO_LOCK_ANALYSIS
{
    sp__lock_check_order(SP_LOCK_STATE(mutex));
    sp_word_lock_acquire(&mutex->impl);
    sp__lock_check_taken(SP_LOCK_STATE(mutex));
}

/* Allowed in any order: a lock that does not wait cannot close a wait cycle. */
static inline bool sp_mutex_try_lock(sp_mutex *mutex) SP_NO_LOCK_ANALYSIS
{
    if (!sp_word_try_lock(&mutex->impl)) return false;
    sp__lock_check_taken(SP_LOCK_STATE(mutex));
    return true;
}

static inline void sp_mutex_unlock(sp_mutex *mutex) SP_NO_LOCK_ANALYSIS
{
    sp__lock_check_released(SP_LOCK_STATE(mutex));
    sp_word_lock_release(&mutex->impl);
}

#endif
