/* SPDX-License-Identifier: Apache-2.0 */
#include "device_options.h"

#include <string.h>

#include "arguments.h"
#include "failure.h"

static unsigned unit_shift(char unit)
{
    switch (unit) {
    case 'K':
        return 10;
    case 'M':
        return 20;
    case 'G':
        return 30;
    default:
        return 0;
    }
}

bool take_device(void *arguments, const char *value)
{
    ((device_arguments *)arguments)->device = value;
    return value[0] != '\0';
}

bool take_max_memory(void *arguments, const char *value)
{
    char digits[32];
    const size_t len = strlen(value);
    if (len == 0 || len >= sizeof digits) return false;
    const unsigned shift = unit_shift(value[len - 1]);
    memcpy(digits, value, len + 1);
    if (shift > 0) digits[len - 1] = '\0';
    uint64_t number;
    if (!number_parse(digits, 1, (uint64_t)INT64_MAX >> shift, &number)) return false;
    ((device_arguments *)arguments)->options.max_run_bytes = number << shift;
    return true;
}

bool take_max_trips(void *arguments, const char *value)
{
    device_arguments *out = arguments;
    return number_parse(value, 1, INT64_MAX, &out->options.max_loop_trips);
}

bool take_precision(void *arguments, const char *value)
{
    static const char *const names[] = {[SP_PRECISION_DEFAULT] = "default",
                                        [SP_PRECISION_TF32] = "tf32",
                                        [SP_PRECISION_F16] = "f16",
                                        [SP_PRECISION_BF16] = "bf16"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(value, names[i]) != 0) continue;
        ((device_arguments *)arguments)->options.precision = (sp_precision)i;
        return true;
    }
    return false;
}

sp_status device_arguments_open(device_arguments *arguments)
{
    const char *name = arguments->device != NULL ? arguments->device : "cpu";
    const sp_status status = from_library(sp_device_open(name, &arguments->options.device));
    return status == SP_OK ? SP_OK : fail_prefix(status, "--device %s: ", name);
}
