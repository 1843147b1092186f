/* SPDX-License-Identifier: Apache-2.0 */
#include "support/child.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

#define CHILD_SECONDS 100

/* Unblocks SIGALRM, since test threads block all signals and children inherit the mask. */
static void limit_child(void)
{
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(CHILD_SECONDS);
}

static int child_wait(pid_t child)
{
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int child_run(int (*fn)(void *arg), void *arg)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        limit_child();
        _exit(fn(arg));
    }
    return child_wait(child);
}

int child_capture(void (*fn)(void), char *text, size_t bytes)
{
    int ends[2];
    text[0] = '\0';
    fflush(stdout);
    const bool has_pipe = pipe(ends) == 0;
    CHECK(has_pipe);
    if (!has_pipe) return -1;
    const pid_t child = fork();
    if (child == 0) {
        limit_child();
        signal(SIGABRT, SIG_DFL);
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
    return child_wait(child);
}
