/* SPDX-License-Identifier: Apache-2.0 */
/* What a test does in a process of its own: it forks, aborts, exits, or has a library that nobody
 * has used yet. Nobody counts a child's checks; what it returns, or writes, is its verdict. */
#ifndef SP_TESTS_SUPPORT_CHILD_H
#define SP_TESTS_SUPPORT_CHILD_H

#include <stddef.h>

/* Exit code of the child that runs `fn`; 1000 and more: the signal that ended it, which SIGALRM
 * does if it hangs. */
int child_run(int (*fn)(void *arg), void *arg);

/* Exit code, likewise, of the child that runs `fn`, and what it wrote to stderr, cut to `bytes`. An
 * abort ends it as one does, whatever a sanitizer would make of that. */
int child_capture(void (*fn)(void), char *text, size_t bytes);

#endif
