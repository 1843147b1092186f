/* SPDX-License-Identifier: Apache-2.0 */
/* Finds speech with one model from 1, 2, 4, 8 and 31 threads at the same time, each on an audio
 * stream of its own, whose state it passes from one window to the next.
 *
 * First each audio stream is run alone; then all of them together must give the same bits, and the
 * probabilities of another program. The probabilities are drawn over the waveform. The exit code is
 * 1 if bits differ, the reference is missed, or no speech is found. */
#include <stdio.h>
#include <stdlib.h>

#include <streampool/model.h>

#include "../common.h"
#include "audio_streams.h"
#include "speech_figure.h"
#include "speech_segments.h"
#include "vad.h"
#include "wav.h"

#define EXIT_USAGE 2
#define MAX_SEGMENTS 256 /* more than a minute can have */

static const int thread_counts[] = {1, 2, 4, 8, AUDIO_STREAMS};

typedef struct speech_state {
    sp_model model;
    wav_sound sound;
    size_t window_count;
    vad_answer *expected; /* window_count of each audio stream, as the reference */
    float *reference;     /* or NULL */
} speech_state;

/* ---- files ---- */

/* Little-endian floats, which is their layout in memory: a probability for each window. */
static bool read_reference(const char *path, speech_state *speech)
{
    const size_t count = AUDIO_STREAMS * speech->window_count;
    speech->reference = malloc(count * sizeof *speech->reference);
    if (speech->reference == NULL) {
        fprintf(stderr, "no memory for the reference\n");
        return false;
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    const size_t got = fread(speech->reference, sizeof *speech->reference, count, file);
    const bool is_read = got == count && fgetc(file) == EOF;
    fclose(file);
    if (!is_read) fprintf(stderr, "%s: must have %zu bytes\n", path, count * sizeof(float));
    return is_read;
}

static bool read_sound(const demo_arguments *arguments, speech_state *speech)
{
    char path[PATH_BYTES];
    if (!path_join(arguments->data, "clip.wav", path)) return false;
    if (!wav_read(arguments->input != NULL ? arguments->input : path, &speech->sound)) return false;
    speech->window_count = vad_window_count(&speech->sound);
    speech->expected = malloc(AUDIO_STREAMS * speech->window_count * sizeof *speech->expected);
    if (speech->expected == NULL) fprintf(stderr, "no memory for the answers\n");
    return speech->expected != NULL;
}

static bool speech_load(const demo_arguments *arguments, speech_state *speech)
{
    char path[PATH_BYTES];
    if (!read_sound(arguments, speech)) return false;
    if (!path_join(arguments->data, "reference.f32", path)) return false;
    if (arguments->input == NULL && !read_reference(path, speech)) return false;
    if (!path_join(arguments->data, "model.onnx", path)) return false;
    if (sp_model_load(path, NULL, &speech->model) == SP_OK) return true;
    fprintf(stderr, "%s: %s\n", path, sp_last_error());
    return false;
}

/* ---- running ---- */

static bool run_alone(speech_state *speech)
{
    for (int i = 0; i < AUDIO_STREAMS; i++) {
        vad_answer *answers = speech->expected + (size_t)i * speech->window_count;
        if (!audio_stream_run_alone(speech->model, &speech->sound, i, answers)) return false;
    }
    return true;
}

/* Prints the device and the head of the table. */
static bool print_head(const speech_state *speech)
{
    sp_model_info model;
    sp_device_info device;
    if (sp_model_get_info(speech->model, &model) != SP_OK) return false;
    if (sp_device_get_info(model.device, &device) != SP_OK) return false;
    printf("%.1f s of sound in %zu windows of %.0f ms; %u nodes on the device %s\n\n",
           (double)speech->sound.count / WAV_RATE, speech->window_count, VAD_WINDOW_SECONDS * 1000,
           model.node_count, device.kind);
    printf("%7s  %9s  %9s  %15s  %18s  %8s\n", "", "", "times", "difference to", "", "computed");
    printf("%7s  %9s  %9s  %15s  %18s  %8s\n", "threads", "windows/s", "real time", "the reference",
           "bits equal", "together");
    return true;
}

static uint64_t merged_runs_of(sp_model model)
{
    sp_model_info info = {0};
    (void)sp_model_get_info(model, &info);
    return info.batched_runs;
}

/* `merged` is how many runs were computed together with others. */
static void print_row(const speech_state *speech, int threads, const audio_outcome *outcome,
                      uint64_t merged)
{
    char difference[32] = "none";
    if (speech->reference != NULL) {
        snprintf(difference, sizeof difference, "%.2e", (double)outcome->difference);
    }
    char equal[64];
    snprintf(equal, sizeof equal, "%llu of %llu", (unsigned long long)outcome->equal_windows,
             (unsigned long long)outcome->windows);
    const double rate = (double)outcome->windows / outcome->seconds;
    printf("%7d  %9.0f  %9.0f  %15s  %18s  %8llu\n", threads, rate, rate * VAD_WINDOW_SECONDS,
           difference, equal, (unsigned long long)merged);
    fflush(stdout);
}

/* False if a run fails or gives wrong numbers. */
static bool run_together(const speech_state *speech, double seconds)
{
    const audio_work work = {
        .model = speech->model,
        .sound = &speech->sound,
        .window_count = speech->window_count,
        .expected = speech->expected,
        .reference = speech->reference,
        .seconds = seconds,
    };
    bool are_equal = true;
    bool are_close = true;
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        audio_outcome outcome;
        const uint64_t before = merged_runs_of(speech->model);
        if (!audio_streams_run(&work, thread_counts[i], &outcome)) return false;
        print_row(speech, thread_counts[i], &outcome, merged_runs_of(speech->model) - before);
        are_equal = are_equal && outcome.equal_windows == outcome.windows;
        are_close = are_close && outcome.is_close;
    }
    printf("\n");
    if (!are_equal) printf("FAILED: bits differ\n");
    if (!are_close) printf("FAILED: the reference is missed\n");
    return are_equal && are_close;
}

