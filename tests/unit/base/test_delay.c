/* SPDX-License-Identifier: Apache-2.0 */
/* The delay injector: off by default, and absent from builds without it. */
#include "base/delay.h"

#include "base/clock.h"
#include "support/test.h"

static uint64_t time_of_points(int count)
{
    const uint64_t start = sp_clock_now();
    for (int i = 0; i < count; i++) sp_delay_point();
    return sp_clock_now() - start;
}

TEST(places_do_not_sleep_unless_asked_to)
{
    CHECK(time_of_points(10000) < 1000000000);
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
    const uint64_t short_ones = time_of_points(1000);
    sp_delay_configure(1, 1000, 0);
    const uint64_t none = time_of_points(1000);
    sp_delay_configure(0, 0, 0);
    CHECK(short_ones < 1000000000);
    CHECK(none < 1000000000);
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
    CHECK(time_of_points(1000) < 1000000000);
}

#endif

TEST_MAIN
