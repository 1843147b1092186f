/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime on a cuda device, on the fake driver: opening, host access, times, loss of a device,
 * and no leaks, whichever driver call fails. */
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_api.h"
#include "device/wait.h"
#include "fake_cuda.h"
#include "runtime_fixture.h"

#define WORDS 1024

static sp_device open_cuda(void)
{
    sp_device device;
    CHECK_OK(sp_device_open("cuda:0", &device));
    return device;
}

static sp_storage new_words(sp_device device)
{
    sp_storage storage;
    CHECK_OK(sp_storage_create(device, WORDS * sizeof(uint32_t), NULL, &storage));
    return storage;
}

static sp_storage_range all_of(sp_storage storage)
{
    return (sp_storage_range){.storage = storage, .bytes = WORDS * sizeof(uint32_t)};
}

/* The words of a storage, all of which must be equal. */
static uint32_t word_of(sp_storage storage)
{
    void *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    const uint32_t *words = data;
    for (int i = 1; i < WORDS; i++) CHECK_EQ_U64(words[i], words[0]);
    const uint32_t word = words[0];
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    return word;
}

static void end(void)
{
    runtime_end();
    fake_cuda_drain();
    CHECK_EQ_U64(fake_cuda_live_all(), 0);
    fake_cuda_reset();
}

TEST(a_gpu_is_opened_once_by_its_number)
{
    runtime_begin();
    sp_device a, b;
    sp_device_info info;
    CHECK_OK(sp_device_open("cuda", &a));
    CHECK_OK(sp_device_open("cuda:0", &b));
    CHECK_EQ_U64(a.bits, b.bits);
    CHECK_OK(sp_device_get_info(a, &info));
    CHECK_EQ_STR(info.name, "cuda:0");
    CHECK_EQ_STR(info.kind, "cuda");
    CHECK_OK(sp_device_open("cuda:1", &b));
    CHECK(a.bits != b.bits);
    static const char *const unknown[] = {"cuda:", "cuda0", "cuda:x", "cuda:0x", "cudas"};
    for (size_t i = 0; i < SP_COUNT_OF(unknown); i++) {
        CHECK_STATUS(sp_device_open(unknown[i], &b), SP_NOT_FOUND);
        CHECK_MESSAGE("no device kind");
    }
    CHECK_STATUS(sp_device_open("cuda:2", &b), SP_NOT_FOUND);
    CHECK_MESSAGE("the driver has 2");
    CHECK_STATUS(sp_device_open("cuda:99999", &b), SP_NOT_FOUND);
    CHECK_OK(sp_device_close(a));
    CHECK_OK(sp_device_open("cuda:0", &b));
    CHECK(a.bits != b.bits);
    end();
}

TEST(host_and_gpu_take_turns_on_a_storage)
{
    runtime_begin();
    const sp_device device = open_cuda();
    const sp_stream stream = new_stream_on(device);
    const sp_stream other = new_stream_on(device);
    const sp_storage a = new_words(device);
    const sp_storage b = new_words(device);
    for (uint32_t i = 0; i < 50; i++) {
        CHECK_OK(sp_storage_fill_async(stream, all_of(a), &i, sizeof i));
        CHECK_OK(sp_storage_copy_async(other, all_of(b), all_of(a)));
        CHECK_EQ_U64(word_of(b), i);
        void *data;
        CHECK_OK(sp_storage_host_begin(a, SP_WRITE, &data));
        memset(data, 0x11, WORDS * sizeof(uint32_t));
        CHECK_OK(sp_storage_host_end(a, SP_WRITE));
        CHECK_OK(sp_storage_copy_async(other, all_of(b), all_of(a)));
        CHECK_EQ_U64(word_of(b), 0x11111111);
    }
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_stream_release(other));
    end();
}

