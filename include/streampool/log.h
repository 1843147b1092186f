/* SPDX-License-Identifier: Apache-2.0 */
/* Log messages: what the library noticed that no call could return, such as a bad environment
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
     * failed commands that no call has reported. Unordered uses of a storage (STREAMPOOL_CHECK). */
    SP_LOG_ERROR,
    SP_LOG_WARN, /* something was ignored or replaced by a default */
    SP_LOG_INFO, /* rare events of the life cycle: devices opened, models loaded, plans made */
    SP_LOG_DEBUG /* everything else; may be slow */
} sp_log_level;

/* Gets one message without a newline. May be called from any thread, also from several at once. May
 * call the library, but must not run models, since the call that logs may be a run; what the
 * library would log during that call is dropped. One that ends its thread counts as returned; the
 * call that logged is then left unfinished, with what it holds. */
typedef void (*sp_log_fn)(void *ctx, sp_log_level level, const char *message);

/* Sends messages to `fn(ctx, ...)` instead of stderr; NULL goes back to stderr. When it returns,
 * the former callback has returned everywhere and its `ctx` may be freed, except if the caller is
 * itself inside a log callback: then it does not wait. */
SP_API void sp_log_set_callback(sp_log_fn fn, void *ctx);

/* Logs messages up to `level`, whatever STREAMPOOL_LOG says. A value that is no level is off. */
SP_API void sp_log_set_level(sp_log_level level);

SP_EXTERN_C_END

#endif
