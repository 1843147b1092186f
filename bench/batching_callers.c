/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_callers.h"

#include <stdlib.h>

#include "base/clock.h"

/* ---- callers ---- */

void window_figures_fill(const load_result *result, window_figures *out)
{
    const latencies *all = &result->latencies;
    const double arrivals = (double)(all->count + result->missed);
    out->per_second = result->per_second;
    out->p50_ns = (double)latencies_percentile(all, 0.5);
    out->p99_ns = (double)latencies_percentile(all, 0.99);
    out->p999_ns = (double)latencies_percentile(all, 0.999);
    out->missed = arrivals > 0 ? (double)result->missed / arrivals : 0;
}

sp_status window_callers(const window *asked, const target *targets, uint32_t count,
                         window_result *out)
{
    load_side sides[2] = {0};
    load_result results[2];
    const load_options options = {.threads = asked->count,
                                  .warm_up_seconds = WINDOW_WARM_UP_SHARE * asked->seconds,
                                  .window_seconds = asked->seconds};
    for (uint32_t i = 0; i < count; i++) sides[i] = targets[i].side;
    TRY(load_run(&options, sides, count, results));
    for (uint32_t i = 0; i < count; i++) window_figures_fill(&results[i], &out->figures[i]);
    return SP_OK;
}

/* ---- submitted runs ---- */

typedef struct flight {
    const model_runner *runner;
    uint32_t count;
    sp_host_tensor **outputs; /* by run in flight */
    sp_future *futures;       /* zero: no run */
} flight;

static sp_status flight_open(flight *self, const model_runner *runner, uint32_t count)
{
    *self = (flight){.runner = runner,
                     .count = count,
                     .outputs = calloc(count, sizeof(sp_host_tensor *)),
                     .futures = calloc(count, sizeof(sp_future))};
    if (self->outputs == NULL || self->futures == NULL) {
        return fail(SP_OUT_OF_MEMORY, "no memory for %u runs in flight", count);
    }
    for (uint32_t i = 0; i < count; i++) TRY(runner_outputs_create(runner, &self->outputs[i]));
    return SP_OK;
}

static sp_status run_end(flight *self, uint32_t i)
{
    if (self->futures[i].bits == 0) return SP_OK;
    const sp_status status = from_library(sp_future_wait(self->futures[i]));
    sp_future_release(self->futures[i]);
    self->futures[i] = (sp_future){0};
    return status;
}

static sp_status run_begin(flight *self, uint32_t i)
{
    const model_inputs *inputs = &self->runner->inputs;
    return from_library(sp_model_submit(self->runner->model, inputs->tensors, inputs->count,
                                        self->outputs[i], self->runner->output_count,
                                        &self->futures[i]));
}

/* Each run in flight ends and begins again, the oldest first. */
static sp_status flight_turn(flight *self)
{
    for (uint32_t i = 0; i < self->count; i++) {
        TRY(run_end(self, i));
        TRY(run_begin(self, i));
    }
    return SP_OK;
}

static sp_status flight_repeat(flight *self, double seconds, double *per_second)
{
    uint64_t turns = 0;
    const uint64_t start = sp_clock_now();
    double ns = 0;
    while (ns < seconds * 1e9) {
        TRY(flight_turn(self));
        turns++;
        ns = (double)(sp_clock_now() - start);
    }
    *per_second = (double)(turns * self->count) * 1e9 / ns;
    return SP_OK;
}

/* Ends all runs, and checks their outputs. */
static sp_status flight_land(flight *self)
{
    for (uint32_t i = 0; i < self->count; i++) {
        const bool has_run = self->futures[i].bits != 0;
        TRY(run_end(self, i));
        if (has_run && !runner_is_equal(self->runner, self->outputs[i])) {
            return fail(SP_INTERNAL, "a submitted run differs in bits from the first run");
        }
    }
    return SP_OK;
}

static void flight_close(flight *self)
{
    for (uint32_t i = 0; i < self->count; i++) {
        if (self->futures != NULL) run_end(self, i);
        if (self->outputs != NULL) runner_outputs_free(self->runner, self->outputs[i]);
    }
    free(self->futures);
    free(self->outputs);
}

sp_status window_in_flight(const window *asked, const subject *model, window_result *out)
{
    flight self;
    double *per_second = &out->figures[0].per_second;
    const double warm_up = WINDOW_WARM_UP_SHARE * asked->seconds;
    sp_status status = flight_open(&self, &model->runner, asked->count);
    if (status == SP_OK) status = flight_repeat(&self, warm_up, per_second);
    if (status == SP_OK) status = flight_repeat(&self, asked->seconds, per_second);
    if (status == SP_OK) status = flight_land(&self);
    flight_close(&self);
    return status;
}
