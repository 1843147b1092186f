/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a thread: the waits that it ends, and what it may do itself. Waits for room. */
#include "runtime_fixture.h"

#include <string.h>

#include "support/own_memory.h"

/* Gives the wait up at its call number `last`, or opens the gate there. */
typedef struct patience {
    uint32_t calls, last;
    gate *opened; /* NULL: gives up */
} patience;

static sp_status lose_patience(void *ctx)
{
    patience *self = ctx;
    if (++self->calls < self->last) return SP_OK;
    if (self->opened == NULL) return SP_CANCELLED;
    if (self->calls == self->last) gate_open(self->opened);
    return SP_OK;
}

static void close_gate(void *arg)
{
    *(gate *)arg = gate_closed(CPU);
}

/* A fill with 1 that the gate holds, whose host access is not this thread's. */
static sp_storage held_storage(gate *blocker, sp_stream stream)
{
    run_on_thread(close_gate, blocker);
    gate_hold(blocker, stream);
    const sp_storage storage = new_storage(64);
    fill(stream, storage, 1);
    return storage;
}

TEST(a_wait_that_is_given_up_leaves_the_storage_as_it_was)
{
    const sp_access kinds[] = {SP_READ, SP_READ_WRITE, SP_WRITE};
    for (uint32_t i = 0; i < 3; i++) {
        runtime_begin();
        gate blocker;
        patience self = {.last = 3};
        const sp_stream stream = new_stream();
        const sp_storage storage = held_storage(&blocker, stream);
        void *data = &data;
        CHECK_OK(sp_thread_set_wait_check(lose_patience, &self));
        CHECK_STATUS(sp_storage_host_begin(storage, kinds[i], &data), SP_CANCELLED);
        CHECK_MESSAGE("ended by the thread's check");
        CHECK(data == NULL);
        CHECK_EQ_U64(self.calls, 3);
        CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
        CHECK_STATUS(sp_storage_host_end(storage, kinds[i]), SP_INVALID); /* it did not begin */
        gate_open(&blocker);
        CHECK_EQ_INT(first_other(storage, 1), -1);
        fill(stream, storage, 2); /* nothing remained open */
        CHECK_EQ_INT(first_other(storage, 2), -1);
        CHECK_OK(sp_storage_release(storage));
        gate_destroy(&blocker);
        CHECK_OK(sp_stream_release(stream));
        runtime_end();
    }
}

TEST(a_wait_goes_on_while_the_check_is_content)
{
    runtime_begin();
    gate blocker;
    patience self = {.last = 3, .opened = &blocker};
    const sp_stream stream = new_stream();
    const sp_storage storage = held_storage(&blocker, stream);
    CHECK_OK(sp_thread_set_wait_check(lose_patience, &self));
    CHECK_EQ_INT(first_other(storage, 1), -1);
    CHECK(self.calls >= 3);
    const uint32_t calls = self.calls;
    CHECK_EQ_INT(first_other(storage, 1), -1); /* there is nothing to wait for */
    CHECK_EQ_U64(self.calls, calls);
    CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
    CHECK_OK(sp_storage_release(storage));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

/* All fills are to be computed by the thread that waits. */
TEST(a_thread_that_helps_asks_between_two_commands)
{
    enum { FILLS = 100 };
    runtime_begin_with(&(runtime_setting){.workers = "1"});
    busy_worker worker = {0};
    patience self = {.last = 1};
    occupy_worker(&worker);
    const sp_stream stream = new_stream_on(CPU);
    const sp_storage storage = new_storage_on(CPU, 64, false);
    for (int i = 0; i < FILLS; i++) submit_slow_fill(stream, storage, 1, 5 * MILLISECOND);
    void *data;
    CHECK_OK(sp_thread_set_wait_check(lose_patience, &self));
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ, &data), SP_CANCELLED);
    CHECK(info_of(stream).by_helpers > 0);
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
    CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
    CHECK_EQ_INT(first_other(storage, 1), -1);
    let_worker_go(&worker);
    free_worker(&worker);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

typedef struct nested {
    sp_storage storage, other;
    sp_stream stream;
    sp_event event;
} nested;

