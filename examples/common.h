/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of the demo share: arguments, paths, a clock. */
#ifndef DEMO_COMMON_H
#define DEMO_COMMON_H

#include <stdbool.h>

#define PATH_BYTES 4096

typedef struct demo_arguments {
    const char *data;   /* folder with the model, its input and its reference */
    const char *output; /* folder for what is drawn */
    const char *input; /* a file in place of the shipped input, then without a reference; or NULL */
    double seconds;    /* for each number of threads: 0 to 3600; 2 unless given */
} demo_arguments;

/* DATA_FOLDER OUTPUT_FOLDER [--seconds S] [`input_option` FILE]. False if they are not that. */
bool arguments_parse(int argc, char **argv, const char *input_option, demo_arguments *out);

/* Prints an error to stderr if the path is too long. */
bool path_join(const char *folder, const char *name, char path[PATH_BYTES]);

/* Of a clock that is never set. */
double seconds_now(void);

/* The larger one of two differences; NaN is the largest. */
float larger_difference(float a, float b);

#endif
