/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks share: medians of several rounds with their spread, and one JSON line per
 * case. A case states its figure, the figure of a bare primitive or peer measured in the same run,
 * and the bound that we want to keep; nothing fails because of time. */
#ifndef SP_BENCH_BENCH_H
#define SP_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

/* A case of one thread, and one of many threads. */
#define BENCH_ROUNDS 15
#define BENCH_ROUND_MS 50
#define BENCH_THREADS_ROUNDS 9
#define BENCH_THREADS_MS 200

/* What several rounds, or samples, gave, in nanoseconds per call. */
typedef struct bench_figure {
    double median;
    double min, max;
    double lower, upper; /* quartiles */
    uint32_t rounds;
    uint32_t round_ms; /* 0: a round is one sample */
} bench_figure;

/* Sorts the values. */
bench_figure bench_figure_of(double *values, uint32_t count);
/* The figure of values that are all so much larger. */
bench_figure bench_shifted(bench_figure figure, double by);

/* Calls of fn(ctx, count), which does its work `count` times, after a warm-up. */
typedef void (*bench_fn)(void *ctx, uint64_t count);
bench_figure bench_ns(bench_fn fn, void *ctx);

/* Two functions in turns, so that a slow spell of the machine meets both. */
typedef struct bench_pair {
    bench_figure ours;
    bench_figure peer;
    bench_figure extra; /* of neighbouring rounds: ours - peer */
} bench_pair;
bench_pair bench_pair_ns(bench_fn ours, bench_fn peer, void *ctx);

/* Single latencies that fn returns, in nanoseconds. */
typedef double (*bench_sample_fn)(void *ctx);
bench_figure bench_samples(bench_sample_fn fn, void *ctx, uint32_t samples);

/* Prints the case. `peer` says what `peer_ns` is of, or NULL; `bound` is in nanoseconds, 0 for
 * none. A case whose quartiles are more than a quarter of the median apart is marked as noisy: its
 * figure is worth little. */
void bench_print(const char *name, const bench_figure *figure, const char *peer, double peer_ns,
                 double bound);

/* The part of a line that all cases share: ,"ns":... */
void bench_print_figure(const bench_figure *figure);

/* Ends the program if a call fails. */
void bench_check(bool is_ok, const char *what);

/* Processor and date, once at the start. */
void bench_header(const char *program);

#endif
