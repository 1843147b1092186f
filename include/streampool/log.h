/* SPDX-License-Identifier: Apache-2.0 */
/* Log messages: what the library noticed that no call could return, such as a bad environment
 * variable. Nothing is logged by default; STREAMPOOL_LOG or sp_log_set_level turn it on. */
#ifndef STREAMPOOL_LOG_H
#define STREAMPOOL_LOG_H

#include <streampool/export.h>

SP_EXTERN_C_BEGIN

/* Each level includes those above it. */
typedef enum sp_log_level {
    SP_LOG_OFF,
    SP_LOG_ERROR, /* work was lost: a command or a device failed and nobody may be waiting for it */
    SP_LOG_WARN,  /* something was ignored or replaced by a default */
    SP_LOG_INFO,  /* rare events of the life cycle */
    SP_LOG_DEBUG  /* everything else; may be slow */
} sp_log_level;

/* Gets one message without a newline. May be called from any thread, also from several at once, and
 * may call the library; what the library would log during that call is dropped. One that ends its
 * thread counts as returned; the call that logged is then left unfinished, with what it holds. */
typedef void (*sp_log_fn)(void *ctx, sp_log_level level, const char *message);

/* Sends messages to `fn(ctx, ...)` instead of stderr; NULL goes back to stderr. When it returns,
 * the former callback has returned everywhere and its `ctx` may be freed, except if the caller is
 * itself inside a log callback: then it does not wait. */
SP_API void sp_log_set_callback(sp_log_fn fn, void *ctx);

/* Logs messages up to `level`, whatever STREAMPOOL_LOG says. A value that is no level is off. */
SP_API void sp_log_set_level(sp_log_level level);

SP_EXTERN_C_END

#endif
