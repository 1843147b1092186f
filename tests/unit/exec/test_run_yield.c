/* SPDX-License-Identifier: Apache-2.0 */
/* When threads that wait for a batch yield, and when other programs would get the processor. */
#include "exec/run_yield.h"

#include "base/clock.h"
#include "base/thread.h"
#include "support/test.h"

#define MS UINT64_C(1000000)
#define HOUR (3600000 * MS)

static sp_run_yields yields_of(uint32_t processors)
{
    return (sp_run_yields){.processors = processors};
}

TEST(runs_advance_on_no_more_processors_than_the_process_has)
{
    sp_run_yields yields;
    sp__run_yields_init(&yields, 1);
    CHECK_EQ_U64(yields.processors, 1);
    sp__run_yields_init(&yields, UINT32_MAX);
    CHECK_EQ_U64(yields.processors, sp_thread_core_count());
    CHECK(sp__run_yield(&yields));
}

TEST(a_yield_that_other_programs_got_is_followed_by_a_pause_of_a_multiple)
{
    sp_run_yields yields = yields_of(4);
    sp__run_yield_judge(&yields, 10 * MS, 13 * MS, 6 * MS - 1); /* less than half of 4 x 3 ms */
    CHECK_EQ_U64(sp_load_relaxed(&yields.paused_until), 13 * MS + 16 * 3 * MS);
    CHECK(sp_load_relaxed(&yields.measured) > 0); /* the first ones after the pause */
}

TEST(a_yield_in_which_the_process_had_its_processors_is_followed_by_none)
{
    sp_run_yields yields = yields_of(4);
    sp__run_yield_judge(&yields, 10 * MS, 13 * MS, 6 * MS);
    CHECK_EQ_U64(sp_load_relaxed(&yields.paused_until), 0);
    sp__run_yield_judge(&yields, 10 * MS, 10 * MS + 100, 0); /* short */
    CHECK_EQ_U64(sp_load_relaxed(&yields.paused_until), 0);
}

TEST(there_is_no_yield_in_a_pause_and_there_are_after_it)
{
    sp_run_yields yields = yields_of(1);
    sp_store_relaxed(&yields.paused_until, sp_clock_now() + HOUR);
    CHECK(!sp__run_yield(&yields));
    sp_store_relaxed(&yields.paused_until, sp_clock_now());
    CHECK(sp__run_yield(&yields));
}

/* Where the whole process was stopped, by a debugger or a container that is frozen, nothing says
 * that other programs will go on taking its processors. */
TEST(a_pause_is_never_long)
{
    sp_run_yields yields = yields_of(4);
    sp__run_yield_judge(&yields, 10 * MS, 10 * MS + HOUR, 0);
    const uint64_t until = sp_load_relaxed(&yields.paused_until);
    CHECK(until > 10 * MS + HOUR && until <= 12 * MS + HOUR + 2000 * MS);
    sp__run_yield_judge(&yields, 10 * MS, UINT64_MAX / 2, 0);
    CHECK(sp_load_relaxed(&yields.paused_until) <= UINT64_MAX / 2 + 2000 * MS);
}

/* On a busy machine one of them may be long again; then there are more. */
TEST(some_yields_are_measured_after_a_long_one)
{
    sp_run_yields yields = yields_of(1);
    sp__run_yield_judge(&yields, 10 * MS, 13 * MS, 3 * MS);
    uint32_t count = 0;
    while (sp_load_relaxed(&yields.measured) != 0 && count < 1000000) {
        sp_store_relaxed(&yields.paused_until, 0);
        CHECK(sp__run_yield(&yields));
        count++;
    }
    CHECK(count >= 64 && count < 1000000);
}

TEST_MAIN
