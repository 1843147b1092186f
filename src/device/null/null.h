/* SPDX-License-Identifier: Apache-2.0 */
/* The device kind `null`: a pretend accelerator. It computes what cpu computes, but like a real one
 * it has its own memory, its own executor and no helpers, and it takes time on request. And it
 * fails on request: allocations, commands, the whole device. Tests of everything above the device
 * layer use it to see every error path. */
#ifndef SP_DEVICE_NULL_H
#define SP_DEVICE_NULL_H

#include "device/device.h"

typedef struct sp_null_options {
    uint64_t command_ns;    /* each command takes at least this long */
    uint64_t queue_bytes;   /* 0: 1 MiB of commands per stream */
    uint32_t max_in_flight; /* submissions per device; 0: no limit */
    uint64_t memory_bytes;  /* memory of the device; 0: 1 GiB */
    uint32_t quirk_limit;   /* kernels with quirk 1 that may run at once; 0: no limit */
    /* Memory of its own, without host pointers, as a GPU may have it; the host reaches what
     * staging_create makes. DLPack's type stays that of cpu. */
    bool has_own_memory;
    bool hides_staging; /* and not even that: a broken device */
} sp_null_options;

extern const sp_device_kind sp__null_kind;

sp_status sp__null_open(const sp_null_options *options, sp_dev **out);

/* SP_OK if the device is of this kind, else SP_INVALID: the functions below take no other. */
sp_status sp__null_check(const sp_dev *device);

/* The faults of a null device; each is off until asked for. Any thread, at any time. */
/* The allocation that comes after `skip` others fails, once. */
void sp__null_fail_allocation(sp_dev *device, uint64_t skip);
/* The command that comes after `skip` others fails, once; UINT64_MAX: none. */
void sp__null_fail_command(sp_dev *device, uint64_t skip);
/* Has the command that was last asked to fail come by? */
bool sp__null_has_failed_command(sp_dev *device);
/* Of every 1,000 commands, about `per_mille`, chosen by `seed`, fail. */
void sp__null_fail_randomly(sp_dev *device, uint32_t per_mille, uint64_t seed);
/* Each later command takes at least this long. */
void sp__null_set_latency(sp_dev *device, uint64_t command_ns);
/* The next command finds the device lost. */
void sp__null_lose(sp_dev *device);

#endif
