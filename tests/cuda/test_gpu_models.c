/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: the six models give the CPU's bits from any number of threads, and in the steady state
 * the only driver calls are launches. Skipped without a GPU. */
#include <streampool/device.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/option.h"
#include "base/thread.h"
#include "batch/batch_builder.h"
#include "device/cuda/cuda_api.h"
#include "run_fixture.h"

static bool open_gpu(sp_device *out)
{
    return sp_device_open("cuda:0", out) == SP_OK;
}

/* The cpu's outputs are the expected outputs of the runs on the GPU. */
static bool open_on_gpu(const char *name, sp_device device, model_case *out)
{
    model_case cpu;
    if (!case_open(name, NULL, &cpu)) return false;
    const sp_model_options options = {.device = device};
    if (!case_open(name, &options, out)) {
        case_close(&cpu);
        return false;
    }
    CHECK(case_is_same(&cpu, out->outputs));
    if (!case_is_same(&cpu, out->outputs)) test_note("%s differs from the cpu", name);
    case_close(&cpu);
    return true;
}

TEST(models_from_31_threads_give_the_bits_of_the_cpu)
{
    sp_device device;
    if (!open_gpu(&device)) SKIP("no GPU");
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        model_case c;
        if (!open_on_gpu(fixture_models[i], device, &c)) SKIP("no shared data");
        case_load l = {.c = &c, .rounds = (uint32_t)test_count(10000, 1000)};
        test_threads(31, case_run_rounds, &l);
        CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
        sp_model_info info;
        CHECK_OK(sp_model_get_info(c.model, &info));
        test_note("%s: %llu runs, at most %u at once, %u contexts", fixture_models[i],
                  (unsigned long long)info.runs, info.most_in_flight, info.context_count);
        case_close(&c);
    }
}

/* Sets the ops that run on the cpu, from the next model on. */
static void set_cpu_ops(const char *ops)
{
    setenv("STREAMPOOL_CPU_OPS", ops, 1);
    sp__option_reset();
}

TEST(models_in_segments_give_the_bits_of_the_cpu_too)
{
    static const char *const sets[] = {"Tanh,Relu,Split", "Conv,Gemm,MatMul", "Add,Concat,Pad"};
    sp_device device;
    if (!open_gpu(&device)) SKIP("no GPU");
    for (uint32_t i = 0; i < FIXTURE_MODELS * SP_COUNT_OF(sets); i++) {
        const char *name = fixture_models[i % FIXTURE_MODELS];
        const char *ops = sets[i / FIXTURE_MODELS];
        model_case c;
        set_cpu_ops(ops);
        const bool is_there = open_on_gpu(name, device, &c);
        set_cpu_ops("");
        if (!is_there) SKIP("no shared data");
        case_load l = {.c = &c, .rounds = (uint32_t)test_count(1000, 100)};
        const uint64_t start = sp_clock_now();
        test_threads(31, case_run_rounds, &l);
        const double ns = (double)(sp_clock_now() - start);
        CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
        sp_model_info info;
        CHECK_OK(sp_model_get_info(c.model, &info));
        if (info.cpu_step_count > 0) {
            test_note("%s, %s on cpu: %u of %u steps, %u segments, %.0f runs/s", name, ops,
                      info.cpu_step_count, info.step_count, info.segment_count,
                      31e9 * l.rounds / ns);
        }
        case_close(&c);
    }
}

/* Driver calls that a run after the first must not make. */
static const sp_cuda_call costly[] = {
    SP_CUDA_CALL_cuMemAlloc,         SP_CUDA_CALL_cuMemHostAlloc,   SP_CUDA_CALL_cuMemFree,
    SP_CUDA_CALL_cuMemFreeHost,      SP_CUDA_CALL_cuModuleLoadData, SP_CUDA_CALL_cuEventCreate,
    SP_CUDA_CALL_cuEventDestroy,     SP_CUDA_CALL_cuGraphCreate,    SP_CUDA_CALL_cuGraphInstantiate,
    SP_CUDA_CALL_cuStreamCreate,     SP_CUDA_CALL_cuLaunchKernel,   SP_CUDA_CALL_cuMemcpyAsync,
    SP_CUDA_CALL_cuStreamSynchronize};

TEST(after_the_first_run_the_driver_only_launches)
{
    sp_device device;
    if (!open_gpu(&device)) SKIP("no GPU");
    sp__batch_builder_drain(); /* larger plans, for the threads of other tests */
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        model_case c;
        if (!open_on_gpu(fixture_models[i], device, &c)) SKIP("no shared data");
        case_load l = {.c = &c, .rounds = 1};
        case_run_rounds(&l, 0);
        uint64_t before[SP_COUNT_OF(costly)];
        for (size_t k = 0; k < SP_COUNT_OF(costly); k++) {
            before[k] = sp__cuda_call_count(costly[k]);
        }
        const uint64_t launches = sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch);
        l.rounds = 999;
        case_run_rounds(&l, 0);
        for (size_t k = 0; k < SP_COUNT_OF(costly); k++) {
            CHECK_EQ_U64(sp__cuda_call_count(costly[k]), before[k]);
        }
        CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch), launches + 999);
        case_close(&c);
    }
}

/* ---- graph creation during runs ---- */

typedef struct busy {
    sp_device device;
    sp_atomic_u32 is_over;
    sp_atomic_u64 rounds;
} busy;

/* Allocates, frees and synchronises until the others have created their graphs. */
static void allocate_and_wait(void *arg, uint32_t index)
{
    busy *b = arg;
    sp_stream stream;
    CHECK_OK(sp_stream_current(b->device, &stream));
    for (uint64_t i = 0; sp_load_relaxed(&b->is_over) == 0; i++) {
        const uint64_t bytes = (uint64_t)4096 << (i + index) % 8;
        const uint32_t pattern = index;
        sp_storage storage;
        CHECK_OK(sp_storage_create(b->device, bytes, NULL, &storage));
        const sp_storage_range range = {.storage = storage, .bytes = bytes};
        CHECK_OK(sp_storage_fill_async(stream, range, &pattern, sizeof pattern));
        CHECK_OK(sp_storage_release(storage));
        if (i % 4 == 3) CHECK_OK(sp_stream_synchronize(stream));
        if (i % 64 == 63) CHECK_OK(sp_device_empty_cache(b->device));
        sp_fetch_add_relaxed(&b->rounds, (uint64_t)1);
    }
    CHECK_OK(sp_stream_synchronize(stream));
}

static void load_run_and_release(void *arg, uint32_t index)
{
    const busy *b = arg;
    for (uint32_t i = 0; i < test_count(200, 10); i++) {
        model_case c;
        if (open_on_gpu(fixture_models[(index + i) % FIXTURE_MODELS], b->device, &c))
            case_close(&c);
    }
}

static void work_beside(void *arg, uint32_t index)
{
    busy *b = arg;
    if (index < 4) {
        load_run_and_release(b, index);
        if (index == 0) sp_store_relaxed(&b->is_over, 1);
    } else {
        allocate_and_wait(b, index);
    }
}

TEST(graphs_are_made_while_others_allocate_free_and_wait)
{
    busy b = {0};
    if (!open_gpu(&b.device)) SKIP("no GPU");
    test_threads(12, work_beside, &b);
    test_note("%llu allocations beside", (unsigned long long)sp_load_relaxed(&b.rounds));
    CHECK(sp_load_relaxed(&b.rounds) > 0);
}

TEST_MAIN
