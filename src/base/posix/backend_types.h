/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of base's types on POSIX. The controlled scheduler has a file of the same name. */
#ifndef SP_BACKEND_TYPES_H
#define SP_BACKEND_TYPES_H

#include <pthread.h>

#include "base/word_lock.h"

typedef sp_word_lock sp_mutex_impl;
#define SP_MUTEX_IMPL_INIT                                                                         \
    {                                                                                              \
        .word = { SP_WORD_FREE }                                                                   \
    }
#define SP_MUTEX_INLINE static inline
typedef sp_word_cond sp_cond_impl;
typedef pthread_t sp_thread_impl;

#endif
