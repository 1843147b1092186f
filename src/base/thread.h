/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, thread-local slots, run-once, spin hints. */
#ifndef SP_BASE_THREAD_H
#define SP_BASE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

#include "backend_types.h"
#include "base/atomic.h"
#include "base/tsan.h"

typedef struct sp_thread {
    sp_thread_impl impl;
} sp_thread;

typedef void (*sp_thread_fn)(void *arg);

/* Starts `fn(arg)` on a new thread with all signals blocked, which can be cancelled inside
 * sp_thread_guard only; `name` (15 characters) shows in
 * debuggers. Every thread is joined. SP_EXHAUSTED if the system has none left. */
sp_status sp_thread_create(sp_thread *out, const char *name, sp_thread_fn fn, void *arg);
void sp_thread_join(sp_thread *thread);
void sp_thread_yield(void);

/* Ends the calling thread from anywhere. */
_Noreturn void sp_thread_exit(void);

/* True: the thread stays, and goes on behind the guard as if the code had returned. */
typedef bool (*sp_thread_ended_fn)(void *arg);

/* Calls `fn(arg)`, code that may end its thread: by sp_thread_exit, the system's own call, or a
 * cancellation. Then `ended(arg)` is called on the thread's way out, the innermost guard first and
 * all before the destructors of the slots. The frames outside of the guard are still there, and are
 * returned to only if `ended` is true; such a thread can end again, but not by a cancellation.
 * `ended` does not end the thread itself. It is not called in a forked child, where the thread, the
 * only one there, just ends. A cancellation that is pending when `fn`
 * returns acts then, also if `fn` has disabled it; on a thread that was not made by
 * sp_thread_create, or inside another guard, only if cancellation was enabled before the call. The
 * state of before is restored. */
void sp_thread_guard(sp_thread_fn fn, sp_thread_ended_fn ended, void *arg);

/* True on the thread that entered main(), whatever ran first. */
bool sp_thread_is_main(void);

/* A number of the calling thread that no other running thread has; the system's thread id. */
uint64_t sp_thread_number(void);

/* Processors this process may run on; at least 1. */
uint32_t sp_thread_core_count(void);

/* One turn of a bounded spin: tells the processor (or the scheduler) that we wait for another
 * thread. Every spin in the library calls it. */
static inline void sp_spin_hint(void);

/* SP_SPIN_TURNS(n): turns of a spin that ends by itself; n, but few under the controlled scheduler.
 */

/* Thread-local slots, one pointer each. A destructor given with a value runs when the thread ends,
 * highest slot first; it may set slots again, and then runs again. */
typedef enum sp_tls_slot {
    SP_TLS_LOCKS,       /* base, debug builds: the newest lock that the thread holds */
    SP_TLS_ERROR,       /* base: the last error message */
    SP_TLS_CHECK,       /* runtime: what the thread has seen, for the checker */
    SP_TLS_WAITER,      /* device: the thread's parker and wait nodes */
    SP_TLS_STREAM,      /* runtime: the current stream */
    SP_TLS_ERROR_SCOPE, /* base: where the last error is put aside */
    SP_TLS_USER,        /* tests and the program */
    SP_TLS_COUNT
} sp_tls_slot;

static inline void *sp_tls_get(sp_tls_slot slot);
/* False if the destructor could not be registered (out of memory); the value is then not set. */
bool sp_tls_set(sp_tls_slot slot, void *value, void (*destructor)(void *value));
/* Empties the slot as the thread's end would: its destructor is called. */
void sp_tls_end(sp_tls_slot slot);

/* Runs `fn(arg)` once however many threads ask; all return after it has finished. If `fn` fails,
 * that caller gets its status and the next caller tries again. Zeroed memory is "not run yet". */
typedef struct sp_once {
    sp_atomic_u32 state; /* 0 not run, 1 running, 2 running with sleepers, 3 done */
} sp_once;

sp_status sp_once_run_slow(sp_once *once, sp_status (*fn)(void *arg), void *arg);

static inline sp_status sp_once_run(sp_once *once, sp_status (*fn)(void *arg), void *arg)
{
    /* Pairs with the release that ends a successful run: what fn wrote is visible. */
    if (sp_load_acquire(&once->state) != 3) return sp_once_run_slow(once, fn, arg);
    sp_tsan_acquire(&once->state);
    return SP_OK;
}

#include "backend_inline.h"

#endif
