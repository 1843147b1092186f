/* SPDX-License-Identifier: Apache-2.0 */
/* Memory adopted before it is ready: every use is ordered behind that, and inherits its failure. */
#include "runtime_fixture.h"

#include <string.h>

#include <streampool/command_list.h>
#include <streampool/null_device.h>

#include "base/clock.h"
#include "runtime/storage.h"

typedef struct producer {
    sp_stream stream;
    sp_event event;
    gate blocker;
    unsigned char bytes[64];
} producer;

/* The producer of the memory waits until the gate is opened, and then fails if `is_bad`. */
static void producer_begin(producer *self, bool is_bad)
{
    memset(self, 0, sizeof *self);
    self->stream = new_stream();
    self->blocker = gate_closed(CPU);
    CHECK_OK(sp_event_create(NULL, &self->event));
    gate_hold(&self->blocker, self->stream);
    if (is_bad) submit_failing(self->stream, (sp_storage){0});
    CHECK_OK(sp_event_record(self->event, self->stream));
}

/* The gate must be open. */
static void producer_end(producer *self)
{
    (void)sp_stream_synchronize(self->stream);
    gate_destroy(&self->blocker);
    CHECK_OK(sp_event_release(self->event));
    CHECK_OK(sp_stream_release(self->stream));
}

static sp_storage adopt(producer *self, bool is_untracked)
{
    sp_storage storage;
    const sp_adopt_options options = {.is_untracked = is_untracked, .ready = self->event};
    CHECK_OK(sp_storage_adopt(CPU, self->bytes, 64, &options, &storage));
    return storage;
}

static sp_status host_read(sp_storage storage)
{
    void *data;
    const sp_status status = sp_storage_host_begin(storage, SP_READ, &data);
    if (status == SP_OK) CHECK_OK(sp_storage_host_end(storage, SP_READ));
    return status;
}

/* Copies the storage on a separate stream, and reads the copy on the host. */
static sp_status consume(sp_storage storage)
{
    const sp_stream stream = new_stream();
    const sp_storage to = new_storage(64);
    copy(stream, to, storage);
    const sp_status status = sp_stream_synchronize(stream);
    CHECK_STATUS(host_read(to), status);
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_stream_release(stream));
    return status;
}

TEST(copies_and_host_reads_get_the_failure_of_the_event_at_which_memory_was_to_be_ready)
{
    for (int i = 0; i < 4; i++) {
        runtime_begin();
        producer from;
        producer_begin(&from, true);
        const sp_storage storage = adopt(&from, i % 2 != 0);
        const sp_stream early = new_stream();
        const sp_storage to = new_storage(64);
        if (i < 2) copy(early, to, storage); /* before it has failed */
        gate_open(&from.blocker);
        CHECK_STATUS(sp_event_synchronize(from.event), SP_FAILED);
        CHECK_STATUS(sp_stream_synchronize(early), i < 2 ? SP_FAILED : SP_OK);
        for (int k = 0; k < 2; k++) {
            CHECK_STATUS(consume(storage), SP_FAILED);
            CHECK_STATUS(host_read(storage), SP_FAILED);
            CHECK_MESSAGE("asked to fail");
        }
        CHECK_STATUS(sp_storage_freeze(storage), SP_FAILED);
        CHECK_OK(sp_storage_release(to));
        CHECK_OK(sp_storage_release(storage));
        CHECK_OK(sp_stream_release(early));
        producer_end(&from);
        runtime_end();
    }
}

