/* SPDX-License-Identifier: Apache-2.0 */
/* Events: record, query, wait on the host and on the device, several at once, failures. */
#include "runtime_fixture.h"

static sp_event new_event(void)
{
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    return event;
}

static sp_event recorded_on(sp_stream stream)
{
    const sp_event event = new_event();
    CHECK_OK(sp_event_record(event, stream));
    return event;
}

TEST(an_event_never_recorded_is_an_error_wherever_it_is_used)
{
    runtime_begin();
    const sp_event event = new_event();
    const sp_stream stream = current_stream();
    uint32_t which = 7;
    CHECK_STATUS(sp_event_query(event), SP_INVALID);
    CHECK_MESSAGE("never recorded");
    CHECK_STATUS(sp_event_synchronize(event), SP_INVALID);
    CHECK_STATUS(sp_event_synchronize_for(event, MILLISECOND), SP_INVALID);
    CHECK_STATUS(sp_stream_wait_event(stream, event), SP_INVALID);
    CHECK_STATUS(sp_event_wait_all(&event, 1, 0), SP_INVALID);
    CHECK_MESSAGE("event 0 of 1");
    CHECK_STATUS(sp_event_wait_any(&event, 1, 0, &which), SP_INVALID);
    CHECK_EQ_U64(which, 1);
    sp_storage storage;
    char bytes[8];
    const sp_adopt_options options = {.ready = event};
    CHECK_STATUS(sp_storage_adopt(CPU, bytes, sizeof bytes, &options, &storage), SP_INVALID);
    CHECK_OK(sp_event_record(event, stream));
    CHECK_OK(sp_event_query(event));
    CHECK_OK(sp_event_release(event));
    runtime_end();
}

TEST(an_event_of_an_idle_stream_is_reached_at_once)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_event event = recorded_on(stream);
    CHECK_OK(sp_event_query(event));
    CHECK_OK(sp_event_synchronize_for(event, 0));
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(an_event_of_an_empty_stream_stays_good_though_a_later_command_fails)
{
    runtime_begin();
    const sp_stream stream = new_stream_on(open_null()); /* new, so empty */
    const sp_event event = recorded_on(stream);
    submit_failing(stream, (sp_storage){0});
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_event_query(event));
    CHECK_OK(sp_event_synchronize(event));
    CHECK_OK(sp_stream_wait_event(current_stream(), event));
    CHECK_OK(sp_stream_synchronize(current_stream()));
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(query_and_time_outs_tell_that_an_event_is_not_reached_yet)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    gate_hold(&blocker, stream);
    const sp_event event = recorded_on(stream);
    CHECK_STATUS(sp_event_query(event), SP_NOT_READY);
    CHECK_STATUS(sp_event_synchronize_for(event, 0), SP_TIMEOUT);
    const uint64_t start = sp_clock_now();
    CHECK_STATUS(sp_event_synchronize_for(event, 50 * MILLISECOND), SP_TIMEOUT);
    CHECK(sp_clock_now() - start >= 50 * MILLISECOND);
    gate_open(&blocker);
    CHECK_OK(sp_event_synchronize(event));
    CHECK_OK(sp_event_query(event));
    CHECK_OK(sp_event_release(event));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_device_side_wait_returns_at_once_and_keeps_the_order)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream producer = new_stream();
    const sp_stream consumer = new_stream();
    const sp_storage from = new_storage_on(CPU, 4096, true); /* only the event orders them */
    const sp_storage to = new_storage_on(CPU, 4096, true);
    gate_hold(&blocker, producer);
    fill(producer, from, 3);
    const sp_event event = recorded_on(producer);
    CHECK_OK(sp_stream_wait_event(consumer, event));
    copy(consumer, to, from);
    CHECK_STATUS(sp_stream_query(consumer), SP_NOT_READY);
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(consumer));
    CHECK_EQ_INT(first_other(to, 3), -1);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(producer));
    CHECK_OK(sp_stream_release(consumer));
    runtime_end();
}

TEST(a_wait_on_the_recording_stream_itself_is_no_deadlock)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage storage = new_storage(64);
    submit_slow_fill(stream, storage, 1, MILLISECOND);
    const sp_event event = recorded_on(stream);
    CHECK_OK(sp_stream_wait_event(stream, event));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

static void count_call(void *ctx, sp_status status)
{
    CHECK_STATUS(status, SP_OK);
    raise_by_one(ctx);
}

