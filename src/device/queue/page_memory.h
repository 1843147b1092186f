/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the queue devices: pages of host memory. */
#ifndef SP_DEVICE_QUEUE_PAGE_MEMORY_H
#define SP_DEVICE_QUEUE_PAGE_MEMORY_H

#include "device/device.h"

/* Page-aligned, zeroed by the system. */
sp_status sp__page_memory_create(sp_dev *device, uint64_t bytes, sp_memory *out);
void sp__page_memory_destroy(sp_memory *memory);

/* Size of the host's physical memory, in bytes. */
uint64_t sp__page_memory_total(void);

#endif
