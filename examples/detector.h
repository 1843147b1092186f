/* SPDX-License-Identifier: Apache-2.0 */
/* The model BlazeFace (short range, 128 x 128 pixels): its inputs and outputs. */
#ifndef DEMO_DETECTOR_H
#define DEMO_DETECTOR_H

#include <streampool/model.h>

#include "picture.h"

#define DETECTOR_SIDE 128 /* pixels, of the input */

/* The picture is covered by two grids of cells, each cell with some anchors (positions of possible
 * faces). Each anchor has a score and a box. */
#define FINE_SIDE 16
#define FINE_ANCHORS 2
#define COARSE_SIDE 8
#define COARSE_ANCHORS 6
#define FINE_COUNT (FINE_SIDE * FINE_SIDE * FINE_ANCHORS)
#define COARSE_COUNT (COARSE_SIDE * COARSE_SIDE * COARSE_ANCHORS)
#define BOX_VALUES 16

/* Red, green and blue in -1 ... 1. */
typedef struct detector_input {
    float values[DETECTOR_SIDE * DETECTOR_SIDE * 3];
} detector_input;

/* The four outputs in the order of the model. Only floats, hence no padding. */
typedef struct detector_result {
    float fine_scores[FINE_COUNT];
    float coarse_scores[COARSE_COUNT];
    float fine_boxes[FINE_COUNT][BOX_VALUES];
    float coarse_boxes[COARSE_COUNT][BOX_VALUES];
} detector_result;

#define DETECTOR_RESULT_COUNT (sizeof(detector_result) / sizeof(float))

/* Converts a picture of DETECTOR_SIDE x DETECTOR_SIDE pixels, moved right and down by `shift`
 * pixels with wrap-around. */
void detector_prepare(const rgb_picture *picture, int shift, detector_input *out);

/* Runs the model; thread-safe. Prints errors to stderr, such as a model with other outputs. */
bool detector_run(sp_model model, const detector_input *input, detector_result *out);

/* Bitwise equality: a NaN equals itself, and -0 differs from 0. */
bool detector_is_same(const detector_result *a, const detector_result *b);

/* Stores the largest difference of two results; true if all values are within the rounding
 * differences of two correct programs, which add in different orders. NaN is close to nothing. */
bool detector_is_close(const detector_result *got, const detector_result *want, float *difference);

#endif
