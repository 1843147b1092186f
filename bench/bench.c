/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <streampool/status.h>

#include "base/clock.h"
#include "base/thread.h"

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

/* How often fn does its work in a round of about `round_ms`; warms it up. */
static uint64_t calls_per_round(bench_fn fn, void *ctx, uint32_t round_ms)
{
    for (uint64_t count = 1;; count *= 2) {
        const uint64_t start = sp_clock_now();
        fn(ctx, count);
        const double ns = (double)(sp_clock_now() - start);
        /* Long enough to tell the count from. */
        if (ns > 1e6 * round_ms / 4) return (uint64_t)((double)count * 1e6 * round_ms / ns) + 1;
    }
}

static double round_ns(bench_fn fn, void *ctx, uint64_t count)
{
    const uint64_t start = sp_clock_now();
    fn(ctx, count);
    return (double)(sp_clock_now() - start) / (double)count;
}

double bench_ns(bench_fn fn, void *ctx, uint32_t round_ms)
{
    const uint64_t count = calls_per_round(fn, ctx, round_ms);
    double rounds[BENCH_ROUNDS];
    for (int i = 0; i < BENCH_ROUNDS; i++) rounds[i] = round_ns(fn, ctx, count);
    return median(rounds, BENCH_ROUNDS);
}

bench_pair bench_pair_ns(bench_fn ours, bench_fn peer, void *ctx, uint32_t round_ms)
{
    const uint64_t our_count = calls_per_round(ours, ctx, round_ms);
    const uint64_t peer_count = calls_per_round(peer, ctx, round_ms);
    double our_rounds[BENCH_ROUNDS];
    double peer_rounds[BENCH_ROUNDS];
    double extra[BENCH_ROUNDS];
    for (int i = 0; i < BENCH_ROUNDS; i++) {
        our_rounds[i] = round_ns(ours, ctx, our_count);
        peer_rounds[i] = round_ns(peer, ctx, peer_count);
        extra[i] = our_rounds[i] - peer_rounds[i];
    }
    return (bench_pair){.ours = median(our_rounds, BENCH_ROUNDS),
                        .peer = median(peer_rounds, BENCH_ROUNDS),
                        .extra = median(extra, BENCH_ROUNDS)};
}

double bench_median(bench_sample_fn fn, void *ctx, uint32_t samples)
{
    double *values = malloc(samples * sizeof *values);
    bench_check(values != NULL, "memory for samples");
    fn(ctx);
    for (uint32_t i = 0; i < samples; i++) values[i] = fn(ctx);
    const double result = median(values, samples);
    free(values);
    return result;
}

void bench_print(const char *name, double ns, const char *peer, double peer_ns, double bound)
{
    printf("{\"case\":\"%s\",\"ns\":%.1f", name, ns);
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