/* The read that waits is in the way of the fill, and so of a read behind the fill. */
static sp_status read_behind_a_write(void *ctx)
{
    nested *self = ctx;
    void *data;
    fill(self->stream, self->storage, 2);
    CHECK_STATUS(sp_storage_host_begin(self->storage, SP_READ, &data), SP_DEADLOCK);
    CHECK_STATUS(sp_stream_synchronize(self->stream), SP_DEADLOCK);
    CHECK_STATUS(sp_stream_synchronize_for(self->stream, SECOND), SP_DEADLOCK);
    uint32_t which;
    CHECK_OK(sp_event_record(self->event, self->stream));
    CHECK_STATUS(sp_event_synchronize(self->event), SP_DEADLOCK);
    CHECK_STATUS(sp_event_wait_all(&self->event, 1, SP_FOREVER), SP_DEADLOCK);
    CHECK_STATUS(sp_event_wait_any(&self->event, 1, SP_FOREVER, &which), SP_DEADLOCK);
    CHECK_EQ_INT(first_other(self->other, 3), -1);
    CHECK_OK(sp_stream_synchronize(current_stream()));
    return SP_CANCELLED;
}

TEST(a_check_may_wait_but_not_for_what_follows_the_access)
{
    runtime_begin();
    gate blocker;
    const sp_stream stream = new_stream();
    nested self = {.storage = held_storage(&blocker, stream),
                   .other = new_storage(64),
                   .stream = new_stream()};
    void *data;
    fill(current_stream(), self.other, 3);
    CHECK_OK(sp_event_create(NULL, &self.event));
    CHECK_OK(sp_thread_set_wait_check(read_behind_a_write, &self));
    CHECK_STATUS(sp_storage_host_begin(self.storage, SP_READ, &data), SP_CANCELLED);
    CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
    gate_open(&blocker);
    CHECK_EQ_INT(first_other(self.storage, 2), -1);
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_storage_release(self.other));
    CHECK_OK(sp_event_release(self.event));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(self.stream));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

typedef struct nested_check {
    patience outer, inner;
} nested_check;

static sp_status set_another(void *ctx)
{
    nested_check *self = ctx;
    CHECK_OK(sp_thread_set_wait_check(lose_patience, &self->inner));
    CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
    return lose_patience(&self->outer);
}

TEST(a_check_that_is_set_inside_of_one_is_for_then)
{
    runtime_begin();
    gate blocker;
    nested_check self = {.outer = {.last = 4}, .inner = {.last = 1}};
    const sp_stream stream = new_stream();
    const sp_storage storage = held_storage(&blocker, stream);
    void *data;
    CHECK_OK(sp_thread_set_wait_check(set_another, &self));
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ, &data), SP_CANCELLED);
    CHECK_EQ_U64(self.outer.calls, 4);
    CHECK_EQ_U64(self.inner.calls, 0);
    CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
    gate_open(&blocker);
    CHECK_EQ_INT(first_other(storage, 1), -1);
    CHECK_OK(sp_storage_release(storage));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

/* ---- memory ---- */

/* All memory of the device belongs to a command that the gate holds. */
static gate take_all_memory(sp_device device, sp_stream stream)
{
    enum { ALL = 1 << 20 };
    gate blocker;
    run_on_thread(close_gate, &blocker);
    gate_hold(&blocker, stream);
    CHECK_OK(sp_device_set_memory_limit(device, stats_of(device).reserved_bytes + ALL));
    const sp_storage storage = new_storage_on(device, ALL, false);
    fill(stream, storage, 1);
    CHECK_OK(sp_storage_release(storage));
    return blocker;
}

TEST(a_wait_for_memory_is_given_up_or_goes_on)
{
    for (uint32_t i = 0; i < 2; i++) {
        runtime_begin();
        const sp_stream stream = new_stream_on(CPU), other = new_stream_on(CPU);
        gate blocker = take_all_memory(CPU, stream);
        patience self = {.last = 3, .opened = i == 1 ? &blocker : NULL};
        sp_storage storage = {0};
        CHECK_OK(sp_stream_set_current(other));
        CHECK_OK(sp_thread_set_wait_check(lose_patience, &self));
        const sp_status status = sp_storage_create(CPU, 1 << 20, NULL, &storage);
        CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
        if (i == 0) {
            CHECK_STATUS(status, SP_CANCELLED);
            CHECK_MESSAGE("ended by the thread's check");
            CHECK_EQ_U64(self.calls, 3);
            gate_open(&blocker);
        } else {
            CHECK_OK(status);
            CHECK(self.calls >= 3);
        }
        CHECK_OK(sp_storage_release(storage));
        gate_destroy(&blocker);
        CHECK_OK(sp_stream_release(other));
        CHECK_OK(sp_stream_release(stream));
        runtime_end();
    }
}