TEST(waits_and_callbacks_keep_the_point_of_an_event_that_is_recorded_again_or_released)
{
    runtime_begin();
    gate first_gate = gate_closed(CPU);
    gate second_gate = gate_closed(CPU);
    const sp_stream first = new_stream();
    const sp_stream second = new_stream();
    const sp_stream waiter = new_stream();
    sp_atomic_u32 calls = {0};
    gate_hold(&first_gate, first);
    gate_hold(&second_gate, second);
    const sp_event event = recorded_on(first);
    CHECK_OK(sp_stream_wait_event(waiter, event));
    CHECK_OK(sp_event_on_complete(event, count_call, &calls));
    CHECK_OK(sp_event_record(event, second)); /* from here on it refers to this stream */
    CHECK_STATUS(sp_stream_query(waiter), SP_NOT_READY);
    let_callbacks_come();
    CHECK_EQ_U64(sp_load_acquire(&calls), 0);
    gate_open(&first_gate);
    CHECK_OK(sp_stream_synchronize(waiter));
    await_at_least(&calls, 1);
    CHECK_STATUS(sp_event_query(event), SP_NOT_READY);
    CHECK_OK(sp_event_on_complete(event, count_call, &calls));
    CHECK_OK(sp_stream_wait_event(waiter, event));
    CHECK_OK(sp_event_release(event));
    CHECK_STATUS(sp_event_query(event), SP_INVALID);
    CHECK_MESSAGE("stale");
    CHECK_STATUS(sp_stream_query(waiter), SP_NOT_READY);
    let_callbacks_come();
    CHECK_EQ_U64(sp_load_acquire(&calls), 1); /* the second one refers to the event's new point */
    gate_open(&second_gate);
    CHECK_OK(sp_stream_synchronize(waiter));
    await_at_least(&calls, 2);
    gate_destroy(&first_gate);
    gate_destroy(&second_gate);
    CHECK_OK(sp_stream_release(first));
    CHECK_OK(sp_stream_release(second));
    CHECK_OK(sp_stream_release(waiter));
    runtime_end();
}

TEST(an_event_outlives_the_lease_of_its_stream)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    gate_hold(&blocker, stream);
    const sp_event event = recorded_on(stream);
    CHECK_OK(sp_stream_release(stream));
    CHECK_STATUS(sp_event_query(event), SP_NOT_READY);
    gate_open(&blocker);
    CHECK_OK(sp_event_synchronize(event));
    CHECK_OK(sp_event_release(event));
    gate_destroy(&blocker);
    runtime_end();
}

TEST(wait_all_waits_for_every_event)
{
    runtime_begin();
    enum { COUNT = 5 };
    sp_stream streams[COUNT];
    sp_event events[COUNT];
    gate blocker = gate_closed(CPU);
    for (int i = 0; i < COUNT; i++) {
        streams[i] = new_stream();
        if (i == 3) gate_hold(&blocker, streams[i]);
        events[i] = recorded_on(streams[i]);
    }
    CHECK_STATUS(sp_event_wait_all(events, COUNT, 0), SP_TIMEOUT);
    CHECK_STATUS(sp_event_wait_all(events, COUNT, 20 * MILLISECOND), SP_TIMEOUT);
    CHECK_OK(sp_event_wait_all(events, 3, 0));
    gate_open(&blocker);
    CHECK_OK(sp_event_wait_all(events, COUNT, SP_FOREVER));
    CHECK_STATUS(sp_event_wait_all(events, 0, SP_FOREVER), SP_INVALID);
    CHECK_STATUS(sp_event_wait_all(NULL, 3, SP_FOREVER), SP_INVALID);
    for (int i = 0; i < COUNT; i++) {
        CHECK_OK(sp_event_query(events[i]));
        CHECK_OK(sp_event_release(events[i]));
        CHECK_OK(sp_stream_release(streams[i]));
    }
    gate_destroy(&blocker);
    runtime_end();
}

typedef struct any_wait {
    sp_event events[3];
    sp_atomic_u32 is_waiting;
    gate gates[3];
} any_wait;

static void wait_any_or_open(void *arg, uint32_t index)
{
    any_wait *self = arg;
    if (index == 0) {
        uint32_t which = 99;
        raise_by_one(&self->is_waiting);
        CHECK_OK(sp_event_wait_any(self->events, 3, SP_FOREVER, &which));
        CHECK_EQ_U64(which, 1);
        raise_by_one(&self->is_waiting);
    } else {
        await_at_least(&self->is_waiting, 1);
        sp_clock_sleep(5 * MILLISECOND); /* probably asleep by now; no check depends on it */
        gate_open(&self->gates[1]);
        await_at_least(&self->is_waiting, 2);
        gate_open(&self->gates[0]);
        gate_open(&self->gates[2]);
    }
}

