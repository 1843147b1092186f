/* SPDX-License-Identifier: Apache-2.0 */
/* What a small model costs before its first result, and what its plans keep: the time of the load
 * and of the first inference, memory beside the CUDA context, the time of a new shape and of its
 * first run, memory of 32 plans with 1 to 4,096 rows after one caller and after many. A program
 * that ran before has filled the cache of kernels. */
#include <streampool/device.h>
#include <streampool/model.h>
#include <streampool/storage.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/library.h"
#include "base/thread.h"
#include "bench.h"
#include "device/cuda/cuda_api.h"

#define PLANS 32
#define MOST_ROWS 4096
#define CALLERS 31
#define RUNS 8 /* of each caller, of a plan */
#define SHAPES 64

typedef CUresult (*memory_info_fn)(size_t *free_bytes, size_t *total_bytes);

typedef struct startup {
    sp_device device;
    sp_model model;
    uint64_t in_columns, out_columns; /* of a row, in floats */
    const float *input;
    float *wanted; /* of all rows; NULL until it is known */
    memory_info_fn memory_info;
    size_t free_before; /* with a CUDA context alone */
} startup;

static double ms_since(uint64_t begin_ns)
{
    return (double)(sp_clock_now() - begin_ns) / 1e6;
}

/* ---- memory of the GPU ---- */

/* The primary context of the GPU, which the library shares. */
static void open_driver(startup *s)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    sp_library library;
    CUdevice ordinal = 0;
    CUcontext context = NULL;
    size_t total;
    bench_check(sp__cuda_api_open() == SP_OK, sp_last_error());
    bench_check(sp_library_open(names, &library) == SP_OK, sp_last_error());
    const sp_library_function found = sp_library_find(library, "cuMemGetInfo_v2");
    bench_check(found != NULL, "cuMemGetInfo");
    memcpy(&s->memory_info, &found, sizeof found);
    bench_check(sp__cuda_api.cuDeviceGet(&ordinal, 0) == CUDA_SUCCESS, "device");
    bench_check(sp__cuda_api.cuDevicePrimaryCtxRetain(&context, ordinal) == CUDA_SUCCESS,
                "context");
    bench_check(sp__cuda_api.cuCtxPushCurrent(context) == CUDA_SUCCESS, "context");
    bench_check(s->memory_info(&s->free_before, &total) == CUDA_SUCCESS, "memory");
}

static void print_memory(const startup *s, const char *when)
{
    size_t free_bytes, total;
    sp_memory_stats stats;
    bench_check(s->memory_info(&free_bytes, &total) == CUDA_SUCCESS, "memory");
    bench_check(sp_device_get_memory_stats(s->device, &stats) == SP_OK, sp_last_error());
    printf("{\"case\":\"memory\",\"when\":\"%s\",\"beside_context_mib\":%.1f,\"reserved_mib\":%.1f,"
           "\"in_use_mib\":%.1f,\"pinned_mib\":%.1f}\n",
           when, ((double)s->free_before - (double)free_bytes) / 1048576,
           (double)stats.reserved_bytes / 1048576, (double)stats.in_use_bytes / 1048576,
           (double)stats.pinned_bytes / 1048576);
    fflush(stdout);
}

/* ---- runs ---- */

static void run_rows(const startup *s, int64_t rows, float *output)
{
    const sp_host_tensor input = {.data = (void *)(uintptr_t)s->input,
                                  .dtype = SP_F32,
                                  .rank = 2,
                                  .shape = {rows, (int64_t)s->in_columns},
                                  .bytes = (uint64_t)rows * s->in_columns * sizeof(float)};
    sp_host_tensor result = {.data = output,
                             .capacity = (uint64_t)rows * s->out_columns * sizeof(float)};
    bench_check(sp_model_run(s->model, &input, 1, &result, 1) == SP_OK, sp_last_error());
    /* A row has the same bits in any number of rows. */
    if (s->wanted != NULL && output != NULL && output != s->wanted) {
        bench_check(memcmp(output, s->wanted, result.capacity) == 0, "the bits of a run");
    }
}

