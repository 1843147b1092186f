/* SPDX-License-Identifier: Apache-2.0 */
/* streampool info: the version, the machine, and every option with its value, as text or as one
 * JSON object. primitive: sched.h, for the number of processors. */
#include "command.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <streampool/device.h>
#include <streampool/model.h>
#include <streampool/option.h>
#include <streampool/runtime.h>

#include "arguments.h"
#include "text.h"

static bool is_option(const char *variable, size_t length)
{
    sp_option_info info;
    for (uint32_t i = 0; sp_option_get_info(i, &info) == SP_OK; i++) {
        if (strlen(info.variable) == length && memcmp(info.variable, variable, length) == 0) {
            return true;
        }
    }
    return false;
}

static void print_unknown_variables(void)
{
    static const char prefix[] = "STREAMPOOL_";
    for (char *const *variable = environ; *variable != NULL; variable++) {
        const size_t length = strcspn(*variable, "=");
        if (strncmp(*variable, prefix, sizeof prefix - 1) != 0) continue;
        if (is_option(*variable, length)) continue;
        printf("! %.*s is not an option\n", (int)length, *variable);
    }
}

static void print_options(void)
{
    sp_option_info info;
    printf("options (environment variables; * = set, ! = set to what is not allowed)\n");
    for (uint32_t i = 0; sp_option_get_info(i, &info) == SP_OK; i++) {
        const char mark = info.origin == SP_OPTION_REFUSED   ? '!'
                          : info.origin == SP_OPTION_DEFAULT ? ' '
                                                             : '*';
        printf("%c %-28s %-9.31s %s", mark, info.variable, info.value, info.meaning);
        if (info.choices[0] != '\0') printf(" (%s)", info.choices);
        if (mark == '!') printf("; allowed: %s", info.allowed);
        printf("\n");
    }
    print_unknown_variables();
}

/* The processors that the process may run on. */
static unsigned processor_count(void)
{
    cpu_set_t processors;
    CPU_ZERO(&processors);
    if (sched_getaffinity(0, sizeof processors, &processors) == 0) {
        const int count = CPU_COUNT(&processors);
        if (count > 0) return (unsigned)count;
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
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
    if (ops.instruction_set != NULL) {
        printf(", %s (%s)", ops.instruction_set, ops.instruction_set_reason);
    }
    if (ops.own_count < ops.op_count) printf("; the others run on cpu");
    printf("\n");
}

/* Opens all GPUs of the driver; false if there are none. */
static bool open_gpus(void)
{
    for (uint32_t i = 0;; i++) {
        char name[16];
        sp_device device;
        snprintf(name, sizeof name, "cuda:%u", i);
        if (sp_device_open(name, &device) != SP_OK) return i > 0;
    }
}

static void print_devices(void)
{
    if (!open_gpus()) printf("no GPU: %s\n", sp_last_error());
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

/* ---- JSON ---- */

static void print_json_member(const char *name, const char *text)
{
    printf("\"%s\":", name);
    print_json_text(text);
}

static void print_json_quirks(sp_device device)
{
    sp_device_quirk quirk;
    printf(",\"quirks\":[");
    for (uint32_t i = 0; sp_device_get_quirk(device, i, &quirk) == SP_OK; i++) {
        printf(i > 0 ? ",{" : "{");
        print_json_member("name", quirk.name);
        printf(",");
        print_json_member("since", quirk.since);
        printf(",");
        print_json_member("measure", quirk.measure);
        printf(",\"limit\":%u}", quirk.limit);
    }
    printf("]");
}

static void print_json_ops(sp_device device)
{
    sp_device_ops ops;
    if (sp_device_get_ops(device, &ops) != SP_OK) return;
    printf(",\"ops\":%u,\"own_ops\":%u", ops.op_count, ops.own_count);
    if (ops.instruction_set == NULL) return;
    printf(",");
    print_json_member("instruction_set", ops.instruction_set);
    printf(",");
    print_json_member("instruction_set_reason", ops.instruction_set_reason);
}

static void print_json_devices(void)
{
    const char *comma = "";
    const uint32_t count = sp_device_count();
    printf(",\"devices\":[");
    for (uint32_t i = 0; i < count; i++) {
        sp_device device;
        sp_device_info info;
        if (sp_device_at(i, &device) != SP_OK || sp_device_get_info(device, &info) != SP_OK) {
            continue;
        }
        printf("%s{", comma);
        print_json_member("name", info.name);
        printf(",\"memory_bytes\":%llu,\"streams\":%u,\"width\":%u,\"run_slots\":%u",
               (unsigned long long)info.memory_bytes, info.stream_count, info.width,
               info.run_slots);
        print_json_ops(device);
        print_json_quirks(device);
        printf("}");
        comma = ",";
    }
    printf("]");
}

static void print_json_options(void)
{
    static const char *const origins[] = {[SP_OPTION_DEFAULT] = "default",
                                          [SP_OPTION_BY_ENVIRONMENT] = "environment",
                                          [SP_OPTION_BY_PROGRAM] = "program",
                                          [SP_OPTION_REFUSED] = "refused"};
    sp_option_info info;
    printf(",\"options\":[");
    for (uint32_t i = 0; sp_option_get_info(i, &info) == SP_OK; i++) {
        printf(i > 0 ? ",{" : "{");
        print_json_member("variable", info.variable);
        printf(",");
        print_json_member("value", info.value);
        printf(",");
        print_json_member("origin", origins[info.origin]);
        printf("}");
    }
    printf("]");
}

static void print_json(void)
{
    printf("{");
    print_json_member("version", sp_version());
    printf(",\"processors\":%u", processor_count());
    if (!open_gpus()) {
        printf(",");
        print_json_member("no_gpu", sp_last_error());
    }
    print_json_devices();
    print_json_options();
    printf("}\n");
}

/* ---- the command ---- */

static bool take_json(void *arguments, const char *value)
{
    (void)value;
    *(bool *)arguments = true;
    return true;
}

static int info_run(int argc, char **argv)
{
    int code;
    bool is_json = false;
    if (!arguments_parse(&sp__command_info, argc, argv, &is_json, &code)) return code;
    if (is_json) {
        print_json();
        return EXIT_SUCCESS;
    }
    printf("streampool %s\n", sp_version());
    printf("processors %u\n", processor_count());
    print_devices();
    print_options();
    return EXIT_SUCCESS;
}

static const cli_option options[] = {
    {.name = "--json", .help = "Print one JSON object.", .take = take_json},
};

static const cli_example examples[] = {
    {"info", "The devices of this machine, and all options with their values."},
    {"info | grep STREAMPOOL_STREAMS", "The value of one option."},
};

const cli_command sp__command_info = {
    .name = "info",
    .summary = "this build, the machine, and all options",
    .description = "Prints the version, the processors, the devices that can be opened, the "
                   "instruction set of the CPU's kernels with the reason for it, and the options "
                   "of the library: environment variables, with their values and meanings.",
    .options = options,
    .option_count = COUNT_OF(options),
    .examples = examples,
    .example_count = COUNT_OF(examples),
    .run = info_run,
};
