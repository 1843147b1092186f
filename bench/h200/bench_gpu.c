/* SPDX-License-Identifier: Apache-2.0 */
/* Models on a GPU from 1, 8 and 31 threads, with a wait after each call, compared with the same
 * graphs launched on the bare driver from as many threads, each with its own stream. */
#include <streampool/device.h>
#include <streampool/model.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/mutex.h"
#include "bench_threads.h"
#include "device/cuda/cuda_device.h"
#include "device/wait.h"
#include "exec/model_object.h"
#include "runtime/current_stream.h"
#include "runtime/submit.h"
#include "runtime/submit_queue.h"

#define MAX_BYTES 262144
#define STREAMS 32

static const uint32_t points[] = {1, 8, 31};
#define POINTS 3

typedef struct gpu_case {
    const char *name;
    sp_device device;
    sp_model model;
    sp_host_tensor inputs[8];
    uint32_t input_count, output_count;
    uint64_t output_bytes[8], output_at[8]; /* in a thread's buffer, in floats */
    sp_plan_entry *entry;                   /* in use until the case ends */
    /* Streams of the bare driver, each with an event. */
    sp_cuda_device *gpu;
    CUstream streams[STREAMS];
    CUevent events[STREAMS];
    sp_atomic_u32 next_stream;
} gpu_case;

/* ---- streampool ---- */

static void run_model(void *ctx, uint64_t count)
{
    gpu_case *c = ctx;
    float *room = sp_malloc(MAX_BYTES);
    sp_host_tensor outputs[8];
    bench_check(room != NULL, "memory");
    for (uint64_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < c->output_count; k++) {
            outputs[k] =
                (sp_host_tensor){.data = room + c->output_at[k], .capacity = c->output_bytes[k]};
        }
        bench_check(sp_model_run(c->model, c->inputs, c->input_count, outputs, c->output_count) ==
                        SP_OK,
                    sp_last_error());
    }
    sp_free(room);
}

/* One thread, a wait every 32 submissions. */
static void submit_model(void *ctx, uint64_t count)
{
    gpu_case *c = ctx;
    sp_stream stream;
    sp_stream_ref ref;
    bench_check(sp_stream_current(c->device, &stream) == SP_OK, "stream");
    bench_check(sp__stream_find(stream, &ref) == SP_OK, "stream");
    sp_exec_context *context;
    bench_check(sp__exec_context_acquire(c->entry->executable, 0, true, &context) == SP_OK,
                "execution context");
    sp_queue *queues[SP_MAX_TARGETS] = {NULL};
    queues[SP_SEGMENT_MODEL] = ref.queue;
    sp_point point = {0};
    for (uint64_t i = 0; i < count; i++) {
        bench_check(sp__exec_context_submit_bound(context, queues, &point) == SP_OK, "submit");
        if (i % 32 == 31) bench_check(sp__point_wait(point, SP_NO_DEADLINE) == SP_OK, "wait");
    }
    bench_check(sp__point_wait(point, SP_NO_DEADLINE) == SP_OK, "wait");
    sp__wait_entry_resume(sp__exec_context_release(context));
}

/* ---- the bare driver ---- */

typedef enum bare_wait { BARE_SYNCHRONIZE, BARE_QUERY, BARE_EVERY_32 } bare_wait;

static void wait_bare(CUstream stream, CUevent event, bare_wait how)
{
    if (how != BARE_QUERY) {
        bench_check(sp__cuda_api.cuStreamSynchronize(stream) == CUDA_SUCCESS, "synchronize");
        return;
    }
    bench_check(sp__cuda_api.cuEventRecord(event, stream) == CUDA_SUCCESS, "record");
    while (sp__cuda_api.cuEventQuery(event) == CUDA_ERROR_NOT_READY) sp_spin_hint();
}

/* A run over a workspace, whose address the context's graph has from then on. */
static void bind_workspace(const sp_exec_context *context)
{
    sp_rt_device *device = sp__executable_device(context->executable);
    sp_queue *queues[SP_MAX_TARGETS] = {NULL};
    const uint32_t index = sp__submit_queue_acquire(device);
    sp__executable_queues(context->executable, index, queues);
    bench_check(sp__exec_context_run_bound(context, queues) == SP_OK, sp_last_error());
    sp__submit_queue_release(device, index);
}

