/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: in-order queues of commands on a device.
 *
 * Each thread has a current stream per device. The main thread's is the default stream; any other
 * thread acquires a stream of its own from the device's pool when it first needs one and releases
 * it when it ends. A handle is a lease: it names a stream until the lease is released, and is stale
 * afterwards. Any thread may submit to any stream whose handle it has. */
#ifndef STREAMPOOL_STREAM_H
#define STREAMPOOL_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/device.h>

SP_EXTERN_C_BEGIN

typedef struct sp_stream {
    uint64_t bits;
} sp_stream;

/* The calling thread's current stream of `device`. If all streams are leased: a stream that others
 * have too, under the policy (STREAMPOOL_STREAM_POLICY) share, the default, inside host functions
 * and callbacks, and if there is the default stream only; SP_EXHAUSTED under fail, SP_TIMEOUT under
 * wait. Waiting threads are served in
 * FIFO order; SP_CLOSED ends the wait when the device is closed or streampool is shut down. */
SP_API sp_status sp_stream_current(sp_device device, sp_stream *out);

/* The default stream of `device`. It is never leased and never released. */
SP_API sp_status sp_stream_default(sp_device device, sp_stream *out);

/* Leases a stream: a free one if there is one, otherwise according to the policy (see
 * sp_stream_current). May be released from any thread. */
SP_API sp_status sp_stream_from_pool(sp_device device, sp_stream *out);

typedef struct sp_stream_options {
    bool is_unbatched;    /* as sp_stream_set_batching(stream, false) */
    uint64_t reserved[7]; /* must be zero; for priorities and externally created streams */
} sp_stream_options;

/* The same with options, which may be NULL. SP_UNSUPPORTED if a reserved field is not zero. */
SP_API sp_status sp_stream_from_pool_with(sp_device device, const sp_stream_options *options,
                                          sp_stream *out);

/* Ends the lease. Submitted work still completes, before any work of the stream's next lease. In a
 * thread where the stream is still current, calls that use the current stream return SP_INVALID
 * until another one is made current (sp_stream_set_current with the zero handle, for instance).
 * SP_INVALID for the default stream and for a stale handle; the zero handle is fine. */
SP_API sp_status sp_stream_release(sp_stream stream);

/* Makes `stream` the calling thread's current stream of its device; no reference is taken. The zero
 * handle restores the thread's own streams, of all devices. */
SP_API sp_status sp_stream_set_current(sp_stream stream);

/* A scope in which another stream is current. In the caller's storage; the fields are private. */
typedef struct sp_stream_guard {
    sp_stream previous;
    uint64_t thread; /* the thread that began the scope */
    uint64_t number; /* of this guard among the thread's guards */
    uint64_t outer;  /* number of the enclosing guard */
    uint32_t device; /* of the stream */
} sp_stream_guard;

/* Makes `stream` current until sp_stream_guard_end on the same thread; guards nest. */
SP_API sp_status sp_stream_guard_begin(sp_stream stream, sp_stream_guard *guard);
/* Restores the stream that was current before the guard. SP_INVALID if called out of order or on
 * another thread. */
SP_API sp_status sp_stream_guard_end(const sp_stream_guard *guard);

/* Releases the calling thread's own streams before it ends; it acquires new ones when it next needs
 * them. */
SP_API sp_status sp_thread_release_stream(void);

/* Waits until everything submitted to the stream before the call has completed. Returns the status
 * of the first failed command that this thread submitted to the stream and that was not reported to
 * it yet; this reports all of the thread's failures on the stream so far. SP_DEVICE_LOST each time,
 * to any thread, if the device was lost while it computed commands of the stream.
 *
 * Reported once. A failure is reported by this call or sp_device_synchronize; or by the call that
 * submitted the command, if that waits for it and returns the failure: sp_model_run,
 * sp_model_run_tensors with an output in host memory, sp_storage_adopt of frozen memory. No other
 * call reports: events, futures and accesses to storages tell what became of a point or of data,
 * to any thread, any number of times, and this call returns the failure as well. A device that
 * is closed logs the failures that were not reported.
 *
 * Failed leases. A failed command marks its lease as failed; a run of sp_model_run does not. Later
 * commands of that lease that use untracked storages, whose data the library does not track, fail
 * too: such a command fails with the first failure F of its lease for which neither holds:
 * - F was reported to the thread that submitted the failed command;
 * - the root of F was reported to the thread that submits this command: through its own command, if
 *   that is the root and no earlier failure counted for it then, or through one of its commands
 *   that failed because the lease was failed, later than the root.
 * The root of a failure that was caused by a failed lease is the root of the failure that caused
 * it; with several causes, the newest root. Any other failure is its own root. Consequences: each
 * thread that shares a lease gets one report before its commands run again, and fails no more for
 * the same root, independent of reports to other threads; leases of one stream are independent; a
 * new lease has no failures.
 * If more than 32 threads have failures on one lease, or memory is short, additional commands may
 * fail. This is bounded: once such a lease has failed about a hundred times more than it remembers
 * threads since the newest root, all its failures so far stop counting. Commands without untracked
 * storages depend on their storages only, and run.
 *
 * sp_model_run on another thread is not waited for: it returns when its run is done. While the
 * policy of the pool shares a stream, such runs may be in none of its counters.
 *
 * SP_DEADLOCK inside a host function that the stream waits for. */
