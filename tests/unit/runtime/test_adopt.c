/* SPDX-License-Identifier: Apache-2.0 */
/* Adopted memory: ready events, and the owner's callback after the last use. */
#include "runtime_fixture.h"

#include "device/thread_record.h"

typedef struct owner {
    unsigned char bytes[256];
    sp_atomic_u32 released;
    bool was_executor;
    void *data;
    unsigned char last; /* the last byte when it was released */
} owner;

static void note_release(void *ctx, void *data)
{
    owner *self = ctx;
    self->data = data;
    self->last = self->bytes[255];
    self->was_executor = sp__thread_record()->is_executor;
    raise_by_one(&self->released);
}

static sp_storage adopt(owner *self, sp_event ready)
{
    sp_storage storage;
    const sp_adopt_options options = {.ready = ready, .release = note_release, .ctx = self};
    CHECK_OK(sp_storage_adopt(CPU, self->bytes, sizeof self->bytes, &options, &storage));
    return storage;
}

TEST(adopted_memory_is_used_where_it_is)
{
    runtime_begin();
    owner self = {.released = {0}};
    const sp_storage storage = adopt(&self, (sp_event){0});
    sp_storage_info info;
    CHECK_OK(sp_storage_get_info(storage, &info));
    CHECK(info.is_adopted && info.is_tracked);
    CHECK_EQ_U64(info.bytes, 256);
    CHECK(address_of(storage) == self.bytes);
    fill(current_stream(), storage, 9);
    CHECK_OK(sp_stream_synchronize(current_stream()));
    CHECK_EQ_U64(self.bytes[255], 9);
    CHECK_EQ_U64(stats_of(CPU).reserved_bytes, 0);
    CHECK_OK(sp_storage_release(storage));
    await_at_least(&self.released, 1);
    CHECK(self.data == self.bytes);
    CHECK(self.was_executor);
    runtime_end();
    CHECK_EQ_U64(sp_load_acquire(&self.released), 1);
}

TEST(adopted_memory_is_ready_after_what_a_stream_had_at_the_call)
{
    runtime_begin();
    owner self = {.released = {0}};
    gate blocker = gate_closed(CPU);
    const sp_device null = open_null();
    const sp_stream producer = new_stream();
    const sp_stream elsewhere = new_stream_on(null);
    const sp_stream reader = new_stream();
    gate_hold(&blocker, producer);
    sp_storage storage;
    sp_adopt_options options = {.ready_after = producer, .release = note_release, .ctx = &self};
    CHECK_OK(sp_storage_adopt(CPU, self.bytes, sizeof self.bytes, &options, &storage));
    gate later = gate_closed(CPU); /* later commands do not count */
    gate_hold(&later, producer);
    fill(reader, storage, 1);
    CHECK_STATUS(sp_stream_query(reader), SP_NOT_READY);
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(reader));
    CHECK_STATUS(sp_stream_query(producer), SP_NOT_READY);
    gate_open(&later);
    CHECK_OK(sp_storage_release(storage));
    await_at_least(&self.released, 1);

    options.ready_after = elsewhere; /* of another device */
    CHECK_OK(sp_storage_adopt(CPU, self.bytes, sizeof self.bytes, &options, &storage));
    fill(reader, storage, 2);
    CHECK_OK(sp_stream_synchronize(reader));
    CHECK_OK(sp_storage_release(storage));
    await_at_least(&self.released, 2);
    gate_destroy(&blocker);
    gate_destroy(&later);
    CHECK_OK(sp_stream_release(producer));
    CHECK_OK(sp_stream_release(elsewhere));
    CHECK_OK(sp_stream_release(reader));
    runtime_end();
}

TEST(adopted_memory_is_not_ready_at_an_event_and_after_a_stream)
{
    runtime_begin();
    unsigned char bytes[64];
    sp_storage storage;
    sp_event event;
    const sp_stream stream = new_stream();
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, stream));
    const sp_adopt_options both = {.ready = event, .ready_after = stream};
    CHECK_STATUS(sp_storage_adopt(CPU, bytes, 64, &both, &storage), SP_INVALID);
    CHECK_OK(sp_stream_release(stream));
    const sp_adopt_options stale = {.ready_after = stream};
    CHECK_STATUS(sp_storage_adopt(CPU, bytes, 64, &stale, &storage), SP_INVALID);
    CHECK_EQ_U64(storage.bits, 0);
    CHECK_OK(sp_event_release(event));
    runtime_end();
}

