/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of a GPU, on the fake driver: closed during each driver call that creates or destroys,
 * and passed by each thread that issues. */
#include "device/cuda/cuda_device.h"
#include "exec/model_object.h"
#include "fake_cuda.h"
#include "segment_fixture.h"

static sp_gpu_gate *the_gate; /* of the test's device */
static sp_atomic_u32 left_open[SP_CUDA_CALL_COUNT], seen[SP_CUDA_CALL_COUNT];

static sp_gpu_gate *gate_of(sp_model handle)
{
    sp_rt_model *model = sp__model_hold(handle);
    sp_gpu_gate *found = &sp__cuda_device(model->device->dev)->gpu.gate;
    sp__model_drop(model);
    return found;
}

static void note_call(sp_cuda_call call)
{
    sp_fetch_add_relaxed(&seen[call], 1);
    if (sp_load_relaxed(&the_gate->closers) == 0) sp_fetch_add_relaxed(&left_open[call], 1);
}

static const sp_cuda_call closing[] = {
    SP_CUDA_CALL_cuMemAlloc,     SP_CUDA_CALL_cuMemFree,          SP_CUDA_CALL_cuMemHostAlloc,
    SP_CUDA_CALL_cuMemFreeHost,  SP_CUDA_CALL_cuModuleLoadData,   SP_CUDA_CALL_cuStreamCreate,
    SP_CUDA_CALL_cuEventCreate,  SP_CUDA_CALL_cuGraphInstantiate, SP_CUDA_CALL_cuGraphUpload,
    SP_CUDA_CALL_cuGraphDestroy, SP_CUDA_CALL_cuGraphExecDestroy,
};

TEST(calls_that_create_or_destroy_close_the_gate)
{
    const sp_device device = segment_begin();
    const sp_model_options options = {.device = device};
    sp_model model = small_model(&options);
    the_gate = gate_of(model);
    fake_cuda_observe(note_call);
    sp_stream stream;
    CHECK_OK(sp_stream_from_pool(device, &stream));
    const small_row first = small_run(model);
    CHECK_OK(sp_model_release(model));
    model = small_model(&options);
    const small_row second = small_run(model);
    CHECK(small_is_same(&first, &second));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_device_empty_cache(device));
    fake_cuda_observe(NULL);
    for (size_t i = 0; i < SP_COUNT_OF(closing); i++) {
        CHECK(sp_load_relaxed(&seen[closing[i]]) > 0);
        CHECK_EQ_U64(sp_load_relaxed(&left_open[closing[i]]), 0);
    }
    CHECK(sp_load_relaxed(&left_open[SP_CUDA_CALL_cuGraphLaunch]) > 0);
    segment_end();
}

typedef struct late_run {
    sp_model model;
    small_row row;
} late_run;

static void run_late(void *arg)
{
    late_run *run = arg;
    run->row = small_run(run->model);
}

TEST(a_thread_that_issues_waits_for_one_call)
{
    const sp_device device = segment_begin();
    late_run run = {.model = small_model(&(sp_model_options){.device = device})};
    const small_row wanted = small_run(run.model);
    the_gate = gate_of(run.model);
    const uint64_t launches = sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch);
    sp__gpu_gate_close(the_gate);
    sp__gpu_gate_close(the_gate);
    sp_thread thread;
    REQUIRE_OK(sp_thread_create(&thread, "late", run_late, &run));
    while (sp__gpu_gate_waiting(the_gate) == 0) sp_thread_yield();
    CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch), launches);
    sp__gpu_gate_open(the_gate); /* the other call goes on */
    while (sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch) == launches) sp_thread_yield();
    sp__gpu_gate_open(the_gate);
    sp_thread_join(&thread);
    CHECK(small_is_same(&run.row, &wanted));
    CHECK_EQ_U64(sp__gpu_gate_waiting(the_gate), 0);
    CHECK_OK(sp_model_release(run.model));
    segment_end();
}

TEST_MAIN
