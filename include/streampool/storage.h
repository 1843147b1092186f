/* SPDX-License-Identifier: Apache-2.0 */
/* Storages: reference-counted device memory.
 *
 * Storages are tracked by default: a command that uses one on another stream than before waits, on
 * the device, for exactly the uses it must follow, so a storage written by one thread and read by
 * another is right with no call from the user. Freed memory is reused only when its last use has
 * completed or is ordered before the new one. */
#ifndef STREAMPOOL_STORAGE_H
#define STREAMPOOL_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/event.h>
#include <streampool/stream.h>

SP_EXTERN_C_BEGIN

typedef struct sp_storage {
    uint64_t bits;
} sp_storage;

typedef enum sp_access { SP_READ = 1, SP_WRITE = 2, SP_READ_WRITE = 3 } sp_access;

typedef struct sp_storage_options {
    bool is_untracked; /* the caller orders all uses, with events */
} sp_storage_options;

/* `bytes` of memory on `device`, 64-byte aligned, contents undefined, ordered on the calling
 * thread's current stream. 0 bytes is fine. NULL options are all defaults.
 * Errors: SP_OUT_OF_MEMORY, with the sizes, after unused memory was returned to the device, pending
 * frees were waited for and unused plans of models were evicted. The wait is for whichever pending
 * free completes first, then for the next; there is none if all depend on open host accesses that
 * the calling thread began, or on the host function that it is in. SP_EXHAUSTED or SP_TIMEOUT if
 * the thread needed a stream and got none. */
SP_API sp_status sp_storage_create(sp_device device, uint64_t bytes,
                                   const sp_storage_options *options, sp_storage *out);
/* One more reference. SP_EXHAUSTED past 65,535. */
SP_API sp_status sp_storage_retain(sp_storage storage);
/* One reference less; may be called while commands that use the storage are still queued. The zero
 * handle is fine. */
SP_API sp_status sp_storage_release(sp_storage storage);

/* Called once when the library no longer uses adopted memory: on a host thread of the library,
 * after the last queued use; never after sp_shutdown has returned. Rules for callbacks: see
 * sp_host_function. */
typedef void (*sp_storage_release_function)(void *ctx, void *data);

typedef struct sp_adopt_options {
    bool is_untracked;
    sp_event ready; /* the memory is ready when this event is reached; zero: it is ready now */
    /* Alternative to `ready`, at most one of the two: the memory is ready when everything submitted
     * to this stream (of any device) before the call has completed; not ready if the lease has
     * failed (sp_stream_synchronize). It is a command: SP_BUSY if the stream is full. */
    sp_stream ready_after;
    bool is_frozen; /* frozen from the start; the call waits until the memory is ready */
    sp_storage_release_function release; /* may be NULL */
    void *ctx;
} sp_adopt_options;

/* A storage over memory of another owner, which must stay valid until the release function is
 * called: host memory; on a cuda device its GPU's memory, or pinned host memory. Every use waits
 * until the memory is ready, also of an untracked storage. If the work that makes it ready fails,
 * commands and host accesses that read the storage get that failure until one has overwritten all
 * of it; if `is_frozen`, the call itself fails, and with `ready_after` no synchronize returns the
 * failure of the call's command again. SP_INVALID if the range wraps around the end of the
 * address space; of a cuda device also if it is not inside one allocation, or is another GPU's.
 * SP_UNSUPPORTED for memory that the CUDA driver does not know on a cuda device. */
SP_API sp_status sp_storage_adopt(sp_device device, void *data, uint64_t bytes,
                                  const sp_adopt_options *options, sp_storage *out);

/* `bytes` of zeroed, page-aligned host memory that `device` accesses directly: to adopt, or as a
 * staging buffer. A cuda device accesses it over the bus. 0 bytes is fine. Valid until
 * sp_host_free, also after the device is closed. Errors: SP_OUT_OF_MEMORY. */
SP_API sp_status sp_host_alloc(sp_device device, uint64_t bytes, void **out);
/* Frees memory from sp_host_alloc, which must not be in use: free adopted memory in its release
 * function. Works after sp_shutdown. SP_INVALID for an address that sp_host_alloc did not return or
 * that is freed already; NULL is fine. */
SP_API sp_status sp_host_free(void *data);
/* Whether the `bytes` at `data` are all in one block from sp_host_alloc. */
SP_API bool sp_host_is_pinned(const void *data, uint64_t bytes);

