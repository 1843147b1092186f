/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver behaves as a driver: memory, streams, events, kernels. */
#include "fake_cuda.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread.h"
#include "fake_driver_fixture.h"
#include "support/test.h"

TEST(calls_want_initialisation_a_context_and_a_stream)
{
    CUcontext context = NULL;
    CUdeviceptr address = 0;
    CHECK_CUDA(cuDevicePrimaryCtxRetain(&context, 0), FAKE_ERROR_NOT_INITIALIZED);
    fixture f;
    fixture_begin(&f);
    int count = 0;
    CHECK_CUDA(cuDeviceGetCount(&count), CUDA_SUCCESS);
    CHECK_EQ_INT(count, FAKE_DEVICES);
    CHECK_CUDA(cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
    CHECK(context == f.context);
    CHECK_CUDA(cuCtxPopCurrent_v2(&context), FAKE_ERROR_INVALID_CONTEXT);
    CHECK_CUDA(cuMemAlloc_v2(&address, 64), FAKE_ERROR_INVALID_CONTEXT);
    CHECK_CUDA(cuStreamSynchronize(f.a), FAKE_ERROR_INVALID_CONTEXT);
    CHECK_CUDA(cuCtxPushCurrent_v2(f.context), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamSynchronize(NULL), FAKE_ERROR_INVALID_HANDLE);
    CUcontext other = NULL;
    CHECK_CUDA(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    CHECK_CUDA(cuCtxPushCurrent_v2(other), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamSynchronize(f.a), FAKE_ERROR_INVALID_HANDLE);
    CHECK_CUDA(cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
    CHECK(context == other);
    CHECK_CUDA(cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
    CHECK_CUDA(cuDevicePrimaryCtxRelease_v2(1), FAKE_ERROR_INVALID_CONTEXT);
    fixture_end(&f);
}

TEST(memory_is_counted_and_only_its_start_frees_it)
{
    fixture f;
    fixture_begin(&f);
    CUdeviceptr device = 0;
    void *pinned = NULL;
    char registered[64];
    CHECK_CUDA(cuMemAlloc_v2(&device, 1000), CUDA_SUCCESS);
    CHECK_CUDA(cuMemHostAlloc(&pinned, 1000, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
    CHECK_CUDA(cuMemHostRegister_v2(registered, sizeof registered, 1), CUDA_SUCCESS);
    CHECK_EQ_U64(device % 256, 0);
    CHECK_EQ_U64(fake_cuda_live(FAKE_DEVICE_MEMORY), 1);
    CHECK_EQ_U64(fake_cuda_live(FAKE_PINNED_MEMORY), 1);
    CHECK_EQ_U64(fake_cuda_live(FAKE_REGISTERED_MEMORY), 1);
    CHECK_CUDA(cuMemFree_v2(device + 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_CUDA(cuMemFree_v2((uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
    CHECK_CUDA(cuMemFreeHost(pinned), CUDA_SUCCESS);
    CHECK_CUDA(cuMemHostUnregister(registered + 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_CUDA(cuMemHostUnregister(registered), CUDA_SUCCESS);
    CHECK_CUDA(cuMemFree_v2(device), CUDA_SUCCESS);
    CHECK_CUDA(cuMemFree_v2(device), CUDA_ERROR_INVALID_VALUE);
    CHECK_CUDA(cuMemAlloc_v2(&device, FAKE_MEMORY_BYTES + 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_CUDA(cuMemAlloc_v2(&device, 0), CUDA_ERROR_INVALID_VALUE);
    fixture_end(&f);
}

TEST(a_pointer_has_the_attributes_of_its_allocation)
{
    fixture f;
    fixture_begin(&f);
    CUdeviceptr device = 0, start = 0;
    void *pinned = NULL;
    unsigned int type = 0;
    int ordinal = -1;
    size_t bytes = 0;
    REQUIRE_CUDA(cuMemAlloc_v2(&device, 1000));
    REQUIRE_CUDA(cuMemHostAlloc(&pinned, 10, CU_MEMHOSTALLOC_PORTABLE));
    const CUdeviceptr inside = device + 999;
    CHECK_CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside),
               CUDA_SUCCESS);
    CHECK_EQ_INT(type, CU_MEMORYTYPE_DEVICE);
    CHECK_CUDA(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside),
               CUDA_SUCCESS);
    CHECK_EQ_INT(ordinal, 0);
    CHECK_CUDA(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside),
               CUDA_SUCCESS);
    CHECK_EQ_U64(start, device);
    CHECK_CUDA(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside),
               CUDA_SUCCESS);
    CHECK_EQ_U64(bytes, 1000);
    CHECK_CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)pinned),
               CUDA_SUCCESS);
    CHECK_EQ_INT(type, CU_MEMORYTYPE_HOST);
    CHECK_CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&type),
               CUDA_ERROR_INVALID_VALUE);
    CHECK_CUDA(cuPointerGetAttribute(&type, 77, inside), CUDA_ERROR_INVALID_VALUE);
    CHECK_CUDA(cuMemFreeHost(pinned), CUDA_SUCCESS);
    CHECK_CUDA(cuMemFree_v2(device), CUDA_SUCCESS);
    fixture_end(&f);
}

TEST(a_stream_runs_fills_and_copies_in_order)
{
    fixture f;
    fixture_begin(&f);
    uint8_t bytes[64] = {0};
    uint8_t copy[64] = {0};
    const CUdeviceptr target = (uintptr_t)bytes;
    CHECK_CUDA(cuMemsetD8Async(target, 1, 64, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuMemsetD16Async(target + 2, 0x0302, 2, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuMemsetD32Async(target + 8, 0x07060504, 1, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuMemsetD2D32Async(target + 16, 16, 0x09090909, 2, 2, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuMemcpyAsync((uintptr_t)copy, target, 64, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuMemsetD8Async(target, 0, 64, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuMemsetD16Async(target + 1, 1, 1, f.a), CUDA_ERROR_INVALID_VALUE);
    CHECK_CUDA(cuStreamSynchronize(f.a), CUDA_SUCCESS);
    const uint8_t expected[64] = {1, 1, 2, 3, 2, 3, 1, 1, 4, 5, 6, 7, 1, 1, 1, 1, //
                                  9, 9, 9, 9, 9, 9, 9, 9, 1, 1, 1, 1, 1, 1, 1, 1, //
                                  9, 9, 9, 9, 9, 9, 9, 9, 1, 1, 1, 1, 1, 1, 1, 1, //
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    CHECK_EQ_MEM(copy, expected, sizeof copy);
    CHECK_EQ_INT(bytes[0], 0);
    fixture_end(&f);
}

TEST(a_launch_copies_its_parameters_and_runs_later)
{
    fixture f;
    fixture_begin(&f);
    uint32_t word = 1;
    {
        uint32_t *target = &word;
        uint32_t number = 5;
        void *params[] = {&target, &number};
        fake_cuda_hold(true);
        CHECK_CUDA(cuLaunchKernel(f.add, 3, 1, 1, 32, 1, 1, 0, f.a, params, NULL), CUDA_SUCCESS);
        CHECK_CUDA(cuLaunchKernel(f.add, 0, 1, 1, 32, 1, 1, 0, f.a, params, NULL),
                   CUDA_ERROR_INVALID_VALUE);
        CHECK_CUDA(cuLaunchKernel(f.add, 1, 1, 1, 1025, 1, 1, 0, f.a, params, NULL),
                   CUDA_ERROR_INVALID_VALUE);
        number = 0;
        target = NULL;
    }
    CHECK_EQ_U64(word, 1);
    fake_cuda_hold(false);
    CHECK_CUDA(cuStreamSynchronize(f.a), CUDA_SUCCESS);
    CHECK_EQ_U64(word, 16);
    fixture_end(&f);
}

TEST(modules_know_their_entries_and_other_images_are_refused)
{
    fixture f;
    fixture_begin(&f);
    CUfunction function = NULL;
    CHECK_CUDA(cuModuleGetFunction(&function, f.module, "other"), FAKE_ERROR_NOT_FOUND);
    CUmodule module = NULL;
    CHECK_CUDA(cuModuleLoadData(&module, "\177ELF"), CUDA_ERROR_INVALID_IMAGE);
    CHECK_CUDA(cuModuleLoadData(&module, "FAKE\nunregistered 8\n"), CUDA_SUCCESS);
    CHECK_CUDA(cuModuleGetFunction(&function, module, "unregistered"), FAKE_ERROR_NOT_FOUND);
    CHECK_EQ_U64(fake_cuda_live(FAKE_MODULE), 2);
    CHECK_CUDA(cuModuleUnload(module), CUDA_SUCCESS);
    fixture_end(&f);
}

TEST(an_event_is_ready_when_its_stream_has_come_there)
{
    fixture f;
    fixture_begin(&f);
    CUevent first = NULL;
    CUevent second = NULL;
    float ms = -1;
    uint32_t word = 0;
    REQUIRE_CUDA(cuEventCreate(&first, CU_EVENT_DEFAULT));
    REQUIRE_CUDA(cuEventCreate(&second, CU_EVENT_DEFAULT));
    CHECK_CUDA(cuEventQuery(first), CUDA_SUCCESS);
    CHECK_CUDA(cuEventElapsedTime(&ms, first, second), FAKE_ERROR_INVALID_HANDLE);
    fake_cuda_hold(true);
    CHECK_CUDA(cuEventRecord(first, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuMemsetD32Async((uintptr_t)&word, 7, 1, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuEventRecord(second, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuEventQuery(second), CUDA_ERROR_NOT_READY);
    CHECK_CUDA(cuEventElapsedTime(&ms, first, second), CUDA_ERROR_NOT_READY);
    fake_cuda_set_delay(1000000);
    fake_cuda_hold(false);
    while (cuEventQuery(second) == CUDA_ERROR_NOT_READY) sp_thread_yield();
    CHECK_EQ_U64(word, 7); /* plain: the query orders it */
    CHECK_CUDA(cuEventSynchronize(second), CUDA_SUCCESS);
    CHECK_CUDA(cuEventElapsedTime(&ms, first, second), CUDA_SUCCESS);
    CHECK(ms >= 1.0F);
    CHECK_CUDA(cuEventDestroy_v2(first), CUDA_SUCCESS);
    CHECK_CUDA(cuEventDestroy_v2(second), CUDA_SUCCESS);
    fixture_end(&f);
}

TEST(an_event_may_be_destroyed_before_it_is_reached)
{
    fixture f;
    fixture_begin(&f);
    CUevent event = NULL;
    uint32_t word = 0;
    fake_cuda_hold(true);
    REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK_CUDA(cuMemsetD32Async((uintptr_t)&word, 7, 1, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuEventRecord(event, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamWaitEvent(f.b, event, 0), CUDA_SUCCESS);
    CHECK_CUDA(cuEventDestroy_v2(event), CUDA_SUCCESS);
    fake_cuda_hold(false);
    CHECK_CUDA(cuStreamSynchronize(f.b), CUDA_SUCCESS);
    CHECK_EQ_U64(word, 7);
    fixture_end(&f);
}

/* Stream a is blocked until `flag`; b must run although it waits for an event that was recorded
 * before, and is recorded again behind the blocked kernel. */
TEST(a_wait_is_for_the_record_that_was_the_last_when_it_was_called)
{
    fixture f;
    fixture_begin(&f);
    CUevent event = NULL;
    sp_atomic_u32 flag = {0};
    uint32_t word = 0;
    REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK_CUDA(cuStreamWaitEvent(f.b, event, 0), CUDA_SUCCESS); /* never recorded */
    CHECK_CUDA(cuStreamSynchronize(f.b), CUDA_SUCCESS);
    CHECK_CUDA(cuMemsetD32Async((uintptr_t)&word, 7, 1, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuEventRecord(event, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamWaitEvent(f.b, event, 0), CUDA_SUCCESS);
    CHECK_CUDA(launch_kernel(f.await, f.a, &flag, 0), CUDA_SUCCESS);
    CHECK_CUDA(cuEventRecord(event, f.a), CUDA_SUCCESS);
    CHECK_CUDA(launch_kernel(f.add, f.b, &word, 1), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamSynchronize(f.b), CUDA_SUCCESS);
    CHECK_EQ_U64(word, 8);
    CHECK_CUDA(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    CHECK_CUDA(cuStreamWaitEvent(f.b, event, 0), CUDA_SUCCESS);
    CHECK_CUDA(launch_kernel(f.add, f.b, &word, 1), CUDA_SUCCESS);
    sp_clock_sleep(1000000);
    sp_store_release(&flag, 1);
    CHECK_CUDA(cuStreamSynchronize(f.b), CUDA_SUCCESS);
    CHECK_CUDA(cuEventQuery(event), CUDA_SUCCESS);
    CHECK_EQ_U64(word, 9);
    CHECK_CUDA(cuEventDestroy_v2(event), CUDA_SUCCESS);
    fixture_end(&f);
}

/* Under ThreadSanitizer: the word is plain, and passes through all streams and the host. */
TEST(waits_order_streams_that_work_on_one_word)
{
    enum { STREAMS = 8, TURNS = 50 };
    fixture f;
    fixture_begin(&f);
    uint32_t word = 0;
    CUstream streams[STREAMS];
    CUevent event = NULL;
    REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < STREAMS; i++) {
        REQUIRE_CUDA(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    for (int i = 0; i < STREAMS * TURNS; i++) {
        CHECK_CUDA(cuStreamWaitEvent(streams[i % STREAMS], event, 0), CUDA_SUCCESS);
        CHECK_CUDA(launch_kernel(f.add, streams[i % STREAMS], &word, 1), CUDA_SUCCESS);
        CHECK_CUDA(cuEventRecord(event, streams[i % STREAMS]), CUDA_SUCCESS);
    }
    CHECK_CUDA(cuEventSynchronize(event), CUDA_SUCCESS);
    CHECK_EQ_U64(word, STREAMS * TURNS);
    for (int i = 0; i < STREAMS; i++) CHECK_CUDA(cuStreamDestroy_v2(streams[i]), CUDA_SUCCESS);
    CHECK_CUDA(cuEventDestroy_v2(event), CUDA_SUCCESS);
    fixture_end(&f);
}

static void use_alone(void *arg, uint32_t index)
{
    const fixture *f = arg;
    CUcontext context = NULL;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUdeviceptr memory = 0;
    REQUIRE_CUDA(cuDevicePrimaryCtxRetain(&context, 0));
    REQUIRE_CUDA(cuCtxPushCurrent_v2(context));
    REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    REQUIRE_CUDA(cuMemAlloc_v2(&memory, sizeof(uint32_t)));
    uint32_t *word = (uint32_t *)(uintptr_t)memory;
    *word = index;
    for (uint32_t i = 0; i < 20; i++) {
        CHECK_CUDA(launch_kernel(f->add, stream, word, 1), CUDA_SUCCESS);
        CHECK_CUDA(cuEventRecord(event, stream), CUDA_SUCCESS);
    }
    CHECK_CUDA(cuEventSynchronize(event), CUDA_SUCCESS);
    CHECK_EQ_U64(*word, index + 20);
    CHECK_CUDA(cuMemFree_v2(memory), CUDA_SUCCESS);
    CHECK_CUDA(cuEventDestroy_v2(event), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    CHECK_CUDA(cuCtxPopCurrent_v2(NULL), CUDA_SUCCESS);
    CHECK_CUDA(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
}

TEST(threads_use_one_context_together)
{
    fixture f;
    fixture_begin(&f);
    test_threads(16, use_alone, &f);
    fixture_end(&f);
}

static CUresult call_through_table(CUdeviceptr *memory)
{
    return SP_CUDA(cuMemAlloc)(memory, 64);
}

TEST(the_library_finds_it_as_its_driver)
{
    fixture f;
    fixture_begin(&f);
    REQUIRE_OK(sp__cuda_api_open());
    CUdeviceptr memory = 0;
    const uint64_t before = sp__cuda_call_count(SP_CUDA_CALL_cuMemAlloc);
    CHECK_CUDA(call_through_table(&memory), CUDA_SUCCESS);
    CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuMemAlloc), before + 1);
    CHECK_EQ_U64(fake_cuda_live(FAKE_DEVICE_MEMORY), 1); /* the same instance */
    CHECK_CUDA(cuMemFree_v2(memory), CUDA_SUCCESS);
    CHECK_STATUS(sp__cuda_check(CUDA_ERROR_ILLEGAL_ADDRESS, "cuX", "queue 3"), SP_DEVICE_LOST);
    CHECK_MESSAGE("queue 3: cuX: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access");
    CHECK_STATUS(sp__cuda_check(CUDA_ERROR_OUT_OF_MEMORY, "cuX", NULL), SP_OUT_OF_MEMORY);
    CHECK_STATUS(sp__cuda_check((CUresult)12345, "cuX", NULL), SP_FAILED);
    CHECK_MESSAGE("cuX: unknown CUDA error");
    fixture_end(&f);
}

TEST_MAIN
