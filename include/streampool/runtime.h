/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: the one process-wide object. The first call that needs it initialises it. */
#ifndef STREAMPOOL_RUNTIME_H
#define STREAMPOOL_RUNTIME_H

#include <streampool/status.h>

SP_EXTERN_C_BEGIN

#define STREAMPOOL_VERSION_MAJOR 0
#define STREAMPOOL_VERSION_MINOR 1
#define STREAMPOOL_VERSION_PATCH 0

/* The version of the library that is running, such as "0.1.0". Never NULL. */
SP_API const char *sp_version(void);

/* Initialises the runtime; optional, since every other call does the same. SP_CLOSED after
 * sp_shutdown; SP_FORKED in a forked child of a process that used streampool, which must call exec
 * to use it. In such a child the calls that only release something do nothing and return SP_OK, so
 * clean-up code is safe there: every release, sp_thread_release_stream, sp_host_free,
 * sp_device_close and sp_shutdown. */
SP_API sp_status sp_init(void);

/* Stops accepting work, ends waits for a stream (SP_CLOSED), waits for all accepted work (release
 * callbacks included) and ends all threads of the library. Every later call that needs the runtime
 * returns SP_CLOSED; releases and sp_storage_host_end still work. Waits for an open host access if
 * device work is queued behind it, and never returns if such an access is never ended, the caller's
 * own included. Not needed before exit: threads still running at exit are harmless. SP_DEADLOCK
 * inside a host function or callback; SP_OK if the runtime is shut down already. */
SP_API sp_status sp_shutdown(void);

SP_EXTERN_C_END

#endif