typedef struct sp_storage_info {
    sp_device device;
    uint64_t bytes;
    bool is_tracked;
    bool is_frozen;
    bool is_adopted;
    /* Of the first byte, for the host; NULL if the host cannot access the memory. An identity, and
     * a base for the arithmetic of other libraries: the bytes are accessed between
     * sp_storage_host_begin, which gives the same address, and sp_storage_host_end. */
    void *address;
} sp_storage_info;

/* Properties of the storage. */
SP_API sp_status sp_storage_get_info(sp_storage storage, sp_storage_info *out);

/* Makes the storage read-only for ever, so that its uses need no tracking. Waits for its last
 * write; later writes are SP_INVALID. On failure the storage is not frozen: the status of a failed
 * command that wrote it; SP_BUSY if another thread writes it during the call; SP_DEADLOCK as in
 * sp_storage_host_begin, for instance if the calling thread has a write access to it open, or is
 * inside a host function that the last write is ordered after. */
SP_API sp_status sp_storage_freeze(sp_storage storage);

/* Part of a storage. */
typedef struct sp_storage_range {
    sp_storage storage;
    uint64_t offset; /* in bytes */
    uint64_t bytes;
} sp_storage_range;

/* Begins a host access: waits for conflicting uses of the storage, and makes later device work on
 * it wait for sp_storage_host_end. Any number of readers, or one writer; a begin waits for earlier
 * accesses that conflict. `*data` is valid until the end. A read returns the status of a failed
 * command that wrote the storage; SP_WRITE promises to write all of it. SP_DEADLOCK, without an
 * access, if the wait depends on an access that the calling thread has open, or on the host
 * function that it is in.
 *
 * Memory of a cuda device cannot be accessed by the host: there `*data` is pinned memory of the
 * library, to which a reading begin copies the bytes, and from which the end of a write copies them
 * back. SP_OUT_OF_MEMORY if there is none. */
SP_API sp_status sp_storage_host_begin(sp_storage storage, sp_access access, void **data);
/* The same for the bytes of a range, the first of which is at `*data`: only these are copied where
 * the host has no access, and SP_WRITE promises to write all of these. It waits, and is waited for,
 * as an access to the whole storage. SP_INVALID for a range outside of the storage. */
SP_API sp_status sp_storage_host_begin_range(sp_storage_range range, sp_access access, void **data);
/* Ends one open access of that kind, preferably one that the calling thread began; `*data` is then
 * invalid. Any thread may end an access. If a thread ends one that it did not begin while several
 * of that kind are open, the library cannot tell which one: waits for the others are no longer
 * detected as SP_DEADLOCK, even in the threads that began them. SP_INVALID if none is open. Works
 * during sp_shutdown, which waits for work behind the access, and after it.
 *
 * Where what was written has to be copied to the device, that is submitted, not waited for. If it
 * cannot be, as during a shutdown, the access ends with that status, and what reads the storage
 * fails; so it does if the copy fails later. */
SP_API sp_status sp_storage_host_end(sp_storage storage, sp_access access);

/* Called while a thread waits; SP_OK: the wait goes on. */
typedef sp_status (*sp_wait_check)(void *ctx);

/* Lets the calling thread give up waits:
 * - for host accesses, of sp_storage_host_begin and of what waits as it does, such as
 *   sp_tensor_read, sp_tensor_from_host, sp_tensor_to_dlpack, and operators that read a tensor on
 *   the host;
 * - for memory that earlier commands use, of whatever allocates;
 * - for room on a full stream (sp_thread_set_wait_for_room);
 * - of sp_model_run and sp_model_run_with, for what the thread's stream has in front of the run,
 *   and for a run slot; a run that has begun is not given up;
 * - of sp_batch_queue_submit, for a place in the queue.
 *
 * While such a wait lasts, `check(ctx)` is called by the thread about every 20 ms, between two
 * commands if the thread computes some meanwhile. A status other than SP_OK ends the wait, and the
 * call fails with it. NULL: no check, as at first.
 *
 * The check may call the library. The access that waits counts as one that the thread has open, so
 * waits for accesses, streams, events and devices that depend on it are SP_DEADLOCK, and so is a
 * run behind it. These waits have no check but one that is set inside, which is forgotten when the
 * outer one returns. It must return. Waits inside host functions and callbacks have none either.
 * Errors: SP_OUT_OF_MEMORY. */
