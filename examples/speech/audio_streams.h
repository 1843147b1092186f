/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one model on many threads, each on an audio stream of its own with its own state. Audio
 * stream k is the sound from k / AUDIO_STREAMS of its length on, followed by what is before that;
 * audio stream 0 is the sound as it is. */
#ifndef DEMO_AUDIO_STREAMS_H
#define DEMO_AUDIO_STREAMS_H

#include "vad.h"

#define AUDIO_STREAMS 31

/* The threads' shared work, read-only. Thread k has audio stream k; its answers are those from
 * k * window_count on. */
typedef struct audio_work {
    sp_model model;
    const wav_sound *sound;
    size_t window_count;        /* of the sound */
    const vad_answer *expected; /* from a run without concurrent runs */
    const float *reference;     /* probabilities, from another program; or NULL */
    double seconds; /* duration in which windows begin, but that each audio stream is run once */
} audio_work;

typedef struct audio_outcome {
    uint64_t windows;
    uint64_t equal_windows; /* whose answers, state included, have the bits expected */
    double seconds;
    float difference; /* the largest difference from the reference */
    bool is_close;    /* all answers are close to the reference */
} audio_outcome;

/* One audio stream on the calling thread, window after window. Prints errors to stderr. */
bool audio_stream_run_alone(sp_model model, const wav_sound *sound, int audio_stream,
                            vad_answer *answers);

/* Prints errors to stderr. Wrong answers are no failure; they are counted in the outcome. */
bool audio_streams_run(const audio_work *work, int threads, audio_outcome *out);

#endif
