/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and the calling thread's last error message.
 *
 * Every call that can fail returns an sp_status. The message of a failure is kept per thread until
 * the thread's next failing call. */
#ifndef STREAMPOOL_STATUS_H
#define STREAMPOOL_STATUS_H

#include <streampool/export.h>

SP_EXTERN_C_BEGIN

/* code, value, text. Values are stable: new codes are appended. */
#define SP_STATUS_LIST(X)                                                                          \
    X(SP_OK, 0, "ok")                                                                              \
    X(SP_INVALID, 1, "invalid argument or handle")                                                 \
    X(SP_OUT_OF_MEMORY, 2, "out of memory")                                                        \
    X(SP_EXHAUSTED, 3, "a limit is reached")                                                       \
    X(SP_BUSY, 4, "queue full, try again after a wait")                                            \
    X(SP_TIMEOUT, 5, "timed out")                                                                  \
    X(SP_NOT_READY, 6, "not ready yet")                                                            \
    X(SP_DEADLOCK, 7, "the wait could never end")                                                  \
    X(SP_DEVICE_LOST, 8, "device lost")                                                            \
    X(SP_FAILED, 9, "a command failed")                                                            \
    X(SP_CANCELLED, 10, "cancelled")                                                               \
    X(SP_CLOSED, 11, "used after shutdown or close")                                               \
    X(SP_FORKED, 12, "used in a forked child")                                                     \
    X(SP_UNSUPPORTED, 13, "not supported")                                                         \
    X(SP_CORRUPT, 14, "malformed data")                                                            \
    X(SP_IO, 15, "file error")                                                                     \
    X(SP_NOT_FOUND, 16, "not found")                                                               \
    X(SP_MISMATCH, 17, "wrong shape, dtype or count")                                              \
    X(SP_INTERNAL, 18, "internal error")

typedef enum sp_status {
#define SP_STATUS_ENUM(code, value, text) code = value,
    SP_STATUS_LIST(SP_STATUS_ENUM)
#undef SP_STATUS_ENUM
} sp_status;

/* The name of a code, such as "SP_INVALID"; "SP_UNKNOWN" for any other value. Never NULL. */
SP_API const char *sp_status_name(sp_status status);

/* One short English phrase for a code. Never NULL. */
SP_API const char *sp_status_text(sp_status status);

/* What went wrong in this thread's most recent failing call and what to do about it; "" before the
 * first failure. Owned by the thread; valid until its next failing call or its end. Never NULL. */
SP_API const char *sp_last_error(void);

/* The path of the file that this message is about, if the failing call was SP_IO for one that the
 * system refused, in full: a message is cut. A file beside a model's is in the model's folder.
 * *code is the errno; may be NULL. NULL if there is no such file, or no memory for its path. Valid
 * as the message is. */
SP_API const char *sp_last_error_file(int *code);

SP_EXTERN_C_END

#endif
