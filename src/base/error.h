/* SPDX-License-Identifier: Apache-2.0 */
/* Where errors are born: the message names the object and says what to do. */
#ifndef SP_BASE_ERROR_H
#define SP_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include <streampool/status.h>

#include "base/macros.h"

#define SP_ERROR_BYTES 512

/* Makes the formatted text (cut at SP_ERROR_BYTES) this thread's last error and returns `status`.
 * Needs no memory after the thread's first error; without memory the status's text serves. */
sp_status sp__fail(sp_status status, const char *format, ...) SP_PRINTF(2, 3);

/* Puts text in front of this thread's last error ("node 3 (Conv): " ...) and returns `status`. */
sp_status sp__fail_prefix(sp_status status, const char *format, ...) SP_PRINTF(2, 3);

/* Around work whose failures are not this call's: what others submitted, and attempts that are made
 * again. Costs two stores unless something fails. Scopes nest; each lives on its thread's stack and
 * ends on that thread. */
typedef struct sp_error_scope {
    struct sp_error_scope *outer;
    const void *former; /* what the slot SP_TLS_ERROR held, once something has failed */
    bool has_failed;
    char text[SP_ERROR_BYTES];
} sp_error_scope;

void sp__error_set_aside(sp_error_scope *scope);
/* The last error is what it was when the scope began. */
void sp__error_put_back(sp_error_scope *scope);
/* Ends the scope and keeps the last error of what was done inside: it is this call's after all. */
void sp__error_keep(sp_error_scope *scope);
/* The thread is about to end: the scopes are on frames that are not returned to. */
void sp__error_abandon_scopes(void);
/* Keeps it if `status`, which is returned, is a failure, else puts it back: for attempts of which
 * the last one counts. */
sp_status sp__error_settle(sp_error_scope *scope, sp_status status);

#if defined(__clang_analyzer__)
/* The static analyzer sees one file at a time, and must know that a failure is never SP_OK. */
static inline sp_status sp__known_failure(sp_status status, sp_status same)
{
    (void)same;
    return status;
}
#define sp__fail(status, ...) sp__known_failure(status, sp__fail(status, __VA_ARGS__))
#define sp__fail_prefix(status, ...) sp__known_failure(status, sp__fail_prefix(status, __VA_ARGS__))
#endif

#endif
