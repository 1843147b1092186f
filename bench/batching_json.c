/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "batching_report.h"

static const char *const mode_names[] = {"combine", "off", "onnxruntime"};
static const char *const open_names[OPEN_CASES] = {"combine", "empty", "combine_low", "off_low"};

static void number(const char *key, double value)
{
    if (isfinite(value)) printf(",\"%s\":%.6g", key, value);
    else printf(",\"%s\":null", key);
}

static void line_begin(const char *name, const char *model)
{
    printf("{\"case\":\"%s\",\"model\":\"%s\"", name, model);
}

static void line_end(void)
{
    printf("}\n");
    fflush(stdout);
}

static void print_load(const load_series *load)
{
    number("per_second", series_median(&load->per_second));
    number("rows", series_median(&load->rows));
    number("p50_ns", series_median(&load->p50_ns));
    number("p99_ns", series_median(&load->p99_ns));
    number("p999_ns", series_median(&load->p999_ns));
}

static void print_costs(const figures *self)
{
    line_begin("costs", self->name);
    printf(",\"width\":%u,\"is_separable\":%s", self->greeting.width,
           self->greeting.is_separable ? "true" : "false");
    number("a_ns", series_median(&self->run_ns));
    number("c_ns", series_median(&self->empty_ns));
    line_end();
    uint32_t printed = 0;
    for (uint32_t i = 0; i <= self->point_count; i++) {
        if (self->rows[i].rows <= printed) continue;
        printed = self->rows[i].rows;
        line_begin("row", self->name);
        printf(",\"rows\":%u", printed);
        number("b_ns", series_median(&self->rows[i].ns));
        line_end();
    }
    const series *lone = self->lone_ns;
    line_begin("lone", self->name);
    number("off_ns", series_median(&lone[WORKER_OFF]));
    number("combine_ns", series_median(&lone[WORKER_COMBINE]));
    number("extra_ns", series_difference(&lone[WORKER_COMBINE], &lone[WORKER_OFF]));
    line_end();
}

static void print_callers(const figures *self, worker_mode mode, uint32_t point)
{
    const load_series *load = &self->callers[mode][point];
    const load_series *peer = &self->callers[WORKER_PEER][point];
    line_begin("callers", self->name);
    printf(",\"callers\":%u,\"batching\":\"%s\"", self->points[point], mode_names[mode]);
    print_load(load);
    if (mode != WORKER_PEER) number("h_ns", series_median(&self->wake_ns[point]));
    number("of_best_before",
           series_median(&load->per_second) / figures_best_before(self, mode, point));
    if (mode != WORKER_PEER) {
        number("of_goal", figures_of_goal(self, mode, point));
        number("rate_over_peer", series_ratio(&load->per_second, &peer->per_second));
        number("p999_over_peer", series_ratio(&load->p999_ns, &peer->p999_ns));
    }
    line_end();
}

static void print_open(const figures *self)
{
    const double lone_ns = series_median(&self->lone_ns[WORKER_OFF]);
    const load_series *off = &self->open[OPEN_OFF_LOW];
    for (uint32_t i = 0; i < OPEN_CASES; i++) {
        const load_series *load = &self->open[i];
        const bool is_low = i == OPEN_COMBINE_LOW || i == OPEN_OFF_LOW;
        line_begin("open", self->name);
        printf(",\"load\":\"%s\"", open_names[i]);
        number("arrivals_per_second", self->open_rates[is_low ? WORKER_OFF : WORKER_COMBINE]);
        print_load(load);
        number("missed", series_median(&load->missed));
        number("p99_over_lone", series_median(&load->p99_ns) / lone_ns);
        if (is_low) number("p99_over_off", series_ratio(&load->p99_ns, &off->p99_ns));
        line_end();
    }
}

static void print_foreground(const figures *self)
{
    line_begin("foreground", self->name);
    printf(",\"background\":%u,\"run_slots\":%u", FIGURES_BACKGROUND, self->greeting.run_slots);
    number("p50_ns", series_median(&self->foreground.p50_ns));
    number("p99_ns", series_median(&self->foreground.p99_ns));
    number("wanted_ns", figures_foreground_wanted_ns(self));
    line_end();
}

void report_print_json(const figures *self)
{
    print_costs(self);
    for (uint32_t i = 0; i < self->point_count; i++) {
        for (worker_mode mode = WORKER_COMBINE; mode <= WORKER_PEER; mode++) {
            if (mode < WORKER_PEER || self->has_peer) print_callers(self, mode, i);
        }
    }
    print_open(self);
    print_foreground(self);
    line_begin("in_flight", self->name);
    printf(",\"in_flight\":%u", FIGURES_IN_FLIGHT * self->greeting.width);
    number("per_second", series_median(&self->in_flight.per_second));
    number("rows", series_median(&self->in_flight.rows));
    number("empty_per_second", series_median(&self->in_flight_empty.per_second));
    number("of_goal", figures_in_flight_of_goal(self));
    line_end();
}

void report_print_pair_json(const char *first, const char *second, const pair_figures *self)
{
    line_begin("pair", first);
    printf(",\"second\":\"%s\",\"callers\":%u", second, PAIR_CALLERS);
    number("first_share", series_median(&self->shares[0]));
    number("second_share", series_median(&self->shares[1]));
    number("sum", series_median(&self->sum));
    line_end();
}
