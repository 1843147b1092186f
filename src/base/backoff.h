/* SPDX-License-Identifier: Apache-2.0 */
/* Back-off for polling: waits until another thread has left a section of a few instructions whose
 * end is not signalled, first by spinning, then by sleeping. The sleeps release the processor to a
 * thread of lower priority that was preempted inside the section; a spin, or a yield under a
 * real-time policy, would not. If there is a word or a parker to sleep on, use that instead. */
#ifndef SP_BASE_BACKOFF_H
#define SP_BASE_BACKOFF_H

#include <stdint.h>

#include "base/clock.h"
#include "base/thread.h"

#define SP_BACKOFF_SPINS 64u
#define SP_BACKOFF_FIRST_NS 20000u
#define SP_BACKOFF_LAST_NS 1000000u

/* Zeroed for each wait. */
typedef struct sp_backoff {
    uint32_t spins;
    uint32_t sleep_ns; /* of the last sleep; doubles each time */
} sp_backoff;

static inline void sp_backoff_turn(sp_backoff *backoff)
{
    if (backoff->spins < SP_SPIN_TURNS(SP_BACKOFF_SPINS)) {
        backoff->spins++;
        sp_spin_hint();
        return;
    }
    const uint32_t next = backoff->sleep_ns == 0 ? SP_BACKOFF_FIRST_NS : backoff->sleep_ns * 2;
    backoff->sleep_ns = next < SP_BACKOFF_LAST_NS ? next : SP_BACKOFF_LAST_NS;
    sp_clock_sleep(backoff->sleep_ns);
}

#endif
