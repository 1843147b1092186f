/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack export and import: the same memory, the deleter called once and in time, nothing taken on
 * failure. */
#include <streampool/dlpack.h>

#include <string.h>

#include "runtime_fixture.h"

/* A producer's tensor of 2 x 3 f32. */
typedef struct producer {
    sp_dlpack_managed managed;
    int64_t shape[2];
    int64_t strides[2];
    float values[6];
    sp_atomic_u32 deleted;
} producer;

static void note_delete(sp_dlpack_managed *managed)
{
    raise_by_one(&((producer *)managed->manager_ctx)->deleted);
}

static void produce(producer *self)
{
    *self = (producer){.shape = {2, 3}, .strides = {3, 1}, .values = {0, 1, 2, 3, 4, 5}};
    self->managed = (sp_dlpack_managed){.version = {1, 3},
                                        .manager_ctx = self,
                                        .deleter = note_delete,
                                        .dl_tensor = {.data = self->values,
                                                      .device = {SP_DLPACK_CPU, 0},
                                                      .ndim = 2,
                                                      .dtype = {SP_DLPACK_FLOAT, 32, 1},
                                                      .shape = self->shape,
                                                      .strides = self->strides}};
}

static sp_tensor import(producer *self)
{
    sp_tensor tensor;
    CHECK_OK(sp_tensor_from_dlpack(&self->managed, NULL, &tensor));
    return tensor;
}

static void expect_values(sp_tensor tensor, const float *want, uint64_t count)
{
    float got[6] = {0};
    CHECK_OK(sp_tensor_read(tensor, got, count * sizeof got[0]));
    CHECK_EQ_MEM(got, want, count * sizeof got[0]);
}

/* ---- import ---- */

TEST(an_imported_tensor_is_the_producers_memory_until_its_last_release)
{
    runtime_begin();
    producer self;
    produce(&self);
    const sp_tensor tensor = import(&self);
    sp_tensor view;
    sp_tensor_info info;
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    CHECK_EQ_INT(info.dtype, SP_F32);
    CHECK(info.rank == 2 && info.shape[0] == 2 && info.shape[1] == 3 && info.is_contiguous);
    self.values[4] = 40; /* nothing was copied */
    CHECK_OK(sp_tensor_transpose(tensor, 0, 1, &view));
    CHECK_OK(sp_tensor_release(tensor));
    expect_values(view, (const float[]){0, 3, 1, 40, 2, 5}, 6);
    let_callbacks_come();
    CHECK_EQ_U64(sp_load_acquire(&self.deleted), 0);
    CHECK_OK(sp_tensor_release(view));
    await_at_least(&self.deleted, 1);
    runtime_end();
    CHECK_EQ_U64(sp_load_acquire(&self.deleted), 1);
}

TEST(strides_offsets_and_a_missing_deleter_are_the_producers_choice)
{
    runtime_begin();
    producer self;
    produce(&self);
    self.managed.dl_tensor.strides = NULL; /* contiguous */
    self.managed.deleter = NULL;
    sp_tensor tensor = import(&self);
    expect_values(tensor, self.values, 6);
    CHECK_OK(sp_tensor_release(tensor));
    produce(&self);
    self.managed.dl_tensor.byte_offset = 20;
    self.strides[0] = -3;
    self.strides[1] = -1;
    tensor = import(&self);
    expect_values(tensor, (const float[]){5, 4, 3, 2, 1, 0}, 6);
    CHECK_OK(sp_tensor_release(tensor));
    await_at_least(&self.deleted, 1);
    produce(&self);
    self.managed.dl_tensor.data = self.values + 5; /* as NumPy does: elements before the address */
    self.strides[0] = -3;
    self.strides[1] = -1;
    tensor = import(&self);
    expect_values(tensor, (const float[]){5, 4, 3, 2, 1, 0}, 6);
    CHECK_OK(sp_tensor_release(tensor));
    await_at_least(&self.deleted, 1);
    produce(&self);
    self.shape[1] = 0;
    self.managed.dl_tensor.data = NULL;
    tensor = import(&self);
    sp_dlpack_managed *managed;
    CHECK_OK(sp_tensor_read(tensor, NULL, 0));
    CHECK_OK(sp_tensor_write(tensor, NULL, 0));
    CHECK_OK(sp_tensor_to_dlpack(tensor, (sp_stream){0}, &managed));
    CHECK(managed->dl_tensor.data == NULL);
    managed->deleter(managed);
    CHECK_OK(sp_tensor_release(tensor));
    await_at_least(&self.deleted, 1);
    produce(&self);
    self.managed.dl_tensor.ndim = 0;
    self.managed.dl_tensor.shape = NULL;
    self.managed.dl_tensor.strides = NULL;
    self.managed.dl_tensor.device.device_type = SP_DLPACK_CUDA_HOST;
    tensor = import(&self);
    expect_values(tensor, self.values, 1);
    CHECK_OK(sp_tensor_release(tensor));
    await_at_least(&self.deleted, 1);
    runtime_end();
}

