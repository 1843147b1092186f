/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_figures.h"

#include <math.h>

#include "bench.h"

/* ---- series ---- */

void series_add(series *self, double value)
{
    if (self->count < FIGURES_MAX_TURNS) self->values[self->count++] = value;
}

double series_median(const series *self)
{
    series sorted = *self;
    return sorted.count > 0 ? bench_figure_of(sorted.values, sorted.count).median : NAN;
}

double series_ratio(const series *numerator, const series *denominator)
{
    series ratios = {0};
    for (uint32_t i = 0; i < numerator->count && i < denominator->count; i++) {
        series_add(&ratios, numerator->values[i] / denominator->values[i]);
    }
    return series_median(&ratios);
}

double series_difference(const series *minuend, const series *subtrahend)
{
    series differences = {0};
    for (uint32_t i = 0; i < minuend->count && i < subtrahend->count; i++) {
        series_add(&differences, minuend->values[i] - subtrahend->values[i]);
    }
    return series_median(&differences);
}

void load_series_add(load_series *self, const window_figures *measured)
{
    series_add(&self->per_second, measured->per_second);
    series_add(&self->p50_ns, measured->p50_ns);
    series_add(&self->p99_ns, measured->p99_ns);
    series_add(&self->p999_ns, measured->p999_ns);
    series_add(&self->rows, measured->rows);
    series_add(&self->missed, measured->missed);
}

/* ---- what is wanted ---- */

uint32_t figures_share(const figures *self, uint32_t callers)
{
    const uint32_t width = self->greeting.width > 0 ? self->greeting.width : 1;
    return (callers + width - 1) / width;
}

double figures_best_before(const figures *self, worker_mode mode, uint32_t point)
{
    double best = NAN;
    for (uint32_t i = 0; i < point; i++) {
        best = fmax(best, series_median(&self->callers[mode][i].per_second));
    }
    return best;
}

/* The least CPU time of a run, alone or as a row with what `extra_ns` is besides. */
static double least_ns(const figures *self, const row_series *rows, double extra_ns, uint32_t turn)
{
    const double alone = self->run_ns.values[turn];
    return rows->rows > 0 ? fmin(alone, rows->ns.values[turn] + extra_ns) : alone;
}

double figures_of_goal(const figures *self, worker_mode mode, uint32_t point)
{
    const uint32_t callers = self->points[point];
    const double cores = callers < self->cores ? callers : self->cores;
    const series *rates = &self->callers[mode][point].per_second;
    series shares = {0};
    for (uint32_t i = 0; self->greeting.is_cpu && i < rates->count; i++) {
        const double extra = self->empty_ns.values[i] + self->wake_ns[point].values[i];
        const double most = cores * 1e9 / least_ns(self, &self->rows[point], extra, i);
        series_add(&shares, rates->values[i] / (FIGURES_WANTED * most));
    }
    return series_median(&shares);
}

double figures_in_flight_of_goal(const figures *self)
{
    const row_series *rows = &self->rows[self->point_count];
    const series *rates = &self->in_flight.per_second;
    series shares = {0};
    for (uint32_t i = 0; self->greeting.is_cpu && i < rates->count; i++) {
        const double batches = self->cores * 1e9 / least_ns(self, rows, 0, i);
        const double most = fmin(batches, self->in_flight_empty.per_second.values[i]);
        series_add(&shares, rates->values[i] / (FIGURES_WANTED * most));
    }
    return series_median(&shares);
}

double figures_foreground_wanted_ns(const figures *self)
{
    const row_series *rows = &self->rows[self->point_count + 1];
    const double batch = rows->rows > 0 ? rows->rows * series_median(&rows->ns) : 0;
    const double longest = fmax(batch, series_median(&self->run_ns));
    return 2 * longest * (self->greeting.run_slots + 1);
}
