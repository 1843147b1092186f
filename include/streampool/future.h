/* SPDX-License-Identifier: Apache-2.0 */
/* Futures: results that are under way. sp_model_submit gives one for each run.
 *
 * A future is done once, with a status that does not change; what was submitted gets there whether
 * or not anybody waits. Every thread may wait for it, any number of times, and after sp_shutdown
 * too: buffers that were lent to a run are lent until it is done. */
#ifndef STREAMPOOL_FUTURE_H
#define STREAMPOOL_FUTURE_H

#include <stdint.h>

#include <streampool/status.h>

SP_EXTERN_C_BEGIN

typedef struct sp_future {
    uint64_t bits;
} sp_future;

/* One more reference. SP_EXHAUSTED past 65,535. */
SP_API sp_status sp_future_retain(sp_future future);
/* Drops a reference, also before the future is done: the run goes on, and callbacks are called. Who
 * has released the last one cannot tell any more when the run's buffers are his again, except by a
 * callback. The zero handle is fine. */
SP_API sp_status sp_future_release(sp_future future);

/* Waits until the future is done: SP_OK, or the status of what failed, with its message as the
 * calling thread's last error. Inside a host function or callback a run that still stands in line
 * is computed there and then, since those in front of it may be waiting for that function. */
SP_API sp_status sp_future_wait(sp_future future);
/* At most `timeout_ns`, negative for ever: SP_TIMEOUT past that, and the run goes on. */
SP_API sp_status sp_future_wait_for(sp_future future, int64_t timeout_ns);

/* SP_NOT_READY if the future is not done yet, else what sp_future_wait returns. */
SP_API sp_status sp_future_query(sp_future future);

/* `status` is what sp_future_wait would return; its message is the thread's last error. */
typedef void (*sp_future_function)(void *ctx, sp_status status);

/* Has `fn(ctx, status)` called once when the future is done; at once if it is. It runs on a host
 * thread of the library, one function at a time like sp_stream_host_function's, and may call
 * anything that these may: submit again, wait for other futures. Any number of them may be set.
 * Where an sp_shutdown beside the run has ended those threads, it runs on a thread of its own, for
 * which the thread that finds the run refused waits. */
SP_API sp_status sp_future_on_complete(sp_future future, sp_future_function fn, void *ctx);

SP_EXTERN_C_END

#endif
