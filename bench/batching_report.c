/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_report.h"

#include <math.h>
#include <stdio.h>

static const char *const mode_names[] = {"combine", "off", "ORT"};

/* A number, or "-" where there is none. */
static void cell(int width, int digits, double value)
{
    if (isnan(value)) printf(" %*s", width, "-");
    else printf(" %*.*f", width, digits, value);
}

static double microseconds(const series *ns)
{
    return series_median(ns) / 1000;
}

/* ---- costs ---- */

static void print_rows(const figures *self)
{
    uint32_t printed = 0;
    for (uint32_t i = 0; i <= self->point_count; i++) {
        const row_series *rows = &self->rows[i];
        if (rows->rows <= printed) continue;
        printf("%s%.2f us in %u", printed > 0 ? ", " : "", microseconds(&rows->ns), rows->rows);
        printed = rows->rows;
    }
    printf("%s\n", printed > 0 ? "" : "none");
}

static void print_wakes(const figures *self)
{
    printf("  a wake-up and a sleep h:");
    for (uint32_t i = 0; i < self->point_count; i++) {
        printf("%s %.2f us of %u", i > 0 ? "," : "", microseconds(&self->wake_ns[i]),
               self->points[i]);
    }
    printf(" callers\n");
}

static void print_costs(const figures *self)
{
    const worker_greeting *greeting = &self->greeting;
    printf("\n%s: a device %u wide, %u cores; ", self->name, greeting->width, self->cores);
    if (greeting->is_separable) printf("rows are separable\n");
    else printf("rows are not separable: %s\n", greeting->reason);
    printf("  a run a: %.2f us; an empty call c: %.2f us\n", microseconds(&self->run_ns),
           microseconds(&self->empty_ns));
    print_wakes(self);
    printf("  a row b in a batch: ");
    print_rows(self);
    const series *lone = self->lone_ns;
    const double extra = series_difference(&lone[WORKER_COMBINE], &lone[WORKER_OFF]);
    printf("  a lone caller: %.2f us; combining costs it %.0f ns, %.1f %%\n",
           microseconds(&lone[WORKER_OFF]), extra, 100 * extra / series_median(&lone[WORKER_OFF]));
}

/* ---- callers ---- */

static void print_callers(const figures *self, uint32_t point, worker_mode mode)
{
    const load_series *load = &self->callers[mode][point];
    const load_series *peer = &self->callers[WORKER_PEER][point];
    const double rate = series_median(&load->per_second);
    if (mode == WORKER_COMBINE) printf("%9u", self->points[point]);
    else printf("%9s", "");
    printf("  %-8s", mode_names[mode]);
    cell(11, 0, rate);
    cell(8, 2, mode == WORKER_PEER ? NAN : figures_of_goal(self, mode, point));
    cell(8, 2, rate / figures_best_before(self, mode, point));
    cell(6, 1, mode == WORKER_PEER ? NAN : series_median(&load->rows));
    cell(10, 1, microseconds(&load->p50_ns));
    cell(10, 1, microseconds(&load->p99_ns));
    cell(10, 1, microseconds(&load->p999_ns));
    if (self->has_peer && mode != WORKER_PEER) {
        cell(9, 2, series_ratio(&load->per_second, &peer->per_second));
        cell(10, 2, series_ratio(&load->p999_ns, &peer->p999_ns));
    }
    printf("\n");
}

static void print_all_callers(const figures *self)
{
    printf("%9s  %-8s  %10s  %7s  %7s  %5s  %9s  %9s  %9s%s\n", "callers", "batching", "runs/s",
           "of goal", "of best", "rows", "p50 us", "p99 us", "p99.9 us",
           self->has_peer ? "  rate/ORT  p99.9/ORT" : "");
    for (uint32_t i = 0; i < self->point_count; i++) {
        for (worker_mode mode = WORKER_COMBINE; mode <= WORKER_PEER; mode++) {
            if (mode < WORKER_PEER || self->has_peer) print_callers(self, i, mode);
        }
    }
}

/* ---- open loops and submitted runs ---- */

static void print_missed(const load_series *load)
{
    const double missed = series_median(&load->missed);
    if (missed > 0) printf(" (%.1f %% of the arrivals were not served)", 100 * missed);
}

static void print_open(const figures *self)
{
    const load_series *open = self->open;
    const double lone_ns = series_median(&self->lone_ns[WORKER_OFF]);
    printf("  %.0f arrivals/s, %.0f %% of combining's capacity: p99 %.1f us, %.1f lone runs",
           self->open_rates[WORKER_COMBINE], 100 * FIGURES_OPEN_SHARE,
           microseconds(&open[OPEN_COMBINE].p99_ns),
           series_median(&open[OPEN_COMBINE].p99_ns) / lone_ns);
    print_missed(&open[OPEN_COMBINE]);
    printf("; the empty model: p99 %.1f us", microseconds(&open[OPEN_EMPTY].p99_ns));
    print_missed(&open[OPEN_EMPTY]);
    printf("\n  %.0f arrivals/s, %.0f %% of the capacity without: p99 %.1f us",
           self->open_rates[WORKER_OFF], 100 * FIGURES_OPEN_SHARE,
           microseconds(&open[OPEN_COMBINE_LOW].p99_ns));
    print_missed(&open[OPEN_COMBINE_LOW]);
    printf("; batching off %.1f us", microseconds(&open[OPEN_OFF_LOW].p99_ns));
    print_missed(&open[OPEN_OFF_LOW]);
    printf("; ratio");
    cell(0, 2, series_ratio(&open[OPEN_COMBINE_LOW].p99_ns, &open[OPEN_OFF_LOW].p99_ns));
    printf("\n");
}

void report_print(const figures *self)
{
    print_costs(self);
    print_all_callers(self);
    print_open(self);
    printf("  %u submitted runs in flight, one thread: %.0f runs/s",
           FIGURES_IN_FLIGHT * self->greeting.width, series_median(&self->in_flight.per_second));
    printf(", %.1f rows; the empty model: %.0f runs/s; of goal",
           series_median(&self->in_flight.rows), series_median(&self->in_flight_empty.per_second));
    cell(0, 2, figures_in_flight_of_goal(self));
    printf("\n  a main thread's runs of high priority beside %u callers: p50 %.1f us, p99 %.1f us, "
           "wanted at "
           "most %.1f\n",
           FIGURES_BACKGROUND, microseconds(&self->foreground.p50_ns),
           microseconds(&self->foreground.p99_ns), figures_foreground_wanted_ns(self) / 1000);
    fflush(stdout);
}

void report_print_pair(const char *first, const char *second, const pair_figures *self)
{
    printf("\n%s and %s at once, %u callers each: %.2f and %.2f of their rates alone, sum %.2f\n",
           first, second, PAIR_CALLERS, series_median(&self->shares[0]),
           series_median(&self->shares[1]), series_median(&self->sum));
    fflush(stdout);
}
