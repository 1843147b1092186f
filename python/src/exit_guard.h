/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps threads from taking the interpreter's lock once the interpreter ends. Python up to 3.13
 * ends a thread that takes the lock then, by pthread_exit, which unwinds the C++ frames below it
 * and aborts the process. So a thread announces that it takes the lock, and the end of the
 * interpreter closes the guard and waits until none does:
 *
 *     taking    threads between begin and end of a take
 *     closed    no begin succeeds any more
 *
 * Sequentially consistent: a taker raises `taking` and reads `closed`, the closer sets `closed` and
 * reads `taking`; one of the two sees the other. */
#ifndef SP_PYTHON_EXIT_GUARD_H
#define SP_PYTHON_EXIT_GUARD_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* False: the interpreter ends, and the caller must not take the lock. True on the thread that has
 * closed the guard. */
bool sp_py_guard_begin_take(void);
/* The caller has the lock. After a successful begin only. */
void sp_py_guard_end_take(void);

/* Closes the guard and waits until no thread is taking the lock. Called without the lock, which
 * such threads need. */
void sp_py_guard_close(void);

/* Whether it is closed: threads that attach to the interpreter are ended from now on, or soon. */
bool sp_py_guard_is_closed(void);

/* In a forked child no other thread is left to end its take. */
void sp_py_guard_after_fork(void);

/* For a thread that must not take the lock: never returns. */
void sp_py_park(void);

#ifdef __cplusplus
}
#endif

#endif
