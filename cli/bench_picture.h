/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of a bench, as SVG: runs per second by the number of threads, a line for each model
 * or side. */
#ifndef SP_CLI_BENCH_PICTURE_H
#define SP_CLI_BENCH_PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "failure.h"
#include "text.h"

#define PICTURE_MAX_LINES 16
#define PICTURE_MAX_POINTS 64

/* Zeroed: not open; then the calls below do nothing. */
typedef struct bench_picture {
    const char *path;
    FILE *file;
    bool is_new; /* the file did not exist before */
    shown_text labels[PICTURE_MAX_LINES];
    uint32_t line_count, point_count;
    uint32_t threads[PICTURE_MAX_POINTS]; /* by point */
    double rates[PICTURE_MAX_LINES][PICTURE_MAX_POINTS];
} bench_picture;

/* Opens the file, so that a path that cannot be written fails before the bench. A file that exists
 * is kept until the picture is written. Errors: SP_IO. */
sp_status bench_picture_open(bench_picture *self, const char *path);

/* The label of a line, in order; the point of the next number of threads; and a line's rate there.
 */
void bench_picture_add_line(bench_picture *self, const char *label);
void bench_picture_add_point(bench_picture *self, uint32_t threads);
void bench_picture_set_rate(bench_picture *self, uint32_t line, double per_second);

/* Writes the points that were added, and closes the file; without a point no file is written.
 * Errors: SP_IO. */
sp_status bench_picture_close(bench_picture *self);

#endif
