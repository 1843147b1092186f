/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock of the system. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

#include "base/cancel.h"

static uint64_t clock_read(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t sp_clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

uint64_t sp_clock_thread(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t sp_clock_process(void)
{
    return clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

void sp_clock_sleep(uint64_t duration_ns)
{
    struct timespec left = {.tv_sec = (time_t)(duration_ns / 1000000000u),
                            .tv_nsec = (long)(duration_ns % 1000000000u)};
    const int state = sp_cancel_defer();
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    sp_cancel_restore(state);
}
