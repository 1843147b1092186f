/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions: they end the process in debug builds, and are not evaluated in others. */
#include "base/assert.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

/* Runs fn in a child; its exit status, and what it wrote to stderr. */
static int run_in_child(void (*fn)(void), char *text, size_t bytes)
{
    int ends[2];
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while ((got = read(ends[0], text + used, bytes - 1 - used)) > 0) used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return status;
}

static void break_an_invariant(void)
{
    signal(SIGABRT, SIG_DFL);
    sp__assert_failed("queue.c", 12, "count > 0");
}

TEST(a_broken_invariant_names_itself_and_aborts)
{
    char text[2048];
    const int status = run_in_child(break_an_invariant, text, sizeof text);
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
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
    signal(SIGABRT, SIG_DFL);
    SP_ASSERT(count_evaluation(false));
}

TEST(only_debug_builds_stop_at_an_assertion)
{
    char text[2048];
    const int status = run_in_child(assert_false, text, sizeof text);
#if defined(NDEBUG)
    CHECK_EQ_INT(status, 0);
#else
    CHECK(status != 0);
    CHECK(strstr(text, "count_evaluation(false)") != NULL);
#endif
}

TEST_MAIN
