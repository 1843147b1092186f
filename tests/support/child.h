/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a test's code in a child process: it may fork, abort, exit, or need an unused library.
 * Checks in a child are not counted; its verdict is its exit code or output. */
#ifndef SP_TESTS_SUPPORT_CHILD_H
#define SP_TESTS_SUPPORT_CHILD_H

#include <stddef.h>

/* Exit code of the child that runs `fn`; 1000 + the number of the signal that ended it (SIGALRM if
 * it hangs). */
int child_run(int (*fn)(void *arg), void *arg);

/* The same, with the child's stderr, cut to `bytes`. An abort ends the child by SIGABRT under
 * sanitizers too. */
int child_capture(void (*fn)(void), char *text, size_t bytes);

#endif