static void run_bare(gpu_case *c, uint64_t count, bare_wait how)
{
    sp_exec_context *context;
    bench_check(sp__exec_context_acquire(c->entry->executable, 0, true, &context) == SP_OK,
                "execution context");
    if (context->workspace != NULL) bind_workspace(context);
    const sp_list *list = context->lists[0];
    const uint32_t entry = sp_fetch_add_relaxed(&c->next_stream, 1) % STREAMS;
    sp__cuda_enter(c->gpu);
    for (uint64_t i = 0; i < count; i++) {
        bench_check(sp__cuda_list_launch(list, c->streams[entry]) == CUDA_SUCCESS, "launch");
        if (how != BARE_EVERY_32 || i % 32 == 31) {
            wait_bare(c->streams[entry], c->events[entry], how);
        }
    }
    wait_bare(c->streams[entry], c->events[entry], BARE_SYNCHRONIZE); /* no pending work remains */
    sp__cuda_leave();
    sp__wait_entry_resume(sp__exec_context_release(context));
}

static void run_bare_synchronize(void *ctx, uint64_t count)
{
    run_bare(ctx, count, BARE_SYNCHRONIZE);
}

static void run_bare_query(void *ctx, uint64_t count)
{
    run_bare(ctx, count, BARE_QUERY);
}

static void run_bare_32(void *ctx, uint64_t count)
{
    run_bare(ctx, count, BARE_EVERY_32);
}

/* ---- tracking ---- */

typedef struct fill_case {
    sp_device device;
    bool is_untracked;
} fill_case;

/* A fill and a copy between two storages of the thread, on its stream, then a wait. */
static void fill_and_copy(void *ctx, uint64_t count)
{
    const fill_case *c = ctx;
    const sp_storage_options options = {.is_untracked = c->is_untracked};
    const uint32_t pattern = 7;
    sp_stream stream;
    sp_storage a, b;
    bench_check(sp_stream_current(c->device, &stream) == SP_OK, "stream");
    bench_check(sp_storage_create(c->device, 4096, &options, &a) == SP_OK, "storage");
    bench_check(sp_storage_create(c->device, 4096, &options, &b) == SP_OK, "storage");
    const sp_storage_range from = {.storage = a, .bytes = 4096};
    const sp_storage_range to = {.storage = b, .bytes = 4096};
    for (uint64_t i = 0; i < count; i++) {
        bench_check(sp_storage_fill_async(stream, from, &pattern, 4) == SP_OK, "fill");
        bench_check(sp_storage_copy_async(stream, to, from) == SP_OK, "copy");
        bench_check(sp_stream_synchronize(stream) == SP_OK, "synchronize");
    }
    sp_storage_release(a);
    sp_storage_release(b);
}

static void bench_tracking(sp_device device)
{
    bench_figure tracked[POINTS], untracked[POINTS];
    fill_case with = {.device = device};
    fill_case without = {.device = device, .is_untracked = true};
    const bench_side sides[] = {{fill_and_copy, &with, tracked},
                                {fill_and_copy, &without, untracked}};
    bench_threads(sides, SP_COUNT_OF(sides), points, POINTS);
    for (uint32_t i = 0; i < POINTS; i++) {
        bench_print_threads("fill_copy_wait_tracked", points[i], &tracked[i], "untracked",
                            untracked[i].median, 0.95);
    }
}

/* ---- cases ---- */

