/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run_estimate.h"

#include "support/test.h"

static uint32_t estimate_of(const uint64_t *times, uint32_t count)
{
    sp_atomic_u32 estimate = {0};
    for (uint32_t i = 0; i < count; i++) sp__run_estimate_add(&estimate, times[i]);
    return sp_load_relaxed(&estimate);
}

TEST(the_first_time_is_the_estimate)
{
    CHECK_EQ_U64(estimate_of((uint64_t[]){7000}, 1), 7000);
    CHECK_EQ_U64(estimate_of((uint64_t[]){0}, 1), 1); /* 0 is none */
    CHECK_EQ_U64(estimate_of((uint64_t[]){UINT64_MAX}, 1), SP_RUN_ESTIMATE_MOST);
}

TEST(a_shorter_time_counts_at_once)
{
    CHECK_EQ_U64(estimate_of((uint64_t[]){1000000, 5000}, 2), 5000);
    CHECK_EQ_U64(estimate_of((uint64_t[]){UINT64_MAX, 5000, 4000}, 3), 4000);
}

TEST(one_interrupted_run_raises_the_estimate_by_a_quarter_at_most)
{
    CHECK_EQ_U64(estimate_of((uint64_t[]){8000, 50000000}, 2), 10001);
    CHECK_EQ_U64(estimate_of((uint64_t[]){8000, 9000}, 2), 9000);
    CHECK_EQ_U64(estimate_of((uint64_t[]){1, 1000, 1000}, 3), 3);
}

TEST(longer_runs_are_followed_and_the_value_never_wraps)
{
    sp_atomic_u32 estimate = {0};
    sp__run_estimate_add(&estimate, 10);
    for (int i = 0; i < 200; i++) sp__run_estimate_add(&estimate, 100000);
    CHECK_EQ_U64(sp_load_relaxed(&estimate), 100000);
    for (int i = 0; i < 200; i++) sp__run_estimate_add(&estimate, UINT64_MAX);
    CHECK_EQ_U64(sp_load_relaxed(&estimate), SP_RUN_ESTIMATE_MOST);
}

TEST_MAIN
