/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <streampool/status.h>

#include "base/clock.h"
#include "base/thread.h"

static int double_compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

bench_figure bench_figure_of(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, double_compare);
    return (bench_figure){.median = values[count / 2],
                          .min = values[0],
                          .max = values[count - 1],
                          .lower = values[count / 4],
                          .upper = values[count - 1 - count / 4],
                          .rounds = count};
}

bench_figure bench_shifted(bench_figure figure, double by)
{
    figure.median += by;
    figure.min += by;
    figure.max += by;
    figure.lower += by;
    figure.upper += by;
    return figure;
}

static bench_figure figure_of_rounds(double *rounds)
{
    bench_figure figure = bench_figure_of(rounds, BENCH_ROUNDS);
    figure.round_ms = BENCH_ROUND_MS;
    return figure;
}

uint64_t bench_processor_clock(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    const int64_t seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
    const int64_t microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    return (uint64_t)(seconds * 1000000 + microseconds) * 1000;
}

/* The number of fn's repetitions in a round of `ms`; warms fn up. */
static uint64_t calls_per_round(bench_fn fn, void *ctx, double ms)
{
    for (uint64_t count = 1;; count *= 2) {
        const uint64_t start = sp_clock_now();
        fn(ctx, count);
        const double ns = (double)(sp_clock_now() - start);
        /* Long enough to compute the count. */
        if (ns < 1e6 * ms / 4) continue;
        return (uint64_t)((double)count * 1e6 * ms / ns) + 1;
    }
}

static double round_ns(bench_fn fn, void *ctx, uint64_t count, bench_clock clock)
{
    const uint64_t start = clock();
    fn(ctx, count);
    return (double)(clock() - start) / (double)count;
}

double bench_round_ns(bench_fn fn, void *ctx, bench_clock clock, double ms)
{
    return round_ns(fn, ctx, calls_per_round(fn, ctx, ms), clock);
}

bench_figure bench_ns(bench_fn fn, void *ctx)
{
    const uint64_t count = calls_per_round(fn, ctx, BENCH_ROUND_MS);
    double rounds[BENCH_ROUNDS];
    for (int i = 0; i < BENCH_ROUNDS; i++) rounds[i] = round_ns(fn, ctx, count, sp_clock_now);
    return figure_of_rounds(rounds);
}

bench_pair bench_pair_ns(bench_fn ours, bench_fn peer, void *ctx)
{
    const uint64_t our_count = calls_per_round(ours, ctx, BENCH_ROUND_MS);
    const uint64_t peer_count = calls_per_round(peer, ctx, BENCH_ROUND_MS);
    double our_rounds[BENCH_ROUNDS];
    double peer_rounds[BENCH_ROUNDS];
    double extra[BENCH_ROUNDS];
    for (int i = 0; i < BENCH_ROUNDS; i++) {
        our_rounds[i] = round_ns(ours, ctx, our_count, sp_clock_now);
        peer_rounds[i] = round_ns(peer, ctx, peer_count, sp_clock_now);
        extra[i] = our_rounds[i] - peer_rounds[i];
    }
    return (bench_pair){.ours = figure_of_rounds(our_rounds),
                        .peer = figure_of_rounds(peer_rounds),
                        .extra = figure_of_rounds(extra)};
}

bench_figure bench_samples(bench_sample_fn fn, void *ctx, uint32_t samples)
{
    double *values = malloc(samples * sizeof *values);
    bench_check(values != NULL, "memory for samples");
    fn(ctx);
    for (uint32_t i = 0; i < samples; i++) values[i] = fn(ctx);
    const bench_figure figure = bench_figure_of(values, samples);
    free(values);
    return figure;
}

void bench_print_figure(const bench_figure *figure)
{
    printf(",\"ns\":%.1f,\"min_ns\":%.1f,\"max_ns\":%.1f,\"rounds\":%u", figure->median,
           figure->min, figure->max, figure->rounds);
    if (figure->round_ms > 0) printf(",\"round_ms\":%u", figure->round_ms);
    if (figure->upper - figure->lower > 0.25 * figure->median) printf(",\"noisy\":true");
}

void bench_print(const char *name, const bench_figure *figure, const char *peer, double peer_ns,
                 double bound)
{
    const double ns = figure->median;
    printf("{\"case\":\"%s\"", name);
    bench_print_figure(figure);
    if (peer != NULL) {
        printf(",\"peer\":\"%s\",\"peer_ns\":%.1f,\"ratio\":%.3f", peer, peer_ns, ns / peer_ns);
    }
    if (bound > 0) printf(",\"bound_ns\":%.1f,\"kept\":%s", bound, ns <= bound ? "true" : "false");
    printf("}\n");
    fflush(stdout);
}

void bench_check(bool is_ok, const char *what)
{
    if (is_ok) return;
    fprintf(stderr, "benchmark: %s failed: %s\n", what, sp_last_error());
    exit(1);
}

static void processor_name(char *out, size_t bytes)
{
    snprintf(out, bytes, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        snprintf(out, bytes, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (file != NULL) fclose(file);
}

void bench_header(const char *program)
{
    char name[128];
    char date[32];
    const time_t now = time(NULL);
    struct tm parts;
    processor_name(name, sizeof name);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &parts));
    printf("{\"program\":\"%s\",\"date\":\"%s\",\"processor\":\"%s\",\"cores\":%u}\n", program,
           date, name, sp_thread_core_count());
}