TEST(the_deleter_is_called_after_the_last_queued_use)
{
    runtime_begin();
    producer self;
    produce(&self);
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream_on(CPU);
    const sp_tensor tensor = import(&self);
    sp_tensor_info info;
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    gate_hold(&blocker, stream);
    fill(stream, info.storage, 0);
    CHECK_OK(sp_tensor_release(tensor));
    let_callbacks_come();
    CHECK_EQ_U64(sp_load_acquire(&self.deleted), 0);
    gate_open(&blocker);
    await_at_least(&self.deleted, 1);
    CHECK(self.values[5] == 0);
    CHECK_OK(sp_stream_release(stream));
    gate_destroy(&blocker);
    runtime_end();
}

typedef struct late_producer {
    producer producer;
    sp_stream stream;
    sp_atomic_u32 written;
} late_producer;

static void write_late(void *ctx, sp_status status)
{
    late_producer *self = ctx;
    sp_clock_sleep(20 * (uint64_t)MILLISECOND);
    self->producer.values[0] = status == SP_OK ? 7 : 8;
    raise_by_one(&self->written);
}

TEST(reads_of_an_imported_tensor_wait_for_the_producers_stream_or_event)
{
    runtime_begin();
    for (int i = 0; i < 4; i++) {
        late_producer self = {.stream = new_stream()};
        produce(&self.producer);
        const bool is_frozen = i >= 2;
        if (is_frozen) self.producer.managed.flags = SP_DLPACK_READ_ONLY;
        CHECK_OK(sp_stream_host_function(self.stream, write_late, &self));
        sp_event event;
        CHECK_OK(sp_event_create(NULL, &event));
        CHECK_OK(sp_event_record(event, self.stream));
        sp_dlpack_import_options options = {.ready = event};
        if (i % 2 == 1) options = (sp_dlpack_import_options){.ready_after = self.stream};
        sp_tensor tensor;
        CHECK_OK(sp_tensor_from_dlpack(&self.producer.managed, &options, &tensor));
        if (is_frozen) CHECK_EQ_U64(sp_load_acquire(&self.written), 1); /* it has waited */
        expect_values(tensor, (const float[]){7, 1, 2, 3, 4, 5}, 6);
        CHECK_OK(sp_tensor_release(tensor));
        await_at_least(&self.producer.deleted, 1);
        CHECK_OK(sp_event_release(event));
        CHECK_OK(sp_stream_release(self.stream));
    }
    runtime_end();
}

TEST(a_read_only_tensor_is_frozen_and_the_next_life_of_its_storage_is_not)
{
    runtime_begin();
    for (int i = 0; i < 4; i++) {
        producer self;
        produce(&self);
        const bool is_frozen = i % 2 == 0;
        if (is_frozen) self.managed.flags = SP_DLPACK_READ_ONLY;
        const sp_tensor tensor = import(&self);
        sp_tensor_info info;
        sp_storage_info storage;
        CHECK_OK(sp_tensor_get_info(tensor, &info));
        CHECK_OK(sp_storage_get_info(info.storage, &storage));
        CHECK_EQ_INT(storage.is_frozen, is_frozen);
        const float zeroes[6] = {0};
        CHECK_STATUS(sp_tensor_write(tensor, zeroes, sizeof zeroes),
                     is_frozen ? SP_INVALID : SP_OK);
        CHECK(self.values[5] == (is_frozen ? 5 : 0));
        CHECK_OK(sp_tensor_release(tensor));
        await_at_least(&self.deleted, 1);
    }
    /* Not read in between. */
    producer untouched;
    produce(&untouched);
    untouched.managed.flags = SP_DLPACK_READ_ONLY;
    CHECK_OK(sp_tensor_release(import(&untouched)));
    await_at_least(&untouched.deleted, 1);
    const sp_storage next = new_storage(64);
    fill(current_stream(), next, 1);
    CHECK_EQ_INT(first_other(next, 1), -1);
    CHECK_OK(sp_storage_release(next));
    runtime_end();
}