static void find_columns(startup *s)
{
    sp_port port;
    bench_check(sp_model_get_input(s->model, 0, &port) == SP_OK && port.rank == 2, "input");
    s->in_columns = (uint64_t)port.shape[1];
    bench_check(sp_model_get_output(s->model, 0, &port) == SP_OK && port.rank == 2, "output");
    s->out_columns = (uint64_t)port.shape[1];
    float *input = sp_malloc(MOST_ROWS * s->in_columns * sizeof(float));
    bench_check(input != NULL, "memory");
    for (uint64_t i = 0; input != NULL && i < MOST_ROWS * s->in_columns; i++)
        input[i] = (float)(i % 251) / 251;
    s->input = input;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first run of a shape less a later one of it: its plan and its first context. */
static void bench_shapes(const startup *s, int64_t step, float *output)
{
    double times[SHAPES];
    for (int64_t i = 0; i < SHAPES; i++) {
        const int64_t rows = 2 + i * step;
        uint64_t begin = sp_clock_now();
        run_rows(s, rows, output);
        times[i] = ms_since(begin);
        begin = sp_clock_now();
        run_rows(s, rows, output);
        times[i] -= ms_since(begin);
    }
    qsort(times, SHAPES, sizeof times[0], compare);
    printf("{\"case\":\"new_shape\",\"most_rows\":%" PRId64 ",\"shapes\":%d,\"median_ms\":%.3f,"
           "\"p90_ms\":%.3f,\"most_ms\":%.3f}\n",
           2 + (SHAPES - 1) * step, SHAPES, times[SHAPES / 2], times[SHAPES * 9 / 10],
           times[SHAPES - 1]);
    fflush(stdout);
}

static int64_t rows_of(int64_t plan)
{
    return plan == 0 ? 1 : plan * MOST_ROWS / (PLANS - 1);
}

static void run_plans(void *arg)
{
    const startup *s = arg;
    float *output = sp_malloc(MOST_ROWS * s->out_columns * sizeof(float));
    bench_check(output != NULL, "memory");
    for (int64_t plan = 0; plan < PLANS; plan++) {
        for (int run = 0; run < RUNS; run++) run_rows(s, rows_of(plan), output);
    }
    sp_free(output);
}

static void bench_plans(const startup *s, uint32_t callers)
{
    sp_thread threads[CALLERS];
    char when[64];
    snprintf(when, sizeof when, "%d plans, %u callers", PLANS, callers);
    const uint64_t begin = sp_clock_now();
    for (uint32_t i = 0; i < callers; i++) {
        bench_check(sp_thread_create(&threads[i], "caller", run_plans, (void *)(uintptr_t)s) ==
                        SP_OK,
                    "thread");
    }
    for (uint32_t i = 0; i < callers; i++) sp_thread_join(&threads[i]);
    printf("{\"case\":\"plans\",\"callers\":%u,\"ms\":%.1f}\n", callers, ms_since(begin));
    print_memory(s, when);
}

int main(int argc, char **argv)
{
    startup s = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: bench_startup MODEL, one of rows like torch_mlp\n");
        return 2;
    }
    bench_header("bench_startup");
    open_driver(&s);
    uint64_t begin = sp_clock_now();
    bench_check(sp_device_open("cuda:0", &s.device) == SP_OK, sp_last_error());
    const double open_ms = ms_since(begin);
    print_memory(&s, "open");
    const sp_model_options options = {.device = s.device};
    begin = sp_clock_now();
    bench_check(sp_model_load(argv[1], &options, &s.model) == SP_OK, sp_last_error());
    const double load_ms = ms_since(begin);
    find_columns(&s);
    float *output = sp_malloc(MOST_ROWS * s.out_columns * sizeof(float));
    bench_check(output != NULL, "memory");
    begin = sp_clock_now();
    run_rows(&s, 1, output);
    const double first_ms = ms_since(begin);
    begin = sp_clock_now();
    run_rows(&s, 1, output);
    printf("{\"case\":\"first\",\"open_ms\":%.1f,\"load_ms\":%.1f,\"first_run_ms\":%.2f,"
           "\"second_run_ms\":%.3f}\n",
           open_ms, load_ms, first_ms, ms_since(begin));
    print_memory(&s, "first run");
    for (int i = 0; i < 1000; i++) run_rows(&s, 1, output);
    print_memory(&s, "1000 runs");
    bench_shapes(&s, 1, output);
    bench_shapes(&s, 64, output);
    print_memory(&s, "128 shapes");
    s.wanted = sp_malloc(MOST_ROWS * s.out_columns * sizeof(float));
    bench_check(s.wanted != NULL, "memory");
    run_rows(&s, MOST_ROWS, s.wanted);
    bench_plans(&s, 1);
    bench_plans(&s, 8);
    bench_plans(&s, CALLERS);
    sp_model_release(s.model);
    print_memory(&s, "released");
    bench_check(sp_device_empty_cache(s.device) == SP_OK, sp_last_error());
    print_memory(&s, "emptied");
    return 0;
}