static void open_streams(gpu_case *c)
{
    sp_rt_device *device;
    bench_check(sp__rt_device_find(c->device, &device) == SP_OK, "device");
    c->gpu = sp__cuda_device(device->dev);
    sp__cuda_enter(c->gpu);
    for (int i = 0; i < STREAMS; i++) {
        bench_check(SP_CUDA(cuStreamCreate)(&c->streams[i], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS,
                    "stream");
        bench_check(SP_CUDA(cuEventCreate)(&c->events[i], CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS,
                    "event");
    }
    sp__cuda_leave();
}

static void close_streams(const gpu_case *c)
{
    sp__cuda_enter(c->gpu);
    for (int i = 0; i < STREAMS; i++) {
        SP_CUDA(cuStreamDestroy)(c->streams[i]);
        SP_CUDA(cuEventDestroy)(c->events[i]);
    }
    sp__cuda_leave();
}

static bool open_case(gpu_case *c, const char *data)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/models/%s/model.onnx", data, c->name);
    const sp_model_options options = {.device = c->device};
    if (sp_model_load(path, &options, &c->model) != SP_OK) {
        fprintf(stderr, "%s: skipped: %s\n", c->name, sp_last_error());
        return false;
    }
    sp_model_info info;
    sp_host_tensor outputs[8] = {0};
    sp_plan_input plan_inputs[8] = {0};
    static float values[8][MAX_BYTES / 4];
    bench_check(sp_model_get_info(c->model, &info) == SP_OK, "info");
    c->input_count = info.input_count;
    c->output_count = info.output_count;
    for (uint32_t i = 0; i < c->input_count; i++) {
        sp_port port;
        bench_check(sp_model_get_input(c->model, i, &port) == SP_OK, "input");
        sp_host_tensor *input = &c->inputs[i];
        *input = (sp_host_tensor){.data = values[i], .dtype = port.dtype, .rank = port.rank};
        input->bytes = sizeof(float);
        for (uint32_t k = 0; k < port.rank; k++) {
            input->shape[k] = port.shape[k] > 0 ? port.shape[k] : 1;
            /* A Linear is usually measured with a batch of 4. */
            if (k == 0 && strcmp(c->name, "torch_linear") == 0) input->shape[k] = 4;
            input->bytes *= (uint64_t)input->shape[k];
        }
        plan_inputs[i].dtype = port.dtype;
        plan_inputs[i].shape.rank = port.rank;
        memcpy(plan_inputs[i].shape.dims, input->shape, port.rank * sizeof(int64_t));
    }
    bench_check(sp_model_infer(c->model, c->inputs, c->input_count, outputs, c->output_count) ==
                    SP_OK,
                sp_last_error());
    uint64_t next = 0;
    for (uint32_t i = 0; i < c->output_count; i++) {
        c->output_bytes[i] = outputs[i].bytes;
        c->output_at[i] = next;
        next += outputs[i].bytes / sizeof(float);
    }
    bench_check(next * sizeof(float) <= MAX_BYTES, "outputs are larger than their room");
    const sp_plan_request request = {.inputs = plan_inputs, .input_count = c->input_count};
    sp_rt_model *model = sp__model_hold(c->model);
    bench_check(sp__plan_cache_acquire(&model->plans, &request, true, &c->entry) == SP_OK, "plan");
    sp__model_drop(model);
    return true;
}

static void print_points(const gpu_case *c, const char *what, const bench_figure *figures,
                         const bench_figure *bare, double wanted)
{
    char name[128];
    snprintf(name, sizeof name, "%s_%s", c->name, what);
    for (uint32_t i = 0; i < POINTS; i++) {
        bench_print_threads(name, points[i], &figures[i], bare != NULL ? "bare driver" : NULL,
                            bare != NULL ? bare[i].median : 0, wanted);
    }
}

static void bench_case(gpu_case *c, double wanted)
{
    bench_figure ours[POINTS], synchronize[POINTS], query[POINTS], best[POINTS];
    open_streams(c);
    const bench_side sides[] = {
        {run_bare_synchronize, c, synchronize}, {run_model, c, ours}, {run_bare_query, c, query}};
    bench_threads(sides, SP_COUNT_OF(sides), points, POINTS);
    for (uint32_t i = 0; i < POINTS; i++) {
        best[i] = synchronize[i].median < query[i].median ? synchronize[i] : query[i];
    }
    print_points(c, "bare_synchronize", synchronize, NULL, 0);
    print_points(c, "bare_query", query, NULL, 0);
    print_points(c, "run", ours, best, wanted);
    const bench_pair pair = bench_pair_ns(submit_model, run_bare_32, c);
    char name[128];
    snprintf(name, sizeof name, "%s_submit_wait_every_32", c->name);
    bench_print(name, &pair.ours, "bare driver", pair.peer.median, pair.peer.median / wanted);
    close_streams(c);
    sp_rt_model *model = sp__model_hold(c->model);
    sp__plan_cache_release(&model->plans, c->entry);
    sp__model_drop(model);
    sp_model_release(c->model);
}

int main(int argc, char **argv)
{
    bench_header("bench_gpu");
    sp_device device;
    if (argc < 2 || sp_device_open("cuda:0", &device) != SP_OK) {
        fprintf(stderr, "usage: bench_gpu DATA (needs a GPU: %s)\n", sp_last_error());
        return 1;
    }
    bench_tracking(device);
    static const struct {
        const char *name;
        double wanted; /* of the bare driver's throughput */
    } cases[] = {{"torch_linear", 0.85},
                 {"torch_mlp", 0.85},
                 {"policy_go1", 0.80},
                 {"policy_g1", 0.80},
                 {"blazeface_front_128", 0.80}};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        static gpu_case c;
        c = (gpu_case){.name = cases[i].name, .device = device};
        if (open_case(&c, argv[1])) bench_case(&c, cases[i].wanted);
    }
    return 0;
}
