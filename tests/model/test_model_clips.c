/* SPDX-License-Identifier: Apache-2.0 */
/* Whole recordings, frame by frame, with the returned state fed back: the numbers of the reference;
 * and from many threads, each with its own recording and state, the bits of a single thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "run_fixture.h"

/* ---- sound ---- */

typedef struct sound {
    float *samples; /* 16 kHz, in [-1, 1) */
    size_t count;
} sound;

static uint32_t little_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Reads a WAV file of 16-bit samples in one channel. */
static bool read_sound(const char *name, sound *out)
{
    char path[DATA_PATH_BYTES];
    size_t len = 0;
    unsigned char *bytes = data_path(path, "raw/%s", name) ? data_read(path, &len) : NULL;
    if (bytes == NULL) return false;
    size_t at = 12;
    while (at + 8 < len && memcmp(bytes + at, "data", 4) != 0) at += 8 + little_u32(bytes + at + 4);
    const unsigned char *data = bytes + at + 8;
    out->count = at + 8 < len ? (len - at - 8) / 2 : 0;
    out->samples = sp_calloc(out->count, sizeof *out->samples);
    for (size_t i = 0; i < out->count; i++) {
        const int value = data[2 * i] | data[2 * i + 1] << 8;
        out->samples[i] = (float)(value < 32768 ? value : value - 65536) / 32768.0f;
    }
    free(bytes);
    return true;
}

/* ---- use by models ---- */

typedef void (*fill_fn)(const sound *s, size_t frame, float *out);

/* Window `frame`, preceded by the last `before` samples of the previous one. */
static void fill_window(const sound *s, size_t frame, float *out, size_t before, size_t window)
{
    const size_t start = frame * window;
    for (size_t i = 0; i < before; i++) {
        out[i] = frame == 0 ? 0.0f : s->samples[start - before + i];
    }
    memcpy(out + before, s->samples + start, window * sizeof *out);
}

static void fill_silero_v4(const sound *s, size_t frame, float *out)
{
    fill_window(s, frame, out, 0, 1536);
}

static void fill_silero_v5(const sound *s, size_t frame, float *out)
{
    fill_window(s, frame, out, 64, 512);
}

/* The spectrum of 512 samples with the root of a periodic Hann window: real and imaginary parts of
 * 257 frequencies. */
static void fill_spectrum(const sound *s, size_t frame, float *out)
{
    enum { SIZE = 512, HOP = 256 };
    const double step = 2.0 * acos(-1.0) / (double)SIZE;
    double windowed[SIZE];
    double cosines[SIZE];
    double sines[SIZE];
    for (size_t i = 0; i < SIZE; i++) {
        cosines[i] = cos(step * (double)i);
        sines[i] = sin(step * (double)i);
        windowed[i] = s->samples[frame * HOP + i] * sqrt(0.5 - 0.5 * cosines[i]);
    }
    for (size_t k = 0; k <= SIZE / 2; k++) {
        double re = 0;
        double im = 0;
        for (size_t i = 0; i < SIZE; i++) {
            re += windowed[i] * cosines[i * k % SIZE];
            im -= windowed[i] * sines[i * k % SIZE];
        }
        out[2 * k] = (float)re;
        out[2 * k + 1] = (float)im;
    }
}

/* ---- running ---- */

typedef struct clip {
    const char *model;
    const char *sound;
    fill_fn fill; /* generates the first input of each frame */
    uint32_t state_count;
    struct {
        uint32_t output, input;
    } states[3];
} clip;

static const clip clips[] = {
    {"silero_vad_v4", "speech_silero_16k.wav", fill_silero_v4, 2, {{1, 2}, {2, 3}}},
    {"silero_vad_v5", "speech_silero_16k.wav", fill_silero_v5, 1, {{1, 1}}},
    {"gtcrn_simple", "speech_noisy_16k.wav", fill_spectrum, 3, {{1, 1}, {2, 2}, {3, 3}}},
};

