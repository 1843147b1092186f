/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of the runtime's own steps, each compared with the bare primitive that it uses. */
#include <streampool/runtime.h>

#include "base/mutex.h"
#include "bench.h"
#include "runtime_cases.h"

sp_stream_ref bench_current_ref(void)
{
    sp_stream stream;
    sp_stream_ref ref;
    bench_check(sp_stream_current(bench_cpu, &stream) == SP_OK, "sp_stream_current");
    bench_check(sp__stream_find(stream, &ref) == SP_OK, "sp__stream_find");
    return ref;
}

static void lock_unlock(void *ctx, uint64_t count)
{
    sp_mutex *mutex = ctx;
    for (uint64_t i = 0; i < count; i++) {
        sp_mutex_lock(mutex);
        sp_mutex_unlock(mutex);
    }
}

static double bench_mutex(void)
{
    sp_mutex mutex;
    sp_mutex_init(&mutex, SP_LOCK_FOREIGN);
    const bench_figure pair = bench_ns(lock_unlock, &mutex);
    bench_print("mutex_lock_unlock", &pair, NULL, 0, 0);
    sp_mutex_deinit(&mutex);
    return pair.median;
}

int main(void)
{
    bench_header("bench_runtime");
    bench_check(sp_init() == SP_OK, "sp_init");
    const double mutex_ns = bench_mutex();
    bench_streams(mutex_ns);
    bench_memory();
    bench_events();
    bench_hazards(mutex_ns);
    bench_hand_over();
    bench_model();
    return 0;
}
