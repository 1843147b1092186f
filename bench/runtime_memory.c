/* SPDX-License-Identifier: Apache-2.0 */
/* Allocating and freeing, on one stream and from many threads. */
#include <streampool/storage.h>

#include <dlfcn.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/thread.h"
#include "bench.h"
#include "bench_threads.h"
#include "runtime_cases.h"

#define ALLOCATION ((uint64_t)64 << 10)

static void create_release(void *ctx, uint64_t count)
{
    (void)ctx;
    sp_storage storage;
    bool is_right = true;
    for (uint64_t i = 0; i < count; i++) {
        is_right &= sp_storage_create(bench_cpu, ALLOCATION, NULL, &storage) == SP_OK;
        is_right &= sp_storage_release(storage) == SP_OK;
    }
    bench_check(is_right, "create and release");
}

typedef struct peer_allocator {
    void *(*allocate)(size_t bytes);
    void (*release)(void *ptr);
} peer_allocator;

static void peer_create_release(void *ctx, uint64_t count)
{
    const peer_allocator *peer = ctx;
    for (uint64_t i = 0; i < count; i++) {
        void *volatile ptr = peer->allocate(ALLOCATION);
        peer->release(ptr);
    }
}

static void bench_one_stream(void)
{
    const bench_figure ours = bench_ns(create_release, NULL);
    void *library = dlopen("libmimalloc.so.2", RTLD_NOW);
    peer_allocator peer = {malloc, free};
    const char *name = "malloc + free";
    if (library != NULL) {
        *(void **)&peer.allocate = dlsym(library, "mi_malloc");
        *(void **)&peer.release = dlsym(library, "mi_free");
        name = "mimalloc malloc + free";
    }
    const double theirs = bench_ns(peer_create_release, &peer).median;
    bench_print("allocate_free_64k", &ours, name, theirs, 3 * theirs);
}

/* No point of the curve may fall more than a tenth below the best earlier one: contention on a
 * shared lock shows as such a fall. */
static void bench_curve(void)
{
    static const uint32_t points[] = {1, 2, 4, 8, 16, 31};
    bench_figure figures[SP_COUNT_OF(points)];
    const bench_side side = {create_release, NULL, figures};
    bench_threads(&side, 1, points, SP_COUNT_OF(points));
    double best = 0;
    for (uint32_t i = 0; i < SP_COUNT_OF(points); i++) {
        const char *peer = i > 0 ? "best point before" : NULL;
        bench_print_threads("allocate_free_64k_curve", points[i], &figures[i], peer, best, 0.9);
        if (i == 0 || figures[i].median < best) best = figures[i].median;
    }
    const uint32_t cores = sp_thread_core_count();
    const double one = figures[0].median / (cores < 31 ? cores : 31);
    const bench_figure *many = &figures[SP_COUNT_OF(points) - 1];
    bench_print("allocate_free_64k_31_threads", many, "one thread / cores", one, one * 1.1);
}

void bench_memory(void)
{
    bench_one_stream();
    bench_curve();
}
