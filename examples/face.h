/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the model's outputs to faces, as MediaPipe does. */
#ifndef DEMO_FACE_H
#define DEMO_FACE_H

#include "detector.h"

/* Right eye, left eye, nose, mouth, right ear, left ear; right and left from the person's view. */
#define FACE_POINTS 6

typedef struct point {
    float x;
    float y;
} point;

/* Coordinates are fractions of the picture's side, from the left and from the top. */
typedef struct found_face {
    float score;      /* 0 ... 1 */
    point corners[2]; /* left top, right bottom */
    point points[FACE_POINTS];
} found_face;

/* Finds the faces with a score of at least 0.5, best first, at most `max`; returns their number. */
int faces_find(const detector_result *result, found_face *faces, int max);

#endif
