/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the program's own functions: an sp_status, and a message that stays with the thread. */
#ifndef SP_CLI_FAILURE_H
#define SP_CLI_FAILURE_H

#include <streampool/status.h>

#define FAILURE_BYTES 512

/* Makes the text, cut at FAILURE_BYTES, the thread's message and returns `status`. */
sp_status fail(sp_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts text in front of the thread's message and returns `status`. */
sp_status fail_prefix(sp_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The status of a call of the library. If that failed, its message becomes the thread's. */
sp_status from_library(sp_status status);

/* The message of the thread's most recent failure. */
const char *failure_message(void);

/* Prints status and message to stderr, as the program's last words. */
void failure_print(sp_status status);

/* Returns from the function unless the status is SP_OK: of a function of the program, of a call of
 * the library. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        const sp_status try_status_ = (expr);                                                      \
        if (try_status_ != SP_OK) return try_status_;                                              \
    } while (0)
#define CALL(expr) TRY(from_library(expr))

#endif
