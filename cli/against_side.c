/* SPDX-License-Identifier: Apache-2.0 */
#include "against_side.h"

#include <stdio.h>

#include "process.h"

/* ---- both ---- */

static load_options load_of(const side_process *self, const side_request *request)
{
    return (load_options){.threads = request->threads,
                          .warm_up_seconds = request->warm_up_seconds,
                          .window_seconds = request->window_seconds,
                          .rate = (double)self->arguments->rate};
}

static double microseconds(const latencies *all, double share)
{
    return (double)latencies_percentile(all, share) / 1000;
}

static void window_fill(const load_options *load, const load_result *result, side_window *out)
{
    const latencies *all = &result->latencies;
    *out =
        (side_window){.per_second = load->rate > 0 ? result->per_second : result->shares_per_second,
                      .cores = result->cores,
                      .p50_us = microseconds(all, 0.5),
                      .p99_us = microseconds(all, 0.99),
                      .p999_us = microseconds(all, 0.999),
                      .max_us = (double)all->max_ns / 1000,
                      .missed = (double)result->missed,
                      .peak_bytes = process_memory_read().peak_bytes};
}

/* ---- ours ---- */

static sp_status ours_open(void *ctx, void *greeting)
{
    (void)ctx;
    snprintf(((side_greeting *)greeting)->name, sizeof((side_greeting *)greeting)->name,
             "streampool");
    return SP_OK;
}

static sp_status ours_load(side_process *self, side_start *out)
{
    const bench_model *model = &self->job.models[0];
    peer_case of;
    TRY(bench_job_open(self->arguments, &self->job));
    *out = (side_start){.load_ns = model->runner.load_ns,
                        .first_run_ns = model->runner.first_run_ns,
                        .rest_bytes = self->job.rest_bytes};
    sp_status status = peer_case_make(&model->runner, model->arguments.path, &of);
    if (status == SP_OK) status = peer_case_write(&of, self->file);
    peer_case_free(&of);
    return status == SP_OK ? bench_job_time_steps(self->arguments, &self->job) : status;
}

static sp_status ours_serve(void *ctx, const void *request, void *answer)
{
    side_process *self = ctx;
    side_answer *out = answer;
    const load_options load = load_of(self, request);
    if (load.threads == 0) return ours_load(self, &out->start);
    TRY(bench_point_run(&self->job, &load));
    window_fill(&load, &self->job.models[0].result, &out->window);
    return SP_OK;
}

static void ours_close(void *ctx)
{
    side_process *self = ctx;
    bench_job_close(&self->job);
}

/* ---- the peer ---- */

static sp_status theirs_open(void *ctx, void *greeting)
{
    side_process *self = ctx;
    side_greeting *out = greeting;
    TRY(peer_load(&self->peer, self->arguments->against));
    self->peer.run_threads = self->arguments->against_threads;
    snprintf(out->name, sizeof out->name, "%s", self->peer.name);
    return SP_OK;
}

static sp_status theirs_load(side_process *self, side_start *out)
{
    TRY(peer_case_read(self->file, self->arguments->paths[0], &self->of));
    TRY(peer_open(&self->peer, &self->of));
    *out = (side_start){.load_ns = self->peer.load_ns,
                        .first_run_ns = self->peer.first_run_ns,
                        .rest_bytes = process_memory_read().now_bytes,
                        .difference = self->peer.difference};
    return SP_OK;
}

static sp_status theirs_serve(void *ctx, const void *request, void *answer)
{
    side_process *self = ctx;
    side_answer *out = answer;
    load_result result;
    const load_options load = load_of(self, request);
    if (load.threads == 0) return theirs_load(self, &out->start);
    TRY(peer_prepare(&self->peer, load.threads));
    TRY(load_run(&load, &(load_side){.call = peer_call, .ctx = &self->peer}, 1, &result));
    window_fill(&load, &result, &out->window);
    return SP_OK;
}

static void theirs_close(void *ctx)
{
    side_process *self = ctx;
    peer_close(&self->peer);
    peer_case_free(&self->of);
}

_Static_assert(sizeof(side_answer) <= SERVICE_MOST_BYTES, "fits an answer");

const service_kind sp__against_sides[SIDES] = {
    [SIDE_OURS] = {.greeting_bytes = sizeof(side_greeting),
                   .request_bytes = sizeof(side_request),
                   .answer_bytes = sizeof(side_answer),
                   .open = ours_open,
                   .serve = ours_serve,
                   .close = ours_close},
    [SIDE_PEER] = {.greeting_bytes = sizeof(side_greeting),
                   .request_bytes = sizeof(side_request),
                   .answer_bytes = sizeof(side_answer),
                   .open = theirs_open,
                   .serve = theirs_serve,
                   .close = theirs_close},
};
