/* SPDX-License-Identifier: Apache-2.0 */
/* The check of the order of locks (base/lock_rank.h), in debug builds. Each thread has a list of
 * the locks that it holds, linked through the mutexes themselves. The functions of the first half
 * are the back ends' to call; in builds without assertions all of this is nothing. */
#ifndef SP_BASE_LOCK_CHECK_H
#define SP_BASE_LOCK_CHECK_H

#include "base/mutex.h"

#if SP_LOCK_CHECKS

void sp__lock_check_init(sp_mutex *mutex, sp_lock_rank rank);
/* Before the thread may block: asserts that its locks allow this one. */
void sp__lock_check_order(const sp_mutex *mutex);
/* The thread has it now, or is about to let go of it. */
void sp__lock_check_taken(sp_mutex *mutex);
void sp__lock_check_given(sp_mutex *mutex);

/* Asserts that the calling thread holds no lock; `what` says, for the message, what it must not do
 * with one: "a wait for a point". */
void sp_lock_check_none(const char *what);

#else

static inline void sp__lock_check_init(sp_mutex *mutex, sp_lock_rank rank)
{
    (void)mutex, (void)rank;
}
static inline void sp__lock_check_order(const sp_mutex *mutex)
{
    (void)mutex;
}
static inline void sp__lock_check_taken(sp_mutex *mutex)
{
    (void)mutex;
}
static inline void sp__lock_check_given(sp_mutex *mutex)
{
    (void)mutex;
}
static inline void sp_lock_check_none(const char *what)
{
    (void)what;
}

#endif

#endif
