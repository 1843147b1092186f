/* SPDX-License-Identifier: Apache-2.0 */
/* Other code in the process that uses CUDA by itself: its memory and streams beside ours. On a real
 * GPU, or on the fake driver. */
#include <streampool/dlpack.h>

#include <string.h>

#include "base/macros.h"
#include "device/cuda/cuda_api.h"
#include "gpu_fixture.h"
#include "runtime_fixture.h"

enum { COUNT = 1 << 20, REPEATS = 20 };
#define BYTES ((uint64_t)COUNT * sizeof(uint32_t))

/* Code that has a stream of its own, device memory, and pinned memory to look at it. */
typedef struct other_code {
    sp_device device;
    sp_stream stream; /* of ours */
    CUcontext context;
    CUstream native;
    CUdeviceptr memory;
    uint32_t *pinned;
} other_code;

static void check_call(CUresult result)
{
    CHECK_EQ_INT(result, CUDA_SUCCESS);
}

static bool other_begin(other_code *o)
{
    runtime_begin();
    if (sp_device_open("cuda:0", &o->device) != SP_OK) {
        runtime_end();
        return false;
    }
    o->stream = new_stream_on(o->device);
    check_call(SP_CUDA(cuDevicePrimaryCtxRetain)(&o->context, 0));
    check_call(SP_CUDA(cuCtxPushCurrent)(o->context));
    check_call(SP_CUDA(cuStreamCreate)(&o->native, CU_STREAM_NON_BLOCKING));
    check_call(SP_CUDA(cuMemAlloc)(&o->memory, BYTES));
    check_call(SP_CUDA(cuMemHostAlloc)((void **)&o->pinned, BYTES, CU_MEMHOSTALLOC_PORTABLE));
    if (gpu_is_fake()) fake_cuda_set_delay(100000);
    return true;
}

static void other_end(const other_code *o)
{
    if (gpu_is_fake()) fake_cuda_set_delay(0);
    check_call(SP_CUDA(cuStreamSynchronize)(o->native));
    check_call(SP_CUDA(cuMemFreeHost)(o->pinned));
    check_call(SP_CUDA(cuMemFree)(o->memory));
    check_call(SP_CUDA(cuStreamDestroy)(o->native));
    CUcontext popped;
    check_call(SP_CUDA(cuCtxPopCurrent)(&popped));
    check_call(SP_CUDA(cuDevicePrimaryCtxRelease)(0));
    CHECK_OK(sp_stream_release(o->stream));
    CHECK_OK(sp_device_close(o->device));
    runtime_end();
}

/* Work of the other stream that takes a while. */
static void other_is_busy(const other_code *o)
{
    for (uint32_t i = 0; i < REPEATS; i++) {
        check_call(SP_CUDA(cuMemsetD32Async)(o->memory, i, COUNT, o->native));
    }
}

static CUstream native_of(sp_stream stream)
{
    CHECK(info_of(stream).native != NULL);
    return info_of(stream).native;
}

static int64_t other_first(const uint32_t *words, uint32_t value)
{
    int64_t i = 0;
    while (i < COUNT && words[i] == value) i++;
    return i < COUNT ? i : -1;
}

static void fill_words(const other_code *o, sp_storage storage, uint32_t value)
{
    const sp_storage_range range = {.storage = storage, .bytes = BYTES};
    CHECK_OK(sp_storage_fill_async(o->stream, range, &value, sizeof value));
}

/* ---- to us ---- */

static void note_delete(sp_dlpack_managed *managed)
{
    raise_by_one(managed->manager_ctx);
}

