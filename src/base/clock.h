/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock, in nanoseconds, and deadlines on it. */
#ifndef SP_BASE_CLOCK_H
#define SP_BASE_CLOCK_H

#include <stdint.h>

#define SP_NO_DEADLINE UINT64_MAX

uint64_t sp_clock_now(void);
/* CPU time that the calling thread has used. */
uint64_t sp_clock_thread(void);
/* CPU time that all threads of the process have used. A system call. */
uint64_t sp_clock_process(void);
void sp_clock_sleep(uint64_t duration_ns);

/* The deadline `timeout_ns` from now; negative: none; 0: already past. */
static inline uint64_t sp_clock_deadline(int64_t timeout_ns)
{
    if (timeout_ns < 0) return SP_NO_DEADLINE;
    if (timeout_ns == 0) return 0;
    const uint64_t now = sp_clock_now();
    return (uint64_t)timeout_ns < SP_NO_DEADLINE - now ? now + (uint64_t)timeout_ns
                                                       : SP_NO_DEADLINE;
}

#endif
