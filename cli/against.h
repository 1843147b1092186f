/* SPDX-License-Identifier: Apache-2.0 */
/* A bench against another library: the same points on both sides, in windows that take turns. */
#ifndef SP_CLI_AGAINST_H
#define SP_CLI_AGAINST_H

#include "bench_run.h"

/* Windows of each side in a point, each a part of the point's length. */
#define AGAINST_TURNS 5

/* The calling process must not have used the library. SP_CANCELLED: interrupted; what was measured
 * before is printed. */
sp_status against_run(bench_arguments *arguments);

#endif
