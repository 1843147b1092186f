/* SPDX-License-Identifier: Apache-2.0 */
/* Fault injection in `null` devices, for tests of applications: failed commands, lack of memory,
 * loss of the device. Each fault is off by default and affects one device only. May be called from
 * any thread at any time, also while the device executes work. SP_INVALID for a device of another
 * kind, SP_CLOSED for a closed one. */
#ifndef STREAMPOOL_NULL_DEVICE_H
#define STREAMPOOL_NULL_DEVICE_H

#include <streampool/device.h>

SP_EXTERN_C_BEGIN

/* The device allocation after `skip` others fails once, with SP_OUT_OF_MEMORY. An allocation
 * reaches the device only if the allocator's caches have no block that fits. UINT64_MAX: none
 * fails. */
SP_API sp_status sp_null_fail_allocation(sp_device device, uint64_t skip);

/* The command after `skip` others fails once, with SP_FAILED. UINT64_MAX: none fails. */
SP_API sp_status sp_null_fail_command(sp_device device, uint64_t skip);

/* About `per_mille` of every 1,000 commands, chosen by `seed`, fail with SP_FAILED; 0: none.
 * SP_INVALID above 1,000. */
SP_API sp_status sp_null_fail_randomly(sp_device device, uint32_t per_mille, uint64_t seed);

/* From now on each command takes at least this many nanoseconds. */
SP_API sp_status sp_null_set_latency(sp_device device, uint64_t ns);

/* The device is lost at the next command, which fails with SP_DEVICE_LOST, as all later work does.
 */
SP_API sp_status sp_null_lose(sp_device device);

SP_EXTERN_C_END

#endif
