/* SPDX-License-Identifier: Apache-2.0 */
/* Throughput of the same work on several threads. */
#ifndef SP_BENCH_BENCH_THREADS_H
#define SP_BENCH_BENCH_THREADS_H

#include "bench.h"

#define BENCH_MAX_THREADS 64

/* One of the compared functions. */
typedef struct bench_side {
    bench_fn fn;
    void *ctx;
    bench_figure *figures; /* one per point */
} bench_side;

/* Stores figures[i] of each side: nanoseconds per call of its fn while points[i] threads call it,
 * divided by the number of threads (half as much if two threads double the throughput). Points and
 * sides alternate, so that a slow phase of the machine affects all of them. */
void bench_threads(const bench_side *sides, uint32_t side_count, const uint32_t *points,
                   uint32_t point_count);

/* Prints a point. If `peer` is not NULL, it adds `throughput_ratio`, peer_ns / ns, which should be
 * at least `wanted`. */
void bench_print_threads(const char *name, uint32_t threads, const bench_figure *figure,
                         const char *peer, double peer_ns, double wanted);

#endif