SP_API sp_status sp_stream_synchronize(sp_stream stream);

/* The same, at most `timeout_ns` (negative: no limit), then SP_TIMEOUT. */
SP_API sp_status sp_stream_synchronize_for(sp_stream stream, int64_t timeout_ns);

/* SP_OK if everything submitted has completed, else SP_NOT_READY. */
SP_API sp_status sp_stream_query(sp_stream stream);

/* Hint: starts submitted work now instead of within a millisecond. */
SP_API sp_status sp_stream_flush(sp_stream stream);

/* With batching (the default) submissions are passed to the device's threads together, without it
 * each at once. A property of the stream, shared by all its leases, reset when the last is
 * released. */
SP_API sp_status sp_stream_set_batching(sp_stream stream, bool is_on);

typedef struct sp_stream_info {
    sp_device device;
    uint32_t index;       /* in the pool; 0 is the default stream */
    uint32_t holders;     /* leases on it right now */
    uint64_t submissions; /* accepted since the stream was created, by all leases */
    uint64_t done;        /* of these: completed without a failure */
    uint64_t failed;  /* of these: completed with a failure, or a cancelled run of a model. Accepted
                         work is never dropped: on an idle stream submissions = done + failed */
    uint64_t commits; /* batches of submissions passed to the device's threads */
    uint64_t by_workers; /* commands run by the device's own threads */
    uint64_t by_helpers; /* commands run by waiting threads */
    uint64_t by_host;    /* host functions run by the host executor */
    /* The CUstream behind a stream of a cuda device, for calls of the CUDA driver; else NULL. What
     * such calls enqueue runs between submissions, and those that are accepted later follow it. It
     * must not be destroyed, and its device must be open. */
    void *native;
} sp_stream_info;

/* Counters of the stream that the lease names. Each is read separately: no consistent snapshot. */
SP_API sp_status sp_stream_get_info(sp_stream stream, sp_stream_info *out);

/* A function on the host. `status` is SP_OK, or SP_DEVICE_LOST on a lost device; failures of
 * earlier commands are reported by sp_stream_synchronize. The function may submit to any stream;
 * waiting in it for work that is ordered after it is SP_DEADLOCK.
 *
 * For this and all other callbacks: on a host thread of the library, the streams that the function
 * acquires or makes current are released or reset when it ends. The function may end its thread
 * (pthread_exit, cancellation): a host function has then failed with SP_FAILED, and the library
 * continues. A cancellation that is pending when the function returns takes effect then, with the
 * same result. The library's threads are cancelled only inside callbacks; calls of the library are
 * not cancellation points, apart from the callbacks that they make. Only deferred cancellation is
 * supported. No C++ exception may leave the function. If no replacement thread can be created, a
 * library thread that a function ends is kept, and its thread destructors do not run.
 *
 * The library's threads have all signals blocked, also inside callbacks, so that signals of the
 * process are handled on the application's threads. Threads and processes that a callback starts
 * inherit the mask: a program run by fork and exec, posix_spawn or system ignores SIGTERM unless
 * the child empties its mask (sigprocmask before exec, POSIX_SPAWN_SETSIGMASK) or the callback
 * changes its own mask around the call and restores it. A function that runs on the submitting
 * thread has that thread's mask. A child that is forked inside a callback must not return from it:
 * it must call exec, exit or _exit, or end its thread, which exits. */
typedef void (*sp_host_function)(void *ctx, sp_status status);

/* Calls `fn(ctx, status)` once, in stream order, on a host thread of the library, or on the
 * submitting thread while that is in sp_stream_synchronize, sp_event_synchronize or
 * sp_device_synchronize. Host threads start one function at a time, the next when the previous one
 * has returned or waits inside the library; after such a wait two may run at once. At most 63
 * functions and callbacks may wait at once: a further wait in one is SP_EXHAUSTED. */
SP_API sp_status sp_stream_host_function(sp_stream stream, sp_host_function fn, void *ctx);

SP_EXTERN_C_END

#endif
