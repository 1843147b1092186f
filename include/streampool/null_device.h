/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of `null` devices, for the tests of applications: what a program does when a command
 * fails, when there is no memory, or when the accelerator falls off the bus. Each is off until it
 * is asked for and hurts this device alone. Any thread may call them at any time, beside work that
 * is going on. SP_INVALID for a device of another kind, SP_CLOSED for one that is closed. */
#ifndef STREAMPOOL_NULL_DEVICE_H
#define STREAMPOOL_NULL_DEVICE_H

#include <streampool/device.h>

SP_EXTERN_C_BEGIN

/* The allocation that comes after `skip` others fails once, with SP_OUT_OF_MEMORY. The device is
 * asked only when the allocator's caches have nothing that fits. */
SP_API sp_status sp_null_fail_allocation(sp_device device, uint64_t skip);

/* The command that comes after `skip` others fails once, with SP_FAILED. UINT64_MAX: none does. */
SP_API sp_status sp_null_fail_command(sp_device device, uint64_t skip);

/* Of every 1,000 commands about `per_mille`, chosen by `seed`, fail with SP_FAILED; 0: none.
 * SP_INVALID above 1,000. */
SP_API sp_status sp_null_fail_randomly(sp_device device, uint32_t per_mille, uint64_t seed);

/* From now on each command takes at least this many nanoseconds. */
SP_API sp_status sp_null_set_latency(sp_device device, uint64_t ns);

/* The next command finds the device lost: it fails with SP_DEVICE_LOST, as all later work does. */
SP_API sp_status sp_null_lose(sp_device device);

SP_EXTERN_C_END

#endif
