/* SPDX-License-Identifier: Apache-2.0 */
/* The current stream, and submitting to a thread's own stream: alone, and on all cores. */
#include <dlfcn.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/thread.h"
#include "bench.h"
#include "bench_threads.h"
#include "device/wait.h"
#include "runtime_cases.h"

/* ---- current stream, through the shared library ---- */

typedef sp_status (*current_fn)(sp_device device, sp_stream *out);

static void ask_current(void *ctx, uint64_t count)
{
    const current_fn ask = *(current_fn *)ctx;
    sp_stream stream;
    bool is_right = true;
    for (uint64_t i = 0; i < count; i++) is_right &= ask(bench_cpu, &stream) == SP_OK;
    bench_check(is_right, "sp_stream_current");
}

static void bench_current_stream(void)
{
    void *library = dlopen(SP_BENCH_LIBRARY, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "current_stream: %s\n", dlerror());
        return;
    }
    current_fn ask;
    *(void **)&ask = dlsym(library, "sp_stream_current");
    bench_check(ask != NULL, "dlsym");
    const bench_figure figure = bench_ns(ask_current, &ask);
    bench_print("current_stream_shared_library", &figure, NULL, 0, 4);
}

/* ---- submit and wait ---- */

static void submit_and_wait(void *ctx, uint64_t count)
{
    const sp_stream_ref *ref = ctx;
    const sp_submission nothing = {0};
    sp_point point = {0};
    bool is_right = true;
    for (uint64_t i = 0; i < count; i++) {
        is_right &= sp__submit_plain(ref, &nothing, &point) == SP_OK;
        is_right &= sp__point_wait(point, SP_NO_DEADLINE) == SP_OK;
    }
    bench_check(is_right, "submit and wait");
}

#define CALLERS 16

static void submit_on_own_stream(void *ctx, uint64_t count)
{
    (void)ctx;
    sp_stream_ref ref = bench_current_ref();
    submit_and_wait(&ref, count);
}

/* More callers than cores, each with its own stream: spinning waiters must not take processor time
 * from the others. */
static void bench_callers(void)
{
    static const uint32_t points[] = {1, CALLERS};
    bench_figure figures[2];
    const bench_side side = {submit_on_own_stream, NULL, figures};
    bench_threads(&side, 1, points, 2);
    const uint32_t cores = sp_thread_core_count();
    const uint32_t width = cores < CALLERS ? cores : CALLERS;
    const bench_figure *one = &figures[0];
    const bench_figure *many = &figures[1];
    bench_print_threads("submit_wait_callers", 1, one, NULL, 0, 0);
    bench_print_threads("submit_wait_callers", CALLERS, many, "one caller", one->median, 1);
    bench_print_threads("submit_wait_callers_all_cores", CALLERS, many, "one caller / cores",
                        one->median / width, 0.95);
}

void bench_streams(double mutex_ns)
{
    bench_current_stream();
    sp_stream_ref ref = bench_current_ref();
    const bench_figure figure = bench_ns(submit_and_wait, &ref);
    bench_print("submit_wait_empty", &figure, "mutex lock + unlock", mutex_ns, 100);
    bench_callers();
}
