/* SPDX-License-Identifier: Apache-2.0 */
/* Fails and skips deliberately: CMakeLists.txt here compares its output and exit code. */
#include <stdlib.h>

#include "base/error.h"
#include "base/thread.h"
#include "support/test.h"

TEST(passes)
{
    CHECK(true);
    CHECK_EQ_INT(-3, -3);
    CHECK_EQ_U64(UINT64_MAX, UINT64_MAX);
    CHECK_EQ_STR("a", "a");
    CHECK_EQ_MEM("abc", "abd", 2);
    CHECK_OK(SP_OK);
    CHECK_STATUS(sp__fail(SP_INVALID, "the stream is closed"), SP_INVALID);
    CHECK_MESSAGE("closed");
}

TEST(every_kind_of_check_can_fail)
{
    CHECK(false);
    CHECK_EQ_INT(1, 2);
    CHECK_EQ_U64(1, 2);
    CHECK_EQ_STR("a", NULL);
    CHECK_EQ_MEM("abc", "abd", 3);
    CHECK_OK(SP_BUSY);
    CHECK_STATUS(SP_OK, SP_BUSY);
    CHECK_MESSAGE("open");
}

TEST(require_ends_the_test)
{
    REQUIRE_EQ_INT(1, 2);
    test_note("unreachable");
}

static void fail_on_thread(void *arg, uint32_t index)
{
    (void)arg;
    CHECK_EQ_U64(index, 100);
}

TEST(failures_on_threads_count)
{
    test_threads(3, fail_on_thread, NULL);
}

TEST(skips)
{
    SKIP("nothing to do");
}

TEST(a_failure_beats_a_skip)
{
    CHECK(false);
    SKIP("too late");
}

TEST(counts_follow_the_scale)
{
    setenv("STREAMPOOL_TEST_SCALE", "2.5", 1);
    CHECK_EQ_U64(test_count(1000, 10), 25);
    CHECK_EQ_U64(test_count(20, 10), 20);
    setenv("STREAMPOOL_TEST_SCALE", "0", 1);
    CHECK_EQ_U64(test_count(1000, 10), 1);
    unsetenv("STREAMPOOL_TEST_SCALE");
    CHECK_EQ_U64(test_count(1000, 10), 10);
}

TEST_MAIN
