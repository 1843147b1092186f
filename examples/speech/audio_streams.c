/* SPDX-License-Identifier: Apache-2.0 */
/* The threads are independent: they share only the model and call sp_model_run, each with the state
 * of its own audio stream. primitive: threads of the operating system, as in a user's program. */
#include "audio_streams.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "../common.h"

typedef struct audio_worker {
    const audio_work *work;
    int index;
    double deadline;
    audio_outcome outcome; /* of this thread; `seconds` is unused */
    bool has_failed;
    pthread_t thread;
} audio_worker;

static size_t audio_stream_shift(const wav_sound *sound, int audio_stream)
{
    return (size_t)audio_stream * sound->count / AUDIO_STREAMS;
}

bool audio_stream_run_alone(sp_model model, const wav_sound *sound, int audio_stream,
                            vad_answer *answers)
{
    const size_t shift = audio_stream_shift(sound, audio_stream);
    const float *state = vad_first_state;
    for (size_t i = 0; i < vad_window_count(sound); i++) {
        float input[VAD_INPUT];
        vad_prepare(sound, shift, i, input);
        if (!vad_run(model, input, state, &answers[i])) return false;
        state = answers[i].state;
    }
    return true;
}

static void answer_compare(audio_worker *worker, size_t window, const vad_answer *answer)
{
    const audio_work *work = worker->work;
    audio_outcome *outcome = &worker->outcome;
    const size_t place = (size_t)worker->index * work->window_count + window;
    outcome->windows++;
    outcome->equal_windows += vad_is_same(answer, &work->expected[place]);
    if (work->reference == NULL) return;
    const float want = work->reference[place];
    if (!vad_is_close(answer->probability, want)) outcome->is_close = false;
    outcome->difference = larger_difference(outcome->difference, fabsf(answer->probability - want));
}

/* The audio stream from its start to its end, or, if not for the first time, to the deadline. */
static bool audio_stream_run(audio_worker *worker, bool is_first)
{
    const audio_work *work = worker->work;
    const size_t shift = audio_stream_shift(work->sound, worker->index);
    vad_answer answers[2]; /* one has the state that the other one is computed from */
    const float *state = vad_first_state;
    for (size_t i = 0; i < work->window_count; i++) {
        vad_answer *answer = &answers[i % 2];
        float input[VAD_INPUT];
        vad_prepare(work->sound, shift, i, input);
        if (!vad_run(work->model, input, state, answer)) return false;
        answer_compare(worker, i, answer);
        state = answer->state;
        if (!is_first && seconds_now() >= worker->deadline) break;
    }
    return true;
}

static void *run_worker(void *arg)
{
    audio_worker *worker = arg;
    bool is_first = true;
    do {
        worker->has_failed = !audio_stream_run(worker, is_first);
        is_first = false;
    } while (!worker->has_failed && seconds_now() < worker->deadline);
    return NULL;
}

bool audio_streams_run(const audio_work *work, int threads, audio_outcome *out)
{
    static const audio_outcome none = {.is_close = true};
    audio_worker workers[AUDIO_STREAMS];
    const double start = seconds_now();
    int started = 0;
    for (; started < threads; started++) {
        audio_worker *worker = &workers[started];
        *worker = (audio_worker){
            .work = work, .index = started, .deadline = start + work->seconds, .outcome = none};
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0) break;
    }
    if (started < threads) fprintf(stderr, "could not start thread %d\n", started);
    bool has_failed = started < threads;
    *out = none;
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        const audio_outcome *outcome = &workers[i].outcome;
        has_failed = has_failed || workers[i].has_failed;
        out->windows += outcome->windows;
        out->equal_windows += outcome->equal_windows;
        out->is_close = out->is_close && outcome->is_close;
        out->difference = larger_difference(out->difference, outcome->difference);
    }
    out->seconds = seconds_now() - start;
    return !has_failed;
}
