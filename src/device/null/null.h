/* SPDX-License-Identifier: Apache-2.0 */
/* The device kind `null`: a simulated accelerator. It computes with the kernels of cpu, but like a
 * real one it has its own memory, its own executor and no helpers. Latency and faults can be
 * injected: failed allocations, failed commands, loss of the device. Tests of all upper layers use
 * it to reach their error paths. */
#ifndef SP_DEVICE_NULL_H
#define SP_DEVICE_NULL_H

#include "device/device.h"

typedef struct sp_null_options {
    uint64_t command_ns;    /* each command takes at least this long */
    uint64_t queue_bytes;   /* 0: 1 MiB of commands per stream */
    uint32_t max_in_flight; /* submissions per device; 0: no limit */
    uint64_t memory_bytes;  /* memory of the device; 0: 1 GiB */
    uint32_t quirk_limit;   /* kernels with quirk 1 that may run at once; 0: no limit */
    /* Memory without host pointers, like that of some GPUs; the host can access memory of
     * staging_create only. The DLPack type is still that of cpu. */
    bool has_own_memory;
    bool hides_staging; /* staging_create has no host pointers either: a broken device */
} sp_null_options;

extern const sp_device_kind sp__null_kind;

sp_status sp__null_open(const sp_null_options *options, sp_dev **out);

/* SP_OK if the device is of this kind, else SP_INVALID: the functions below take no other. */
sp_status sp__null_check(const sp_dev *device);

/* Fault injection; each fault is off by default. Any thread, at any time. */
/* The allocation after `skip` others fails, once. */
void sp__null_fail_allocation(sp_dev *device, uint64_t skip);
/* The command after `skip` others fails, once; UINT64_MAX: none. */
void sp__null_fail_command(sp_dev *device, uint64_t skip);
/* Whether the failure that was requested last has happened. */
bool sp__null_has_failed_command(sp_dev *device);
/* About `per_mille` of every 1,000 commands, chosen by `seed`, fail. */
void sp__null_fail_randomly(sp_dev *device, uint32_t per_mille, uint64_t seed);
/* Each later command takes at least this long. */
void sp__null_set_latency(sp_dev *device, uint64_t command_ns);
/* The device is lost at the next command. */
void sp__null_lose(sp_dev *device);

#endif
