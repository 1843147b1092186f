/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: the one process-wide object. It comes up with the first call that needs it. */
#ifndef STREAMPOOL_RUNTIME_H
#define STREAMPOOL_RUNTIME_H

#include <streampool/status.h>

SP_EXTERN_C_BEGIN

#define STREAMPOOL_VERSION_MAJOR 0
#define STREAMPOOL_VERSION_MINOR 1
#define STREAMPOOL_VERSION_PATCH 0

/* The version of the library that is running, such as "0.1.0". Never NULL. */
SP_API const char *sp_version(void);

/* Brings the runtime up; any other call does the same. SP_CLOSED after sp_shutdown, SP_FORKED in a
 * child process of one that used streampool: start anew there with exec. In such a child calls that
 * only give something back do nothing and are SP_OK, so that code that cleans up does no harm:
 * every release, sp_thread_release_stream, sp_host_free, sp_device_close and sp_shutdown. */
SP_API sp_status sp_init(void);

/* Stops accepting work, ends the waits for a stream (SP_CLOSED), waits for what was accepted
 * (release callbacks included) and ends all threads of the library. Every later call that needs the
 * runtime is SP_CLOSED; releases and sp_storage_host_end still work. An open host access with
 * device work behind it is waited for, so one that never ends, the caller's own included, keeps
 * this call for ever; with none behind it, it is not. Not needed before exit: threads that still
 * run at exit do no harm. SP_DEADLOCK inside a host function or callback; SP_OK if it is down
 * already. */
SP_API sp_status sp_shutdown(void);

SP_EXTERN_C_END

#endif