/* The wait is between the GPUs: no thread of the library polls. */
TEST(a_stream_waits_for_an_event_of_another_gpu)
{
    runtime_begin();
    const sp_device first = open_cuda();
    sp_device second;
    CHECK_OK(sp_device_open("cuda:1", &second));
    const sp_stream here = new_stream_on(first);
    const sp_stream there = new_stream_on(second);
    const sp_storage storage = new_words(second);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    const uint64_t before = sp__cuda_call_count(SP_CUDA_CALL_cuStreamWaitEvent);
    fake_cuda_set_delay(1000000);
    for (uint32_t i = 0; i < 10; i++) {
        const uint32_t word = 100 + i;
        const sp_storage other = new_words(first);
        CHECK_OK(sp_storage_fill_async(here, all_of(other), &i, sizeof i));
        CHECK_OK(sp_event_record(event, here));
        CHECK_OK(sp_stream_wait_event(there, event));
        CHECK_OK(sp_storage_fill_async(there, all_of(storage), &word, sizeof word));
        CHECK_OK(sp_stream_synchronize(there));
        /* It was behind the wait; the first query shows it, of either kind. */
        CHECK_OK(i % 2 == 0 ? sp_event_query(event) : sp_event_synchronize_for(event, 0));
        CHECK_EQ_U64(word_of(storage), word);
        CHECK_OK(sp_storage_release(other));
    }
    fake_cuda_set_delay(0);
    CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuStreamWaitEvent) - before, 10);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(here));
    CHECK_OK(sp_stream_release(there));
    end();
}

/* Of the fake driver's GPU `ordinal`. */
static CUdeviceptr foreign_memory(int ordinal, size_t bytes)
{
    CUcontext context;
    CUdeviceptr memory = 0;
    CHECK_EQ_INT(SP_CUDA(cuDevicePrimaryCtxRetain)(&context, ordinal), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuCtxPushCurrent)(context), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuMemAlloc)(&memory, bytes), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuCtxPopCurrent)(&context), CUDA_SUCCESS);
    return memory;
}

static void foreign_free(int ordinal, CUdeviceptr memory)
{
    CUcontext context;
    CHECK_EQ_INT(SP_CUDA(cuDevicePrimaryCtxRetain)(&context, ordinal), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuCtxPushCurrent)(context), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuMemFree)(memory), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuCtxPopCurrent)(&context), CUDA_SUCCESS);
    SP_CUDA(cuDevicePrimaryCtxRelease)(ordinal);
    SP_CUDA(cuDevicePrimaryCtxRelease)(ordinal);
}

TEST(memory_that_the_driver_allocated_for_others_is_adopted)
{
    runtime_begin();
    const sp_device device = open_cuda();
    const CUdeviceptr memory = foreign_memory(0, 2 * WORDS * sizeof(uint32_t));
    const CUdeviceptr middle = memory + WORDS * sizeof(uint32_t);
    const uint64_t bytes = WORDS * sizeof(uint32_t);
    const sp_stream stream = new_stream_on(device);
    const uint32_t word = 77;
    sp_storage storage;
    sp_storage_info info;
    CHECK_OK(sp_storage_adopt(device, (void *)(uintptr_t)middle, bytes, NULL, &storage));
    CHECK_OK(sp_storage_get_info(storage, &info));
    CHECK(info.address == NULL && info.is_adopted);
    CHECK_OK(sp_storage_fill_async(stream, all_of(storage), &word, sizeof word));
    CHECK_EQ_U64(word_of(storage), word);
    CHECK_OK(sp_storage_release(storage));
    CHECK_STATUS(sp_storage_adopt(device, (void *)(uintptr_t)middle, bytes + 1, NULL, &storage),
                 SP_INVALID);
    CHECK_MESSAGE("do not fit into their allocation");
    CHECK_OK(sp_stream_release(stream));
    foreign_free(0, memory);
    end();
}

TEST(memory_of_another_gpu_or_of_no_driver_is_not_adopted)
{
    runtime_begin();
    const sp_device device = open_cuda();
    static uint32_t words[WORDS];
    sp_storage storage;
    CHECK_STATUS(sp_storage_adopt(device, words, sizeof words, NULL, &storage), SP_UNSUPPORTED);
    CHECK_MESSAGE("not memory that the CUDA driver knows");
    const CUdeviceptr memory = foreign_memory(1, 64);
    CHECK_STATUS(sp_storage_adopt(device, (void *)(uintptr_t)memory, 64, NULL, &storage),
                 SP_INVALID);
    CHECK_MESSAGE("memory of cuda:1, not of cuda:0");
    fake_cuda_fail_call("cuPointerGetAttribute", 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(sp_storage_adopt(device, (void *)(uintptr_t)memory, 64, NULL, &storage),
                 SP_OUT_OF_MEMORY);
    foreign_free(1, memory);
    end();
}

TEST(pinned_host_memory_is_adopted_and_accessed_in_place)
{
    runtime_begin();
    const sp_device device = open_cuda();
    const sp_stream stream = new_stream_on(device);
    const uint32_t word = 5;
    void *pinned, *data;
    sp_storage storage;
    CHECK_OK(sp_host_alloc(device, WORDS * sizeof word, &pinned));
    CHECK_EQ_U64(fake_cuda_live(FAKE_REGISTERED_MEMORY), 1);
    CHECK_OK(sp_storage_adopt(device, pinned, WORDS * sizeof word, NULL, &storage));
    CHECK_OK(sp_storage_fill_async(stream, all_of(storage), &word, sizeof word));
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    CHECK(data == pinned && *(uint32_t *)data == 5);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_device_close(device));
    CHECK_OK(sp_host_free(pinned)); /* outlives the device */
    CHECK_EQ_U64(fake_cuda_live(FAKE_REGISTERED_MEMORY), 0);
    end();
}

