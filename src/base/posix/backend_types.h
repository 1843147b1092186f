/* SPDX-License-Identifier: Apache-2.0 */
/* What base's types hold on POSIX. The controlled scheduler has a file of the same name. */
#ifndef SP_BACKEND_TYPES_H
#define SP_BACKEND_TYPES_H

#include <pthread.h>

typedef pthread_mutex_t sp_mutex_impl;
#define SP_MUTEX_IMPL_INIT PTHREAD_MUTEX_INITIALIZER
typedef pthread_cond_t sp_cond_impl;
typedef pthread_t sp_thread_impl;

#endif
