/* SPDX-License-Identifier: Apache-2.0 */
/* primitive: clocks of the operating system, as in a user's program. */
#include "process.h"

#include <stdio.h>
#include <time.h>

static uint64_t clock_read(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t clock_ns(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

uint64_t process_cpu_ns(void)
{
    return clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

/* Lines are "VmRSS:     1234 kB". */
process_memory process_memory_read(void)
{
    process_memory memory = {0};
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL) return memory;
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long long kib;
        if (sscanf(line, "VmRSS: %llu kB", &kib) == 1) memory.now_bytes = kib * 1024;
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) memory.peak_bytes = kib * 1024;
    }
    fclose(file);
    return memory;
}
