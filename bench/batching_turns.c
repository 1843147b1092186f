/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_turns.h"

#include <math.h>
#include <stdio.h>

#define COST_SHARE 0.25 /* of a window */
/* Rounds of a lone caller in a turn, of which the shortest counts: the difference is small. */
#define LONE_ROUNDS 4

static const char *const mode_names[WORKER_MODES] = {"combining", "batching off", "ONNX Runtime",
                                                     "costs"};

typedef struct turns {
    const turns_options *options;
    figures *out;
    worker workers[WORKER_MODES];
} turns;

/* ---- processes ---- */

static uint32_t most_threads(const turns_options *options)
{
    uint32_t most = PAIR_CALLERS;
    for (uint32_t i = 0; i < options->point_count; i++) {
        if (options->points[i] > most) most = options->points[i];
    }
    return most;
}

static sp_status mode_start(turns *self, const turns_model *model, worker_mode mode)
{
    const worker_options options = {.mode = mode,
                                    .paths = {model->path, NULL},
                                    .device = self->options->device,
                                    .library = self->options->library,
                                    .threads = most_threads(self->options)};
    const sp_status status = worker_start(&self->workers[mode], &options);
    return status == SP_OK ? SP_OK : fail_prefix(status, "%s: %s: ", model->name, mode_names[mode]);
}

static sp_status workers_start(turns *self, const turns_model *model)
{
    static const worker_mode ours[] = {WORKER_COMBINE, WORKER_OFF, WORKER_COSTS};
    for (uint32_t i = 0; i < 3; i++) TRY(mode_start(self, model, ours[i]));
    self->out->greeting = self->workers[WORKER_OFF].greeting;
    if (self->options->library == NULL) return SP_OK;
    const sp_status status = mode_start(self, model, WORKER_PEER);
    self->out->has_peer = status == SP_OK;
    if (status != SP_OK) fprintf(stderr, "bench_batching: %s\n", failure_message());
    return SP_OK;
}

static sp_status ask(turns *self, worker_mode mode, const window *asked, window_result *out)
{
    const sp_status status = worker_ask(&self->workers[mode], asked, out);
    return status == SP_OK ? SP_OK
                           : fail_prefix(status, "%s: %s: ", self->out->name, mode_names[mode]);
}

/* ---- a turn ---- */

static sp_status load_measure(turns *self, worker_mode mode, window asked, load_series *out)
{
    window_result result;
    asked.seconds = self->options->seconds;
    TRY(ask(self, mode, &asked, &result));
    load_series_add(out, &result.figures[0]);
    return SP_OK;
}

static sp_status callers_measure(turns *self)
{
    figures *out = self->out;
    for (uint32_t i = 0; i < out->point_count; i++) {
        const window asked = {.load = WINDOW_CALLERS, .count = out->points[i]};
        for (worker_mode mode = WORKER_COMBINE; mode <= WORKER_PEER; mode++) {
            if (mode == WORKER_PEER && !out->has_peer) continue;
            TRY(load_measure(self, mode, asked, &out->callers[mode][i]));
        }
    }
    return SP_OK;
}

static sp_status cost_measure(turns *self, window_call call, series *out)
{
    const window asked = {
        .load = WINDOW_COST, .call = call, .seconds = COST_SHARE * self->options->seconds};
    window_result result;
    TRY(ask(self, WORKER_COSTS, &asked, &result));
    series_add(out, result.ns);
    return SP_OK;
}

static sp_status lone_measure(turns *self)
{
    const window asked = {.load = WINDOW_COST,
                          .seconds = COST_SHARE / LONE_ROUNDS * self->options->seconds};
    double least[WORKER_OFF + 1] = {INFINITY, INFINITY};
    window_result result;
    for (uint32_t i = 0; i < LONE_ROUNDS * (WORKER_OFF + 1); i++) {
        const worker_mode mode = i % (WORKER_OFF + 1);
        TRY(ask(self, mode, &asked, &result));
        least[mode] = fmin(least[mode], result.ns);
    }
    series_add(&self->out->lone_ns[WORKER_COMBINE], least[WORKER_COMBINE]);
    series_add(&self->out->lone_ns[WORKER_OFF], least[WORKER_OFF]);
    return SP_OK;
}

