/* SPDX-License-Identifier: Apache-2.0 */
/* Reads short WAV files: 16-bit PCM, one channel, 16 kHz. */
#ifndef DEMO_WAV_H
#define DEMO_WAV_H

#include <stdbool.h>
#include <stddef.h>

#define WAV_RATE 16000
#define WAV_MAX_SECONDS 60

typedef struct wav_sound {
    float *samples; /* in [-1, 1) */
    size_t count;   /* 1 ... WAV_MAX_SECONDS * WAV_RATE */
} wav_sound;

/* Prints errors to stderr. */
bool wav_read(const char *path, wav_sound *out);

/* Accepts a zeroed sound. */
void wav_deinit(wav_sound *sound);

#endif
