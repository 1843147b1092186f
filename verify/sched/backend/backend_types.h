/* SPDX-License-Identifier: Apache-2.0 */
/* What base's types hold under the controlled scheduler. Who sleeps where is the engine's to know;
 * a mutex only names its owner. */
#ifndef SP_BACKEND_TYPES_H
#define SP_BACKEND_TYPES_H

#include <stdint.h>

typedef struct sp_mutex_impl {
    uint64_t owner; /* logical thread + 1; 0: unlocked */
} sp_mutex_impl;
#define SP_MUTEX_IMPL_INIT {0}
#define SP_MUTEX_INLINE

typedef struct sp_cond_impl {
    uint64_t unused; /* the address is the identity */
} sp_cond_impl;

typedef uint32_t sp_thread_impl; /* logical thread */

#endif
