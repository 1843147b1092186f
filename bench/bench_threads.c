/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_threads.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/wait.h"

#define POINTS_MAX 16
#define SIDES_MAX 4
#define BATCH 64 /* calls between two checks of the phase */

enum { NOT_STARTED, RUNNING, OVER };

typedef struct load {
    bench_fn fn;
    void *ctx;
    sp_atomic_u32 phase; /* written by the measuring thread only; publishes nothing */
    sp_atomic_u32 ready; /* threads that have warmed up */
    sp_atomic_u64 calls; /* of all threads, added when they end */
} load;

static void load_work(void *arg)
{
    load *self = arg;
    self->fn(self->ctx, BATCH);
    sp_fetch_add_relaxed(&self->ready, 1);
    while (sp_load_relaxed(&self->phase) == NOT_STARTED) {
        sp_word_wait(&self->phase, NOT_STARTED, SP_NO_DEADLINE);
    }
    uint64_t calls = 0;
    while (sp_load_relaxed(&self->phase) == RUNNING) {
        self->fn(self->ctx, BATCH);
        calls += BATCH;
    }
    sp_fetch_add_relaxed(&self->calls, calls);
}

static void load_set_phase(load *self, uint32_t phase)
{
    sp_store_relaxed(&self->phase, phase);
    sp_word_wake(&self->phase, SP_WAKE_ALL);
}

static double load_measure(bench_fn fn, void *ctx, uint32_t threads)
{
    load self = {.fn = fn, .ctx = ctx};
    sp_thread handles[BENCH_MAX_THREADS];
    bench_check(threads <= BENCH_MAX_THREADS, "too many threads");
    for (uint32_t i = 0; i < threads; i++) {
        bench_check(sp_thread_create(&handles[i], "bench", load_work, &self) == SP_OK, "thread");
    }
    while (sp_load_relaxed(&self.ready) < threads) sp_thread_yield();
    const uint64_t start = sp_clock_now();
    load_set_phase(&self, RUNNING);
    sp_clock_sleep(BENCH_THREADS_MS * UINT64_C(1000000));
    load_set_phase(&self, OVER);
    for (uint32_t i = 0; i < threads; i++) sp_thread_join(&handles[i]);
    /* Up to the end of the last thread, so that all counted calls are timed. */
    const double ns = (double)(sp_clock_now() - start);
    return ns / (double)sp_load_relaxed(&self.calls);
}

void bench_threads(const bench_side *sides, uint32_t side_count, const uint32_t *points,
                   uint32_t point_count)
{
    double values[POINTS_MAX][SIDES_MAX][BENCH_THREADS_ROUNDS];
    bench_check(point_count <= POINTS_MAX && side_count <= SIDES_MAX, "too many points or sides");
    for (uint32_t round = 0; round < BENCH_THREADS_ROUNDS; round++) {
        for (uint32_t i = 0; i < point_count; i++) {
            for (uint32_t s = 0; s < side_count; s++) {
                values[i][s][round] = load_measure(sides[s].fn, sides[s].ctx, points[i]);
            }
        }
    }
    for (uint32_t i = 0; i < point_count; i++) {
        for (uint32_t s = 0; s < side_count; s++) {
            sides[s].figures[i] = bench_figure_of(values[i][s], BENCH_THREADS_ROUNDS);
            sides[s].figures[i].round_ms = BENCH_THREADS_MS;
        }
    }
}

void bench_print_threads(const char *name, uint32_t threads, const bench_figure *figure,
                         const char *peer, double peer_ns, double wanted)
{
    printf("{\"case\":\"%s\",\"threads\":%u", name, threads);
    bench_print_figure(figure);
    printf(",\"per_second\":%.0f", 1e9 / figure->median);
    if (peer != NULL) {
        const double ratio = peer_ns / figure->median;
        printf(",\"peer\":\"%s\",\"peer_ns\":%.1f,\"throughput_ratio\":%.3f", peer, peer_ns, ratio);
        printf(",\"wanted_ratio\":%.2f,\"kept\":%s", wanted, ratio >= wanted ? "true" : "false");
    }
    printf("}\n");
    fflush(stdout);
}