/* ---- speech ---- */

static void print_segments(const speech_segment *segments, size_t count)
{
    if (count == 0) printf("FAILED: no speech found\n");
    for (size_t i = 0; i < count; i++) {
        printf("speech found from %6.3f s to %6.3f s\n",
               (double)segments[i].first * VAD_WINDOW_SECONDS,
               (double)segments[i].end * VAD_WINDOW_SECONDS);
    }
}

/* Prints and draws the segments of the first audio stream; false if there are none. */
static bool show_speech(const speech_state *speech, const char *folder)
{
    char path[PATH_BYTES];
    if (!path_join(folder, "demo_speech.svg", path)) return false;
    float *probabilities = malloc(speech->window_count * sizeof *probabilities);
    if (probabilities == NULL) {
        fprintf(stderr, "no memory for the probabilities\n");
        return false;
    }
    for (size_t i = 0; i < speech->window_count; i++) {
        probabilities[i] = speech->expected[i].probability;
    }
    speech_segment segments[MAX_SEGMENTS];
    const size_t count =
        speech_segments_find(probabilities, speech->window_count, segments, MAX_SEGMENTS);
    print_segments(segments, count);
    const speech_figure figure = {
        .sound = &speech->sound,
        .probabilities = probabilities,
        .window_count = speech->window_count,
        .segments = segments,
        .segment_count = count,
    };
    const bool is_written = speech_figure_write(path, &figure);
    free(probabilities);
    return is_written && count > 0;
}

/* ---- the program ---- */

static bool run_speech(const demo_arguments *arguments, speech_state *speech)
{
    if (!speech_load(arguments, speech) || !print_head(speech) || !run_alone(speech)) return false;
    const bool is_right = run_together(speech, arguments->seconds);
    return show_speech(speech, arguments->output) && is_right;
}

int main(int argc, char **argv)
{
    demo_arguments arguments;
    if (!arguments_parse(argc, argv, "--sound", &arguments)) {
        fprintf(stderr,
                "usage: speech DATA_FOLDER OUTPUT_FOLDER [--seconds S] [--sound FILE.wav]\n");
        return EXIT_USAGE;
    }
    speech_state speech = {0};
    const bool is_right = run_speech(&arguments, &speech);
    sp_model_release(speech.model);
    wav_deinit(&speech.sound);
    free(speech.expected);
    free(speech.reference);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
