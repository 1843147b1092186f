/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a bench prints. */
#ifndef SP_CLI_BENCH_REPORT_H
#define SP_CLI_BENCH_REPORT_H

#include <stdbool.h>

#include "bench_point.h"

typedef struct bench_format {
    bool is_json;        /* one object per model and point, with all of it */
    bool has_statistics; /* text: a second line per model */
} bench_format;

/* Of models that have had their first run: its time and memory. JSON has them in each row. */
void bench_report_models(const bench_format *format, const bench_job *job);
/* Above the rows. */
void bench_report_head(const bench_format *format);
/* The point that was run with so many threads a model. */
void bench_report_point(const bench_format *format, bench_job *job, uint32_t threads);

#endif