static void expect_refused(producer *self, sp_status status, const char *message)
{
    sp_tensor tensor = {1};
    CHECK_STATUS(sp_tensor_from_dlpack(&self->managed, NULL, &tensor), status);
    CHECK_MESSAGE(message);
    CHECK_EQ_U64(tensor.bits, 0);
    let_callbacks_come();
    CHECK_EQ_U64(sp_load_acquire(&self->deleted), 0);
    produce(self);
}

TEST(what_cannot_be_taken_is_refused_and_stays_the_callers)
{
    runtime_begin();
    producer self;
    produce(&self);
    sp_dlpack_view *view = &self.managed.dl_tensor;
    self.managed.version.major = 2;
    expect_refused(&self, SP_UNSUPPORTED, "a tensor of DLPack 2.3; this library reads 1.x");
    view->device.device_type = SP_DLPACK_CUDA;
    expect_refused(&self, SP_UNSUPPORTED, "GPU 0 cannot be adopted by cpu: name cuda:0");
    view->device.device_type = SP_DLPACK_CUDA_MANAGED;
    expect_refused(&self, SP_UNSUPPORTED, "copy it to the host");
    view->device.device_type = 8;
    expect_refused(&self, SP_UNSUPPORTED, "device type 8");
    view->dtype.lanes = 4;
    expect_refused(&self, SP_UNSUPPORTED, "4 lanes");
    view->dtype.lanes = 0;
    expect_refused(&self, SP_UNSUPPORTED, "0 lanes");
    view->dtype = (sp_dlpack_dtype){5, 64, 1};
    expect_refused(&self, SP_UNSUPPORTED, "type code 5 with 64 bits");
    view->dtype.bits = 4;
    expect_refused(&self, SP_UNSUPPORTED, "4 bits");
    view->ndim = -1;
    expect_refused(&self, SP_MISMATCH, "-1 dimensions");
    view->ndim = SP_MAX_RANK + 1;
    expect_refused(&self, SP_MISMATCH, "rank 9");
    view->shape = NULL;
    expect_refused(&self, SP_MISMATCH, "without a shape");
    self.shape[0] = -2;
    expect_refused(&self, SP_MISMATCH, "negative");
    self.shape[0] = INT64_MAX;
    expect_refused(&self, SP_EXHAUSTED, "2^40");
    self.strides[0] = INT64_MIN;
    expect_refused(&self, SP_INVALID, "exceeds its storage");
    view->byte_offset = 2;
    expect_refused(&self, SP_INVALID, "not aligned for f32");
    view->byte_offset = UINT64_MAX - 3;
    expect_refused(&self, SP_INVALID, "no memory for its elements");
    view->data = (void *)8; /* its strides reach below 0 */
    self.strides[0] = -3;
    expect_refused(&self, SP_INVALID, "no memory for its elements");
    view->data = NULL;
    expect_refused(&self, SP_INVALID, "no memory for its elements");
    sp_tensor tensor;
    CHECK_STATUS(sp_tensor_from_dlpack(NULL, NULL, &tensor), SP_INVALID);
    CHECK_STATUS(sp_tensor_from_dlpack(&self.managed, NULL, NULL), SP_INVALID);
    const sp_dlpack_import_options stale = {.ready_after = {12345}};
    CHECK_STATUS(sp_tensor_from_dlpack(&self.managed, &stale, &tensor), SP_INVALID);
    CHECK_EQ_U64(sp_load_acquire(&self.deleted), 0);
    runtime_end();
}

TEST(a_failed_producer_refuses_a_read_only_import)
{
    runtime_begin();
    producer self;
    produce(&self);
    self.managed.flags = SP_DLPACK_READ_ONLY;
    sp_tensor tensor;
    const sp_stream stream = new_stream();
    submit_failing(stream, (sp_storage){0});
    const sp_dlpack_import_options options = {.ready_after = stream};
    CHECK_STATUS(sp_tensor_from_dlpack(&self.managed, &options, &tensor), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_stream_release(stream));
    let_callbacks_come();
    CHECK_EQ_U64(sp_load_acquire(&self.deleted), 0);
    runtime_end();
}

/* ---- export ---- */

static sp_tensor count_up(sp_device device)
{
    const float values[6] = {0, 1, 2, 3, 4, 5};
    sp_tensor tensor;
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 2, (const int64_t[]){2, 3}, values, sizeof values,
                                 &tensor));
    return tensor;
}