TEST(a_host_read_that_waits_for_the_event_gets_its_failure)
{
    runtime_begin();
    const sp_device null = open_null();
    const sp_stream stream = new_stream_on(null);
    const sp_storage target = new_storage_on(null, 64, false);
    unsigned char bytes[64] = {0};
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_null_set_latency(null, 20 * MILLISECOND));
    CHECK_OK(sp_null_fail_command(null, 0));
    fill(stream, target, 1);
    CHECK_OK(sp_event_record(event, stream));
    sp_storage storage;
    const sp_adopt_options options = {.ready = event};
    CHECK_OK(sp_storage_adopt(CPU, bytes, 64, &options, &storage));
    CHECK_STATUS(host_read(storage), SP_FAILED);
    CHECK_STATUS(host_read(storage), SP_FAILED);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_release(target));
    CHECK_OK(sp_event_release(event));
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_write_of_all_the_memory_ends_the_failure_and_a_write_of_a_part_does_not)
{
    for (int i = 0; i < 4; i++) { /* tracked or not; before the failure or after it */
        runtime_begin();
        producer from;
        producer_begin(&from, true);
        const sp_storage storage = adopt(&from, i % 2 != 0);
        const sp_stream stream = new_stream();
        const uint8_t value = 5;
        if (i >= 2) gate_open(&from.blocker);
        if (i >= 2) CHECK_STATUS(sp_event_synchronize(from.event), SP_FAILED);
        CHECK_OK(sp_storage_fill_async(stream, (sp_storage_range){storage, 0, 32}, &value, 1));
        const sp_storage to = new_storage(64);
        copy(stream, to, storage);
        if (i < 2) gate_open(&from.blocker);
        CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
        CHECK_STATUS(host_read(storage), SP_FAILED);
        fill(stream, storage, 6);
        copy(stream, to, storage);
        CHECK_OK(sp_stream_synchronize(stream));
        CHECK_EQ_INT(first_other(to, 6), -1);
        CHECK_EQ_INT(first_other(storage, 6), -1);
        CHECK_OK(sp_storage_release(to));
        CHECK_OK(sp_storage_release(storage));
        CHECK_OK(sp_stream_release(stream));
        producer_end(&from);
        runtime_end();
    }
}

TEST(a_write_of_all_that_was_submitted_before_the_failure_ends_it)
{
    runtime_begin();
    producer from;
    producer_begin(&from, true);
    const sp_storage storage = adopt(&from, false);
    const sp_stream stream = new_stream();
    fill(stream, storage, 6);
    const sp_storage to = new_storage(64);
    copy(stream, to, storage);
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY); /* it still comes after the producer */
    gate_open(&from.blocker);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(consume(storage));
    CHECK_EQ_INT(first_other(storage, 6), -1);
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    producer_end(&from);
    runtime_end();
}

TEST(a_list_that_overwrites_all_of_the_memory_before_it_reads_it_ends_the_failure)
{
    for (int i = 0; i < 4; i++) { /* all of it or a part; before the failure or after it */
        runtime_begin();
        producer from;
        producer_begin(&from, true);
        const sp_storage storage = adopt(&from, false);
        const sp_stream stream = new_stream();
        const sp_storage to = new_storage(64);
        const uint8_t value = 6;
        const sp_status status = i % 2 == 0 ? SP_OK : SP_FAILED;
        sp_command_list list;
        CHECK_OK(sp_command_list_create(CPU, &list));
        const sp_storage_range filled = {storage, 0, status == SP_OK ? 64 : 32};
        CHECK_OK(sp_command_list_fill(list, filled, &value, 1));
        CHECK_OK(sp_command_list_copy(list, (sp_storage_range){to, 0, 64},
                                      (sp_storage_range){storage, 0, 64}));
        if (i >= 2) gate_open(&from.blocker);
        if (i >= 2) CHECK_STATUS(sp_event_synchronize(from.event), SP_FAILED);
        CHECK_OK(sp_stream_submit_list(stream, list));
        if (i < 2) CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
        if (i < 2) gate_open(&from.blocker);
        CHECK_STATUS(sp_stream_synchronize(stream), status);
        CHECK_STATUS(host_read(storage), status);
        CHECK_STATUS(host_read(to), status);
        CHECK_OK(sp_command_list_release(list));
        CHECK_OK(sp_storage_release(to));
        CHECK_OK(sp_storage_release(storage));
        CHECK_OK(sp_stream_release(stream));
        producer_end(&from);
        runtime_end();
    }
}

