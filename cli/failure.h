/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the program's own functions: an sp_status and a thread-local message. */
#ifndef SP_CLI_FAILURE_H
#define SP_CLI_FAILURE_H

#include <streampool/status.h>

#define FAILURE_BYTES 512

/* Sets the thread's message to the text, truncated at FAILURE_BYTES, and returns `status`. */
sp_status fail(sp_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prepends text to the thread's message and returns `status`. */
sp_status fail_prefix(sp_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns the status of a library call. On failure the library's message becomes the thread's. */
sp_status from_library(sp_status status);

/* The message of the thread's most recent failure. */
const char *failure_message(void);

/* Prints status and message to stderr, before the program exits. */
void failure_print(sp_status status);

/* Return from the function unless the status is SP_OK. TRY: a function of the program. CALL: a call
 * of the library. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        const sp_status try_status_ = (expr);                                                      \
        if (try_status_ != SP_OK) return try_status_;                                              \
    } while (0)
#define CALL(expr) TRY(from_library(expr))

#endif