static bool host_sees(const sp_dlpack_managed *managed)
{
    return managed->dl_tensor.device.device_type == SP_DLPACK_CPU;
}

/* What a consumer finds at `count` elements from element `first` of the export, which may lie
 * before its data: by an address of the host, or as memory that it adopts. */
static void expect_exported(const sp_dlpack_managed *managed, int first, uint64_t count,
                            const float *want)
{
    float *data = (float *)managed->dl_tensor.data + first;
    if (host_sees(managed)) {
        CHECK_EQ_MEM(data, want, count * sizeof *want);
        return;
    }
    sp_storage storage;
    void *seen;
    CHECK_OK(sp_storage_adopt(TESTED, data, count * sizeof *want, NULL, &storage));
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &seen));
    CHECK_EQ_MEM(seen, want, count * sizeof *want);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_OK(sp_storage_release(storage));
}

TEST(an_exported_tensor_is_our_memory_until_its_deleter)
{
    runtime_begin();
    const sp_tensor tensor = count_up(TESTED);
    sp_tensor view;
    sp_tensor_info info;
    sp_device_info device;
    sp_dlpack_managed *managed;
    CHECK_OK(sp_tensor_slice(tensor, 1, 2, 2, -1, &view));
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    CHECK_OK(sp_device_get_info(info.device, &device));
    CHECK_OK(sp_tensor_to_dlpack(view, (sp_stream){0}, &managed));
    const sp_dlpack_view *dl = &managed->dl_tensor;
    CHECK(managed->version.major == 1 && managed->flags == 0);
    CHECK_EQ_INT(dl->device.device_type,
                 strcmp(device.kind, "cuda") == 0 ? SP_DLPACK_CUDA : SP_DLPACK_CPU);
    CHECK_EQ_INT(dl->device.device_id, 0);
    CHECK(dl->dtype.code == SP_DLPACK_FLOAT && dl->dtype.bits == 32 && dl->dtype.lanes == 1);
    CHECK_EQ_INT(dl->ndim, 2);
    CHECK_EQ_MEM(dl->shape, ((const int64_t[]){2, 2}), 16);
    CHECK_EQ_MEM(dl->strides, ((const int64_t[]){3, -1}), 16);
    CHECK_EQ_U64(dl->byte_offset, 0);
    CHECK_OK(sp_tensor_release(view));
    CHECK_OK(sp_tensor_release(tensor));
    /* Element [0][0] is 2. */
    expect_exported(managed, -2, 6, (const float[]){0, 1, 2, 3, 4, 5});
    if (host_sees(managed)) ((float *)dl->data)[0] = 20; /* it may be written */
    sp_storage_info storage;
    CHECK_OK(sp_storage_get_info(info.storage, &storage));
    managed->deleter(managed);
    CHECK_STATUS(sp_storage_get_info(info.storage, &storage), SP_INVALID);
    runtime_end();
}

TEST(what_goes_out_comes_in_again)
{
    runtime_begin();
    for (int dtype = SP_F32; dtype <= SP_BOOL; dtype++) {
        sp_tensor tensor, back;
        sp_tensor_info info, own;
        sp_dlpack_managed *managed;
        CHECK_OK(sp_tensor_create(TESTED, (sp_dtype)dtype, 1, (const int64_t[]){3}, &tensor));
        CHECK_OK(sp_tensor_get_info(tensor, &own));
        const sp_dlpack_import_options options = {.device = own.device};
        CHECK_OK(sp_tensor_to_dlpack(tensor, (sp_stream){0}, &managed));
        CHECK_OK(sp_tensor_release(tensor));
        CHECK_OK(sp_tensor_from_dlpack(managed, &options, &back));
        CHECK_OK(sp_tensor_get_info(back, &info));
        CHECK_EQ_INT(info.dtype, dtype);
        CHECK_EQ_U64(info.device.bits, own.device.bits);
        CHECK_OK(sp_tensor_release(back));
    }
    let_callbacks_come();
    runtime_end();
}

