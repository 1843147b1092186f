/* SPDX-License-Identifier: Apache-2.0 */
/* The clock and deadlines on it. */
#include "base/clock.h"

#include <signal.h>
#include <sys/time.h>

#include "base/atomic.h"
#include "support/test.h"

TEST(time_never_goes_back)
{
    uint64_t before = sp_clock_now();
    for (int i = 0; i < 100000; i++) {
        const uint64_t now = sp_clock_now();
        REQUIRE(now >= before);
        before = now;
    }
}

static void look_at_shared_time(void *arg, uint32_t index)
{
    (void)index;
    sp_atomic_u64 *newest = arg;
    for (int i = 0; i < 20000; i++) {
        const uint64_t seen = sp_load_acquire(newest);
        const uint64_t now = sp_clock_now();
        REQUIRE(now >= seen);
        sp_store_release(newest, now);
    }
}

TEST(threads_agree_on_what_came_first)
{
    sp_atomic_u64 newest = {0};
    test_threads(4, look_at_shared_time, &newest);
}

TEST(a_sleep_lasts_at_least_as_long_as_asked)
{
    static const uint64_t durations[] = {0, 1, 1000, 3000000};
    for (size_t i = 0; i < SP_COUNT_OF(durations); i++) {
        const uint64_t start = sp_clock_now();
        sp_clock_sleep(durations[i]);
        CHECK(sp_clock_now() - start >= durations[i]);
    }
}

static sp_atomic_u32 alarm_count;

static void count_alarm(int signal_number)
{
    (void)signal_number;
    sp_fetch_add_relaxed(&alarm_count, 1);
}

TEST(a_signal_does_not_end_a_sleep)
{
    const uint64_t duration = 60000000;
    const struct sigaction count = {.sa_handler = count_alarm};
    struct sigaction former;
    REQUIRE(sigaction(SIGALRM, &count, &former) == 0);
    const struct itimerval soon = {.it_value.tv_usec = 5000, .it_interval.tv_usec = 5000};
    const struct itimerval never = {.it_value.tv_usec = 0};
    const uint64_t start = sp_clock_now();
    REQUIRE(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    sp_clock_sleep(duration);
    CHECK(sp_clock_now() - start >= duration);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK(sigaction(SIGALRM, &former, NULL) == 0);
    CHECK(sp_load_relaxed(&alarm_count) > 0);
}

TEST(a_negative_time_out_is_never_and_zero_is_already_past)
{
    CHECK_EQ_U64(sp_clock_deadline(-1), SP_NO_DEADLINE);
    CHECK_EQ_U64(sp_clock_deadline(INT64_MIN), SP_NO_DEADLINE);
    CHECK_EQ_U64(sp_clock_deadline(0), 0);
}

TEST(a_deadline_is_the_time_out_from_now)
{
    const uint64_t before = sp_clock_now();
    const uint64_t deadline = sp_clock_deadline(5000000);
    const uint64_t after = sp_clock_now();
    CHECK(deadline >= before + 5000000);
    CHECK(deadline <= after + 5000000);
}

TEST(the_longest_time_out_does_not_wrap)
{
    CHECK(sp_clock_deadline(INT64_MAX) > (uint64_t)INT64_MAX);
}

TEST_MAIN