/* Of a batch of that many rows; points with the same number have the same figure. */
static sp_status rows_measure(turns *self, uint32_t index)
{
    row_series *out = &self->out->rows[index];
    const window asked = {.load = WINDOW_COST,
                          .call = WINDOW_ROWS,
                          .count = out->wanted,
                          .seconds = COST_SHARE * self->options->seconds};
    window_result result = {0};
    for (uint32_t i = 0; i < index; i++) {
        if (self->out->rows[i].wanted != out->wanted) continue;
        *out = self->out->rows[i];
        return SP_OK;
    }
    if (out->wanted >= 2) TRY(ask(self, WORKER_COSTS, &asked, &result));
    out->rows = result.rows;
    series_add(&out->ns, result.ns);
    return SP_OK;
}

/* In a process on all processors: there a thread wakes up beside those that run. */
static sp_status wakes_measure(turns *self)
{
    figures *out = self->out;
    window asked = {
        .load = WINDOW_COST, .call = WINDOW_WAKE, .seconds = COST_SHARE * self->options->seconds};
    window_result result;
    for (uint32_t i = 0; i < out->point_count; i++) {
        asked.count = out->points[i];
        asked.share = figures_share(out, asked.count);
        TRY(ask(self, WORKER_OFF, &asked, &result));
        series_add(&out->wake_ns[i], result.ns);
    }
    return SP_OK;
}

static sp_status costs_measure(turns *self)
{
    figures *out = self->out;
    TRY(cost_measure(self, WINDOW_MODEL, &out->run_ns));
    TRY(cost_measure(self, WINDOW_EMPTY, &out->empty_ns));
    TRY(wakes_measure(self));
    for (uint32_t i = 0; i < out->point_count + 2; i++) TRY(rows_measure(self, i));
    return lone_measure(self);
}

static sp_status in_flight_measure(turns *self)
{
    window asked = {.load = WINDOW_IN_FLIGHT,
                    .count = FIGURES_IN_FLIGHT * self->out->greeting.width};
    TRY(load_measure(self, WORKER_COMBINE, asked, &self->out->in_flight));
    asked.call = WINDOW_EMPTY;
    return load_measure(self, WORKER_COMBINE, asked, &self->out->in_flight_empty);
}

static sp_status foreground_measure(turns *self)
{
    const window asked = {
        .load = WINDOW_FOREGROUND, .count = FIGURES_BACKGROUND, .seconds = self->options->seconds};
    window_result result;
    TRY(ask(self, WORKER_COMBINE, &asked, &result));
    load_series_add(&self->out->foreground, &result.figures[1]);
    return SP_OK;
}

static sp_status open_measure(turns *self)
{
    const double *rates = self->out->open_rates;
    load_series *open = self->out->open;
    window asked = {.load = WINDOW_ARRIVALS,
                    .count = self->out->points[self->out->point_count - 1],
                    .rate = rates[WORKER_COMBINE]};
    TRY(load_measure(self, WORKER_COMBINE, asked, &open[OPEN_COMBINE]));
    asked.call = WINDOW_EMPTY;
    TRY(load_measure(self, WORKER_COMBINE, asked, &open[OPEN_EMPTY]));
    asked.call = WINDOW_MODEL;
    asked.rate = rates[WORKER_OFF];
    TRY(load_measure(self, WORKER_COMBINE, asked, &open[OPEN_COMBINE_LOW]));
    return load_measure(self, WORKER_OFF, asked, &open[OPEN_OFF_LOW]);
}

/* ---- a model ---- */

