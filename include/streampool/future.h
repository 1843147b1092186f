/* SPDX-License-Identifier: Apache-2.0 */
/* Futures: results of work in flight. sp_model_submit creates one for each run.
 *
 * A future becomes done once, with a status that does not change; the run completes whether or not
 * a thread waits for it. Any thread may wait for it, any number of times, after sp_shutdown too:
 * the buffers of a run belong to it until its future is done. */
#ifndef STREAMPOOL_FUTURE_H
#define STREAMPOOL_FUTURE_H

#include <stdint.h>

#include <streampool/status.h>

SP_EXTERN_C_BEGIN

typedef struct sp_future {
    uint64_t bits;
} sp_future;

typedef struct sp_host_tensor sp_host_tensor; /* model.h */

/* One more reference. SP_EXHAUSTED past 65,535. */
SP_API sp_status sp_future_retain(sp_future future);
/* Drops a reference, also before the future is done: the run continues, and callbacks are called.
 * After the last release only a callback tells when the run's buffers are free again. Outputs that
 * belong to the future are freed with its last reference, after the end of the run and of its
 * callbacks. Does nothing for the zero handle. */
SP_API sp_status sp_future_release(sp_future future);

/* Waits until the future is done: SP_OK, or the status of what failed, with its message as the
 * calling thread's last error. No synchronize returns the failure of a run of sp_model_submit;
 * sp_stream_synchronize returns that of a run of sp_model_submit_tensors as well. Inside a host
 * function or callback a run that is still queued is computed by the calling thread, since the runs
 * in front of it may be waiting for that function. SP_DEADLOCK inside a host function that the run
 * cannot end without, for lack of memory. */
SP_API sp_status sp_future_wait(sp_future future);
/* At most `timeout_ns`, negative for ever: SP_TIMEOUT past that, and the run continues. */
SP_API sp_status sp_future_wait_for(sp_future future, int64_t timeout_ns);

/* Waits until all `count` futures are done, also after one has failed; the status and message are
 * those of the failed future with the lowest index. SP_TIMEOUT past `timeout_ns`, negative for
 * ever. No futures are done at once. Inside a host function or callback as sp_future_wait. */
SP_API sp_status sp_future_wait_all(const sp_future *futures, uint32_t count, int64_t timeout_ns);
/* Waits until one of the futures is done: *which is its index, the lowest if several are done, and
 * its status is returned. A future may be in the array more than once. At most `timeout_ns`,
 * negative for ever. Inside a host function or callback, if no run has started, one of them is
 * computed by the calling thread.
 * Errors of the call, for which *which is `count`: SP_TIMEOUT; SP_INVALID for a handle that does
 * not work, naming its index, and for a count of 0; SP_DEADLOCK inside a host function that all of
 * the runs depend on; SP_OUT_OF_MEMORY. */
SP_API sp_status sp_future_wait_any(const sp_future *futures, uint32_t count, int64_t timeout_ns,
                                    uint32_t *which);

/* SP_NOT_READY if the future is not done yet, else what sp_future_wait returns. */
SP_API sp_status sp_future_query(sp_future future);

/* Takes the `index`-th output of the call that submitted the run, in the order of its array: *out
 * gets all that sp_model_run would have written there, but for the name: dtype, rank, shape, bytes,
 * and data and capacity of the memory that the bytes are in. Each output is taken once.
 *
 * That memory is the caller's if the call was given it or has returned it: taking only tells where
 * the bytes are. Otherwise, since its size was not known at the call, it belongs to the future, and
 * from now on to the caller: sp_host_tensor_free frees it. Where a program leaves all outputs to
 * the library and takes each, it frees what it took, whatever kind of model has run.
 *
 * Errors, with *out unchanged: SP_NOT_READY before the future is done; the status of a failed run;
 * SP_NOT_FOUND past the last output, and for one that was taken. */
SP_API sp_status sp_future_take_output(sp_future future, uint32_t index, sp_host_tensor *out);

/* `status` is what sp_future_wait would return; its message is the thread's last error. */
typedef void (*sp_future_function)(void *ctx, sp_status status);

/* Calls `fn(ctx, status)` once when the future is done; at once if it is. It runs on a host thread
 * of the library, one function at a time like sp_stream_host_function's, and may make the same
 * calls as these: submit again, wait for other futures. A future may have any number of callbacks.
 * If an sp_shutdown during the run has ended those threads, it runs on a thread of its own, which
 * is joined by the thread that finds the run refused. */
SP_API sp_status sp_future_on_complete(sp_future future, sp_future_function fn, void *ctx);

/* Asks the run to end early, and returns at once. A run that waits for a run slot or for memory
 * ends now, and its place goes to the next; one that computes stops before its next segment, on cpu
 * and null before its next kernel. A run in a batch with others runs to its end, as does one on a
 * GPU whose kernels have been issued: a cancel is a hint. The future is done, as always, when
 * nothing uses the run's buffers: with SP_CANCELLED if the cancel came in time, and the bytes of
 * outputs are undefined then. Other runs are unaffected. Does nothing if the future is done. Any
 * number of times, from any thread, in host functions and callbacks, and after sp_shutdown. Several
 * runs at once: cancel.h. */
SP_API sp_status sp_future_cancel(sp_future future);

SP_EXTERN_C_END

#endif
