/* SPDX-License-Identifier: Apache-2.0 */
#include "support/own_memory.h"

#include "runtime/runtime_state.h"
#include "support/test.h"

sp_device open_own_memory(bool hides_staging)
{
    return open_own_memory_with((sp_null_options){.hides_staging = hides_staging});
}

sp_device open_own_memory_with(sp_null_options options)
{
    options.has_own_memory = true;
    sp_device cpu;
    sp_dev *dev = NULL;
    sp_rt_device *device = NULL;
    CHECK_OK(sp_device_at(0, &cpu)); /* the runtime is up */
    CHECK_OK(sp__null_open(&options, &dev));
    CHECK_OK(sp__runtime_add_device(dev, &device));
    return sp__rt_device_handle(device);
}
