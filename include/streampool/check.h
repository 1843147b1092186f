/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard checker: with STREAMPOOL_CHECK=1 the library reports every pair of uses of one
 * storage, at least one of them a write, that nothing orders. Tracked storages never have such a
 * pair; untracked ones do if their user forgot an event.
 *
 * What orders, by vector clocks, in the run that is checked:
 * - submissions to one stream, and those on other streams that wait for its events;
 * - on one thread: what it has seen to have passed, by any call that waits for work or asks whether
 *   it is done, comes before all that this thread submits or accesses later. What one thread has
 *   seen orders nothing for the others;
 * - between threads: sp_event_record before every later use of the event; a use of a tracked or
 *   frozen storage before later uses of it; submissions before the host function or event callback
 *   that follows them, and a host function before what its stream does later;
 * - a thread comes after all that other threads had seen when it first called the library, and
 *   what a thread has seen counts for all others once it has ended: so starting and joining
 *   threads needs nothing.
 * Locks, conditions, atomics and queues of the application are not seen. A thread that is told by
 * these that memory is ready, by a thread that goes on living, looks for itself (sp_event_query,
 * sp_stream_synchronize: of work that is done they return at once), or the application says so with
 * sp_check_happens_before and _after; else the order is reported as missing. */
#ifndef STREAMPOOL_CHECK_H
#define STREAMPOOL_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/storage.h>

SP_EXTERN_C_BEGIN

typedef struct sp_check_use {
    const char *op; /* "copy", "fill", "host access", or the kernel's name */
    sp_access access;
    char device[64];
    uint32_t stream;       /* index in the pool; UINT32_MAX for an access by the host */
    uint64_t thread;       /* number of the thread that submitted it */
    const void *call_site; /* address in the caller; a debugger or addr2line names the line */
} sp_check_use;

typedef struct sp_check_report {
    uint64_t storage_bytes;
    sp_check_use earlier; /* in order of submission */
    sp_check_use later;
} sp_check_report;

/* Gets each report, on the thread that submitted the later use; it must not call the library.
 * One that ends its thread counts as returned: the use was submitted, a host access stays open, and
 * further reports of the same use are dropped. */
typedef void (*sp_check_function)(void *ctx, const sp_check_report *report);

/* Replaces the default, which logs the report as an error. NULL goes back to that. When it returns
 * the former callback is called no more, unless this is called inside it. */
SP_API void sp_check_set_callback(sp_check_function fn, void *ctx);

/* Is the checker on? */
SP_API bool sp_check_is_on(void);

/* Reports so far. */
SP_API uint64_t sp_check_report_count(void);

/* Times that the checker took something as ordered since it is beyond a limit: 256 streams and open
 * host accesses, 64 streams that read one storage since its last write, 4,096 tokens, or memory.
 * The first is logged as a warning. */
SP_API uint64_t sp_check_missed_count(void);

/* Declares an order between threads that the application makes by its own means: all that the
 * calling thread has seen comes before what follows a later sp_check_happens_after of the same
 * token on any thread. To be called before the unlock, signal or store. A token is any address;
 * nothing is read there. Does nothing while the checker is off. */
SP_API void sp_check_happens_before(const void *token);
/* The other side: to be called after the lock, wait or load. */
SP_API void sp_check_happens_after(const void *token);

SP_EXTERN_C_END

#endif
