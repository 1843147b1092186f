/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard checker: with STREAMPOOL_CHECK=1 the library reports every pair of uses of one
 * storage, at least one of them a write, that are not ordered. Tracked storages never have such a
 * pair; untracked ones do if an event is missing.
 *
 * The order is happens-before by vector clocks, in the execution that is checked:
 * - submissions to one stream, and those on other streams that wait for its events;
 * - on one thread: work that the thread has observed to be complete, by any call that waits for it
 *   or queries it, comes before everything that the thread submits or accesses later. Observations
 *   of one thread order nothing for others;
 * - between threads: sp_event_record before every later use of the event; a use of a tracked or
 *   frozen storage before later uses of it; submissions before the host function or event callback
 *   that follows them, and a host function before later work of its stream;
 * - a thread comes after all that other threads had observed when it first called the library, and
 *   observations of a thread count for all others once it has ended: starting and joining threads
 *   needs no declaration.
 * Locks, conditions, atomics and queues of the application are not seen. If such a mechanism tells
 * a thread that memory is ready, and the notifying thread has not ended, the notified thread must
 * observe it itself (sp_event_query, sp_stream_synchronize: both return at once for completed
 * work), or the application declares the order with sp_check_happens_before and _after; otherwise
 * the order is reported as missing. */
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

/* Receives each report, on the thread that submitted the later use; it must not call the library.
 * If it ends its thread it counts as returned: the use was submitted, a host access stays open, and
 * further reports of the same use are dropped. */
typedef void (*sp_check_function)(void *ctx, const sp_check_report *report);

/* Replaces the default, which logs the report as an error; NULL restores it. When this returns, the
 * previous callback is not called any more, unless this is called from inside it. */
SP_API void sp_check_set_callback(sp_check_function fn, void *ctx);

/* Whether the checker is on. */
SP_API bool sp_check_is_on(void);

/* Number of reports so far. */
SP_API uint64_t sp_check_report_count(void);

/* Number of pairs taken as ordered because a limit was exceeded: 256 streams and open
 * host accesses, 64 streams that read one storage since its last write, 4,096 tokens, or memory.
 * The first is logged as a warning. */
SP_API uint64_t sp_check_missed_count(void);

/* Declares an order between threads that the application establishes: everything that the calling
 * thread has observed comes before what follows a later sp_check_happens_after of the same token on
 * any thread. Call it before the unlock, signal or store. A token is any address, which is not
 * read. Does nothing while the checker is off. */
SP_API void sp_check_happens_before(const void *token);
/* The other side: call it after the lock, wait or load. */
SP_API void sp_check_happens_after(const void *token);

SP_EXTERN_C_END

#endif
