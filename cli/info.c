/* SPDX-License-Identifier: Apache-2.0 */
/* streampool info: what this build is, what it runs on, and every option with its value. */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>

#include <streampool/device.h>
#include <streampool/model.h>
#include <streampool/runtime.h>

#include "base/option.h"
#include "base/thread.h"

static void print_options(void)
{
    printf("options (environment variables; * = set)\n");
    for (int i = 0; i < SP_OPTION_COUNT; ++i) {
        const sp_option option = (sp_option)i;
        const sp_option_info *info = sp_option_describe(option);
        char value[32];
        sp_option_format(option, value, sizeof value);
        printf("%c %-28s %-9s %s", sp_option_is_set(option) ? '*' : ' ', info->variable, value,
               info->meaning);
        if (info->choices[0] != '\0') printf(" (%s)", info->choices);
        printf("\n");
    }
}

static void print_quirks(sp_device device)
{
    sp_device_quirk quirk;
    for (uint32_t i = 0; sp_device_get_quirk(device, i, &quirk) == SP_OK; i++) {
        printf("  quirk %s (since %s): %s", quirk.name, quirk.since, quirk.measure);
        if (quirk.limit > 0) printf(", %u at a time", quirk.limit);
        printf("\n");
    }
}

static void print_ops(sp_device device)
{
    sp_device_ops ops;
    if (sp_device_get_ops(device, &ops) != SP_OK) return;
    printf("  kernels for %u of %u ops", ops.own_count, ops.op_count);
    if (ops.own_count < ops.op_count) printf("; the others run on cpu");
    printf("\n");
}

/* All GPUs that the driver shows; the reason if there are none. */
static void open_gpus(void)
{
    for (uint32_t i = 0;; i++) {
        char name[16];
        sp_device device;
        snprintf(name, sizeof name, "cuda:%u", i);
        if (sp_device_open(name, &device) == SP_OK) continue;
        if (i == 0) printf("no GPU: %s\n", sp_last_error());
        return;
    }
}

static void print_devices(void)
{
    open_gpus();
    const uint32_t count = sp_device_count();
    for (uint32_t i = 0; i < count; i++) {
        sp_device device;
        sp_device_info info;
        if (sp_device_at(i, &device) != SP_OK || sp_device_get_info(device, &info) != SP_OK) {
            continue;
        }
        printf("device %s: %.1f GiB, %u streams of which %u run at the same time, %u run slots\n",
               info.name, (double)info.memory_bytes / (1024.0 * 1024.0 * 1024.0), info.stream_count,
               info.width, info.run_slots);
        print_ops(device);
        print_quirks(device);
    }
}

int sp__command_info(int argc, char **argv)
{
    if (argc > 1) {
        fprintf(stderr, "streampool %s takes no arguments\n", argv[0]);
        return SP_EXIT_USAGE;
    }
    printf("streampool %s\n", sp_version());
    printf("processors %u\n", sp_thread_core_count());
    print_devices();
    print_options();
    return EXIT_SUCCESS;
}