SP_API sp_status sp_thread_set_wait_check(sp_wait_check check, void *ctx);

/* Whether operators, copies of tensors, sp_model_run_tensors, sp_event_record and
 * sp_stream_wait_event wait when the calling thread finds its stream full, until about half of what
 * is on it has completed. Otherwise, as at first, they are SP_BUSY. They still are inside host
 * functions and callbacks, and where the wait would depend on a host access that the thread has
 * open; inside a check that is SP_DEADLOCK. Errors: SP_OUT_OF_MEMORY. */
SP_API sp_status sp_thread_set_wait_for_room(bool waits);

/* Keeps the memory from being reused before everything submitted to `stream` until the release of
 * the storage has completed. Needed only for uses that the library does not see. SP_INVALID for a
 * stream of another device. */
SP_API sp_status sp_storage_record_stream(sp_storage storage, sp_stream stream);

/* The same for every stream of the device, also those that are first used later: for a storage
 * whose address is used by foreign code on unknown streams. */
SP_API sp_status sp_storage_record_all_streams(sp_storage storage);

/* Copies ranges of equal size, in stream order; ranges of one storage may overlap. SP_MISMATCH for
 * ranges of other sizes.
 *
 * The storages may be of two devices, and the stream of either: SP_INVALID if it is of a third one.
 * The copy follows, and is followed by, the uses of both storages as one on a single device is.
 * Between two GPUs that are peers, and between a GPU and pinned host memory (sp_host_alloc for a
 * cuda device, adopted), it is a command of the GPU's stream. Otherwise a host function of the
 * library copies through pinned memory, and the stream waits for it; on a stream of cpu always, if
 * the other device's memory is its own. SP_CLOSED or SP_DEVICE_LOST if either device is. A copy
 * that fails later, as for want of pinned memory, or since a device is closed or lost before its
 * turn, makes what reads the destination fail. */
SP_API sp_status sp_storage_copy_async(sp_stream stream, sp_storage_range destination,
                                       sp_storage_range source);

/* Repeats a pattern of 1, 2, 4 or 8 bytes over a range whose size is a multiple of it. The pattern
 * is copied. SP_BUSY if the stream is full. */
SP_API sp_status sp_storage_fill_async(sp_stream stream, sp_storage_range destination,
                                       const void *pattern, uint32_t pattern_bytes);

/* Counters of the device's allocator; each is exact, but they are not one snapshot. */
typedef struct sp_memory_stats {
    uint64_t in_use_bytes;   /* in live storages, models and runs */
    uint64_t cached_bytes;   /* free, kept for reuse */
    uint64_t reserved_bytes; /* allocated from the device: in use + cached */
    uint64_t peak_bytes;  /* highest reserved_bytes so far, or since sp_device_reset_peak_memory */
    uint64_t allocations; /* of storages, models and runs */
    uint64_t frees;
    uint64_t device_allocations; /* allocations that reached the device */
    uint64_t waits;              /* allocations that had to wait for pending work */
    /* Host memory of a cuda device, in use and cached: of host accesses, uploads, and inputs and
     * outputs of runs; else 0. Without sp_host_alloc's. */
    uint64_t pinned_bytes;
} sp_memory_stats;

/* The counters of the device's allocator. */
SP_API sp_status sp_device_get_memory_stats(sp_device device, sp_memory_stats *out);

/* Sets peak_bytes to what is reserved now. An allocation at the same time may be in the old peak
 * only. */
SP_API sp_status sp_device_reset_peak_memory(sp_device device);

/* Returns unused cached memory to the device. SP_CLOSED on a closed device, which caches nothing.
 */
SP_API sp_status sp_device_empty_cache(sp_device device);

/* Limits reserved_bytes; 0: no limit except memory_bytes of sp_device_info, which always applies.
 * Memory that is reserved already is kept. */
SP_API sp_status sp_device_set_memory_limit(sp_device device, uint64_t bytes);

/* When more than `high_bytes` are cached beside what each stream keeps for itself (of each size at
 * most 8 MiB or 32 blocks), unused memory is returned to the device, down to `low_bytes`, in small
 * steps between other allocations. 0 for both: only when memory runs out. The
 * default is STREAMPOOL_CACHE and three quarters of it. SP_INVALID if low is above high. */
SP_API sp_status sp_device_set_cache_watermarks(sp_device device, uint64_t low_bytes,
                                                uint64_t high_bytes);

SP_EXTERN_C_END

#endif
