/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the benchmarks: medians of several rounds with their spread, and one JSON line per
 * case. A case has its figure, the figure of a bare primitive or peer measured in the same run, and
 * an upper bound; no case fails because of time. */
#ifndef SP_BENCH_BENCH_H
#define SP_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

/* Rounds of a case of one thread, and of one of many threads. */
#define BENCH_ROUNDS 15
#define BENCH_ROUND_MS 50
#define BENCH_THREADS_ROUNDS 9
#define BENCH_THREADS_MS 200

/* The result of several rounds or samples, in nanoseconds per call. */
typedef struct bench_figure {
    double median;
    double min, max;
    double lower, upper; /* quartiles */
    uint32_t rounds;
    uint32_t round_ms; /* 0: a round is one sample */
} bench_figure;

/* The figure of these values, which it sorts. */
bench_figure bench_figure_of(double *values, uint32_t count);
/* The figure of the same values plus `by`. */
bench_figure bench_shifted(bench_figure figure, double by);

/* Measures fn(ctx, count), which does its work `count` times, after a warm-up. */
typedef void (*bench_fn)(void *ctx, uint64_t count);
bench_figure bench_ns(bench_fn fn, void *ctx);

/* A clock in nanoseconds: sp_clock_now, or the CPU time of the process (microseconds, rounded
 * down). */
typedef uint64_t (*bench_clock)(void);
uint64_t bench_processor_clock(void);

/* One round of about `ms`, after a warm-up: nanoseconds of that clock per call. */
double bench_round_ns(bench_fn fn, void *ctx, bench_clock clock, double ms);

/* Two functions in alternating rounds, so that a slow phase of the machine affects both. */
typedef struct bench_pair {
    bench_figure ours;
    bench_figure peer;
    bench_figure extra; /* ours - peer, of neighbouring rounds */
} bench_pair;
bench_pair bench_pair_ns(bench_fn ours, bench_fn peer, void *ctx);

/* Latencies that fn returns, one per call, in nanoseconds. */
typedef double (*bench_sample_fn)(void *ctx);
bench_figure bench_samples(bench_sample_fn fn, void *ctx, uint32_t samples);

/* Prints the case. `peer` names what `peer_ns` measures, or is NULL; `bound` is in nanoseconds, 0
 * for none. A case whose quartiles are more than a quarter of the median apart is marked as
 * noisy. */
void bench_print(const char *name, const bench_figure *figure, const char *peer, double peer_ns,
                 double bound);

/* Prints the part of a line that all cases share: ,"ns":... */
void bench_print_figure(const bench_figure *figure);

/* Exits the program unless `is_ok`. */
void bench_check(bool is_ok, const char *what);

/* Prints processor and date, once at the start. */
void bench_header(const char *program);

#endif
