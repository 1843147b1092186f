/* SPDX-License-Identifier: Apache-2.0 */
/* The threads are independent: they share only the model and call sp_model_run. A thread gets its
 * own stream with its first run and returns it when it ends. primitive: threads of the
 * operating system, as in a user's program. */
#include "parallel.h"

#include <pthread.h>
#include <stdio.h>

#include "common.h"

typedef struct worker_state {
    const parallel_work *work;
    int index;
    double deadline;
    parallel_outcome outcome; /* of this thread; `seconds` is unused */
    bool has_failed;
    pthread_t thread;
} worker_state;

static void result_compare(worker_state *worker, const detector_result *result)
{
    const parallel_work *work = worker->work;
    parallel_outcome *outcome = &worker->outcome;
    const detector_result *expected = &work->expected[worker->index];
    outcome->runs++;
    outcome->equal_runs += detector_is_same(result, expected);
    if (worker->index > 0 || work->reference == NULL) return;
    float difference;
    if (!detector_is_close(result, work->reference, &difference)) outcome->is_close = false;
    outcome->difference = larger_difference(outcome->difference, difference);
}

static void *run_worker(void *arg)
{
    worker_state *worker = arg;
    const parallel_work *work = worker->work;
    detector_result result;
    do {
        worker->has_failed = !detector_run(work->model, &work->inputs[worker->index], &result);
        if (worker->has_failed) break;
        result_compare(worker, &result);
    } while (seconds_now() < worker->deadline);
    return NULL;
}

bool parallel_run(const parallel_work *work, int threads, parallel_outcome *out)
{
    static const parallel_outcome none = {.is_close = true};
    worker_state workers[PARALLEL_MAX_THREADS];
    const double start = seconds_now();
    int started = 0;
    for (; started < threads; started++) {
        worker_state *worker = &workers[started];
        worker->work = work;
        worker->index = started;
        worker->deadline = start + work->seconds;
        worker->outcome = none;
        worker->has_failed = false;
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0) break;
    }
    if (started < threads) fprintf(stderr, "could not start thread %d\n", started);
    bool has_failed = started < threads;
    *out = none;
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        const parallel_outcome *outcome = &workers[i].outcome;
        has_failed = has_failed || workers[i].has_failed;
        out->runs += outcome->runs;
        out->equal_runs += outcome->equal_runs;
        out->is_close = out->is_close && outcome->is_close;
        out->difference = larger_difference(out->difference, outcome->difference);
    }
    out->seconds = seconds_now() - start;
    return !has_failed;
}
