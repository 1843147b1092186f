/* SPDX-License-Identifier: Apache-2.0 */
#include "device/memory.h"

#include "base/error.h"
#include "device/device.h"

sp_status sp__memory_refuse_host(const sp_memory *memory)
{
    return sp__fail(SP_UNSUPPORTED,
                    "memory of %s cannot be reached from the host: copy it to host memory",
                    memory->device->limits.name);
}
