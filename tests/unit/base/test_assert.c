/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions: they end the process in debug builds, and are not evaluated in others. */
#include "base/assert.h"

#include <signal.h>
#include <string.h>

#include "support/child.h"
#include "support/test.h"

#define ABORTED (1000 + SIGABRT)

static void break_an_invariant(void)
{
    sp__assert_failed("queue.c", 12, "count > 0");
}

TEST(a_broken_invariant_names_itself_and_aborts)
{
    char text[2048];
    CHECK_EQ_INT(child_capture(break_an_invariant, text, sizeof text), ABORTED);
    CHECK(strstr(text, "queue.c:12: broken invariant: count > 0") != NULL);
}

static int evaluations;

static bool count_evaluation(bool value)
{
    evaluations++;
    return value;
}

TEST(an_assertion_that_holds_does_nothing)
{
    evaluations = 0;
    SP_ASSERT(count_evaluation(true));
#if defined(NDEBUG)
    const int expected = 0;
#else
    const int expected = 1;
#endif
    CHECK_EQ_INT(evaluations, expected);
}

static void assert_false(void)
{
    SP_ASSERT(count_evaluation(false));
}

TEST(only_debug_builds_stop_at_an_assertion)
{
    char text[2048];
    const int end = child_capture(assert_false, text, sizeof text);
#if defined(NDEBUG)
    CHECK_EQ_INT(end, 0);
#else
    CHECK_EQ_INT(end, ABORTED);
    CHECK(strstr(text, "count_evaluation(false)") != NULL);
#endif
}

TEST_MAIN
