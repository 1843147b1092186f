/* SPDX-License-Identifier: Apache-2.0 */
/* Run-once with failure. Threads that come during the run sleep on the state word. */
#include "base/clock.h"
#include "base/macros.h"
#include "base/thread.h"
#include "base/tsan.h"
#include "base/wait.h"

enum { NOT_RUN = 0, RUNNING = 1, RUNNING_WITH_SLEEPERS = 2, DONE = 3 };

static sp_status once_run_first(sp_once *once, sp_status (*fn)(void *arg), void *arg)
{
    const sp_status status = fn(arg);
    sp_tsan_release(&once->state);
    /* Publishes the writes of fn to the acquires in sp_once_run and below. */
    const uint32_t after = status == SP_OK ? (uint32_t)DONE : (uint32_t)NOT_RUN;
    const uint32_t before = SP_PLANTED(relaxed_once) ? sp_exchange_relaxed(&once->state, after)
                                                     : sp_exchange_acq_rel(&once->state, after);
    if (SP_PLANTED(once_wakes_one)) {
        sp_word_wake(&once->state, 1);
        return status;
    }
    if (before == RUNNING_WITH_SLEEPERS) sp_word_wake(&once->state, SP_WAKE_ALL);
    return status;
}

sp_status sp_once_run_slow(sp_once *once, sp_status (*fn)(void *arg), void *arg)
{
    for (;;) {
        uint32_t seen = sp_load_acquire(&once->state);
        if (seen == DONE) {
            sp_tsan_acquire(&once->state);
            return SP_OK;
        }
        if (seen == NOT_RUN) {
            if (!sp_cas_acquire(&once->state, &seen, RUNNING)) continue;
            sp_tsan_acquire(&once->state); /* of a run that failed */
            return once_run_first(once, fn, arg);
        }
        if (seen == RUNNING && !sp_cas_relaxed(&once->state, &seen, RUNNING_WITH_SLEEPERS))
            continue;
        sp_word_wait(&once->state, RUNNING_WITH_SLEEPERS, SP_NO_DEADLINE);
    }
}
