/* SPDX-License-Identifier: Apache-2.0 */
#include "against_report.h"

#include <stdio.h>

#include "text.h"

static double milliseconds(uint64_t ns)
{
    return (double)ns / 1e6;
}

static double megabytes(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

void against_report_head(const against_report *self)
{
    if (self->arguments->format.is_json) return;
    for (uint32_t i = 0; i < SIDES; i++) {
        printf("%s: loaded in %.1f ms, first run in %.1f ms, memory at rest: %.1f MB\n",
               self->greetings[i].name, milliseconds(self->starts[i].load_ns),
               milliseconds(self->starts[i].first_run_ns), megabytes(self->starts[i].rest_bytes));
    }
    printf("outputs differ by %.3g at most\n", self->starts[SIDE_PEER].difference);
    printf("%7s %12s %8s %7s %11s %11s %11s %11s %9s  %s\n", "threads", "runs/s", "ratio", "cores",
           "p50 us", "p99 us", "p99.9 us", "max us", "peak MB", "side");
}

/* 0 if the peer had no run. */
static double ratio_of(const side_window windows[SIDES])
{
    const double theirs = windows[SIDE_PEER].per_second;
    return theirs > 0 ? windows[SIDE_OURS].per_second / theirs : 0;
}

static void print_text(const char *name, uint32_t threads, const side_window *window,
                       const char *ratio)
{
    printf("%7u %12.1f %8s %7.2f %11.1f %11.1f %11.1f %11.1f %9.1f  %s", threads,
           window->per_second, ratio, window->cores, window->p50_us, window->p99_us,
           window->p999_us, window->max_us, megabytes(window->peak_bytes), name);
    if (window->missed > 0) printf("  (%.0f arrivals not served)", window->missed);
    printf("\n");
}

static void print_json(const against_report *self, side_number side, uint32_t threads,
                       const side_window *window, const char *ratio)
{
    const side_start *start = &self->starts[side];
    printf("{\"model\":");
    print_json_text(self->arguments->paths[0]);
    printf(",\"side\":");
    print_json_text(self->greetings[side].name);
    printf(",\"threads\":%u,\"cores\":%.2f,\"load_ms\":%.3f,\"first_run_ms\":%.3f", threads,
           window->cores, milliseconds(start->load_ns), milliseconds(start->first_run_ns));
    printf(",\"rest_bytes\":%llu,\"peak_bytes\":%llu", (unsigned long long)start->rest_bytes,
           (unsigned long long)window->peak_bytes);
    printf(",\"per_second\":%.1f%s%s,\"missed\":%.0f", window->per_second,
           side == SIDE_OURS ? ",\"ratio\":" : "", ratio, window->missed);
    printf(",\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f}\n", window->p50_us,
           window->p99_us, window->p999_us, window->max_us);
}

void against_report_point(const against_report *self, uint32_t threads,
                          const side_window windows[SIDES])
{
    char ratio[32];
    snprintf(ratio, sizeof ratio, "%.3f", ratio_of(windows));
    for (side_number i = SIDE_OURS; i < SIDES; i++) {
        const char *of_side = i == SIDE_OURS ? ratio : "";
        if (self->arguments->format.is_json) print_json(self, i, threads, &windows[i], of_side);
        else print_text(self->greetings[i].name, threads, &windows[i], of_side);
    }
}
