/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: a processor with its own memory. `cpu` is always open and is the default; `null` is a
 * simulated accelerator for tests of applications. */
#ifndef STREAMPOOL_DEVICE_H
#define STREAMPOOL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

SP_EXTERN_C_BEGIN

/* A device. As an argument the zero handle is the default device, `cpu`. */
typedef struct sp_device {
    uint64_t bits;
} sp_device;

/* As a time-out: no limit. */
#define SP_FOREVER (-1)

typedef struct sp_device_info {
    char name[64];
    char kind[16];
    uint64_t memory_bytes;
    uint32_t width;        /* streams that execute at the same time */
    uint32_t run_slots;    /* model runs admitted at the same time: `width` or more */
    uint32_t stream_count; /* size of the stream pool, the default stream included */
} sp_device_info;

/* Number of open devices; at least 1 once the runtime is up. 0 after sp_shutdown. */
SP_API uint32_t sp_device_count(void);

/* The `index`-th open device, in the order of opening; index 0 is `cpu`. Closing a device
 * decrements the indices of later ones. SP_NOT_FOUND past the end. */
SP_API sp_status sp_device_at(uint32_t index, sp_device *out);

/* Opens a device: "cpu" returns the existing one, "null" a new simulated accelerator each time,
 * "cuda:N" (or "cuda", which is "cuda:0") the NVIDIA GPU with that number, the same device each
 * time until it is closed. Opening a GPU is slow and does not block other calls, except another
 * open of the same GPU and sp_shutdown. SP_NOT_FOUND: no such kind or GPU; SP_UNSUPPORTED: no CUDA
 * driver; SP_EXHAUSTED: 64 devices were opened in this process. */
SP_API sp_status sp_device_open(const char *kind, sp_device *out);

/* Stops accepting work, ends waits for a stream of the device (SP_CLOSED), waits for all accepted
 * work, and closes. Later commands, streams, storages and runs return SP_CLOSED; queries of earlier
 * work and waits for it keep their status. Cached memory is returned to the system at once, the
 * memory of live storages when they are released. SP_INVALID for `cpu`, which sp_shutdown closes;
 * SP_DEADLOCK inside a host function. */
SP_API sp_status sp_device_close(sp_device device);

/* Name, kind and limits of the device; they do not change while it is open. */
SP_API sp_status sp_device_get_info(sp_device device, sp_device_info *out);

/* A function of a vendor's library that is not thread-safe, and the workaround in use. The strings
 * are valid while the device is open. */
typedef struct sp_device_quirk {
    const char *name;
    const char *since;   /* the vendor's version in which it was observed */
    const char *measure; /* the workaround, such as "at most so many at once" */
    uint32_t limit;      /* commands with this quirk that run at once; 0: no limit */
} sp_device_quirk;

/* The `index`-th quirk of the device. SP_NOT_FOUND past the end. With STREAMPOOL_FORCE_SAFE_PATHS=1
 * the limit of each is 1. */
SP_API sp_status sp_device_get_quirk(sp_device device, uint32_t index, sp_device_quirk *out);

/* Waits until everything submitted to any stream of the device before the call has completed: not
 * for calls of sp_model_run on other threads, which return when they are done, or for futures.
 * Returns the status of the first failed command that this thread submitted and that was not
 * reported to it yet (sp_stream_synchronize); on a lost device always SP_DEVICE_LOST, with the
 * first cause. SP_DEADLOCK inside a host function of the device; SP_CLOSED on a closed device. */
SP_API sp_status sp_device_synchronize(sp_device device);

/* The same, at most `timeout_ns` (negative: no limit), then SP_TIMEOUT. The first failure of a
 * command that is done by then is returned in its place. */
SP_API sp_status sp_device_synchronize_for(sp_device device, int64_t timeout_ns);

SP_EXTERN_C_END

#endif