TEST(the_owner_is_called_after_the_last_queued_use)
{
    runtime_begin();
    owner self = {.released = {0}};
    gate blocker = gate_closed(CPU);
    const sp_storage storage = adopt(&self, (sp_event){0});
    sp_stream streams[3];
    sp_storage to[2];
    for (int i = 0; i < 3; i++) {
        streams[i] = new_stream();
        gate_hold(&blocker, streams[i]);
    }
    for (int i = 0; i < 2; i++) {
        to[i] = new_storage(256);
        copy(streams[i], to[i], storage);
    }
    submit_slow_fill(streams[2], storage, 77, 10 * MILLISECOND);
    CHECK_OK(sp_storage_release(storage));
    CHECK_STATUS(sp_storage_release(storage), SP_INVALID);
    let_callbacks_come();
    CHECK_EQ_U64(sp_load_acquire(&self.released), 0);
    gate_open(&blocker);
    await_at_least(&self.released, 1);
    CHECK_EQ_U64(self.last, 77); /* the slowest of them had written */
    for (int i = 0; i < 3; i++) CHECK_OK(sp_stream_release(streams[i]));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(to[i]));
    gate_destroy(&blocker);
    runtime_end();
}

TEST(a_recorded_stream_and_untracked_uses_keep_the_owner_waiting)
{
    runtime_begin();
    owner owners[2] = {{.released = {0}}, {.released = {0}}};
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    const sp_storage recorded = adopt(&owners[0], (sp_event){0});
    const sp_adopt_options options = {
        .is_untracked = true, .release = note_release, .ctx = &owners[1]};
    sp_storage untracked;
    CHECK_OK(sp_storage_adopt(CPU, owners[1].bytes, 256, &options, &untracked));
    CHECK_OK(sp_storage_record_stream(recorded, stream));
    gate_hold(&blocker, stream);
    fill(stream, untracked, 3);
    CHECK_OK(sp_storage_release(recorded));
    CHECK_OK(sp_storage_release(untracked));
    let_callbacks_come();
    for (int i = 0; i < 2; i++) CHECK_EQ_U64(sp_load_acquire(&owners[i].released), 0);
    gate_open(&blocker);
    for (int i = 0; i < 2; i++) await_at_least(&owners[i].released, 1);
    CHECK_EQ_U64(owners[1].last, 3);
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

/* A held stream, and on it the event at which memory is ready: reached after the gate is opened. */
typedef struct producer {
    gate blocker;
    sp_stream stream;
    sp_event ready; /* released by the test */
} producer;

static void producer_begin(producer *self)
{
    self->blocker = gate_closed(CPU);
    self->stream = new_stream();
    CHECK_OK(sp_event_create(NULL, &self->ready));
    gate_hold(&self->blocker, self->stream);
    CHECK_OK(sp_event_record(self->ready, self->stream));
}

static void producer_end(producer *self)
{
    gate_destroy(&self->blocker);
    CHECK_OK(sp_stream_release(self->stream));
}

TEST(adopted_memory_is_not_touched_before_its_event)
{
    runtime_begin();
    owner self = {.bytes = {0}};
    producer from;
    producer_begin(&from);
    const sp_storage storage = adopt(&self, from.ready);
    CHECK_OK(sp_event_release(from.ready)); /* the storage keeps its point */
    fill(current_stream(), storage, 1);
    CHECK_STATUS(sp_stream_synchronize_for(current_stream(), 2 * MILLISECOND), SP_TIMEOUT);
    CHECK_EQ_U64(self.bytes[0], 0);
    gate_open(&from.blocker);
    CHECK_EQ_INT(first_other(storage, 1), -1);
    CHECK_OK(sp_storage_release(storage));
    await_at_least(&self.released, 1);
    producer_end(&from);
    runtime_end();
}

TEST(memory_that_was_never_used_is_returned_when_its_event_is_reached)
{
    runtime_begin();
    owner self = {.bytes = {0}};
    producer from;
    producer_begin(&from);
    CHECK_OK(sp_storage_release(adopt(&self, from.ready)));
    let_callbacks_come();
    CHECK_EQ_U64(sp_load_acquire(&self.released), 0);
    gate_open(&from.blocker);
    await_at_least(&self.released, 1);
    CHECK_OK(sp_event_release(from.ready));
    producer_end(&from);
    runtime_end();
}

TEST(bad_arguments_adopt_nothing)
{
    runtime_begin();
    unsigned char byte = 0;
    sp_storage storage = {1};
    CHECK_STATUS(sp_storage_adopt(CPU, NULL, 1, NULL, &storage), SP_INVALID);
    CHECK_EQ_U64(storage.bits, 0);
    CHECK_STATUS(sp_storage_adopt(CPU, &byte, 1, NULL, NULL), SP_INVALID);
    const sp_adopt_options stale = {.ready = {12345}};
    CHECK_STATUS(sp_storage_adopt(CPU, &byte, 1, &stale, &storage), SP_INVALID);
    CHECK_STATUS(sp_storage_adopt((sp_device){99}, &byte, 1, NULL, &storage), SP_INVALID);
    /* Memory that wraps around the end of the address space is invalid. */
    CHECK_STATUS(sp_storage_adopt(CPU, &byte, UINT64_MAX, NULL, &storage), SP_INVALID);
    CHECK_MESSAGE("18446744073709551615 bytes");
    CHECK_EQ_U64(storage.bits, 0);
    CHECK_STATUS(sp_storage_adopt(CPU, NULL, UINT64_MAX, NULL, &storage), SP_INVALID);
    CHECK_OK(sp_storage_adopt(CPU, NULL, 0, NULL, &storage));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_adopt(CPU, &byte, 1, NULL, &storage)); /* no callback */
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(adopted_memory_serves_other_memory_when_its_object_is_used_again)
{
    runtime_begin();
    for (int i = 0; i < 200; i++) {
        owner self = {.released = {0}};
        const sp_storage adopted = adopt(&self, (sp_event){0});
        const sp_storage own = new_storage(256);
        fill(current_stream(), own, (uint8_t)i);
        copy(current_stream(), adopted, own);
        CHECK_OK(sp_storage_release(own));
        CHECK_OK(sp_storage_release(adopted));
        await_at_least(&self.released, 1);
        CHECK_EQ_U64(self.last, (uint8_t)i);
    }
    runtime_end();
}

/* ---- owner callbacks ---- */

typedef struct busy_owner {
    owner first;
    owner second; /* adopted inside the first one's callback */
    sp_stream stream;
    sp_device device;
    sp_status failure, shutdown, close;
    sp_atomic_u32 is_done;
} busy_owner;

static void do_everything(void *ctx, void *data)
{
    busy_owner *self = ctx;
    CHECK(data == self->first.bytes);
    const sp_storage storage = new_storage(64);
    fill(self->stream, storage, 7);
    CHECK_EQ_INT(first_other(storage, 7), -1);
    submit_failing(self->stream, storage);
    self->failure = sp_stream_synchronize(self->stream);
    CHECK_OK(sp_storage_release(storage));
    self->shutdown = sp_shutdown();
    self->close = sp_device_close(self->device);
    const sp_storage again = adopt(&self->second, (sp_event){0});
    fill(self->stream, again, 9);
    CHECK_OK(sp_storage_release(again));
    raise_by_one(&self->is_done);
}

TEST(an_owner_submits_waits_fails_and_cannot_close)
{
    runtime_begin();
    busy_owner self = {.stream = new_stream(), .device = open_null()};
    const sp_adopt_options options = {.release = do_everything, .ctx = &self};
    sp_storage storage;
    CHECK_OK(sp_storage_adopt(CPU, self.first.bytes, 256, &options, &storage));
    fill(current_stream(), storage, 1);
    CHECK_OK(sp_storage_release(storage));
    await_at_least(&self.is_done, 1);
    await_at_least(&self.second.released, 1);
    CHECK_EQ_U64(self.second.last, 9);
    CHECK_STATUS(self.failure, SP_FAILED);
    CHECK_STATUS(self.shutdown, SP_DEADLOCK);
    CHECK_STATUS(self.close, SP_DEADLOCK);
    CHECK_OK(sp_stream_synchronize(self.stream)); /* not this thread's failure */
    CHECK_OK(sp_device_close(self.device));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
    CHECK_EQ_U64(sp_load_acquire(&self.is_done), 1);
    CHECK_EQ_U64(sp_load_acquire(&self.second.released), 1);
}

/* ---- the end of the runtime ---- */

TEST(shutdown_waits_for_pending_owners)
{
    runtime_begin();
    owner owners[16];
    for (int i = 0; i < 16; i++) {
        owners[i] = (owner){.released = {0}};
        const sp_storage storage = adopt(&owners[i], (sp_event){0});
        submit_slow_fill(current_stream(), storage, (uint8_t)i, MILLISECOND);
        CHECK_OK(sp_storage_release(storage));
    }
    CHECK_OK(sp_shutdown());
    for (int i = 0; i < 16; i++) {
        CHECK_EQ_U64(sp_load_acquire(&owners[i].released), 1);
        CHECK_EQ_U64(owners[i].last, (uint8_t)i);
    }
    runtime_end();
}

TEST(a_release_after_shutdown_calls_nobody)
{
    runtime_begin();
    owner self = {.released = {0}};
    const sp_storage storage = adopt(&self, (sp_event){0});
    fill(current_stream(), storage, 1);
    CHECK_OK(sp_shutdown());
    CHECK_OK(sp_storage_release(storage)); /* releases still work */
    CHECK_STATUS(sp_storage_release(storage), SP_INVALID);
    runtime_end();
    CHECK_EQ_U64(sp_load_acquire(&self.released), 0);
}

typedef struct ending {
    owner owners[64];
    sp_storage storages[64];
    sp_atomic_u32 is_down;
    sp_atomic_u32 too_late; /* calls after sp_shutdown had returned */
} ending;

static void note_time(void *ctx, void *data)
{
    ending *self = ctx;
    (void)data;
    if (sp_load_acquire(&self->is_down)) raise_by_one(&self->too_late);
    raise_by_one(&self->owners[0].released);
}

static void release_or_shut_down(void *arg, uint32_t index)
{
    ending *self = arg;
    if (index == 4) {
        CHECK_OK(sp_shutdown());
        sp_store_release(&self->is_down, 1);
        return;
    }
    for (uint32_t i = index; i < 64; i += 4) CHECK_OK(sp_storage_release(self->storages[i]));
}

TEST(releases_beside_a_shutdown_are_called_before_it_returns_or_never)
{
    const uint64_t rounds = test_count(2000, 100);
    for (uint64_t round = 0; round < rounds; round++) {
        runtime_begin();
        ending self = {.is_down = {0}};
        const sp_adopt_options options = {.release = note_time, .ctx = &self};
        for (int i = 0; i < 64; i++) {
            CHECK_OK(sp_storage_adopt(CPU, self.owners[i].bytes, 256, &options, &self.storages[i]));
            fill(current_stream(), self.storages[i], 1);
        }
        test_threads(5, release_or_shut_down, &self);
        const uint32_t released = sp_load_acquire(&self.owners[0].released);
        runtime_end();
        CHECK_EQ_U64(sp_load_acquire(&self.too_late), 0);
        CHECK_EQ_U64(sp_load_acquire(&self.owners[0].released), released);
    }
}

TEST(memory_adopted_frozen_is_only_read_and_its_next_life_is_written)
{
    runtime_begin();
    for (int i = 0; i < 2; i++) {
        owner self = {.released = {0}};
        sp_storage storage;
        const sp_adopt_options options = {
            .is_frozen = i == 0, .release = note_release, .ctx = &self};
        CHECK_OK(sp_storage_adopt(CPU, self.bytes, sizeof self.bytes, &options, &storage));
        const uint8_t one = 1;
        CHECK_STATUS(sp_storage_fill_async(current_stream(), whole(storage), &one, 1),
                     i == 0 ? SP_INVALID : SP_OK);
        CHECK_OK(sp_storage_release(storage));
        await_at_least(&self.released, 1);
    }
    runtime_end();
}

TEST_MAIN