/* As DLPack has it: the producer makes the consumer's stream wait. */
static sp_tensor import_words(const other_code *o, sp_atomic_u32 *deletions)
{
    static int64_t shape[] = {COUNT};
    static sp_dlpack_managed managed;
    managed = (sp_dlpack_managed){.version = {1, 0},
                                  .manager_ctx = deletions,
                                  .deleter = note_delete,
                                  .dl_tensor = {.data = (void *)(uintptr_t)o->memory,
                                                .device = {SP_DLPACK_CUDA, 0},
                                                .ndim = 1,
                                                .dtype = {SP_DLPACK_UINT, 32, 1},
                                                .shape = shape}};
    CUevent event;
    check_call(SP_CUDA(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    check_call(SP_CUDA(cuEventRecord)(event, o->native));
    check_call(SP_CUDA(cuStreamWaitEvent)(native_of(o->stream), event, 0));
    check_call(SP_CUDA(cuEventDestroy)(event));
    const sp_dlpack_import_options options = {.device = o->device, .ready_after = o->stream};
    sp_tensor tensor;
    CHECK_OK(sp_tensor_from_dlpack(&managed, &options, &tensor));
    return tensor;
}

TEST(memory_of_other_code_is_read_behind_its_stream)
{
    other_code o;
    if (!other_begin(&o)) SKIP("no GPU");
    static uint32_t got[COUNT];
    for (uint32_t i = 0; i < 5; i++) {
        sp_atomic_u32 deletions = {0};
        other_is_busy(&o);
        check_call(SP_CUDA(cuMemsetD32Async)(o.memory, 1000 + i, COUNT, o.native));
        const sp_tensor tensor = import_words(&o, &deletions);
        CHECK_OK(sp_tensor_read(tensor, got, sizeof got));
        CHECK_EQ_INT(other_first(got, 1000 + i), -1);
        CHECK_OK(sp_tensor_release(tensor));
        await_at_least(&deletions, 1);
    }
    other_end(&o);
}

TEST(memory_of_a_gpu_needs_its_device)
{
    other_code o;
    if (!other_begin(&o)) SKIP("no GPU");
    static int64_t shape[] = {1};
    sp_dlpack_managed managed = {.version = {1, 0},
                                 .dl_tensor = {.data = (void *)(uintptr_t)o.memory,
                                               .device = {SP_DLPACK_CUDA, 1},
                                               .ndim = 1,
                                               .dtype = {SP_DLPACK_UINT, 32, 1},
                                               .shape = shape}};
    const sp_dlpack_import_options options = {.device = o.device};
    sp_tensor tensor;
    CHECK_STATUS(sp_tensor_from_dlpack(&managed, &options, &tensor), SP_UNSUPPORTED);
    CHECK_MESSAGE("GPU 1 cannot be adopted by cuda:0: name cuda:1");
    managed.dl_tensor.device.device_id = -1;
    CHECK_STATUS(sp_tensor_from_dlpack(&managed, &options, &tensor), SP_UNSUPPORTED);
    CHECK_STATUS(sp_tensor_from_dlpack(&managed, NULL, &tensor), SP_UNSUPPORTED);
    CHECK_MESSAGE("cannot be adopted by cpu");
    other_end(&o);
}

/* ---- from us ---- */

static sp_tensor new_words(const other_code *o)
{
    static const int64_t shape[] = {COUNT};
    sp_tensor tensor;
    CHECK_OK(sp_tensor_create(o->device, SP_U32, 1, shape, &tensor));
    return tensor;
}

static sp_storage storage_of(sp_tensor tensor)
{
    sp_tensor_info info;
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    return info.storage;
}

/* The other stream copies the words to pinned memory. */
static void copy_out(const other_code *o, const sp_dlpack_managed *managed)
{
    const CUdeviceptr from = (uintptr_t)managed->dl_tensor.data;
    check_call(SP_CUDA(cuMemcpyAsync)((uintptr_t)o->pinned, from, BYTES, o->native));
}

TEST(an_exported_tensor_is_used_behind_our_commands)
{
    other_code o;
    if (!other_begin(&o)) SKIP("no GPU");
    const sp_tensor tensor = new_words(&o);
    for (uint32_t i = 0; i < 5; i++) {
        sp_dlpack_managed *managed;
        for (uint32_t k = 0; k < REPEATS; k++) fill_words(&o, storage_of(tensor), k);
        fill_words(&o, storage_of(tensor), 2000 + i);
        CHECK_OK(sp_tensor_to_dlpack_cuda(tensor, o.native, &managed));
        CHECK_EQ_INT(managed->dl_tensor.device.device_type, SP_DLPACK_CUDA);
        copy_out(&o, managed);
        check_call(SP_CUDA(cuStreamSynchronize)(o.native));
        CHECK_EQ_INT(other_first(o.pinned, 2000 + i), -1);
        managed->deleter(managed);
    }
    CHECK_OK(sp_tensor_release(tensor));
    other_end(&o);
}

/* The consumer gives the memory back while its stream has yet to read it. */
TEST(memory_given_back_is_not_reused_before_the_consumers_stream_has_done)
{
    other_code o;
    if (!other_begin(&o)) SKIP("no GPU");
    sp_stream current;
    CHECK_OK(sp_stream_current(o.device, &current));
    for (uint32_t i = 0; i < 10; i++) {
        sp_dlpack_managed *managed;
        const sp_tensor tensor = new_words(&o);
        fill_words(&o, storage_of(tensor), 3000 + i);
        CHECK_OK(sp_tensor_to_dlpack_cuda(tensor, o.native, &managed));
        CHECK_OK(sp_tensor_release(tensor));
        other_is_busy(&o);
        copy_out(&o, managed);
        CHECK_OK(sp_stream_synchronize(o.stream)); /* of ours nothing uses it any more */
        CHECK_OK(sp_stream_synchronize(current));
        managed->deleter(managed);
        const sp_tensor next = new_words(&o);
        fill_words(&o, storage_of(next), 1);
        CHECK_OK(sp_stream_synchronize(o.stream));
        check_call(SP_CUDA(cuStreamSynchronize)(o.native));
        CHECK_EQ_INT(other_first(o.pinned, 3000 + i), -1);
        CHECK_OK(sp_tensor_release(next));
    }
    other_end(&o);
}

/* ---- a stream that waits for the test ---- */

typedef struct hold {
    sp_atomic_u32 is_over;
    sp_atomic_u32 was_late; /* the test did not end it in time */
} hold;

static void hold_kernel(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid;
    (void)block;
    hold *self = *(hold **)params[0];
    const uint64_t deadline = sp_clock_now() + 10 * SECOND;
    while (sp_load_acquire(&self->is_over) == 0 && sp_clock_now() < deadline) {
        sp_clock_sleep(MILLISECOND);
    }
    if (sp_load_acquire(&self->is_over) == 0) sp_store_release(&self->was_late, 1);
}

/* The other stream does nothing more until the hold is over. */
static CUmodule other_is_held(const other_code *o, hold *self)
{
    CUmodule module;
    CUfunction function;
    void *params[] = {&self};
    fake_cuda_register("hold", hold_kernel);
    check_call(SP_CUDA(cuModuleLoadData)(&module, "FAKE\nhold 8\n"));
    check_call(SP_CUDA(cuModuleGetFunction)(&function, module, "hold"));
    check_call(SP_CUDA(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, o->native, params, NULL));
    return module;
}

static void hold_end(const other_code *o, hold *self, CUmodule module)
{
    sp_store_release(&self->is_over, 1);
    check_call(SP_CUDA(cuStreamSynchronize)(o->native));
    check_call(SP_CUDA(cuModuleUnload)(module));
    CHECK_EQ_U64(sp_load_acquire(&self->was_late), 0);
}

TEST(no_host_access_waits_for_the_stream_of_a_consumer)
{
    other_code o;
    if (!other_begin(&o)) SKIP("no GPU");
    if (!gpu_is_fake()) SKIP("its kernels cannot wait for the host");
    static uint32_t got[COUNT];
    hold held = {.is_over = {0}};
    sp_dlpack_managed *managed;
    const sp_tensor tensor = new_words(&o), other = new_words(&o);
    CHECK_OK(sp_tensor_to_dlpack_cuda(tensor, o.native, &managed));
    fill_words(&o, storage_of(other), 7);
    const CUmodule module = other_is_held(&o, &held);
    managed->deleter(managed);
    CHECK_OK(sp_tensor_read(other, got, sizeof got));
    CHECK_EQ_INT(other_first(got, 7), -1);
    hold_end(&o, &held, module);
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_OK(sp_tensor_release(other));
    other_end(&o);
}

/* Then the memory waits for the stream in another way. */
TEST(memory_given_back_is_not_reused_early_though_the_driver_fails)
{
    static const char *const calls[] = {"cuEventRecord", "cuStreamWaitEvent"};
    other_code o;
    if (!other_begin(&o)) SKIP("no GPU");
    if (!gpu_is_fake()) SKIP("the driver works");
    for (uint32_t i = 0; i < SP_COUNT_OF(calls); i++) {
        sp_dlpack_managed *managed;
        const sp_tensor tensor = new_words(&o);
        fill_words(&o, storage_of(tensor), 4000 + i);
        CHECK_OK(sp_tensor_to_dlpack_cuda(tensor, o.native, &managed));
        CHECK_OK(sp_tensor_release(tensor));
        CHECK_OK(sp_device_synchronize(o.device));
        other_is_busy(&o);
        copy_out(&o, managed);
        fake_cuda_fail_call(calls[i], 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
        managed->deleter(managed);
        const sp_tensor next = new_words(&o);
        fill_words(&o, storage_of(next), 1);
        CHECK_OK(sp_stream_synchronize(o.stream));
        check_call(SP_CUDA(cuStreamSynchronize)(o.native));
        CHECK_EQ_INT(other_first(o.pinned, 4000 + i), -1);
        CHECK_OK(sp_tensor_release(next));
    }
    other_end(&o);
}

/* ---- waits and failures ---- */

static void sleep_then_note(void *ctx, sp_status status)
{
    CHECK_OK(status);
    sp_clock_sleep(20 * MILLISECOND);
    raise_by_one(ctx);
}

TEST(an_export_waits_for_host_functions_in_front_of_it)
{
    other_code o;
    if (!other_begin(&o)) SKIP("no GPU");
    const sp_tensor tensor = new_words(&o);
    sp_atomic_u32 calls = {0};
    sp_stream current;
    sp_dlpack_managed *managed;
    CHECK_OK(sp_stream_current(o.device, &current));
    CHECK_OK(sp_stream_host_function(current, sleep_then_note, &calls));
    CHECK_OK(sp_tensor_to_dlpack_cuda(tensor, o.native, &managed));
    CHECK_EQ_U64(sp_load_acquire(&calls), 1);
    managed->deleter(managed);
    CHECK_OK(sp_tensor_release(tensor));
    other_end(&o);
}

TEST(what_cannot_be_ordered_is_refused)
{
    other_code o;
    if (!other_begin(&o)) SKIP("no GPU");
    static const int64_t shape[] = {4};
    sp_tensor tensor;
    sp_dlpack_managed *managed = NULL;
    CHECK_OK(sp_tensor_create(CPU, SP_F32, 1, shape, &tensor));
    CHECK(info_of(current_stream()).native == NULL);
    CHECK_STATUS(sp_tensor_to_dlpack_cuda(tensor, o.native, &managed), SP_UNSUPPORTED);
    CHECK_MESSAGE("on cpu has no order with CUDA streams");
    CHECK(managed == NULL);
    CHECK_STATUS(sp_tensor_to_dlpack_cuda(tensor, o.native, NULL), SP_INVALID);
    CHECK_STATUS(sp_tensor_to_dlpack_cuda((sp_tensor){0}, o.native, &managed), SP_INVALID);
    CHECK_OK(sp_tensor_release(tensor));
    other_end(&o);
}

TEST(a_driver_that_fails_fails_the_export)
{
    other_code o;
    if (!other_begin(&o)) SKIP("no GPU");
    if (!gpu_is_fake()) SKIP("the driver works");
    static const char *const calls[] = {"cuEventRecord", "cuStreamWaitEvent"};
    const sp_tensor tensor = new_words(&o);
    sp_dlpack_managed *managed;
    CHECK_OK(sp_tensor_to_dlpack_cuda(tensor, o.native, &managed)); /* makes the stream */
    managed->deleter(managed);
    for (size_t i = 0; i < SP_COUNT_OF(calls); i++) {
        (void)address_of(storage_of(tensor)); /* waits: no other thread makes such calls then */
        fake_cuda_fail_call(calls[i], 1, 1000, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(sp_tensor_to_dlpack_cuda(tensor, o.native, &managed), SP_OUT_OF_MEMORY);
        fake_cuda_reset();
    }
    CHECK_OK(sp_tensor_release(tensor));
    other_end(&o);
}

TEST_MAIN
