/* SPDX-License-Identifier: Apache-2.0 */
/* The options of commands that bound what a run of a model may take. */
#ifndef SP_CLI_LIMITS_H
#define SP_CLI_LIMITS_H

#include <streampool/model.h>

#define SP_LIMITS_USAGE "[--max-memory BYTES] [--max-trips N]"
#define SP_LIMITS_HELP                                                                             \
    "  a run takes at most BYTES (a number, or one followed by K, M or G) for its arena, its "     \
    "outputs\n"                                                                                    \
    "  and what it keeps between its parts, and goes at most N times through bodies of Loop and "  \
    "Scan\n"

typedef enum sp_limits_match { SP_LIMITS_OTHER, SP_LIMITS_TAKEN, SP_LIMITS_WRONG } sp_limits_match;

/* Is argv[*at] one of these options? Then its value is read too and *at is the place of that. */
sp_limits_match sp__limits_parse(int argc, char **argv, int *at, sp_model_options *options);

#endif
