/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of the demo share: values of arguments, paths, a clock. */
#ifndef DEMO_COMMON_H
#define DEMO_COMMON_H

#include <stdbool.h>

#define PATH_BYTES 4096

/* Parses 0 ... 3600 seconds, and nothing after them. */
bool seconds_parse(const char *text, double *out);

/* Prints an error to stderr if the path is too long. */
bool path_join(const char *folder, const char *name, char path[PATH_BYTES]);

/* Of a clock that is never set. */
double seconds_now(void);

/* The larger one of two differences; NaN is the largest. */
float larger_difference(float a, float b);

#endif
