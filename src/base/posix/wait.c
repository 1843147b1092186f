/* SPDX-License-Identifier: Apache-2.0 */
/* Word waits on Linux futexes. */
#include "base/wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock_check.h"

bool sp_word_wait(sp_atomic_u32 *word, uint32_t seen, uint64_t deadline_ns)
{
    sp_lock_check_none("a wait on a word");
    return sp__word_sleep(word, seen, deadline_ns);
}

bool sp__word_sleep(sp_atomic_u32 *word, uint32_t seen, uint64_t deadline_ns)
{
    /* FUTEX_WAIT_BITSET takes an absolute time on CLOCK_MONOTONIC. */
    struct timespec until;
    const struct timespec *limit = NULL;
    if (deadline_ns != SP_NO_DEADLINE) {
        until.tv_sec = (time_t)(deadline_ns / 1000000000u);
        until.tv_nsec = (long)(deadline_ns % 1000000000u);
        limit = &until;
    }
    const long result = syscall(SYS_futex, &word->value, FUTEX_WAIT_BITSET_PRIVATE, seen, limit,
                                NULL, FUTEX_BITSET_MATCH_ANY);
    return result == 0 || errno != ETIMEDOUT;
}

void sp_word_wake(sp_atomic_u32 *word, uint32_t count)
{
    const int limit = count > INT_MAX ? INT_MAX : (int)count;
    syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, limit, NULL, NULL, 0);
}
