/* SPDX-License-Identifier: Apache-2.0 */
#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

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

/* A number of 1 or more, up to 2^63 - 1; with a unit behind it if one is allowed. */
static bool parse_number(const char *text, bool has_unit, uint64_t *out)
{
    if (text[0] < '0' || text[0] > '9') return false; /* strtoll would take spaces and signs */
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (errno != 0) return false;
    const unsigned shift = has_unit ? unit_shift(*end) : 0;
    if (shift > 0) end++;
    int64_t scaled;
    if (*end != '\0' || __builtin_mul_overflow((int64_t)number, INT64_C(1) << shift, &scaled)) {
        return false;
    }
    *out = (uint64_t)scaled;
    return scaled >= 1;
}

sp_limits_match sp__limits_parse(int argc, char **argv, int *at, sp_model_options *options)
{
    const struct {
        const char *name;
        bool has_unit;
        uint64_t *out;
    } limits[] = {{"--max-memory", true, &options->max_run_bytes},
                  {"--max-trips", false, &options->max_loop_trips}};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        if (strcmp(argv[*at], limits[i].name) != 0) continue;
        uint64_t value;
        if (*at + 1 == argc || !parse_number(argv[*at + 1], limits[i].has_unit, &value)) {
            return SP_LIMITS_WRONG;
        }
        *limits[i].out = value;
        ++*at;
        return SP_LIMITS_TAKEN;
    }
    return SP_LIMITS_OTHER;
}
