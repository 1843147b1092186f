/* SPDX-License-Identifier: Apache-2.0 */
/* The device kind `cpu`: the host's processors as an asynchronous device. Always open. */
#ifndef SP_DEVICE_CPU_H
#define SP_DEVICE_CPU_H

#include "device/device.h"

/* Opens a cpu device. `worker_count` 0 is one worker per core; zero limits are the defaults. */
typedef struct sp_cpu_options {
    uint32_t worker_count;
    uint64_t queue_bytes;   /* 0: 16 MiB of commands per stream */
    uint32_t max_in_flight; /* submissions per device; 0: no limit */
} sp_cpu_options;

extern const sp_device_kind sp__cpu_kind;

sp_status sp__cpu_open(const sp_cpu_options *options, sp_dev **out);

#endif
