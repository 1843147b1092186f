/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock of the system. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

#include "base/cancel.h"

uint64_t sp_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sp_clock_thread(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
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
