/* SPDX-License-Identifier: Apache-2.0 */
/* primitive: the extension has the library's public headers only. */
#include "lock_turn.h"

#include <stdatomic.h>
#include <time.h>

/* When the turn was claimed or the lock was taken; 0: nobody has the turn. Relaxed everywhere: it
 * says when to try, and what threads share is ordered by the lock itself. */
static atomic_llong taken_ns;

static void pause_processor(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

int64_t sp_py_turn_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool sp_py_turn_try(int64_t now_ns)
{
    long long taken = atomic_load_explicit(&taken_ns, memory_order_relaxed);
    if (taken == 0 && atomic_compare_exchange_strong_explicit(
                          &taken_ns, &taken, now_ns, memory_order_relaxed, memory_order_relaxed))
        return true;
    return now_ns - taken >= SP_PY_TURN_NS;
}

void sp_py_turn_await(void)
{
    while (!sp_py_turn_try(sp_py_turn_clock())) {
        for (int i = 0; i < 8; i++) pause_processor();
    }
}

void sp_py_turn_begin(int64_t now_ns)
{
    atomic_store_explicit(&taken_ns, now_ns, memory_order_relaxed);
}

void sp_py_turn_end(void)
{
    atomic_store_explicit(&taken_ns, 0, memory_order_relaxed);
}
