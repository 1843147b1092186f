/* SPDX-License-Identifier: Apache-2.0 */
/* The same work from several threads at once. */
#ifndef SP_BENCH_BENCH_THREADS_H
#define SP_BENCH_BENCH_THREADS_H

#include "bench.h"

#define BENCH_MAX_THREADS 64

/* One of the things that are compared. */
typedef struct bench_side {
    bench_fn fn;
    void *ctx;
    bench_figure *figures; /* one per point */
} bench_side;

/* figures[i] of a side: nanoseconds per call of its fn while points[i] threads call it, over all of
 * them: half as much if two threads get twice as much done. Points and sides take turns, so that a
 * slow spell of the machine meets all of them. */
void bench_threads(const bench_side *sides, uint32_t side_count, const uint32_t *points,
                   uint32_t point_count);

/* Prints a point. If `peer` is not NULL, `throughput_ratio` is peer_ns / ns and should be `wanted`
 * at least. */
void bench_print_threads(const char *name, uint32_t threads, const bench_figure *figure,
                         const char *peer, double peer_ns, double wanted);

#endif
