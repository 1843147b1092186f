/* SPDX-License-Identifier: Apache-2.0 */
/* Log messages: conditions that no call can return as a status, such as an invalid environment
 * variable. Errors and warnings are logged by default, to stderr; STREAMPOOL_LOG or
 * sp_log_set_level change the level. */
#ifndef STREAMPOOL_LOG_H
#define STREAMPOOL_LOG_H

#include <streampool/export.h>

SP_EXTERN_C_BEGIN

/* Each level includes those above it. */
typedef enum sp_log_level {
    SP_LOG_OFF,
    /* Work was lost: a device, at once; and, when a device closes or the library is shut down,
     * failed commands that no call has reported (sp_stream_synchronize). Unordered uses of a
     * storage (STREAMPOOL_CHECK). */
    SP_LOG_ERROR,
    SP_LOG_WARN, /* something was ignored or replaced by a default */
    SP_LOG_INFO, /* rare life-cycle events: devices opened, models loaded, plans built */
    SP_LOG_DEBUG /* everything else; may be slow */
} sp_log_level;

/* Receives one message without a newline. Called on any thread, also on several at once. It may
 * call the library but must not run models, since the logging call may itself be a run; messages
 * logged inside the callback are dropped. If the callback ends its thread it counts as returned,
 * and the logging call stays unfinished: resources it holds are not released. */
typedef void (*sp_log_fn)(void *ctx, sp_log_level level, const char *message);

/* Sends messages to `fn(ctx, ...)` instead of stderr; NULL restores stderr. When this returns, the
 * previous callback has returned on every thread and its `ctx` may be freed; exception: called from
 * inside a log callback it does not wait. */
SP_API void sp_log_set_callback(sp_log_fn fn, void *ctx);

/* Logs messages up to `level`; overrides STREAMPOOL_LOG. An invalid value means SP_LOG_OFF. */
SP_API void sp_log_set_level(sp_log_level level);

SP_EXTERN_C_END

#endif
