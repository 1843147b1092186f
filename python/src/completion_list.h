/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of what the library's threads have finished, for threads with the interpreter's lock to
 * drain. A push takes no lock and allocates nothing, so that no thread of the library ever waits
 * for the interpreter. The list's descriptor (an eventfd) is readable while the list may have
 * nodes: it is written by the push into an empty list alone, so a drain wakes once for many nodes.
 *
 *     head != NULL  =>  the descriptor is readable, or the push that made it so is about to write
 *
 * A list may be forwarded: an event loop has ended, and another list receives what comes later.
 * Lists are counted: each node in flight has a reference, so a push never meets a freed list. */
#ifndef SP_PYTHON_COMPLETION_LIST_H
#define SP_PYTHON_COMPLETION_LIST_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first member of what is completed. Owned by its list from the push to the take. */
typedef struct sp_py_completion {
    struct sp_py_completion *next;
} sp_py_completion;

typedef struct sp_py_completion_list sp_py_completion_list;

/* With one reference. NULL: no memory or no descriptor (errno). */
sp_py_completion_list *sp_py_completion_list_create(void);
void sp_py_completion_list_retain(sp_py_completion_list *list);
/* The last release forgets nodes that were not taken. */
void sp_py_completion_list_release(sp_py_completion_list *list);

/* Readable while there are nodes to take. */
int sp_py_completion_list_fd(const sp_py_completion_list *list);

/* Any thread, with a reference to the list. */
void sp_py_completion_list_push(sp_py_completion_list *list, sp_py_completion *node);

/* All nodes, in the order of their pushes. */
sp_py_completion *sp_py_completion_list_take(sp_py_completion_list *list);

/* Makes the descriptor readable without a node. */
void sp_py_completion_list_wake(sp_py_completion_list *list);

/* Nodes of `list`, and those that come later, go to `to`, which is kept. At most once for a list;
 * `to` itself is never forwarded. */
void sp_py_completion_list_forward(sp_py_completion_list *list, sp_py_completion_list *to);

/* In a forked child, before anything is pushed there: forgets the nodes, which are the parent's,
 * and gives the list a descriptor of its own under the same number. The descriptors of both
 * processes are one counter otherwise, and a read in one takes the wake-ups of the other. Without a
 * new descriptor the number is closed, and the list wakes nothing. */
void sp_py_completion_list_after_fork(sp_py_completion_list *list);

#ifdef __cplusplus
}
#endif

#endif