typedef struct clip_load {
    const clip *clip;
    model_case c;
    sound sound;
    sp_array expected; /* one row per frame */
    size_t frames, row_bytes;
    char *got; /* rows of a single thread */
    sp_atomic_u32 differing;
} clip_load;

/* The caller's tensors and states are swapped after each frame. */
static void run_frames(const clip_load *l, char *out)
{
    sp_array inputs[FIXTURE_PORTS] = {0};
    sp_array outputs[FIXTURE_PORTS] = {0};
    for (uint32_t i = 0; i < l->c.input_count; i++) {
        const sp_array *like = &l->c.inputs[i];
        CHECK_OK(sp__array_init(&inputs[i], like->dtype, &like->shape));
        memcpy(inputs[i].data, like->data, like->bytes);
    }
    outputs_make(&l->c, outputs);
    for (uint32_t i = 0; i < l->clip->state_count; i++) {
        sp_array *state = &inputs[l->clip->states[i].input];
        memset(state->data, 0, state->bytes);
    }
    model_case mine = l->c;
    for (size_t frame = 0; frame < l->frames; frame++) {
        l->clip->fill(&l->sound, frame, inputs[0].data);
        memcpy(mine.inputs, inputs, sizeof inputs);
        CHECK_OK(case_run(&mine, outputs));
        memcpy(out + frame * l->row_bytes, outputs[0].data, l->row_bytes);
        for (uint32_t i = 0; i < l->clip->state_count; i++) {
            sp_array *state = &inputs[l->clip->states[i].input];
            sp_array *next = &outputs[l->clip->states[i].output];
            const sp_array swapped = *state;
            *state = *next;
            *next = swapped;
        }
    }
    data_free(inputs, l->c.input_count);
    outputs_free(&l->c, outputs);
}

static bool clip_open(const clip *which, clip_load *out)
{
    *out = (clip_load){.clip = which};
    char path[DATA_PATH_BYTES];
    if (!data_path(path, "models/%s/stream/expected.npy", which->model)) return false;
    if (!read_sound(which->sound, &out->sound)) return false;
    CHECK_OK(tensor_read(path, &out->expected));
    CHECK(case_open(which->model, NULL, &out->c));
    out->frames = (size_t)out->expected.shape.dims[0];
    out->row_bytes = out->expected.bytes / out->frames;
    CHECK_EQ_U64(out->c.outputs[0].bytes, out->row_bytes);
    out->got = sp_malloc(out->expected.bytes);
    return true;
}

static void clip_close(clip_load *l)
{
    sp_free(l->got);
    sp_free(l->sound.samples);
    sp__array_deinit(&l->expected);
    case_close(&l->c);
}

static double largest_difference(const clip_load *l)
{
    double largest = 0;
    for (size_t i = 0; i < l->expected.bytes / sizeof(float); i++) {
        const double want = ((const float *)l->expected.data)[i];
        const double difference = fabs((double)((const float *)l->got)[i] - want);
        CHECK(difference <= 1e-4 + 1e-3 * fabs(want));
        largest = difference > largest ? difference : largest;
    }
    return largest;
}

static void run_and_compare(void *arg, uint32_t index)
{
    (void)index;
    clip_load *l = arg;
    char *rows = sp_malloc(l->expected.bytes);
    run_frames(l, rows);
    if (memcmp(rows, l->got, l->expected.bytes) != 0) sp_fetch_add_relaxed(&l->differing, 1);
    sp_free(rows);
}

TEST(recordings_frame_by_frame_give_the_numbers_of_the_reference_from_every_thread)
{
    for (size_t i = 0; i < SP_COUNT_OF(clips); i++) {
        clip_load l;
        if (!clip_open(&clips[i], &l)) SKIP("no shared data");
        run_frames(&l, l.got);
        test_note("%s: %zu frames, largest difference %.3g", clips[i].model, l.frames,
                  largest_difference(&l));
        test_threads((uint32_t)test_count(31, 4), run_and_compare, &l);
        CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
        clip_close(&l);
    }
}

TEST_MAIN
