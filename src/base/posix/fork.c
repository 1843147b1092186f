/* SPDX-License-Identifier: Apache-2.0 */
/* Fork handlers by pthread_atfork. */
#include "base/fork.h"

#include <pthread.h>
#include <stddef.h>

sp_atomic_u32 sp__fork_is_child; /* process-wide: a property of the process */

bool sp_fork_on_child(void (*fn)(void))
{
    return pthread_atfork(NULL, NULL, fn) == 0;
}
