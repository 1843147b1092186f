/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's last error. A message names the object and what to do. */
#ifndef SP_BASE_ERROR_H
#define SP_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include <streampool/status.h>

#include "base/macros.h"

#define SP_ERROR_BYTES 512

/* Makes the formatted text (truncated to SP_ERROR_BYTES) this thread's last error and returns
 * `status`. Allocates only at the thread's first error; without memory the status's text is used.
 */
sp_status sp__fail(sp_status status, const char *format, ...) SP_PRINTF(2, 3);

/* Prepends text to this thread's last error ("node 3 (Conv): " ...) and returns `status`. */
sp_status sp__fail_prefix(sp_status status, const char *format, ...) SP_PRINTF(2, 3);

/* The same with a constant text, shorter than that: to format one takes most of the time of a
 * failure, which counts where a caller expects it. */
sp_status sp__fail_text(sp_status status, const char *text);

/* Adds to this thread's last error, just made, the file that it is about, in `folder` unless that
 * is NULL, and the errno. Returns `status`. Kept by prefixes, and lost by a scope that replaces and
 * restores the message. */
sp_status sp__fail_add_file(sp_status status, const char *folder, const char *name, int code);

/* SP_CANCELLED, with the message of all runs that their caller has cancelled. */
sp_status sp__fail_cancelled(void);

/* A scope around work whose failures are not those of the current call: commands of other threads,
 * and attempts that are repeated. Costs two stores unless something fails. Scopes nest; each is on
 * its thread's stack and ends on that thread. */
typedef struct sp_error_scope {
    struct sp_error_scope *outer;
    const void *former; /* value of the slot SP_TLS_ERROR before the first failure in the scope */
    bool has_failed;
    char text[SP_ERROR_BYTES];
} sp_error_scope;

/* Begins a scope. */
void sp__error_set_aside(sp_error_scope *scope);
/* Ends the scope and restores the last error of its beginning. */
void sp__error_put_back(sp_error_scope *scope);
/* Ends the scope and keeps the last error from inside as that of the current call. */
void sp__error_keep(sp_error_scope *scope);
/* For a thread that is about to end: drops all scopes, whose frames will not be returned to. */
void sp__error_abandon_scopes(void);
/* Keeps the error if `status`, which is returned, is a failure, else restores: for repeated
 * attempts of which the last one counts. */
sp_status sp__error_settle(sp_error_scope *scope, sp_status status);

#if defined(__clang_analyzer__)
/* For the static analyzer, which sees one file at a time: a failure is never SP_OK. */
static inline sp_status sp__known_failure(sp_status status, sp_status same)
{
    (void)same;
    return status;
}
#define sp__fail(status, ...) sp__known_failure(status, sp__fail(status, __VA_ARGS__))
#define sp__fail_text(status, text) sp__known_failure(status, sp__fail_text(status, text))
#define sp__fail_prefix(status, ...) sp__known_failure(status, sp__fail_prefix(status, __VA_ARGS__))
#define sp__fail_add_file(status, ...)                                                             \
    sp__known_failure(status, sp__fail_add_file(status, __VA_ARGS__))
#endif

#endif
