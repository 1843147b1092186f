/* SPDX-License-Identifier: Apache-2.0 */
/* primitive: the extension has the library's public headers only. */
#include "exit_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static atomic_uint taking;       /* process-wide: there is one interpreter */
static atomic_bool closed;       /* set once */
static pthread_t closing_thread; /* written before `closed` */

bool sp_py_guard_begin_take(void)
{
    atomic_fetch_add_explicit(&taking, 1, memory_order_seq_cst);
    if (!atomic_load_explicit(&closed, memory_order_seq_cst)) return true;
    if (pthread_equal(closing_thread, pthread_self())) return true;
    atomic_fetch_sub_explicit(&taking, 1, memory_order_release);
    return false;
}

void sp_py_guard_end_take(void)
{
    atomic_fetch_sub_explicit(&taking, 1, memory_order_release);
}

void sp_py_guard_close(void)
{
    const struct timespec pause_time = {.tv_nsec = 100000};
    if (atomic_load_explicit(&closed, memory_order_relaxed)) return;
    closing_thread = pthread_self();
    atomic_store_explicit(&closed, true, memory_order_seq_cst);
    /* Acquire pairs with the release of each end. */
    while (atomic_load_explicit(&taking, memory_order_seq_cst) != 0) nanosleep(&pause_time, NULL);
}

bool sp_py_guard_is_closed(void)
{
    return atomic_load_explicit(&closed, memory_order_relaxed); /* nothing is read behind it */
}

void sp_py_guard_after_fork(void)
{
    atomic_store_explicit(&taking, 0, memory_order_relaxed);
}

void sp_py_park(void)
{
    for (;;) pause();
}
