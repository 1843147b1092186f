/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that come back from the library take turns at the interpreter's lock. Whoever finds it
 * taken sleeps until it is free, and a sleep with its wake-up costs more than the microsecond for
 * which a thread that loops over calls has it. So a thread that comes back spins first, as long as
 * another one that came back has had the lock for a few microseconds only.
 *
 * A turn is a hint: it is claimed by who is about to take the lock, ends where that thread gives
 * the lock up, and is over anyway once it is old. Threads that take the lock in other ways have no
 * turn, so nobody may rely on one.
 *
 * Times are those of sp_py_turn_clock, nanoseconds. All functions may be called by any thread, with
 * the lock and without. */
#ifndef SP_PYTHON_LOCK_TURN_H
#define SP_PYTHON_LOCK_TURN_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A turn is waited for until it is as old as this: a sleep and its wake-up take 5 to 12 us. */
#define SP_PY_TURN_NS 5000

int64_t sp_py_turn_clock(void);

/* Whether the caller may go and take the lock: nobody had the turn, and it is the caller's now, or
 * somebody has had it for SP_PY_TURN_NS. */
bool sp_py_turn_try(int64_t now_ns);

/* Spins until sp_py_turn_try is true. */
void sp_py_turn_await(void);

/* The caller has taken the lock. */
void sp_py_turn_begin(int64_t now_ns);

/* The caller has given the lock up. */
void sp_py_turn_end(void);

#ifdef __cplusplus
}
#endif

#endif