TEST(a_host_access_that_writes_all_ends_the_failure)
{
    runtime_begin();
    producer from;
    producer_begin(&from, true);
    const sp_storage storage = adopt(&from, false);
    gate_open(&from.blocker);
    void *data;
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ_WRITE, &data), SP_FAILED);
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, &data));
    memset(data, 3, 64);
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
    CHECK_OK(consume(storage));
    CHECK_OK(sp_storage_freeze(storage));
    CHECK_OK(sp_storage_release(storage));
    producer_end(&from);
    runtime_end();
}

typedef struct overwritten {
    producer from;
    sp_storage storage;
    sp_stream stream;
    sp_storage to;
    sp_atomic_u32 step;
} overwritten;

/* Waits until the access is in the storage's frontier. */
static void await_access(sp_storage handle)
{
    const uint64_t deadline = sp_clock_deadline(30 * SECOND);
    for (bool is_there = false; !is_there; sp_clock_sleep(20000)) {
        sp_rt_storage *storage = sp__storage_peek(handle);
        REQUIRE(sp__storage_lock(storage, handle));
        is_there = storage->tickets != NULL;
        sp_mutex_unlock(&storage->lock);
        REQUIRE(sp_clock_now() < deadline);
    }
}

static void overwrite_or_follow(void *arg, uint32_t index)
{
    overwritten *self = arg;
    if (index == 0) {
        void *data;
        CHECK_OK(sp_storage_host_begin(self->storage, SP_WRITE, &data));
        memset(data, 7, 64);
        CHECK_OK(sp_storage_host_end(self->storage, SP_WRITE));
    } else if (index == 1) {
        await_access(self->storage);
        copy(self->stream, self->to, self->storage);
        raise_by_one(&self->step);
        CHECK_OK(host_read(self->storage));
    } else {
        await_at_least(&self->step, 1);
        gate_open(&self->from.blocker);
    }
}

TEST(uses_behind_a_host_access_that_writes_all_do_not_get_the_failure)
{
    runtime_begin();
    overwritten self = {0};
    producer_begin(&self.from, true);
    self.storage = adopt(&self.from, false);
    self.stream = new_stream();
    self.to = new_storage(64);
    test_threads(3, overwrite_or_follow, &self);
    CHECK_OK(sp_stream_synchronize(self.stream));
    CHECK_EQ_INT(first_other(self.to, 7), -1);
    CHECK_OK(sp_storage_release(self.to));
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    producer_end(&self.from);
    runtime_end();
}

TEST(uses_after_a_refused_write_access_get_the_failure)
{
    runtime_begin();
    producer from;
    producer_begin(&from, true);
    const sp_storage storage = adopt(&from, false);
    const sp_storage held = new_storage(64);
    const sp_stream stream = new_stream();
    void *data;
    CHECK_OK(sp_storage_host_begin(held, SP_READ, &data));
    copy(stream, held, storage); /* waits for this thread */
    CHECK_STATUS(sp_storage_host_begin(storage, SP_WRITE, &data), SP_DEADLOCK);
    CHECK_OK(sp_storage_host_end(held, SP_READ));
    const sp_stream after = new_stream();
    const sp_storage to = new_storage(64);
    copy(after, to, storage);
    gate_open(&from.blocker);
    CHECK_STATUS(sp_stream_synchronize(after), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_STATUS(host_read(storage), SP_FAILED);
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_storage_release(held));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(after));
    CHECK_OK(sp_stream_release(stream));
    producer_end(&from);
    runtime_end();
}

TEST(uses_of_untracked_adopted_memory_come_behind_its_event)
{
    runtime_begin();
    producer from;
    producer_begin(&from, false);
    const sp_storage storage = adopt(&from, true);
    const sp_stream stream = new_stream();
    const sp_storage to = new_storage(64);
    copy(stream, to, storage);
    CHECK_STATUS(sp_stream_synchronize_for(stream, 2 * MILLISECOND), SP_TIMEOUT);
    fill(stream, storage, 9);
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
    gate_open(&from.blocker);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_EQ_INT(first_other(to, 0), -1);
    CHECK_EQ_INT(first_other(storage, 9), -1);
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    producer_end(&from);
    runtime_end();
}

/* ---- after a stream ---- */

