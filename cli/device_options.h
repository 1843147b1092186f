/* SPDX-License-Identifier: Apache-2.0 */
/* The options of commands that load models: the device, and the limits of a run. */
#ifndef SP_CLI_DEVICE_OPTIONS_H
#define SP_CLI_DEVICE_OPTIONS_H

#include <streampool/model.h>

#include "command.h"

/* The first member of a command's arguments. */
typedef struct device_arguments {
    const char *device; /* NULL: cpu */
    sp_model_options options;
} device_arguments;

bool take_device(void *arguments, const char *value);
bool take_max_memory(void *arguments, const char *value);
bool take_max_trips(void *arguments, const char *value);
bool take_precision(void *arguments, const char *value);

/* Their rows in a command's table. */
/* clang-format off */
#define DEVICE_OPTIONS                                                                             \
    {.name = "--device", .value = "NAME", .limits = "cpu, cuda:N or null",                         \
     .help = "The device that the model is loaded on; cpu unless one is given.",                   \
     .take = take_device, .completion = COMPLETE_DEVICE},                                          \
    {.name = "--max-memory", .value = "BYTES",                                                     \
     .limits = "a number from 1 to 2^63 - 1, or one followed by K, M or G",                        \
     .help = "Refuses a run that needs more for its arena, its outputs and the values between "    \
             "its partial plans (max_run_bytes of the library).",                                  \
     .take = take_max_memory},                                                                     \
    {.name = "--max-trips", .value = "N", .limits = "a number from 1 to 2^63 - 1",                 \
     .help = "Fails a run with more iterations of Loop and Scan, all of them together.",           \
     .take = take_max_trips},                                                                      \
    {.name = "--precision", .value = "TYPE", .limits = "default, tf32, f16 or bf16",               \
     .help = "Products with constant matrices and convolutions are computed by tensor cores, "     \
             "with operands of f32 rounded to this type. Needs a GPU of compute capability 8.0 "   \
             "or more.",                                                                           \
     .take = take_precision}
/* clang-format on */

/* Opens the device and stores it in `options`. */
sp_status device_arguments_open(device_arguments *arguments);

#endif
