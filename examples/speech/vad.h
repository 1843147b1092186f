/* SPDX-License-Identifier: Apache-2.0 */
/* The model Silero VAD v5 at 16 kHz: the probability of speech in each window of an audio stream.
 * Its answer to a window has the state that the next window of the same audio stream needs. */
#ifndef DEMO_VAD_H
#define DEMO_VAD_H

#include <streampool/model.h>

#include "wav.h"

#define VAD_WINDOW 512 /* samples: 32 ms */
#define VAD_CONTEXT 64 /* samples before the window, zeros before the first one */
#define VAD_INPUT (VAD_CONTEXT + VAD_WINDOW)
#define VAD_STATE_ROW 128
#define VAD_STATE (2 * VAD_STATE_ROW)
#define VAD_WINDOW_SECONDS ((double)VAD_WINDOW / WAV_RATE)

/* Only floats, hence no padding. */
typedef struct vad_answer {
    float probability;
    float state[VAD_STATE];
} vad_answer;

/* Before the first window of an audio stream. */
extern const float vad_first_state[VAD_STATE];

/* The last window may be incomplete. */
size_t vad_window_count(const wav_sound *sound);

/* Window `window`, with its context, of the sound that begins at sample `shift` and continues with
 * what is before it. An incomplete window is filled up with zeros. */
void vad_prepare(const wav_sound *sound, size_t shift, size_t window, float out[VAD_INPUT]);

/* Runs the model; thread-safe. `state` is not in `out`. Prints errors to stderr, such as a model
 * with other outputs. */
bool vad_run(sp_model model, const float input[VAD_INPUT], const float state[VAD_STATE],
             vad_answer *out);

/* Bitwise equality: a NaN equals itself, and -0 differs from 0. */
bool vad_is_same(const vad_answer *a, const vad_answer *b);

/* True if two probabilities are within the rounding differences of two correct programs, which add
 * in different orders. NaN is close to nothing. */
bool vad_is_close(float got, float want);

#endif
