/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_steps.h"

#include <stdlib.h>

#include "process.h"

/* Room for all runs: sample r of step s is at s * BENCH_STEPS_RUNS + r. */
typedef struct samples {
    uint64_t *of_run; /* by step */
    double *all;
} samples;

/* ---- one run ---- */

static sp_status run_time(const bench_steps *self, sp_host_tensor *outputs, uint64_t *step_ns)
{
    const model_runner *runner = &self->model->runner;
    CALL(sp_model_time_steps(runner->model, runner->inputs.tensors, runner->inputs.count, outputs,
                             runner->output_count, step_ns, self->count));
    if (runner_is_equal(runner, outputs)) return SP_OK;
    return fail(SP_INTERNAL, "a run whose steps were timed differs in bits from the first run");
}

/* ---- all runs ---- */

static sp_status runs_time(bench_steps *self, const bench_steps_options *options,
                           sp_host_tensor *outputs, const samples *room)
{
    const double total = options->warm_up_seconds + options->window_seconds;
    const uint64_t start_ns = clock_ns();
    for (double seconds = 0; self->runs < BENCH_STEPS_RUNS && seconds < total;) {
        TRY(run_time(self, outputs, room->of_run));
        seconds = (double)(clock_ns() - start_ns) / 1e9;
        if (!options->go_on(options->ctx, seconds < total ? seconds / total : 1)) {
            return fail(SP_CANCELLED, "interrupted");
        }
        /* A model whose run is longer than the window has one run at least. */
        if (seconds < options->warm_up_seconds) continue;
        for (uint32_t s = 0; s < self->count; s++) {
            room->all[(size_t)s * BENCH_STEPS_RUNS + self->runs] = (double)room->of_run[s] / 1000;
        }
        self->runs++;
    }
    return SP_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void medians_take(bench_steps *self, double *all)
{
    for (uint32_t s = 0; s < self->count; s++) {
        double *of_step = all + (size_t)s * BENCH_STEPS_RUNS;
        qsort(of_step, self->runs, sizeof *of_step, compare_numbers);
        self->list[s].us = of_step[self->runs / 2];
        self->us += self->list[s].us;
    }
}

static sp_status samples_take(bench_steps *self, const bench_steps_options *options,
                              const samples *room)
{
    sp_host_tensor *outputs;
    TRY(runner_outputs_create(&self->model->runner, &outputs));
    const sp_status status = runs_time(self, options, outputs, room);
    if (status == SP_OK) medians_take(self, room->all);
    runner_outputs_free(&self->model->runner, outputs);
    return status;
}

static sp_status steps_time(bench_steps *self, const bench_steps_options *options)
{
    const samples room = {.of_run = calloc((size_t)self->count + 1, sizeof *room.of_run),
                          .all =
                              calloc((size_t)self->count + 1, BENCH_STEPS_RUNS * sizeof *room.all)};
    const sp_status status =
        room.of_run != NULL && room.all != NULL
            ? samples_take(self, options, &room)
            : fail(SP_OUT_OF_MEMORY, "no memory for the times of %u steps", self->count);
    free(room.of_run);
    free(room.all);
    return status;
}

/* ---- the plan ---- */

static sp_status plan_open(bench_steps *self)
{
    const model_inputs *inputs = &self->model->runner.inputs;
    sp_plan_info info;
    CALL(sp_plan_create(inputs->model, inputs->tensors, inputs->count, &self->plan));
    CALL(sp_plan_get_info(self->plan, &info));
    self->count = info.step_count;
    self->list = calloc((size_t)self->count + 1, sizeof *self->list);
    if (self->list == NULL) {
        return fail(SP_OUT_OF_MEMORY, "no memory for %u steps", self->count);
    }
    for (uint32_t s = 0; s < self->count; s++) {
        CALL(sp_plan_get_step(self->plan, s, &self->list[s].info));
    }
    return SP_OK;
}

sp_status bench_steps_open(bench_steps *self, const bench_model *model,
                           const bench_steps_options *options)
{
    *self = (bench_steps){.model = model};
    TRY(plan_open(self));
    TRY(steps_time(self, options));
    self->peak = fma_peak_measure();
    return SP_OK;
}

void bench_steps_close(bench_steps *self)
{
    free(self->list);
    sp_plan_release(self->plan);
    *self = (bench_steps){0};
}
