/* SPDX-License-Identifier: Apache-2.0 */
/* Fork support. The child of a fork has one thread, and none of the library's. */
#ifndef SP_BASE_FORK_H
#define SP_BASE_FORK_H

#include <stdbool.h>

#include "base/atomic.h"

/* Registers `fn` to run in every forked child from now on. False without memory. */
bool sp_fork_on_child(void (*fn)(void));

/* 1 in the forked child of a process that used the library, where locks may be held by threads that
 * do not exist. Written once, by the handler that the runtime registers, before the child's own
 * code runs. */
extern sp_atomic_u32 sp__fork_is_child;

/* For setters and destructors, which do not check the runtime's phase. */
static inline bool sp_fork_is_child(void)
{
    return sp_load_relaxed(&sp__fork_is_child) != 0;
}

#endif
