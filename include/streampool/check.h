/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard checker: with STREAMPOOL_CHECK=1 the library reports every pair of uses of one
 * storage, at least one of them a write, that nothing orders: not one stream, not an event, not a
 * wait on the host. Tracked storages never have such a pair; untracked ones do if their user forgot
 * an event. */
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

/* Gets each report, on the thread that submitted the later use; it must not call the library. */
typedef void (*sp_check_function)(void *ctx, const sp_check_report *report);

/* Replaces the default, which logs the report as an error. NULL goes back to that. When it returns
 * the former callback is called no more, unless this is called inside it. */
SP_API void sp_check_set_callback(sp_check_function fn, void *ctx);

/* Is the checker on? */
SP_API bool sp_check_is_on(void);

/* Reports so far. */
SP_API uint64_t sp_check_report_count(void);

SP_EXTERN_C_END

#endif