static sp_status warm_up(turns *self)
{
    const uint32_t last = self->out->points[self->out->point_count - 1];
    const window asked = {.load = WINDOW_WARM_UP, .count = last, .seconds = self->options->seconds};
    window_result unused;
    for (worker_mode mode = WORKER_COMBINE; mode <= WORKER_PEER; mode++) {
        if (mode == WORKER_PEER && !self->out->has_peer) continue;
        TRY(ask(self, mode, &asked, &unused));
    }
    return SP_OK;
}

static void figures_init(const turns_options *options, const char *name, figures *out)
{
    *out = (figures){.name = name, .cores = options->cores, .point_count = options->point_count};
    for (uint32_t i = 0; i < options->point_count; i++) out->points[i] = options->points[i];
}

static sp_status all_measure(turns *self)
{
    figures *out = self->out;
    for (uint32_t i = 0; i < out->point_count; i++) {
        out->rows[i].wanted = figures_share(out, out->points[i]);
    }
    out->rows[out->point_count].wanted = FIGURES_IN_FLIGHT;
    out->rows[out->point_count + 1].wanted = figures_share(out, FIGURES_BACKGROUND);
    TRY(warm_up(self));
    for (uint32_t i = 0; i < self->options->turns; i++) {
        TRY(costs_measure(self));
        TRY(callers_measure(self));
        TRY(in_flight_measure(self));
        TRY(foreground_measure(self));
    }
    for (worker_mode mode = WORKER_COMBINE; mode <= WORKER_OFF; mode++) {
        out->open_rates[mode] =
            FIGURES_OPEN_SHARE * figures_best_before(out, mode, out->point_count);
    }
    for (uint32_t i = 0; i < self->options->turns; i++) TRY(open_measure(self));
    return SP_OK;
}

sp_status turns_measure(const turns_options *options, const turns_model *model, figures *out)
{
    turns self = {.options = options, .out = out};
    figures_init(options, model->name, out);
    sp_status status = workers_start(&self, model);
    if (status == SP_OK) status = all_measure(&self);
    workers_stop(self.workers, WORKER_MODES);
    return status;
}

/* ---- two models ---- */

static sp_status pair_turn(const turns_options *options, worker *both, pair_figures *out)
{
    window asked = {.load = WINDOW_CALLERS, .count = PAIR_CALLERS, .seconds = options->seconds};
    window_result alone[2], together;
    double shares[2];
    TRY(worker_ask(both, &asked, &alone[0]));
    asked.call = WINDOW_SECOND;
    TRY(worker_ask(both, &asked, &alone[1]));
    asked.call = WINDOW_BOTH;
    TRY(worker_ask(both, &asked, &together));
    for (uint32_t i = 0; i < 2; i++) {
        shares[i] = together.figures[i].per_second / alone[i].figures[0].per_second;
        series_add(&out->shares[i], shares[i]);
    }
    series_add(&out->sum, shares[0] + shares[1]);
    return SP_OK;
}

static sp_status pair_warm_up(const turns_options *options, worker *both)
{
    window asked = {.load = WINDOW_WARM_UP, .count = PAIR_CALLERS, .seconds = options->seconds};
    window_result unused;
    TRY(worker_ask(both, &asked, &unused));
    asked.call = WINDOW_SECOND;
    return worker_ask(both, &asked, &unused);
}

sp_status turns_measure_pair(const turns_options *options, const turns_model *first,
                             const turns_model *second, pair_figures *out)
{
    const worker_options both = {.mode = WORKER_COMBINE,
                                 .paths = {first->path, second->path},
                                 .device = options->device,
                                 .threads = most_threads(options)};
    worker process;
    *out = (pair_figures){0};
    sp_status status = worker_start(&process, &both);
    if (status == SP_OK) status = pair_warm_up(options, &process);
    for (uint32_t i = 0; status == SP_OK && i < options->turns; i++) {
        status = pair_turn(options, &process, out);
    }
    workers_stop(&process, 1);
    return status == SP_OK ? SP_OK : fail_prefix(status, "%s and %s: ", first->name, second->name);
}
