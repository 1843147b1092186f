/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_run.h"

#include <stdio.h>

#include <streampool/option.h>

#include "bench_steps.h"
#include "interrupt.h"
#include "output.h"
#include "process.h"
#include "progress.h"
#include "sizes.h"
#include "text.h"

/* ---- points ---- */

/* What the line of progress says. */
typedef struct point_progress {
    uint32_t threads;
    uint32_t number, count; /* of the points; the first one is 1 */
} point_progress;

static bool point_go_on(void *ctx, double share)
{
    const point_progress *point = ctx;
    progress_show("point %u of %u, %u threads: %.0f %%", point->number, point->count,
                  point->threads, 100 * share);
    return !is_interrupted();
}

static void point_draw(bench_picture *picture, const bench_job *job, uint32_t threads)
{
    bench_picture_add_point(picture, threads);
    for (uint32_t m = 0; m < job->count; m++) {
        bench_picture_set_rate(picture, m, job->models[m].result.per_second);
    }
}

static sp_status point_run(bench_arguments *arguments, bench_job *job, point_progress *progress)
{
    const uint32_t threads = progress->threads;
    const load_options load = {.threads = threads,
                               .warm_up_seconds = (double)arguments->warm_up_ms / 1000,
                               .window_seconds = (double)arguments->window_ms / 1000,
                               .rate = (double)arguments->rate,
                               .in_flight = arguments->in_flight,
                               .go_on = point_go_on,
                               .ctx = progress};
    if (is_interrupted()) return fail(SP_CANCELLED, "interrupted");
    const sp_status status = bench_point_run(job, &load);
    progress_clear();
    TRY(status);
    bench_report_point(&arguments->format, job, threads);
    point_draw(&arguments->picture, job, threads);
    return SP_OK;
}

/* ---- steps ---- */

static bool steps_go_on(void *ctx, double share)
{
    const bench_model *model = ctx;
    progress_show("steps of %s: %.0f %%", show_name(model->arguments.path).text, 100 * share);
    return !is_interrupted();
}

static sp_status steps_run(const bench_arguments *arguments, bench_model *model)
{
    bench_steps steps;
    const bench_steps_options timed = {.warm_up_seconds = (double)arguments->warm_up_ms / 1000,
                                       .window_seconds = (double)arguments->window_ms / 1000,
                                       .go_on = steps_go_on,
                                       .ctx = model};
    if (!arguments->has_steps) return SP_OK;
    sp_status status = bench_steps_open(&steps, model, &timed);
    progress_clear();
    if (status == SP_OK) status = bench_steps_report(&arguments->format, &steps);
    bench_steps_close(&steps);
    return status == SP_OK ? SP_OK : fail_prefix(status, "%s: --per-op: ", model->arguments.path);
}

/* ---- models ---- */

/* A file that cannot be loaded is named by runner_load. */
static sp_status model_open(const bench_arguments *arguments, bench_model *model, const char *path)
{
    model->arguments = arguments->model;
    model->arguments.path = path;
    TRY(runner_load(&model->arguments, &model->runner));
    sp_status status = runner_open_inputs(&model->arguments, &model->runner);
    if (status == SP_OK) {
        if (!arguments->format.is_json) sizes_print(&model->runner.inputs);
        status = runner_run_first(&model->arguments, &model->runner);
    }
    if (status == SP_OK && arguments->has_queues) {
        status = from_library(sp_batch_queue_create(model->runner.model, NULL, &model->queue));
    }
    return status == SP_OK ? SP_OK : fail_prefix(status, "%s: ", path);
}

sp_status bench_job_open(bench_arguments *arguments, bench_job *job)
{
    if (arguments->batching != NULL) CALL(sp_set_option("BATCHING", arguments->batching));
    TRY(device_arguments_open(&arguments->model.device));
    for (uint32_t i = 0; i < arguments->path_count; i++) {
        job->count = i + 1;
        TRY(model_open(arguments, &job->models[i], arguments->paths[i]));
    }
    job->rest_bytes = process_memory_read().now_bytes;
    return SP_OK;
}

sp_status bench_job_time_steps(const bench_arguments *arguments, bench_job *job)
{
    for (uint32_t m = 0; m < job->count; m++) TRY(steps_run(arguments, &job->models[m]));
    return SP_OK;
}

sp_status bench_run(bench_arguments *arguments, bench_job *job)
{
    TRY(bench_job_open(arguments, job));
    bench_report_models(&arguments->format, job);
    if (!output_flush()) return SP_OK; /* as below: reported at the end of the program */
    for (uint32_t m = 0; m < job->count; m++) {
        bench_picture_add_line(&arguments->picture, arguments->paths[m]);
    }
    TRY(bench_job_time_steps(arguments, job));
    bench_report_head(&arguments->format);
    for (uint32_t p = 0; output_flush() && p < arguments->point_count; p++) {
        point_progress progress = {
            .threads = arguments->threads[p], .number = p + 1, .count = arguments->point_count};
        TRY(point_run(arguments, job, &progress));
    }
    return SP_OK;
}

void bench_job_close(bench_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        sp_batch_queue_release(job->models[i].queue);
        runner_close(&job->models[i].runner);
    }
}
