/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several turns tells what a batch takes beside a run, and what follows from a run's time.
 */
#include "batch/batch_time.h"

#include "support/test.h"

TEST(the_turn_with_the_median_ratio_counts)
{
    /* The machine became faster in the fourth turn: the medians of the columns are 30 and 10. */
    sp_batch_time turns[] = {{30, 20}, {30, 20}, {30, 20}, {30, 10}, {15, 10}, {15, 10}, {15, 10}};
    const sp_batch_time median = sp__batch_time_median(turns, 7);
    CHECK_EQ_U64(median.batch_ns * 2, median.lone_ns * 3);
}

TEST(a_lone_turn_is_its_own_median)
{
    sp_batch_time turn = {7, 3};
    const sp_batch_time median = sp__batch_time_median(&turn, 1);
    CHECK_EQ_U64(median.batch_ns, 7);
    CHECK_EQ_U64(median.lone_ns, 3);
}

TEST(a_turn_that_was_disturbed_does_not_count)
{
    sp_batch_time turns[] = {{20, 10}, {20000000, 10}, {20, 4000000}, {21, 10}, {20, 10}};
    const sp_batch_time median = sp__batch_time_median(turns, 5);
    CHECK_EQ_U64(median.batch_ns, 20);
    CHECK_EQ_U64(median.lone_ns, 10);
}

TEST(fewer_batches_of_long_runs_are_in_flight)
{
    CHECK_EQ_INT(sp__batches_in_flight(0), 8);
    CHECK_EQ_INT(sp__batches_in_flight(299999), 8);
    CHECK_EQ_INT(sp__batches_in_flight(300000), 5);
    CHECK_EQ_INT(sp__batches_in_flight(UINT64_MAX), 5);
}

TEST_MAIN
