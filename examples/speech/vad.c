/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a model with state: the state is an input and an output like any other. */
#include "vad.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const float vad_first_state[VAD_STATE] = {0};

size_t vad_window_count(const wav_sound *sound)
{
    return (sound->count + VAD_WINDOW - 1) / VAD_WINDOW;
}

void vad_prepare(const wav_sound *sound, size_t shift, size_t window, float out[VAD_INPUT])
{
    for (size_t i = 0; i < VAD_INPUT; i++) {
        /* Counted from the start of the first window's context. */
        const size_t place = window * VAD_WINDOW + i;
        const bool is_inside = place >= VAD_CONTEXT && place - VAD_CONTEXT < sound->count;
        size_t from = is_inside ? place - VAD_CONTEXT + shift : 0;
        if (from >= sound->count) from -= sound->count;
        out[i] = is_inside ? sound->samples[from] : 0.0f;
    }
}

bool vad_run(sp_model model, const float input[VAD_INPUT], const float state[VAD_STATE],
             vad_answer *out)
{
    static const int64_t rate = WAV_RATE;
    const sp_host_tensor inputs[] = {
        {.name = "input",
         .data = (void *)input, /* only read, as the others */
         .bytes = sizeof(float[VAD_INPUT]),
         .dtype = SP_F32,
         .rank = 2,
         .shape = {1, VAD_INPUT}},
        {.name = "state",
         .data = (void *)state,
         .bytes = sizeof(float[VAD_STATE]),
         .dtype = SP_F32,
         .rank = 3,
         .shape = {2, 1, VAD_STATE_ROW}},
        {.name = "sr", .data = (void *)&rate, .bytes = sizeof rate, .dtype = SP_I64},
    };
    sp_host_tensor outputs[] = {
        {.name = "output", .data = &out->probability, .capacity = sizeof out->probability},
        {.name = "stateN", .data = out->state, .capacity = sizeof out->state},
    };
    if (sp_model_run(model, inputs, 3, outputs, 2) != SP_OK) {
        fprintf(stderr, "%s\n", sp_last_error());
        return false;
    }
    /* The run refuses larger outputs; smaller ones would leave old values in `out`. */
    const bool is_whole = outputs[0].bytes + outputs[1].bytes == sizeof *out;
    if (!is_whole) fprintf(stderr, "the model is not Silero VAD v5\n");
    return is_whole;
}

bool vad_is_same(const vad_answer *a, const vad_answer *b)
{
    const void *bytes_of_a = a;
    const void *bytes_of_b = b;
    return memcmp(bytes_of_a, bytes_of_b, sizeof *a) == 0;
}

bool vad_is_close(float got, float want)
{
    return fabsf(got - want) <= 1e-4f;
}
