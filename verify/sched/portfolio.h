/* SPDX-License-Identifier: Apache-2.0 */
/* The explorations of one subject. Each call requires a process that has explored nothing yet: then
 * a schedule string replays in a process of its own. */
#ifndef SP_SCHED_PORTFOLIO_H
#define SP_SCHED_PORTFOLIO_H

#include "subject.h"

typedef struct sp_portfolio_options {
    uint64_t seed;
    double scale;       /* of the limits */
    const char *search; /* only explorations with this search; NULL: all */
} sp_portfolio_options;

/* True if no exploration finds a bug and the subject's requirements are met; prints a line each. */
bool sp__portfolio_run(const sp_subject *subject, const sp_portfolio_options *options);
/* True if the first run of the process equals the same run repeated. A subject that depends on
 * state left by an earlier run behaves differently alone. */
bool sp__portfolio_repeats(const sp_subject *subject, const sp_portfolio_options *options);
/* True if an exploration finds a bug, whatever the subject's usual limits are. The last line that
 * it prints begins with "found" or "survived". */
bool sp__portfolio_finds_bug(const sp_subject *subject, const sp_portfolio_options *options);
/* Prints the trace of one schedule; true if its verdict is ok. */
bool sp__portfolio_replay(const sp_subject *subject, const char *schedule);

#endif
