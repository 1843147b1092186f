/* SPDX-License-Identifier: Apache-2.0 */
#include "latencies.h"

#include "support/model_data.h"
#include "support/test.h"

static latencies all, other; /* too large for a stack */

TEST(a_percentile_is_exact_below_32_and_at_most_a_32nd_too_large)
{
    for (uint64_t ns = 0; ns < 32; ns++) {
        all = (latencies){0};
        latencies_add(&all, ns);
        latencies_add(&all, UINT64_MAX);
        CHECK_EQ_U64(latencies_percentile(&all, 0.5), ns);
    }
    data_random random = {3};
    for (uint64_t i = 0; i < test_count(1000000, 20000); i++) {
        const uint64_t ns = data_next(&random) >> (data_next(&random) % 64);
        all = (latencies){0};
        latencies_add(&all, ns);
        CHECK_EQ_U64(latencies_percentile(&all, 1), ns); /* the largest is exact */
        latencies_add(&all, UINT64_MAX);
        const uint64_t half = latencies_percentile(&all, 0.5);
        CHECK(half >= ns && half - ns <= ns / 32);
    }
}

TEST(percentiles_are_ranks)
{
    all = (latencies){0};
    CHECK_EQ_U64(latencies_percentile(&all, 0.99), 0);
    for (uint64_t i = 1; i <= 1000; i++) latencies_add(&all, i <= 990 ? 10 : 20);
    CHECK_EQ_U64(latencies_percentile(&all, 0), 10);
    CHECK_EQ_U64(latencies_percentile(&all, 0.99), 10);
    CHECK_EQ_U64(latencies_percentile(&all, 0.991), 20);
    CHECK_EQ_U64(latencies_percentile(&all, 1), 20);
}

TEST(histograms_are_merged)
{
    all = (latencies){0};
    other = (latencies){0};
    latencies_add(&all, 5);
    for (int i = 0; i < 3; i++) latencies_add(&other, 7);
    latencies_merge(&all, &other);
    CHECK_EQ_U64(all.count, 4);
    CHECK_EQ_U64(all.sum_ns, 26);
    CHECK_EQ_U64(all.max_ns, 7);
    CHECK_EQ_U64(latencies_percentile(&all, 0.25), 5);
    CHECK_EQ_U64(latencies_percentile(&all, 0.26), 7);
}

TEST_MAIN
