/* SPDX-License-Identifier: Apache-2.0 */
/* The delay injector: off by default, and absent from builds without it. */
#include "base/delay.h"

#include <sys/resource.h>

#include "base/clock.h"
#include "support/test.h"

static long voluntary_switches(void)
{
    struct rusage usage = {0};
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;
}

/* Places at which the thread gave its processor away for a time: a sleep does, a yield does not. */
static long sleeps_of_points(int count)
{
    const long before = voluntary_switches();
    for (int i = 0; i < count; i++) sp_delay_point();
    return voluntary_switches() - before;
}

TEST(places_do_not_sleep_unless_asked_to)
{
    CHECK(sleeps_of_points(10000) < 100);
}

#if defined(SP_DELAYS)

static int count_sleeps(int count)
{
    int slept = 0;
    for (int i = 0; i < count; i++) {
        const uint64_t start = sp_clock_now();
        sp_delay_point();
        /* The shortest sleep takes longer than this; reading the clock rarely does. */
        if (sp_clock_now() - start > 20000) slept++;
    }
    return slept;
}

TEST(about_as_many_places_sleep_as_asked)
{
    sp_delay_configure(7, 500, 1000000);
    const int half = count_sleeps(200);
    sp_delay_configure(7, 1000, 1000000);
    const int all = count_sleeps(100);
    sp_delay_configure(0, 0, 0);
    CHECK(half > 50 && half < 150);
    CHECK(all > 90);
}

TEST(a_longest_sleep_below_a_microsecond_only_yields)
{
    sp_delay_configure(1, 1000, 500);
    const long short_ones = sleeps_of_points(1000);
    sp_delay_configure(1, 1000, 0);
    const long none = sleeps_of_points(1000);
    sp_delay_configure(1, 1000, 100000);
    const long long_ones = sleeps_of_points(1000);
    sp_delay_configure(0, 0, 0);
    CHECK(short_ones < 100);
    CHECK(none < 100);
    CHECK(long_ones > 500);
}

static void pass_or_configure(void *arg, uint32_t index)
{
    (void)arg;
    for (uint32_t i = 0; i < 50; i++) {
        if (index == 0) sp_delay_configure(i, 200 * (i % 2), 20000);
        sp_delay_point();
    }
}

TEST(any_thread_may_pass_a_place_and_change_the_configuration)
{
    test_threads(4, pass_or_configure, NULL);
    sp_delay_configure(0, 0, 0);
}

#else

TEST(a_build_without_delays_ignores_the_configuration)
{
    sp_delay_configure(1, 1000, 1000000000);
    CHECK(sleeps_of_points(1000) < 100);
}

#endif

TEST_MAIN
