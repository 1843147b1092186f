/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a process that forks: the child has one thread and none of ours. */
#ifndef SP_BASE_FORK_H
#define SP_BASE_FORK_H

#include <stdbool.h>

#include "base/atomic.h"

/* `fn` runs in every child of a fork from now on. False if there is no memory. */
bool sp_fork_on_child(void (*fn)(void));

/* 1 in the forked child of a process that used the library: its locks may be held by threads that
 * are not there. Written by the handler that the runtime registers, before the child's own code
 * runs, and then never again. */
extern sp_atomic_u32 sp__fork_is_child;

/* For what must work without the runtime's word, or do nothing: setters and destructors. */
static inline bool sp_fork_is_child(void)
{
    return sp_load_relaxed(&sp__fork_is_child) != 0;
}

#endif
