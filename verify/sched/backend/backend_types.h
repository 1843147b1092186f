/* SPDX-License-Identifier: Apache-2.0 */
/* The state in base's types under the controlled scheduler. The engine knows the sleepers; a mutex
 * only has its owner. */
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