TEST(pinned_memory_that_the_driver_refuses_is_not_kept)
{
    runtime_begin();
    const sp_device device = open_cuda();
    void *pinned = &pinned;
    fake_cuda_fail_call("cuMemHostRegister", 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(sp_host_alloc(device, 4096, &pinned), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("cuda:0: 4096 bytes of pinned host memory");
    CHECK(pinned == NULL);
    end();
}

typedef struct shared_work {
    sp_device device;
    sp_storage storage;
    sp_atomic_u32 wrong;
} shared_work;

/* Each thread fills the shared storage and reads it back whole, on its own stream. */
static void fill_and_look(void *arg, uint32_t index)
{
    shared_work *work = arg;
    const sp_stream stream = new_stream_on(work->device);
    const sp_storage mine = new_words(work->device);
    for (uint32_t i = 0; i < test_count(500, 40); i++) {
        const uint32_t word = index << 16 | i;
        CHECK_OK(sp_storage_fill_async(stream, all_of(work->storage), &word, sizeof word));
        CHECK_OK(sp_storage_copy_async(stream, all_of(mine), all_of(work->storage)));
        word_of(mine); /* one thread's fill, complete */
        CHECK_OK(sp_storage_fill_async(stream, all_of(mine), &word, sizeof word));
        if (i % 8 == 7) CHECK_EQ_U64(word_of(mine), word);
    }
    CHECK_OK(sp_storage_release(mine));
    CHECK_OK(sp_stream_release(stream));
}

TEST(threads_share_storages_and_each_copy_is_whole)
{
    runtime_begin();
    shared_work work = {.device = open_cuda()};
    work.storage = new_words(work.device);
    test_threads(8, fill_and_look, &work);
    CHECK_OK(sp_storage_release(work.storage));
    end();
}

TEST(a_lost_gpu_fails_fast_and_the_cpu_lives_on)
{
    runtime_begin();
    const sp_device device = open_cuda();
    const sp_stream stream = new_stream_on(device);
    const sp_storage storage = new_words(device);
    const uint32_t one = 1;
    fake_cuda_fail_call("cuMemsetD32Async", 1, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_OK(sp_storage_fill_async(stream, all_of(storage), &one, sizeof one));
    CHECK_STATUS(sp_stream_synchronize(stream), SP_DEVICE_LOST);
    CHECK_MESSAGE("illegal");
    CHECK_STATUS(sp_storage_fill_async(stream, all_of(storage), &one, sizeof one), SP_DEVICE_LOST);
    const sp_storage other = new_words(CPU);
    CHECK_OK(sp_storage_fill_async(current_stream(), all_of(other), &one, sizeof one));
    CHECK_EQ_U64(word_of(other), 1);
    CHECK_OK(sp_storage_release(other));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    end();
}

TEST(a_call_that_fails_fails_one_command)
{
    runtime_begin();
    const sp_device device = open_cuda();
    const sp_stream stream = new_stream_on(device);
    const sp_storage storage = new_words(device);
    const uint32_t one = 1;
    CHECK_STATUS(sp_storage_retain((sp_storage){0}), SP_INVALID);
    char last_error[512];
    snprintf(last_error, sizeof last_error, "%s", sp_last_error());
    fake_cuda_fail_call("cuMemsetD32Async", 1, 1, CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(sp_storage_fill_async(stream, all_of(storage), &one, sizeof one));
    CHECK_EQ_STR(sp_last_error(), last_error); /* although the submitter itself called the driver */
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_storage_fill_async(stream, all_of(storage), &one, sizeof one));
    CHECK_EQ_U64(word_of(storage), 1);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    end();
}

/* Opens, uses and closes a device; returns the first failure. */
static sp_status use_once(void)
{
    sp_device device;
    sp_stream stream;
    sp_storage storage = {0};
    const uint32_t one = 1;
    SP_TRY(sp_device_open("cuda:1", &device));
    SP_TRY(sp_stream_from_pool(device, &stream));
    sp_status status = sp_storage_create(device, 4096, NULL, &storage);
    const sp_storage_range range = {.storage = storage, .bytes = 4096};
    if (status == SP_OK) status = sp_storage_fill_async(stream, range, &one, sizeof one);
    if (status == SP_OK) status = sp_stream_synchronize(stream);
    sp_storage_release(storage);
    sp_stream_release(stream);
    return status;
}

TEST(wherever_the_driver_fails_nothing_is_left_behind)
{
    static const char *const calls[] = {
        "cuDeviceGetCount", "cuDeviceGet", "cuDeviceTotalMem", "cuDeviceGetAttribute",
        "cuStreamCreate",   "cuMemAlloc",  "cuMemsetD32Async", "cuDevicePrimaryCtxRetain"};
    for (size_t i = 0; i < SP_COUNT_OF(calls); i++) {
        runtime_begin();
        fake_cuda_fail_call(calls[i], 1, 1000, CUDA_ERROR_OUT_OF_MEMORY);
        const sp_status status = use_once();
        CHECK(status != SP_OK);
        if (status == SP_OK) test_note("%s failed, and the run succeeded", calls[i]);
        end();
    }
    for (uint64_t nth = 1; nth <= 9; nth++) {
        runtime_begin();
        fake_cuda_fail_call("cuEventCreate", nth, 1, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(use_once(), SP_OUT_OF_MEMORY);
        end();
    }
    runtime_begin();
    CHECK_OK(use_once());
    end();
}

TEST(every_allocation_of_opening_and_using_may_fail)
{
    runtime_begin();
    CHECK_OK(use_once()); /* the driver is found once per process */
    end();
    bool is_done = false;
    for (uint64_t skip = 0; !is_done; skip++) {
        runtime_begin();
        CHECK_OK(sp_init());
        sp_heap_fail_after(skip);
        const sp_status status = use_once();
        is_done = !sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        if (is_done) CHECK_OK(status);
        if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        end();
    }
}

TEST(sleepers_are_woken_and_slow_work_is_waited_for)
{
    runtime_begin();
    const sp_device device = open_cuda();
    const sp_stream stream = new_stream_on(device);
    const sp_storage storage = new_words(device);
    fake_cuda_set_delay(2000000);
    for (uint32_t i = 0; i < 5; i++) {
        CHECK_OK(sp_storage_fill_async(stream, all_of(storage), &i, sizeof i));
        CHECK_OK(sp_stream_synchronize(stream)); /* longer than any spin */
        CHECK_EQ_U64(word_of(storage), i);
    }
    fake_cuda_set_delay(0);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    end();
}

TEST(more_than_a_stream_holds_in_flight_waits_its_turn)
{
    runtime_begin();
    const sp_device device = open_cuda();
    const sp_stream stream = new_stream_on(device);
    const sp_storage storage = new_words(device);
    fake_cuda_hold(true);
    for (uint32_t i = 0; i < 1500; i++) { /* returns, although nothing is done */
        CHECK_OK(sp_storage_fill_async(stream, all_of(storage), &i, sizeof i));
    }
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
    fake_cuda_hold(false);
    CHECK_EQ_U64(word_of(storage), 1499);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    end();
}

TEST(elapsed_time_is_the_gpus)
{
    runtime_begin();
    const sp_device device = open_cuda();
    const sp_stream stream = new_stream_on(device);
    const sp_storage storage = new_words(device);
    sp_event events[2];
    const uint32_t one = 1;
    const sp_event_options options = {.enable_timing = true};
    for (int i = 0; i < 2; i++) CHECK_OK(sp_event_create(&options, &events[i]));
    fake_cuda_set_delay(3000000);
    CHECK_OK(sp_event_record(events[0], stream));
    CHECK_OK(sp_storage_fill_async(stream, all_of(storage), &one, sizeof one));
    CHECK_OK(sp_event_record(events[1], stream));
    CHECK_OK(sp_stream_synchronize(stream));
    fake_cuda_set_delay(0);
    int64_t ns = 0;
    CHECK_OK(sp_event_elapsed(events[0], events[1], &ns));
    CHECK(ns >= 3000000);
    CHECK(ns < 2 * SECOND);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_event_release(events[i]));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    end();
}

TEST_MAIN
