/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a bench against another library prints. */
#ifndef SP_CLI_AGAINST_REPORT_H
#define SP_CLI_AGAINST_REPORT_H

#include "against_side.h"

typedef struct against_report {
    const bench_arguments *arguments;
    side_greeting greetings[SIDES];
    side_start starts[SIDES];
} against_report;

void against_report_head(const against_report *self);
/* A point: medians of both sides. */
void against_report_point(const against_report *self, uint32_t threads,
                          const side_window windows[SIDES]);

#endif
