/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that run in the child of a fork. */
#include "base/fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

static int first_runs;
static int second_runs;

static void count_first(void)
{
    first_runs++;
}

static void count_second(void)
{
    second_runs++;
}

/* Forks; checks in the child how often the functions have run there. */
static int fork_and_count(int first, int second)
{
    const pid_t child = fork();
    if (child == 0) _exit(first_runs == first && second_runs == second ? 0 : 1);
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

TEST(functions_run_in_children_made_after_they_were_registered_and_nowhere_else)
{
    CHECK_EQ_INT(fork_and_count(0, 0), 0);
    CHECK(sp_fork_on_child(count_first));
    CHECK_EQ_INT(fork_and_count(1, 0), 0);
    CHECK(sp_fork_on_child(count_second));
    CHECK_EQ_INT(fork_and_count(1, 1), 0);
    CHECK_EQ_INT(fork_and_count(1, 1), 0); /* counted per child */
    CHECK_EQ_INT(first_runs + second_runs, 0);
}

TEST_MAIN
