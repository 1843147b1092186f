/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: a processor with its own memory. `cpu` is always there and is the default; `null` is a
 * pretend accelerator for tests of applications. */
#ifndef STREAMPOOL_DEVICE_H
#define STREAMPOOL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

SP_EXTERN_C_BEGIN

/* A device. The zero handle names the default device, `cpu`, wherever one is asked for. */
typedef struct sp_device {
    uint64_t bits;
} sp_device;

/* Wait for ever, where a call takes a time-out. */
#define SP_FOREVER (-1)

typedef struct sp_device_info {
    char name[64];
    char kind[16];
    uint64_t memory_bytes;
    uint32_t width;        /* streams that really run at the same time */
    uint32_t run_slots;    /* model runs that are let in at once */
    uint32_t stream_count; /* size of the stream pool, the default stream included */
} sp_device_info;

/* Number of open devices; at least 1 once the runtime is up. 0 after sp_shutdown. */
SP_API uint32_t sp_device_count(void);

/* The `index`-th open device, in the order in which they were opened; index 0 is `cpu`. A close
 * moves the later ones up. SP_NOT_FOUND past the end. */
SP_API sp_status sp_device_at(uint32_t index, sp_device *out);

/* Opens a device: "cpu" gives the one there is, "null" another pretend accelerator each time,
 * "cuda:N" (or "cuda", which is "cuda:0") the NVIDIA GPU with that number, the same one each time
 * until it is closed. A GPU takes its time: other calls go on meanwhile, another open of the same
 * GPU waits for this one, and so does sp_shutdown. SP_NOT_FOUND: no such kind or GPU;
 * SP_UNSUPPORTED: no CUDA driver; SP_EXHAUSTED: 64 devices were opened in this process. */
SP_API sp_status sp_device_open(const char *kind, sp_device *out);

/* Stops accepting work, ends the waits for a stream of the device (SP_CLOSED), waits for what was
 * accepted, and closes. Later commands, streams, storages and runs are SP_CLOSED; queries of
 * earlier work and waits for it keep their status. The device's cached memory goes back to the
 * system; its storages keep theirs until they are released, and then it goes back too. SP_INVALID
 * for `cpu`, which sp_shutdown closes; SP_DEADLOCK inside a host function. */
SP_API sp_status sp_device_close(sp_device device);

/* Name, kind and limits of the device; they do not change while it is open. */
SP_API sp_status sp_device_get_info(sp_device device, sp_device_info *out);

/* Something in a vendor's library that is not safe to call from several threads, and what this
 * library does about it. The strings live as long as the device is open. */
typedef struct sp_device_quirk {
    const char *name;
    const char *since;   /* the version in which it was seen */
    const char *measure; /* "serialised", "handle per stream" or "other path" */
    uint32_t limit;      /* commands with this quirk that run at once; 0: no limit */
} sp_device_quirk;

/* The `index`-th quirk of the device. SP_NOT_FOUND past the end. With STREAMPOOL_FORCE_SAFE_PATHS=1
 * each lets one command run at a time. */
SP_API sp_status sp_device_get_quirk(sp_device device, uint32_t index, sp_device_quirk *out);

/* Waits until everything submitted to any stream of the device before the call has completed. The
 * status is that of the first failed command that this thread submitted and was not told of yet;
 * on a lost device it is SP_DEVICE_LOST each time, with the first cause. */
SP_API sp_status sp_device_synchronize(sp_device device);

SP_EXTERN_C_END

#endif
