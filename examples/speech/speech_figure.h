/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the probability of speech over the waveform. */
#ifndef DEMO_SPEECH_FIGURE_H
#define DEMO_SPEECH_FIGURE_H

#include "speech_segments.h"
#include "wav.h"

typedef struct speech_figure {
    const wav_sound *sound;
    const float *probabilities; /* of each window */
    size_t window_count;
    const speech_segment *segments;
    size_t segment_count;
} speech_figure;

/* Writes the figure as SVG. Prints errors to stderr. */
bool speech_figure_write(const char *path, const speech_figure *figure);

#endif
