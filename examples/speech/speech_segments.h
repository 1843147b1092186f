/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where speech begins and ends, from the probabilities of the windows. */
#ifndef DEMO_SPEECH_SEGMENTS_H
#define DEMO_SPEECH_SEGMENTS_H

#include <stddef.h>

/* Hysteresis: speech begins at the upper threshold and ends below the lower one. */
#define SPEECH_BEGINS 0.5f
#define SPEECH_ENDS 0.35f

/* Windows from `first` up to, not including, `end`. */
typedef struct speech_segment {
    size_t first;
    size_t end;
} speech_segment;

/* Stores the segments in order, at most `max`; returns their number. Pauses of less than 100 ms do
 * not end a segment, and one of less than 250 ms is no segment. */
size_t speech_segments_find(const float *probabilities, size_t count, speech_segment *segments,
                            size_t max);

#endif