TEST(an_export_waits_for_writes_or_lets_a_stream_wait)
{
    runtime_begin();
    const sp_tensor tensor = count_up(TESTED);
    const sp_stream writer = new_stream(), consumer = new_stream();
    sp_tensor_info info;
    sp_dlpack_managed *managed;
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    gate blocker = gate_closed(TESTED);
    gate_hold(&blocker, writer);
    fill(writer, info.storage, 0);
    CHECK_OK(sp_tensor_to_dlpack(tensor, consumer, &managed)); /* returns at once */
    CHECK_STATUS(sp_stream_query(consumer), SP_NOT_READY);
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(consumer));
    expect_exported(managed, 5, 1, (const float[]){0});
    managed->deleter(managed);
    submit_slow_fill(writer, info.storage, 0x3f, 5 * MILLISECOND);
    CHECK_OK(sp_tensor_to_dlpack(tensor, (sp_stream){0}, &managed));
    float filled;
    memset(&filled, 0x3f, sizeof filled);
    expect_exported(managed, 5, 1, &filled);
    managed->deleter(managed);
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(writer));
    CHECK_OK(sp_stream_release(consumer));
    CHECK_OK(sp_tensor_release(tensor));
    runtime_end();
}

TEST(a_frozen_tensor_goes_out_read_only)
{
    runtime_begin();
    const sp_tensor tensor = count_up(TESTED);
    const sp_stream consumer = new_stream();
    sp_tensor_info info;
    sp_dlpack_managed *managed;
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    CHECK_OK(sp_storage_freeze(info.storage));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sp_tensor_to_dlpack(tensor, i == 0 ? (sp_stream){0} : consumer, &managed));
        CHECK_EQ_U64(managed->flags, SP_DLPACK_READ_ONLY);
        managed->deleter(managed);
    }
    CHECK_OK(sp_stream_release(consumer));
    CHECK_OK(sp_tensor_release(tensor));
    runtime_end();
}

TEST(exports_that_cannot_be_made_say_why)
{
    runtime_begin();
    const sp_device null = open_null();
    const sp_tensor tensor = count_up(TESTED);
    const sp_stream elsewhere = new_stream_on(null);
    sp_tensor_info info;
    sp_dlpack_managed *managed;
    CHECK_STATUS(sp_tensor_to_dlpack(tensor, (sp_stream){0}, NULL), SP_INVALID);
    CHECK_STATUS(sp_tensor_to_dlpack((sp_tensor){0}, (sp_stream){0}, &managed), SP_INVALID);
    CHECK_STATUS(sp_tensor_to_dlpack(tensor, elsewhere, &managed), SP_INVALID);
    CHECK(managed == NULL);
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    submit_failing(current_stream(), info.storage);
    CHECK_STATUS(sp_tensor_to_dlpack(tensor, (sp_stream){0}, &managed), SP_FAILED);
    CHECK(managed == NULL);
    CHECK_STATUS(sp_stream_synchronize(current_stream()), SP_FAILED);
    CHECK_STATUS(sp_tensor_to_dlpack(tensor, current_stream(), &managed), SP_FAILED);
    CHECK_MESSAGE("fail on stream");
    CHECK(managed == NULL);
    CHECK_OK(sp_stream_release(elsewhere));
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_OK(sp_device_close(null));
    runtime_end();
}

TEST(a_deleter_works_after_a_shutdown)
{
    runtime_begin();
    sp_dlpack_managed *managed;
    const sp_tensor tensor = count_up(CPU);
    CHECK_OK(sp_tensor_to_dlpack(tensor, (sp_stream){0}, &managed));
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_OK(sp_shutdown());
    managed->deleter(managed);
    runtime_end();
}

/* ---- threads ---- */

typedef struct shared {
    sp_tensor tensor;
    sp_atomic_u32 wrong;
} shared;

/* Exports, and imports as another tensor, which the library's own thread deletes. */
static void exchange(void *arg, uint32_t index)
{
    shared *self = arg;
    for (int i = 0; i < 20; i++) {
        sp_dlpack_managed *managed;
        sp_tensor back;
        float got[6];
        if (sp_tensor_to_dlpack(self->tensor, (sp_stream){0}, &managed) != SP_OK) {
            raise_by_one(&self->wrong);
            continue;
        }
        if ((index + (uint32_t)i) % 2 == 0) {
            managed->deleter(managed);
            continue;
        }
        if (sp_tensor_from_dlpack(managed, NULL, &back) != SP_OK ||
            sp_tensor_read(back, got, sizeof got) != SP_OK || got[5] != 5 ||
            sp_tensor_release(back) != SP_OK) {
            raise_by_one(&self->wrong);
        }
    }
}

TEST(threads_exchange_one_tensor_at_the_same_time)
{
    runtime_begin();
    shared self = {.tensor = count_up(CPU)};
    test_threads(31, exchange, &self);
    CHECK_EQ_U64(sp_load_acquire(&self.wrong), 0);
    CHECK_OK(sp_tensor_release(self.tensor));
    let_callbacks_come();
    runtime_end();
}

TEST_MAIN
