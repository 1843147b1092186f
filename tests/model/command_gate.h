/* SPDX-License-Identifier: Apache-2.0 */
/* A gate before the commands of a null device: a run is inside a command for as long as the test
 * wants. One device at a time. */
#ifndef SP_TESTS_COMMAND_GATE_H
#define SP_TESTS_COMMAND_GATE_H

#include <streampool/device.h>

#include "base/macros.h"

/* Later commands of the device, which must be idle, wait until the gate is opened. */
void command_gate_close(sp_device device);
void command_gate_open(void);
/* Commands that have come to the gate since it was closed. */
uint32_t command_gate_count(void);
/* Yields until there are so many. */
void command_gate_await(uint32_t count);

#endif
