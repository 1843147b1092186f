/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: in-order queues of commands on a device.
 *
 * Each thread has a current stream per device. The main thread's is the default stream; any other
 * thread gets a stream of its own from the device's pool when it first needs one and gives it back
 * when it ends. A handle is a lease: it names a stream for as long as its taker keeps it, and is
 * stale afterwards. Any thread may submit to any stream whose handle it has. */
#ifndef STREAMPOOL_STREAM_H
#define STREAMPOOL_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/device.h>

SP_EXTERN_C_BEGIN

typedef struct sp_stream {
    uint64_t bits;
} sp_stream;

/* The calling thread's current stream of `device`. SP_EXHAUSTED or SP_TIMEOUT if all streams are
 * taken and the policy (STREAMPOOL_STREAM_POLICY) is fail or wait. Under the policy wait takers are
 * served first come, first served, and SP_CLOSED ends the wait when the device is closed or
 * streampool shut down. */
SP_API sp_status sp_stream_current(sp_device device, sp_stream *out);

/* The default stream of `device`. It is never taken and never released. */
SP_API sp_status sp_stream_default(sp_device device, sp_stream *out);

/* Leases a stream: one that nobody has while there is one, then as the policy says (see
 * sp_stream_current). The caller releases it, from any thread. */
SP_API sp_status sp_stream_from_pool(sp_device device, sp_stream *out);

typedef struct sp_stream_options {
    bool is_unbatched;    /* as sp_stream_set_batching(stream, false) */
    uint64_t reserved[7]; /* zero; room for priorities and for streams that somebody else made */
} sp_stream_options;

/* The same with options, which may be NULL. SP_UNSUPPORTED if anything reserved is not zero. */
SP_API sp_status sp_stream_from_pool_with(sp_device device, const sp_stream_options *options,
                                          sp_stream *out);

/* Ends the lease. What was submitted still completes, before anything of the stream's next taker.
 * Where the stream is still current, calls that use the current stream are SP_INVALID until another
 * is, by sp_stream_set_current of the zero handle for instance. SP_INVALID for the default stream
 * and for a stale handle; the zero handle is fine. */
SP_API sp_status sp_stream_release(sp_stream stream);

/* Makes `stream` the calling thread's current stream of its device; no reference is taken. The zero
 * handle goes back to the thread's own stream. */
SP_API sp_status sp_stream_set_current(sp_stream stream);

/* A scope in which another stream is current. Lives on the caller's stack; the fields are the
 * library's. */
typedef struct sp_stream_guard {
    sp_stream previous;
    uint64_t thread; /* that began it */
    uint64_t number; /* among that thread's guards */
    uint64_t outer;  /* the guard around it */
    uint32_t device; /* of the stream */
} sp_stream_guard;

/* Makes `stream` current until sp_stream_guard_end on the same thread; guards nest. */
SP_API sp_status sp_stream_guard_begin(sp_stream stream, sp_stream_guard *guard);
/* Back to the stream that was current before the guard, whatever became current in it. SP_INVALID
 * out of order or on another thread. */
SP_API sp_status sp_stream_guard_end(const sp_stream_guard *guard);

/* Gives the calling thread's own streams back before it ends; it gets others when it next needs
 * them. */
SP_API sp_status sp_thread_release_stream(void);

/* Waits until everything submitted to the stream before the call has completed. The status is that
 * of the first failed command that this thread submitted to it and was not told of yet; with that
 * the thread has been told of all of them.
 *
 * A failed command makes its lease failed, and with it later commands of the lease that use
 * untracked storages, whose data nothing follows: such a command fails with the first failure of
 * its lease for which neither holds:
 * - the thread that submitted the failed command has been told of it;
 * - the thread that submits this command has been told of the failure that is the root of that one:
 *   of its own command, if that is the root and no earlier failure counted for it then, or of one
 *   that failed because the lease had, later than the root.
 * The root of a command that failed because its lease had is the failure that it met, or what that
 * one's root is, and of several the newest. Any other failure is its own root. So of threads that
 * share a lease each is told before its commands run on, and once told none fails again for the
 * same root, whoever else has not been told; telling one clears nothing for the others; leases of
 * one stream share nothing, and a new lease inherits nothing.
 * Where more than 32 threads have failures on one lease, or memory is short, a command too many may
 * fail. That ends also: once a lease with that many threads has failed some hundred times more than
 * there are threads remembered since the newest root, all its failures so far stop counting. Other
 * commands follow their storages and run.
 *
 * SP_DEADLOCK inside a host function that the stream waits for. */