TEST(waits_for_no_events_are_refused_whatever_their_count_says)
{
    runtime_begin();
    sp_event event;
    uint32_t which = 7;
    static const uint32_t counts[] = {0, 1, UINT32_MAX};
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, current_stream()));
    for (size_t i = 0; i < SP_COUNT_OF(counts); i++) {
        CHECK_STATUS(sp_event_wait_all(NULL, counts[i], SP_FOREVER), SP_INVALID);
        CHECK_STATUS(sp_event_wait_any(NULL, counts[i], SP_FOREVER, &which), SP_INVALID);
        CHECK_EQ_U64(which, counts[i]);
        CHECK_STATUS(sp_event_wait_any(&event, counts[i], SP_FOREVER, NULL), SP_INVALID);
    }
    CHECK_STATUS(sp_event_wait_all(&event, 0, SP_FOREVER), SP_INVALID);
    CHECK_STATUS(sp_event_wait_any(&event, 0, SP_FOREVER, &which), SP_INVALID);
    CHECK_EQ_U64(which, 0);
    CHECK_OK(sp_event_release(event));
    runtime_end();
}

TEST(wait_any_returns_the_event_that_was_reached_first)
{
    runtime_begin();
    any_wait self = {.is_waiting = {0}};
    sp_stream streams[3];
    for (int i = 0; i < 3; i++) {
        self.gates[i] = gate_closed(CPU);
        streams[i] = new_stream();
        gate_hold(&self.gates[i], streams[i]);
        self.events[i] = recorded_on(streams[i]);
    }
    uint32_t which = 99;
    CHECK_STATUS(sp_event_wait_any(self.events, 3, 0, &which), SP_TIMEOUT);
    CHECK_EQ_U64(which, 3);
    CHECK_STATUS(sp_event_wait_any(self.events, 3, 20 * MILLISECOND, &which), SP_TIMEOUT);
    CHECK_STATUS(sp_event_wait_any(self.events, 3, 0, NULL), SP_INVALID);
    CHECK_STATUS(sp_event_wait_any(self.events, 0, 0, &which), SP_INVALID);
    test_threads(2, wait_any_or_open, &self);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(sp_event_synchronize(self.events[i]));
        CHECK_OK(sp_event_release(self.events[i]));
        gate_destroy(&self.gates[i]);
        CHECK_OK(sp_stream_release(streams[i]));
    }
    runtime_end();
}

TEST(an_event_behind_a_failed_command_tells_status_and_message_to_whoever_asks)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_stream other = new_stream();
    submit_failing(stream, (sp_storage){0});
    const sp_event event = recorded_on(stream);
    for (int i = 0; i < 2; i++) { /* any number of times */
        CHECK_STATUS(sp_event_synchronize(event), SP_FAILED);
        CHECK_MESSAGE("asked to fail");
        CHECK_STATUS(sp_event_query(event), SP_FAILED);
    }
    uint32_t which;
    CHECK_STATUS(sp_event_wait_all(&event, 1, SP_FOREVER), SP_FAILED);
    CHECK_STATUS(sp_event_wait_any(&event, 1, SP_FOREVER, &which), SP_FAILED);
    CHECK_EQ_U64(which, 0);
    /* The error moves to the stream that waits for the event. */
    const sp_storage storage = new_storage_on(CPU, 64, true);
    CHECK_OK(sp_stream_wait_event(other, event));
    fill(other, storage, 1);
    CHECK_STATUS(sp_stream_synchronize(other), SP_FAILED);
    CHECK_MESSAGE("asked to fail");
    fill(other, storage, 2);
    CHECK_OK(sp_stream_synchronize(other));
    CHECK_EQ_INT(first_other(storage, 2), -1);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    /* The later record is reached without a failure. */
    fill(stream, storage, 3);
    CHECK_OK(sp_event_record(event, stream));
    CHECK_OK(sp_event_synchronize(event));
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_stream_release(other));
    runtime_end();
}

TEST(streams_of_two_devices_wait_for_each_other)
{
    runtime_begin();
    const sp_device null = open_null();
    const sp_stream streams[2] = {new_stream(), new_stream_on(null)};
    const sp_storage storages[2] = {new_storage(64), new_storage_on(null, 64, false)};
    const sp_event event = new_event();
    const uint32_t rounds = (uint32_t)test_count(10000, 500);
    for (uint32_t i = 0; i < rounds; i++) {
        fill(streams[i % 2], storages[i % 2], (uint8_t)i);
        CHECK_OK(sp_event_record(event, streams[i % 2]));
        sp_status status;
        while ((status = sp_stream_wait_event(streams[(i + 1) % 2], event)) == SP_BUSY) {
            CHECK_OK(sp_event_synchronize(event));
        }
        CHECK_OK(status);
    }
    CHECK_OK(sp_stream_synchronize(streams[rounds % 2]));
    CHECK_OK(sp_stream_query(streams[(rounds + 1) % 2])); /* it comes before */
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(storages[i]));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(streams[i]));
    CHECK_OK(sp_event_release(event));
    runtime_end();
}

TEST_MAIN
