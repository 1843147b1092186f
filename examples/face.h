/* SPDX-License-Identifier: Apache-2.0 */
/* From the numbers of the model to faces, as MediaPipe does it. */
#ifndef DEMO_FACE_H
#define DEMO_FACE_H

#include "detector.h"

/* Right eye, left eye, nose, mouth, right ear, left ear; right and left are the person's own. */
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

/* The faces with a score of at least a half, best first, at most `max`; returns how many. */
int faces_find(const detector_result *result, found_face *faces, int max);

#endif
