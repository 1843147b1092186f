/* SPDX-License-Identifier: Apache-2.0 */
/* A null device with memory that the host cannot reach. */
#ifndef SP_TESTS_SUPPORT_OWN_MEMORY_H
#define SP_TESTS_SUPPORT_OWN_MEMORY_H

#include <streampool/device.h>

#include "device/null/null.h"

/* Opens one in the runtime. `hides_staging`: the host cannot reach staging memory either, which
 * breaks the contract of a device. */
sp_device open_own_memory(bool hides_staging);
/* With other options too. */
sp_device open_own_memory_with(sp_null_options options);

/* Checks that the call fails because the host cannot reach the memory. */
#define CHECK_UNREACHABLE(call)                                                                    \
    do {                                                                                           \
        CHECK_STATUS(call, SP_UNSUPPORTED);                                                        \
        CHECK_MESSAGE("memory of null");                                                           \
        CHECK_MESSAGE("cannot be reached from the host");                                          \
    } while (0)

#endif
