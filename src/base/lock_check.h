/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the order of locks (base/lock_rank.h), in debug builds. Each thread has a list of the
 * locks that it holds, linked through the mutexes. sp__ functions are called by the back ends; in
 * builds without assertions everything here is empty. */
#ifndef SP_BASE_LOCK_CHECK_H
#define SP_BASE_LOCK_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/lock_rank.h"

#if !defined(NDEBUG)
#define SP_LOCK_CHECKS 1
#else
#define SP_LOCK_CHECKS 0
#endif

#if SP_LOCK_CHECKS

/* Per-mutex state of the check. */
typedef struct sp_lock_state {
    sp_lock_rank rank;
    uint64_t place;              /* among the locks of its rank; 0: never two at once */
    struct sp_lock_state *outer; /* the holder's next older lock; only the holder accesses it */
} sp_lock_state;

#define SP_LOCK_STATE(mutex) (&(mutex)->state)

void sp__lock_check_init(sp_lock_state *lock, sp_lock_rank rank);
/* Before the thread may block: asserts that the locks it holds allow this one. */
void sp__lock_check_order(const sp_lock_state *lock);
/* After the thread has acquired the lock, and before it releases it. */
void sp__lock_check_taken(sp_lock_state *lock);
void sp__lock_check_released(sp_lock_state *lock);

/* Asserts that the calling thread holds no lock; `what` names the operation in the message: "a wait
 * for a point". */
void sp_lock_check_none(const char *what);

#else

typedef struct sp_lock_state sp_lock_state;

#define SP_LOCK_STATE(mutex) ((sp_lock_state *)NULL)

static inline void sp__lock_check_init(sp_lock_state *lock, sp_lock_rank rank)
{
    (void)lock, (void)rank;
}
static inline void sp__lock_check_order(const sp_lock_state *lock)
{
    (void)lock;
}
static inline void sp__lock_check_taken(sp_lock_state *lock)
{
    (void)lock;
}
static inline void sp__lock_check_released(sp_lock_state *lock)
{
    (void)lock;
}
static inline void sp_lock_check_none(const char *what)
{
    (void)what;
}

#endif

#endif
