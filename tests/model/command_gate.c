/* SPDX-License-Identifier: Apache-2.0 */
#include "command_gate.h"

#include "base/clock.h"
#include "device/queue/queue.h"
#include "run_fixture.h"
#include "runtime/runtime_state.h"

/* The device's own function. Written with no command in flight; what submits the next one publishes
 * it. */
static sp_status (*own_before_command)(sp_queue_device *device, const char *label);
/* Set by the test, awaited (acquire) by the commands. */
static sp_atomic_u32 is_closed;
static sp_atomic_u32 arrived;

static sp_status pass_gate(sp_queue_device *device, const char *label)
{
    sp_fetch_add_release(&arrived, 1);
    while (sp_load_acquire(&is_closed) != 0) sp_clock_sleep(50000);
    return own_before_command(device, label);
}

void command_gate_close(sp_device handle)
{
    sp_rt_device *device = NULL;
    REQUIRE_OK(sp__rt_device_find(handle, &device));
    REQUIRE_OK(sp_device_synchronize(handle));
    sp_queue_device_options *options = &sp__queue_device(device->dev)->options;
    if (options->before_command != pass_gate) {
        own_before_command = options->before_command;
        options->before_command = pass_gate;
    }
    sp_store_relaxed(&arrived, 0);
    sp_store_release(&is_closed, 1);
}

void command_gate_open(void)
{
    sp_store_release(&is_closed, 0);
}

uint32_t command_gate_count(void)
{
    return sp_load_acquire(&arrived);
}

void command_gate_await(uint32_t count)
{
    await_count(&arrived, count);
}