TEST(memory_that_is_ready_after_a_stream_gets_every_failure_of_that_lease)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage other = new_storage(64);
    unsigned char bytes[64] = {0};
    sp_storage storage;
    const sp_adopt_options options = {.ready_after = stream};
    submit_failing(stream, (sp_storage){0});
    fill(stream, other, 1); /* succeeds, and is the newest command */
    CHECK_OK(sp_storage_adopt(CPU, bytes, 64, &options, &storage));
    CHECK_STATUS(consume(storage), SP_FAILED);
    CHECK_STATUS(host_read(storage), SP_FAILED);
    CHECK_OK(sp_storage_release(storage));
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_storage_adopt(CPU, bytes, 64, &options, &storage)); /* the failure is over */
    CHECK_OK(consume(storage));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_release(other));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(uses_on_the_stream_that_memory_is_ready_after_get_its_failure)
{
    runtime_begin();
    producer from;
    producer_begin(&from, true);
    const sp_storage storage = adopt(&from, false);
    const sp_storage to = new_storage(64);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    copy(from.stream, to, storage);
    CHECK_OK(sp_event_record(event, from.stream));
    gate_open(&from.blocker);
    CHECK_STATUS(sp_event_synchronize(event), SP_FAILED);
    CHECK_STATUS(host_read(to), SP_FAILED);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_storage_release(storage));
    producer_end(&from);
    runtime_end();
}

TEST(frozen_memory_that_was_not_produced_is_not_adopted)
{
    runtime_begin();
    producer from;
    producer_begin(&from, true);
    gate_open(&from.blocker);
    sp_storage storage = {1};
    const sp_adopt_options options = {.ready = from.event, .is_frozen = true};
    CHECK_STATUS(sp_storage_adopt(CPU, from.bytes, 64, &options, &storage), SP_FAILED);
    CHECK_MESSAGE("asked to fail");
    CHECK_EQ_U64(storage.bits, 0);
    producer_end(&from);
    runtime_end();
}

typedef struct untold {
    sp_stream stream;
    sp_storage storage;
} untold;

static void fail_untold(void *arg)
{
    const untold *self = arg;
    submit_failing(self->stream, self->storage);
}

/* The call returns the failure of another thread on the lease, which is so reported to this one. */
TEST(frozen_memory_of_a_failed_lease_is_reported_by_the_call_alone)
{
    runtime_begin();
    const untold self = {.stream = new_stream(), .storage = new_storage_on(CPU, 64, true)};
    unsigned char bytes[64] = {0};
    const sp_adopt_options options = {.ready_after = self.stream, .is_frozen = true};
    for (int is_own = 0; is_own < 2; is_own++) {
        sp_storage storage;
        run_on_thread(fail_untold, (void *)(uintptr_t)&self);
        if (is_own == 1) submit_failing(self.stream, self.storage); /* no call returns it */
        CHECK_STATUS(sp_storage_adopt(CPU, bytes, 64, &options, &storage), SP_FAILED);
        CHECK_MESSAGE("asked to fail");
        CHECK_STATUS(sp_stream_synchronize(self.stream), is_own == 1 ? SP_FAILED : SP_OK);
        CHECK_OK(sp_storage_adopt(CPU, bytes, 64, &options, &storage));
        CHECK_OK(sp_storage_release(storage));
        CHECK_OK(sp_stream_synchronize(self.stream));
    }
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

TEST(a_stream_of_another_device_does_not_use_memory_that_is_ready_after_it)
{
    runtime_begin();
    const sp_device null = open_null();
    const sp_stream stream = new_stream_on(null);
    unsigned char bytes[64] = {0};
    const uint8_t value = 7;
    for (int i = 0; i < 2; i++) {
        sp_storage storage;
        const sp_adopt_options options = {.ready_after = i == 0 ? stream : (sp_stream){0}};
        CHECK_OK(sp_storage_adopt(CPU, bytes, 64, &options, &storage));
        CHECK_STATUS(sp_storage_fill_async(stream, whole(storage), &value, 1), SP_INVALID);
        CHECK_MESSAGE("is used on a stream of device null");
        CHECK_OK(sp_storage_release(storage));
    }
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_EQ_U64(bytes[0], 0);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST_MAIN