SP_API sp_status sp_stream_synchronize(sp_stream stream);

/* The same, at most `timeout_ns`; negative is for ever. SP_TIMEOUT past that. */
SP_API sp_status sp_stream_synchronize_for(sp_stream stream, int64_t timeout_ns);

/* SP_OK if everything submitted has completed, else SP_NOT_READY. */
SP_API sp_status sp_stream_query(sp_stream stream);

/* A hint: what was submitted shall get going now rather than within a millisecond. */
SP_API sp_status sp_stream_flush(sp_stream stream);

/* Gathers submissions and hands them over together (on, the default), or each at once. Of the
 * stream, for all who share it, until the last of them has released it. */
SP_API sp_status sp_stream_set_batching(sp_stream stream, bool is_on);

typedef struct sp_stream_info {
    sp_device device;
    uint32_t index;       /* in the pool; 0 is the default stream */
    uint32_t holders;     /* leases on it right now */
    uint64_t submissions; /* accepted ever, of all its takers */
    uint64_t done;        /* of these: completed without a failure */
    uint64_t failed;     /* completed with one; nothing accepted is ever dropped or cancelled, so an
                            idle stream has submissions = done + failed */
    uint64_t commits;    /* times that gathered submissions were handed over */
    uint64_t by_workers; /* commands run by the device's own threads */
    uint64_t by_helpers; /* commands run by threads that waited */
    uint64_t by_host;    /* host functions run by the host executor */
} sp_stream_info;

/* Figures of the stream that the lease names, read one by one. */
SP_API sp_status sp_stream_get_info(sp_stream stream, sp_stream_info *out);

/* A function on the host. `status` is SP_OK, or why earlier commands of the same submission failed.
 * It may submit anywhere; a wait in it for something that comes after it is SP_DEADLOCK.
 *
 * For this and all other callbacks: on a host thread of the library the function's own streams, and
 * what it makes current, end with it. It may end its thread (pthread_exit, a cancellation): a host
 * function has then failed with SP_FAILED, and everything else goes on. A cancellation that is
 * pending when it returns acts then and counts likewise. The library's threads are cancelled inside
 * a callback only; its calls are no cancellation points, but for the callbacks that they make. Only
 * deferred cancellation is supported. No C++ exception may leave it. Where there are no more
 * threads to be had, a thread of the library that a function ends goes on, and runs no destructors
 * then.
 *
 * The threads of the library have all signals blocked, also inside callbacks, so that signals of
 * the process are handled on the application's threads. What a callback starts there inherits that,
 * like all children: a program run by fork and exec, posix_spawn or system ignores SIGTERM unless
 * the child empties its mask (sigprocmask before exec, POSIX_SPAWN_SETSIGMASK) or the callback
 * changes its own around the call and restores it. A function that runs on the submitting thread
 * has that thread's mask. A child that is forked inside a callback must not return from it: it
 * leaves by exec, exit or _exit, or ends its thread, which exits. */
typedef void (*sp_host_function)(void *ctx, sp_status status);

/* Has `fn(ctx, status)` called once, in stream order, on a host thread of the library, or on the
 * submitting thread while that is in sp_stream_synchronize, sp_event_synchronize or
 * sp_device_synchronize. Host threads start one function at a time, the next
 * when that has returned or waits inside the library; after such a wait two may run at once. At
 * most 63 functions and callbacks wait at once: a further wait in one is SP_EXHAUSTED. */
SP_API sp_status sp_stream_host_function(sp_stream stream, sp_host_function fn, void *ctx);

SP_EXTERN_C_END

#endif
