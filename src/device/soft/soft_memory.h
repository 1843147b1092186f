/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the software devices: pages of the host. */
#ifndef SP_DEVICE_SOFT_MEMORY_H
#define SP_DEVICE_SOFT_MEMORY_H

#include "device/device.h"

/* Page-aligned, zeroed by the system. */
sp_status sp__soft_memory_create(sp_dev *device, uint64_t bytes, sp_memory *out);
void sp__soft_memory_destroy(sp_memory *memory);

/* Physical memory of the host, in bytes. */
uint64_t sp__soft_memory_total(void);

#endif
