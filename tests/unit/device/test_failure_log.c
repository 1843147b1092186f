/* SPDX-License-Identifier: Apache-2.0 */
/* The log of failures compared with a plain array: lookup by value, and what is reported to each
 * thread. */
#include "device/failure_log.h"

#include <string.h>

#include "base/heap.h"
#include "support/test.h"

#define THREADS 5u
#define MOST 200000u

/* The fault of a value, different for neighbours. */
static sp_fault fault_of(uint64_t value)
{
    return (sp_fault)(SP_FAILED << 24 | (value & 0xffffffu));
}

static void add(sp_failure_log *log, uint64_t value, uint64_t thread)
{
    void *retired;
    sp__failure_log_add(log, value, thread, fault_of(value), &retired);
    sp_free(retired);
}

TEST(each_thread_takes_its_own_failures_once_in_the_order_of_their_values)
{
    sp_failure_log log = {0};
    for (uint64_t value = 1; value <= 1000; value++) add(&log, value, value % THREADS + 1);
    for (uint64_t thread = 1; thread <= THREADS; thread++) {
        uint64_t expected = thread == 1 ? THREADS : thread - 1;
        for (; expected <= 500; expected += THREADS) {
            CHECK_EQ_U64(sp__failure_log_take(&log, 500, thread), fault_of(expected));
        }
        CHECK_EQ_U64(sp__failure_log_take(&log, 500, thread), SP_NO_FAULT);
        for (; expected <= 1000; expected += THREADS) {
            CHECK_EQ_U64(sp__failure_log_take(&log, 1000, thread), fault_of(expected));
        }
        CHECK_EQ_U64(sp__failure_log_take(&log, UINT64_MAX, thread), SP_NO_FAULT);
    }
    CHECK_EQ_U64(sp__failure_log_take(&log, UINT64_MAX, THREADS + 1), SP_NO_FAULT);
    /* Reported or not, they are found. */
    for (uint64_t value = 1; value <= 1000; value++) {
        CHECK_EQ_U64(sp__failure_log_find(&log, value), fault_of(value));
    }
    sp_free(sp__failure_log_clear(&log));
}

TEST(values_without_a_failure_are_not_found)
{
    sp_failure_log log = {0};
    CHECK_EQ_U64(sp__failure_log_find(&log, 1), SP_NO_FAULT);
    CHECK_EQ_U64(sp__failure_log_take(&log, UINT64_MAX, 1), SP_NO_FAULT);
    for (uint64_t value = 10; value <= 100; value += 10) add(&log, value, 1);
    CHECK_EQ_U64(sp__failure_log_find(&log, 9), SP_NO_FAULT);
    CHECK_EQ_U64(sp__failure_log_find(&log, 55), SP_NO_FAULT);
    CHECK_EQ_U64(sp__failure_log_find(&log, 101), SP_NO_FAULT);
    CHECK_EQ_U64(sp__failure_log_count(&log, 10, 50), 4);
    CHECK_EQ_U64(sp__failure_log_count(&log, 0, 1000), 10);
    CHECK_EQ_U64(sp__failure_log_count(&log, 100, 1000), 0);
    sp_free(sp__failure_log_clear(&log));
}

/* Through growth and wrap-around, with reports in between. */
TEST(the_newest_failures_are_kept_and_the_others_are_said_to_be_forgotten)
{
    static bool is_told[MOST + 1];
    memset(is_told, 0, sizeof is_told);
    sp_failure_log log = {0};
    uint64_t seed = 5;
    for (uint64_t value = 1; value <= MOST; value++) {
        add(&log, value, value % THREADS + 1);
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        if (seed >> 62 != 0) continue;
        const sp_fault fault = sp__failure_log_take(&log, value, value % THREADS + 1);
        REQUIRE(fault != SP_NO_FAULT);
        is_told[fault & 0xffffffu] = true;
    }
    const uint64_t oldest = MOST - SP_TIMELINE_FAILURES + 1;
    CHECK_EQ_U64(log.forgotten, oldest - 1);
    CHECK_EQ_U64(log.count, SP_TIMELINE_FAILURES);
    for (uint64_t value = 1; value <= MOST; value++) {
        const sp_fault found = sp__failure_log_find(&log, value);
        CHECK_EQ_U64(found, value < oldest ? SP_NO_FAULT : fault_of(value));
    }
    for (uint64_t value = oldest; value <= MOST; value++) {
        if (is_told[value]) continue;
        const sp_fault fault = sp__failure_log_take(&log, MOST, value % THREADS + 1);
        CHECK_EQ_U64(fault, fault_of(value));
    }
    for (uint64_t thread = 1; thread <= THREADS; thread++) {
        CHECK_EQ_U64(sp__failure_log_take(&log, MOST, thread), SP_NO_FAULT);
    }
    sp_free(sp__failure_log_clear(&log));
}

/* More threads than the table's initial size, so that chains form and are removed. */
TEST(threads_of_one_hash_are_told_apart)
{
    sp_failure_log log = {0};
    for (uint64_t value = 1; value <= 4096; value++) add(&log, value, value * 64 % 1021 + 1);
    uint64_t told = 0;
    for (uint64_t thread = 1021; thread >= 1; thread--) {
        sp_fault fault;
        while ((fault = sp__failure_log_take(&log, 4096, thread)) != SP_NO_FAULT) {
            CHECK_EQ_U64((uint64_t)(fault & 0xffffffu) * 64 % 1021 + 1, thread);
            told++;
        }
    }
    CHECK_EQ_U64(told, 4096);
    sp_free(sp__failure_log_clear(&log));
}

