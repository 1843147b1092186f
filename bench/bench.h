/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks share: medians of several rounds, and one JSON line per case. A case states
 * its figure, the figure of a bare primitive or peer measured in the same run, and the bound that
 * we want to keep; nothing fails because of time. */
#ifndef SP_BENCH_BENCH_H
#define SP_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_ROUNDS 15

/* Nanoseconds per call of fn(ctx, count), which does its work `count` times: the median of
 * BENCH_ROUNDS rounds of about `round_ms` each, after a warm-up. */
typedef void (*bench_fn)(void *ctx, uint64_t count);
double bench_ns(bench_fn fn, void *ctx, uint32_t round_ms);

/* The same for two functions in turns, so that a slow spell of the machine meets both: the medians
 * of both, and the median of the differences of neighbouring rounds. */
typedef struct bench_pair {
    double ours;
    double peer;
    double extra;
} bench_pair;
bench_pair bench_pair_ns(bench_fn ours, bench_fn peer, void *ctx, uint32_t round_ms);

/* The median of single latencies that fn returns, in nanoseconds. */
typedef double (*bench_sample_fn)(void *ctx);
double bench_median(bench_sample_fn fn, void *ctx, uint32_t samples);

/* Prints the case. `peer` says what `peer_ns` is of, or NULL; `bound` is in nanoseconds, 0 for
 * none. */
void bench_print(const char *name, double ns, const char *peer, double peer_ns, double bound);

/* Ends the program if a call fails. */
void bench_check(bool is_ok, const char *what);

/* Processor and date, once at the start. */
void bench_header(const char *program);

#endif
