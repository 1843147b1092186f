/* SPDX-License-Identifier: Apache-2.0 */
/* primitive: the clock of the operating system, as in a user's program. */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool seconds_parse(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= 0 && *out <= 3600;
}

bool arguments_parse(int argc, char **argv, const char *input_option, demo_arguments *out)
{
    *out = (demo_arguments){.seconds = 2};
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--seconds") == 0 && has_value) {
            if (!seconds_parse(argv[++i], &out->seconds)) return false;
        } else if (strcmp(argv[i], input_option) == 0 && has_value) {
            out->input = argv[++i];
        } else if (argv[i][0] != '-' && out->data == NULL) {
            out->data = argv[i];
        } else if (argv[i][0] != '-' && out->output == NULL) {
            out->output = argv[i];
        } else {
            return false;
        }
    }
    return out->output != NULL;
}

bool path_join(const char *folder, const char *name, char path[PATH_BYTES])
{
    const int len = snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    if (len >= 0 && len < PATH_BYTES) return true;
    fprintf(stderr, "%s: the path is too long\n", folder);
    return false;
}

double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

float larger_difference(float a, float b)
{
    return isnan(a) || a > b ? a : b;
}
