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
 * sp_thread_guard only; `name` (15 characters) is for debuggers. Every thread must be joined.
 * SP_EXHAUSTED if the system cannot create a thread. */
sp_status sp_thread_create(sp_thread *out, const char *name, sp_thread_fn fn, void *arg);
void sp_thread_join(sp_thread *thread);
void sp_thread_yield(void);

/* Ends the calling thread from anywhere. */
_Noreturn void sp_thread_exit(void);

/* Returns true to keep the thread: it continues after the guard as if the code had returned. */
typedef bool (*sp_thread_ended_fn)(void *arg);

/* Calls `fn(arg)`, code that may end its thread: by sp_thread_exit, the system's call, or a
 * cancellation. In that case `ended(arg)` is called while the thread exits, the innermost guard
 * first and all before the destructors of the slots. The frames outside the guard still exist, and
 * are returned to only if `ended` returns true; such a thread can end again, but not by a
 * cancellation. `ended` must not end the thread itself. It is not called in a forked child, whose
 * only thread just ends. A cancellation that is pending when `fn` returns takes effect then, also
 * if `fn` has disabled it; on a thread not created by sp_thread_create, or inside another guard,
 * only if cancellation was enabled before the call. The previous cancellation state is restored. */
void sp_thread_guard(sp_thread_fn fn, sp_thread_ended_fn ended, void *arg);

/* `fn` is called when the process ends by exit() or by a return from main(), before what was
 * registered earlier: drivers, once they are open, still work. False: no memory. */
bool sp_thread_at_exit(void (*fn)(void));

/* True on the thread that entered main(). */
bool sp_thread_is_main(void);

/* The system's thread id of the calling thread: unique among running threads. */
uint64_t sp_thread_number(void);

/* Processors this process may run on; at least 1. */
uint32_t sp_thread_core_count(void);

/* One turn of a bounded spin: tells the processor (or the scheduler) that the thread waits for
 * another one. Every spin in the library calls it. */
static inline void sp_spin_hint(void);

/* SP_SPIN_TURNS(n): number of turns of a bounded spin: n, but few under the controlled scheduler.
 */

/* Thread-local slots, one pointer each. A destructor given with a value runs when the thread ends,
 * highest slot first; it may set slots again, and then runs again. */
typedef enum sp_tls_slot {
    SP_TLS_LOCKS,       /* base, debug builds: the newest lock that the thread holds */
    SP_TLS_ERROR,       /* base: the last error message */
    SP_TLS_CHECK,       /* runtime: the thread's vector clock, for the checker */
    SP_TLS_WAITER,      /* device: the thread's parker and wait nodes */
    SP_TLS_STREAM,      /* runtime: the current stream */
    SP_TLS_ERROR_SCOPE, /* base: the innermost error scope */
    SP_TLS_USER,        /* tests and the program */
    SP_TLS_COUNT
} sp_tls_slot;

static inline void *sp_tls_get(sp_tls_slot slot);
/* False if the destructor cannot be registered (out of memory); the value is then not set. */
bool sp_tls_set(sp_tls_slot slot, void *value, void (*destructor)(void *value));
/* Empties the slot and calls its destructor, as at the thread's end. */
void sp_tls_end(sp_tls_slot slot);

/* Runs `fn(arg)` once for any number of concurrent callers; all return after it has finished. If
 * `fn` fails, its caller gets the status and the next caller runs it again. Zeroed memory is "not
 * run yet". */
typedef struct sp_once {
    sp_atomic_u32 state; /* 0 not run, 1 running, 2 running with sleepers, 3 done */
} sp_once;

sp_status sp_once_run_slow(sp_once *once, sp_status (*fn)(void *arg), void *arg);

static inline sp_status sp_once_run(sp_once *once, sp_status (*fn)(void *arg), void *arg)
{
    /* Pairs with the release that ends a successful run: the writes of fn are visible. */
    if (sp_load_acquire(&once->state) != 3) return sp_once_run_slow(once, fn, arg);
    sp_tsan_acquire(&once->state);
    return SP_OK;
}

#include "backend_inline.h"

#endif
