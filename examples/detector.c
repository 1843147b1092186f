/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a model with streampool: describe the memory of inputs and outputs, then run. */
#include "detector.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void detector_prepare(const rgb_picture *picture, int shift, detector_input *out)
{
    float *values = out->values;
    for (int y = 0; y < DETECTOR_SIDE; y++) {
        const int from_y = (y + DETECTOR_SIDE - shift) % DETECTOR_SIDE;
        for (int x = 0; x < DETECTOR_SIDE; x++) {
            const int from_x = (x + DETECTOR_SIDE - shift) % DETECTOR_SIDE;
            const uint8_t *pixel = picture_pixel(picture, from_x, from_y);
            for (int i = 0; i < 3; i++) *values++ = (float)pixel[i] / 127.5f - 1.0f;
        }
    }
}

bool detector_run(sp_model model, const detector_input *input, detector_result *out)
{
    const sp_host_tensor inputs[] = {
        {.name = "input:0",
         .data = (void *)input->values, /* only read */
         .bytes = sizeof input->values,
         .dtype = SP_F32,
         .rank = 4,
         .shape = {1, DETECTOR_SIDE, DETECTOR_SIDE, 3}},
    };
    sp_host_tensor outputs[] = {
        {.name = "Identity:0", .data = out->fine_scores, .capacity = sizeof out->fine_scores},
        {.name = "Identity_1:0", .data = out->coarse_scores, .capacity = sizeof out->coarse_scores},
        {.name = "Identity_2:0", .data = out->fine_boxes, .capacity = sizeof out->fine_boxes},
        {.name = "Identity_3:0", .data = out->coarse_boxes, .capacity = sizeof out->coarse_boxes},
    };
    if (sp_model_run(model, inputs, 1, outputs, 4) != SP_OK) {
        fprintf(stderr, "%s\n", sp_last_error());
        return false;
    }
    /* The run refuses larger outputs; smaller ones would leave old values in `out`. */
    uint64_t bytes = 0;
    for (int i = 0; i < 4; i++) bytes += outputs[i].bytes;
    if (bytes != sizeof *out) fprintf(stderr, "the model is not BlazeFace for 128 x 128 pixels\n");
    return bytes == sizeof *out;
}

bool detector_is_same(const detector_result *a, const detector_result *b)
{
    const void *bytes_of_a = a;
    const void *bytes_of_b = b;
    return memcmp(bytes_of_a, bytes_of_b, sizeof *a) == 0;
}

bool detector_is_close(const detector_result *got, const detector_result *want, float *difference)
{
    const float *got_values = (const float *)got;
    const float *want_values = (const float *)want;
    bool is_close = true;
    *difference = 0;
    for (size_t i = 0; i < DETECTOR_RESULT_COUNT; i++) {
        const float apart = fabsf(got_values[i] - want_values[i]);
        if (!(apart <= 4e-4f + 1e-3f * fabsf(want_values[i]))) is_close = false;
        if (isnan(apart) || apart > *difference) *difference = apart;
    }
    return is_close;
}
