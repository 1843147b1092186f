/* SPDX-License-Identifier: Apache-2.0 */
/* The log's sink. The lock guards the callback and the list of its calls in progress; it is not
 * held while the callback runs. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/fork.h"
#include "base/lock_check.h"
#include "base/mutex.h"
#include "base/option.h"
#include "base/thread.h"

#define GATE_UNREAD UINT32_MAX

typedef struct log_sink {
    sp_mutex lock;
    sp_cond call_ended; /* an entry left `calls` */
    sp_log_fn fn SP_GUARDED_BY(lock);
    void *ctx SP_GUARDED_BY(lock);
    sp_callback_calls calls SP_GUARDED_BY(lock);
} log_sink;

/* process-wide: one log serves all devices; sp__log_reset restores the initial state. */
sp_atomic_u32 sp__log_gate = {GATE_UNREAD};
static log_sink sink = {.lock = SP_MUTEX_INIT(SP_LOCK_LOG)};

static const char *const level_names[] = {"off", "error", "warn", "info", "debug"};

/* One call of the callback; on the stack of the logging thread. */
typedef struct sink_call {
    sp_log_fn fn;
    void *ctx;
    sp_log_level level;
    const char *message;
    sp_callback_call entry;
} sink_call;

static void sink_call_fn(void *arg)
{
    const sink_call *call = arg;
    sp_lock_check_none("the log's callback");
    call->fn(call->ctx, call->level, call->message);
}

static void sink_leave(const sink_call *call)
{
    sp_mutex_lock(&sink.lock);
    sp_callback_leave(&sink.calls, &call->entry);
    sp_cond_broadcast(&sink.call_ended);
    sp_mutex_unlock(&sink.lock);
}

/* The callback has ended its thread. */
static bool thread_ended(void *arg)
{
    sink_leave(arg);
    return false;
}

static void stderr_write(sp_log_level level, const char *message)
{
    const int state = sp_cancel_defer();
    fprintf(stderr, "streampool: %s: %s\n", level_names[level], message);
    sp_cancel_restore(state);
}

static void sink_call_message(sp_log_level level, const char *message)
{
    const uint64_t thread = sp_thread_number();
    sink_call call = {.level = level, .message = message};
    sp_mutex_lock(&sink.lock);
    call.fn = sink.fn;
    call.ctx = sink.ctx;
    const bool is_nested = sp_callback_is_inside(&sink.calls, thread);
    if (call.fn != NULL && !is_nested) sp_callback_enter(&sink.calls, &call.entry, thread);
    sp_mutex_unlock(&sink.lock);

    if (is_nested) return;
    if (call.fn == NULL) {
        stderr_write(level, message);
        return;
    }
    sp_thread_guard(sink_call_fn, thread_ended, &call);
    sink_leave(&call);
}

/* Reads STREAMPOOL_LOG unless a level has been set already. Reading the options may log a bad
 * value, which calls this function once more; the options are loaded by then. */
static uint32_t gate_open(void)
{
    uint32_t gate = sp_load_relaxed(&sp__log_gate);
    if (gate != GATE_UNREAD) return gate;
    const uint32_t level = sp_option_enum(SP_OPTION_LOG);
    return sp_cas_relaxed(&sp__log_gate, &gate, level) ? level : gate;
}

bool sp__log_is_on(sp_log_level level)
{
    return sp__log_may_write(level) && (uint32_t)level <= gate_open();
}

void sp__log_write(sp_log_level level, const char *format, ...)
{
    if ((uint32_t)level > gate_open()) return;
    char message[SP_LOG_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    sink_call_message(level, message);
}

void sp_log_set_callback(sp_log_fn fn, void *ctx)
{
    if (sp_fork_is_child()) return; /* no logging there, and the lock may be held for ever */
    sp_mutex_lock(&sink.lock);
    sink.fn = fn;
    sink.ctx = ctx;
    const uint64_t generation = ++sink.calls.generation;
    const uint64_t thread = sp_thread_number();
    while (sp_callback_must_wait(&sink.calls, generation, thread)) {
        sp_cond_wait(&sink.call_ended, &sink.lock);
    }
    sp_mutex_unlock(&sink.lock);
}

void sp_log_set_level(sp_log_level level)
{
    const bool is_level = (uint32_t)level < SP_COUNT_OF(level_names);
    sp_store_relaxed(&sp__log_gate, is_level ? (uint32_t)level : (uint32_t)SP_LOG_OFF);
}

void sp__log_reset(void)
{
    sp_log_set_callback(NULL, NULL);
    sp_store_relaxed(&sp__log_gate, GATE_UNREAD);
}
