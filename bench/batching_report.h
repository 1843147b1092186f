/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as a table for people, or as JSON lines. */
#ifndef SP_BENCH_BATCHING_REPORT_H
#define SP_BENCH_BATCHING_REPORT_H

#include "batching_turns.h"

void report_print(const figures *self);
void report_print_pair(const char *first, const char *second, const pair_figures *self);

/* One line per case, with what the table has and the series' medians in nanoseconds. Figures that
 * do not exist are null. */
void report_print_json(const figures *self);
void report_print_pair_json(const char *first, const char *second, const pair_figures *self);

#endif
