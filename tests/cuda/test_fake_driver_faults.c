/* SPDX-License-Identifier: Apache-2.0 */
/* Injected failures and full streams of the fake driver; commands queued on a destroyed stream. */
#include "fake_cuda.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread.h"
#include "fake_driver_fixture.h"
#include "support/test.h"

TEST(a_failed_kernel_fails_its_context_and_no_other)
{
    fixture f;
    fixture_begin(&f);
    CUevent event = NULL;
    CUdeviceptr memory = 0;
    uint32_t word = 1;
    REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    REQUIRE_CUDA(cuMemAlloc_v2(&memory, 16));
    CHECK_CUDA(cuLaunchKernel(f.fail, 1, 1, 1, 1, 1, 1, 0, f.a, NULL, NULL), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamSynchronize(f.a), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_CUDA(launch_kernel(f.add, f.b, &word, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_CUDA(cuStreamSynchronize(f.b), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQ_U64(word, 1);
    CHECK_CUDA(cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_CUDA(cuMemFree_v2(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_CUDA(cuEventDestroy_v2(event), CUDA_ERROR_ILLEGAL_ADDRESS);
    fixture_unload(&f, CUDA_ERROR_ILLEGAL_ADDRESS);
    CUcontext other = NULL;
    CHECK_CUDA(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    CHECK_CUDA(cuCtxPushCurrent_v2(other), CUDA_SUCCESS);
    CHECK_CUDA(cuMemAlloc_v2(&memory, 16), CUDA_SUCCESS);
    CHECK_CUDA(cuMemFree_v2(memory), CUDA_SUCCESS);
    CHECK_CUDA(cuCtxPopCurrent_v2(NULL), CUDA_SUCCESS);
    CHECK_CUDA(cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
    fixture_end_failed(&f, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(the_nth_kernel_fails_on_request_and_what_is_queued_behind_it_is_dropped)
{
    fixture f;
    fixture_begin(&f);
    CUevent event = NULL;
    uint32_t word = 0;
    REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    fake_cuda_hold(true);
    fake_cuda_fail_kernel(3, CUDA_ERROR_LAUNCH_FAILED);
    for (int i = 0; i < 5; i++) CHECK_CUDA(launch_kernel(f.add, f.a, &word, 1), CUDA_SUCCESS);
    CHECK_CUDA(cuEventRecord(event, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    fake_cuda_hold(false);
    CHECK_CUDA(cuEventSynchronize(event), CUDA_ERROR_LAUNCH_FAILED);
    CHECK_EQ_U64(word, 2);
    CHECK_CUDA(cuEventDestroy_v2(event), CUDA_ERROR_LAUNCH_FAILED);
    fixture_end_failed(&f, CUDA_ERROR_LAUNCH_FAILED);
}

TEST(the_nth_call_of_a_function_fails_on_request)
{
    fixture f;
    fixture_begin(&f);
    CUevent events[4] = {NULL};
    fake_cuda_fail_call("cuEventCreate", 2, 2, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_CUDA(cuEventCreate(&events[0], 0), CUDA_SUCCESS);
    CHECK_CUDA(cuEventCreate(&events[1], 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_CUDA(cuEventCreate(&events[2], 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_CUDA(cuEventCreate(&events[3], 0), CUDA_SUCCESS);
    CHECK(events[1] == NULL && events[2] == NULL);
    CHECK_EQ_U64(fake_cuda_live(FAKE_EVENT), 2);
    CHECK_CUDA(cuEventDestroy_v2(events[0]), CUDA_SUCCESS);
    CHECK_CUDA(cuEventDestroy_v2(events[3]), CUDA_SUCCESS);
    fixture_end(&f);
}

typedef struct blocked {
    fixture f;
    uint32_t words[8];
    sp_atomic_u32 pushed;
} blocked;

static void push_or_release(void *arg, uint32_t index)
{
    blocked *self = arg;
    if (index == 0) {
        CHECK_CUDA(cuCtxPushCurrent_v2(self->f.context), CUDA_SUCCESS);
        for (uint32_t i = 0; i < 8; i++) {
            CHECK_CUDA(cuMemsetD32Async((uintptr_t)&self->words[i], i, 1, self->f.a), CUDA_SUCCESS);
            sp_fetch_add_relaxed(&self->pushed, 1);
        }
        CHECK_CUDA(cuCtxPopCurrent_v2(NULL), CUDA_SUCCESS);
        return;
    }
    while (sp_load_relaxed(&self->pushed) < 4) sp_thread_yield();
    sp_clock_sleep(5000000);
    CHECK_EQ_U64(sp_load_relaxed(&self->pushed), 4);
    fake_cuda_hold(false);
}

TEST(a_full_stream_blocks_whoever_adds_to_it)
{
    blocked self = {.pushed = {0}};
    fixture_begin(&self.f);
    fake_cuda_set_queue_limit(4);
    fake_cuda_hold(true);
    test_threads(2, push_or_release, &self);
    CHECK_CUDA(cuStreamSynchronize(self.f.a), CUDA_SUCCESS);
    for (uint32_t i = 0; i < 8; i++) CHECK_EQ_U64(self.words[i], i);
    fixture_end(&self.f);
}

TEST(a_destroyed_stream_runs_what_was_queued)
{
    fixture f;
    fixture_begin(&f);
    CUstream stream = NULL;
    uint32_t word = 0;
    REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    fake_cuda_hold(true);
    CHECK_CUDA(cuMemsetD32Async((uintptr_t)&word, 7, 1, stream), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    fake_cuda_hold(false);
    fake_cuda_drain();
    CHECK_EQ_U64(word, 7);
    fixture_end(&f);
}

TEST_MAIN
