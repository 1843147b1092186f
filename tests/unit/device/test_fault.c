/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: messages in a ring, and the poison of storages. */
#include "device/fault.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "support/test.h"

static sp_fault make(sp_status status, uint32_t number)
{
    sp__fail(status, "fault number %u", number);
    return sp__fault_create(status);
}

TEST(no_fault_is_a_success_and_leaves_the_last_error)
{
    sp__fail(SP_IO, "as it was");
    CHECK_OK(sp__fault_report(SP_NO_FAULT));
    CHECK_MESSAGE("as it was");
}

TEST(a_fault_keeps_the_status_and_the_message_it_was_made_of)
{
    for (int status = SP_OK + 1; status <= SP_INTERNAL; status++) {
        const sp_fault fault = make((sp_status)status, (uint32_t)status);
        CHECK(fault != SP_NO_FAULT);
        CHECK_STATUS(sp__fault_status(fault), (sp_status)status);
        sp__fail(SP_IO, "something else");
        char expected[64];
        snprintf(expected, sizeof expected, "fault number %d", status);
        CHECK_STATUS(sp__fault_report(fault), (sp_status)status);
        CHECK_EQ_STR(sp_last_error(), expected);
    }
}

static void report_elsewhere(void *arg, uint32_t index)
{
    (void)index;
    CHECK_EQ_STR(sp_last_error(), "");
    CHECK_STATUS(sp__fault_report(*(const sp_fault *)arg), SP_CANCELLED);
    CHECK_EQ_STR(sp_last_error(), "fault number 7");
}

TEST(any_thread_may_report_a_fault_any_number_of_times)
{
    sp_fault fault = make(SP_CANCELLED, 7);
    test_threads(4, report_elsewhere, &fault);
}

TEST(the_newest_faults_keep_their_messages_and_older_ones_their_status)
{
    static sp_fault faults[SP_FAULT_MESSAGES + 5];
    for (uint32_t i = 0; i < SP_COUNT_OF(faults); i++) faults[i] = make(SP_FAILED, i);
    for (uint32_t i = 0; i < SP_COUNT_OF(faults); i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "fault number %u", i);
        CHECK_STATUS(sp__fault_report(faults[i]), SP_FAILED);
        if (i < 5) CHECK_MESSAGE("message was dropped");
        if (i >= 5) CHECK_EQ_STR(sp_last_error(), expected);
    }
}

TEST(a_fault_of_a_thread_without_an_error_says_what_its_status_means)
{
    sp__fail(SP_FAILED, "%s", "");
    CHECK_STATUS(sp__fault_report(sp__fault_create(SP_TIMEOUT)), SP_TIMEOUT);
    CHECK_MESSAGE(sp_status_text(SP_TIMEOUT));
}

static void make_and_report(void *arg, uint32_t index)
{
    const uint64_t rounds = *(const uint64_t *)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "thread %u round %llu", index, (unsigned long long)i);
        sp__fail(SP_FAILED, "%s", expected);
        const sp_fault fault = sp__fault_create(SP_FAILED);
        sp__fail(SP_IO, "something else");
        REQUIRE_STATUS(sp__fault_report(fault), SP_FAILED);
        /* Its own message, or none: never another one's, never half of two. */
        if (strcmp(sp_last_error(), expected) == 0) continue;
        REQUIRE(strstr(sp_last_error(), "message was dropped") != NULL);
    }
}

TEST(messages_of_many_threads_are_never_mixed_up)
{
    uint64_t rounds = test_count(200000, 10000);
    test_threads(8, make_and_report, &rounds);
}

/* ---- poison ---- */

TEST(poison_counts_in_its_own_life_only)
{
    sp_poison poison = {{0}};
    const sp_fault fault = make(SP_FAILED, 1);
    CHECK_EQ_U64(sp__poison_fault(&poison, 0), SP_NO_FAULT);
    sp__poison_set(&poison, 3, fault);
    CHECK_EQ_U64(sp__poison_fault(&poison, 3), fault);
    CHECK_EQ_U64(sp__poison_fault(&poison, 2), SP_NO_FAULT);
    CHECK_EQ_U64(sp__poison_fault(&poison, 4), SP_NO_FAULT);
    sp__poison_clear(&poison, 3);
    CHECK_EQ_U64(sp__poison_fault(&poison, 3), SP_NO_FAULT);
}

TEST(a_command_of_an_earlier_life_neither_poisons_nor_cures_a_later_one)
{
    sp_poison poison = {{0}};
    const sp_fault fault = make(SP_FAILED, 1);
    const sp_fault late = make(SP_FAILED, 2);
    sp__poison_set(&poison, 8, fault);
    sp__poison_set(&poison, 7, late);
    sp__poison_clear(&poison, 7);
    CHECK_EQ_U64(sp__poison_fault(&poison, 8), fault);
    CHECK_EQ_U64(sp__poison_fault(&poison, 7), SP_NO_FAULT);
}

TEST(lives_may_wrap_around)
{
    sp_poison poison = {{0}};
    const sp_fault before = make(SP_FAILED, 1);
    const sp_fault after = make(SP_FAILED, 2);
    sp__poison_set(&poison, UINT32_MAX, before);
    sp__poison_set(&poison, 0, after); /* the next use of the poison word */
    CHECK_EQ_U64(sp__poison_fault(&poison, 0), after);
    sp__poison_set(&poison, UINT32_MAX, before);
    CHECK_EQ_U64(sp__poison_fault(&poison, 0), after);
}

TEST(the_newest_poison_of_a_life_is_the_one_that_counts)
{
    sp_poison poison = {{0}};
    const sp_fault first = make(SP_FAILED, 1);
    const sp_fault second = make(SP_CANCELLED, 2);
    sp__poison_set(&poison, 1, first);
    sp__poison_set(&poison, 1, second);
    CHECK_EQ_U64(sp__poison_fault(&poison, 1), second);
}

TEST_MAIN