/* ---- room on a full stream ---- */

typedef struct full_stream {
    sp_device device;
    sp_stream stream;
    gate blocker;
    sp_event event; /* with times, so that each record is a command */
} full_stream;

static void close_gate_of(void *arg)
{
    full_stream *self = arg;
    self->blocker = gate_closed(self->device);
}

static sp_status record_many(const full_stream *self)
{
    for (int i = 0; i < 2000; i++) SP_TRY(sp_event_record(self->event, self->stream));
    return SP_OK;
}

/* A stream that is full of commands, none of which has begun. */
static full_stream full_stream_begin(void)
{
    full_stream self;
    runtime_begin();
    self.device = open_own_memory_with((sp_null_options){.queue_bytes = 65536});
    self.stream = new_stream_on(self.device);
    run_on_thread(close_gate_of, &self); /* an access of another thread */
    gate_hold(&self.blocker, self.stream);
    CHECK_OK(sp_event_create(&(sp_event_options){.enable_timing = true}, &self.event));
    CHECK_STATUS(record_many(&self), SP_BUSY);
    CHECK_MESSAGE("is full");
    return self;
}

static void full_stream_end(full_stream *self)
{
    CHECK_OK(sp_thread_set_wait_for_room(false));
    gate_destroy(&self->blocker);
    CHECK_OK(sp_event_release(self->event));
    CHECK_OK(sp_stream_release(self->stream));
    runtime_end();
}

static void open_gate_later(void *arg)
{
    sp_clock_sleep(20 * MILLISECOND);
    gate_open(arg);
}

TEST(a_call_waits_for_room_if_its_thread_is_to)
{
    full_stream self = full_stream_begin();
    sp_thread thread;
    CHECK_OK(sp_thread_set_wait_for_room(true));
    CHECK_OK(sp_thread_create(&thread, "opener", open_gate_later, &self.blocker));
    CHECK_OK(record_many(&self));
    sp_thread_join(&thread);
    CHECK_OK(sp_stream_synchronize(self.stream));
    full_stream_end(&self);
}

TEST(a_wait_for_room_is_given_up)
{
    full_stream self = full_stream_begin();
    patience check = {.last = 3};
    CHECK_OK(sp_thread_set_wait_for_room(true));
    CHECK_OK(sp_thread_set_wait_check(lose_patience, &check));
    CHECK_STATUS(record_many(&self), SP_CANCELLED);
    CHECK_EQ_U64(check.calls, 3);
    CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
    gate_open(&self.blocker);
    full_stream_end(&self);
}

static void record_inside(void *ctx, sp_status status)
{
    (void)status;
    CHECK_OK(sp_thread_set_wait_for_room(true));
    CHECK_STATUS(record_many(ctx), SP_BUSY);
    CHECK_OK(sp_thread_set_wait_for_room(false));
}

TEST(a_call_that_must_not_wait_is_refused)
{
    full_stream self = full_stream_begin();
    void *data;
    const sp_stream other = new_stream_on(CPU);
    CHECK_OK(sp_stream_host_function(other, record_inside, &self));
    CHECK_OK(sp_stream_synchronize(other));
    gate_open(&self.blocker);
    CHECK_OK(sp_stream_synchronize(self.stream));
    /* Behind an access of this thread. */
    const sp_storage storage = new_storage_on(self.device, 64, false);
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    fill(self.stream, storage, 1);
    CHECK_OK(sp_thread_set_wait_for_room(true));
    CHECK_STATUS(record_many(&self), SP_BUSY);
    CHECK_MESSAGE("is full");
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_OK(record_many(&self));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(other));
    full_stream_end(&self);
}

TEST_MAIN
