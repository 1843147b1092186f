/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a process that forks: the child has one thread and none of ours. */
#ifndef SP_BASE_FORK_H
#define SP_BASE_FORK_H

#include <stdbool.h>

/* `fn` runs in every child of a fork from now on. False if there is no memory. */
bool sp_fork_on_child(void (*fn)(void));

#endif