/* With a walk over them a million calls would take minutes. */
TEST(unreported_failures_of_one_thread_cost_another_nothing)
{
    sp_failure_log log = {0};
    for (uint64_t value = 1; value <= SP_TIMELINE_FAILURES; value++) add(&log, value, 1);
    const uint64_t calls = test_count(10000000, 3000000);
    for (uint64_t i = 0; i < calls; i++) {
        CHECK_EQ_U64(sp__failure_log_take(&log, UINT64_MAX, 2), SP_NO_FAULT);
    }
    CHECK_EQ_U64(sp__failure_log_take(&log, UINT64_MAX, 1), fault_of(1));
    sp_free(sp__failure_log_clear(&log));
}

TEST(without_memory_the_newest_replaces_the_oldest)
{
    sp_failure_log log = {0};
    sp_heap_fail_after(0);
    add(&log, 1, 1);
    sp_heap_fail_after(UINT64_MAX);
    CHECK_EQ_U64(log.forgotten, 1);
    CHECK_EQ_U64(log.count, 0);
    for (uint64_t value = 2; value < 2 + 16; value++) add(&log, value, 1);
    sp_heap_fail_after(0);
    add(&log, 18, 1);
    sp_heap_fail_after(UINT64_MAX);
    CHECK_EQ_U64(log.forgotten, 2);
    CHECK_EQ_U64(sp__failure_log_take(&log, 100, 1), fault_of(3));
    CHECK_EQ_U64(sp__failure_log_find(&log, 18), fault_of(18));
    sp_free(sp__failure_log_clear(&log));
}

TEST(a_failure_of_no_thread_is_known_and_reported)
{
    sp_failure_log log = {0};
    sp_fault first;
    for (uint64_t value = 1; value <= 40; value++) add(&log, value, value % 2); /* grows */
    CHECK_EQ_U64(sp__failure_log_unreported(&log, &first), 20);
    CHECK_EQ_U64(first, fault_of(1));
    CHECK_EQ_U64(sp__failure_log_take(&log, UINT64_MAX, 0), SP_NO_FAULT);
    for (uint64_t value = 1; value <= 40; value++) {
        CHECK_EQ_U64(sp__failure_log_find(&log, value), fault_of(value));
    }
    sp_free(sp__failure_log_clear(&log));
}

static uint32_t unreported(const sp_failure_log *log)
{
    sp_fault first;
    return sp__failure_log_unreported(log, &first);
}

TEST(what_a_thread_has_taken_between_two_values_is_not_taken_again)
{
    bool is_first;
    sp_failure_log log = {0};
    CHECK(!sp__failure_log_take_between(&log, 0, UINT64_MAX, 1, &is_first) && is_first);
    for (uint64_t value = 1; value <= 12; value++) add(&log, value, 1 + value % 2);
    /* Thread 2 has failed at 1, 3, 5, 7, 9 and 11. */
    CHECK(sp__failure_log_take_between(&log, 4, 8, 2, &is_first) && !is_first);
    CHECK_EQ_U64(unreported(&log), 10);
    CHECK(!sp__failure_log_take_between(&log, 4, 8, 2, &is_first) && !is_first);
    CHECK(!sp__failure_log_take_between(&log, 12, 20, 2, &is_first) && !is_first);
    CHECK(sp__failure_log_take_between(&log, 10, 20, 2, &is_first) && !is_first);
    add(&log, 13, 2); /* behind the last that is left */
    const uint64_t left[] = {1, 3, 9, 13};
    for (uint32_t i = 0; i < SP_COUNT_OF(left); i++) {
        CHECK_EQ_U64(sp__failure_log_take(&log, UINT64_MAX, 2), fault_of(left[i]));
    }
    CHECK_EQ_U64(sp__failure_log_take(&log, UINT64_MAX, 2), SP_NO_FAULT);
    CHECK(sp__failure_log_take_between(&log, 0, 5, 1, &is_first) && is_first);
    CHECK_EQ_U64(sp__failure_log_take(&log, UINT64_MAX, 1), fault_of(6));
    CHECK_EQ_U64(unreported(&log), 3); /* 8, 10, 12 */
    for (uint64_t value = 1; value <= 13; value++) {
        CHECK_EQ_U64(sp__failure_log_find(&log, value), fault_of(value));
    }
    sp_free(sp__failure_log_clear(&log));
}

/* In a full log the oldest failures are forgotten, also those that were taken out of the middle. */
TEST(failures_that_were_taken_between_two_values_may_be_forgotten)
{
    enum { FULL = SP_TIMELINE_FAILURES };
    bool is_first;
    sp_failure_log log = {0};
    for (uint64_t value = 1; value <= FULL; value++) add(&log, value, 1);
    CHECK(sp__failure_log_take_between(&log, 10, FULL - 10, 1, &is_first) && !is_first);
    for (uint64_t value = FULL + 1; value <= 2 * (uint64_t)FULL - 5; value++) add(&log, value, 2);
    for (uint64_t value = FULL - 4; value <= FULL; value++) {
        CHECK_EQ_U64(sp__failure_log_take(&log, FULL, 1), fault_of(value));
    }
    CHECK_EQ_U64(sp__failure_log_take(&log, FULL, 1), SP_NO_FAULT);
    CHECK_EQ_U64(unreported(&log), FULL - 5);
    sp_free(sp__failure_log_clear(&log));
}

TEST_MAIN
