/* SPDX-License-Identifier: Apache-2.0 */
#include "limits.h"

#include <string.h>

#include "base/macros.h"
#include "base/option.h"

sp_limits_match sp__limits_parse(int argc, char **argv, int *at, sp_model_options *options)
{
    const struct {
        const char *name;
        sp_option_type type;
        uint64_t *out;
    } limits[] = {{"--max-memory", SP_OPTION_TYPE_BYTES, &options->max_run_bytes},
                  {"--max-trips", SP_OPTION_TYPE_INT, &options->max_loop_trips}};
    for (size_t i = 0; i < SP_COUNT_OF(limits); i++) {
        if (strcmp(argv[*at], limits[i].name) != 0) continue;
        const sp_option_info row = {.type = limits[i].type, .min = 1, .max = INT64_MAX};
        int64_t value;
        if (*at + 1 == argc || !sp_option_parse(&row, argv[*at + 1], &value))
            return SP_LIMITS_WRONG;
        *limits[i].out = (uint64_t)value;
        ++*at;
        return SP_LIMITS_TAKEN;
    }
    return SP_LIMITS_OTHER;
}
