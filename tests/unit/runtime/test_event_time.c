/* SPDX-License-Identifier: Apache-2.0 */
/* Times of events, and callbacks on them. */
#include "runtime_fixture.h"

#include <string.h>

#include "base/heap.h"
#include "device/thread_record.h"

static sp_event timed_event(void)
{
    sp_event event;
    CHECK_OK(sp_event_create(&(sp_event_options){.enable_timing = true}, &event));
    return event;
}

TEST(elapsed_time_is_that_of_the_commands_between_two_records)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage storage = new_storage(64);
    const sp_event start = timed_event();
    const sp_event end = timed_event();
    CHECK_OK(sp_event_record(start, stream));
    submit_slow_fill(stream, storage, 1, 10 * MILLISECOND);
    CHECK_OK(sp_event_record(end, stream));
    int64_t ns = 0;
    CHECK_OK(sp_event_elapsed(start, end, &ns));
    CHECK(ns >= 10 * MILLISECOND);
    int64_t back = 0;
    CHECK_OK(sp_event_elapsed(end, start, &back));
    CHECK_EQ_INT(back, -ns);
    CHECK_OK(sp_event_release(start));
    CHECK_OK(sp_event_release(end));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

/* A record whose command is held keeps its own stamp only: the others are reused, without new
 * memory. */
TEST(one_held_record_stops_no_other_stamp_from_being_used_again)
{
    runtime_begin();
    const sp_stream held = new_stream();
    const sp_stream stream = new_stream();
    const sp_event stuck = timed_event();
    const sp_event event = timed_event();
    gate blocker = gate_closed(CPU);
    gate_hold(&blocker, held);
    CHECK_OK(sp_event_record(stuck, held));
    CHECK_OK(sp_event_release(stuck));
    const uint64_t rounds = test_count(2000, 300);
    for (uint64_t i = 0; i < 2 * rounds; i++) {
        if (i == rounds) sp_heap_fail_after(0); /* every allocation from here on fails */
        CHECK_OK(sp_event_record(event, stream));
        /* Then two stamps are enough, the event's and the next; before, the number depends on
         * timing. */
        if (i + 1 >= rounds || i % 16 == 0) CHECK_OK(sp_stream_synchronize(stream));
    }
    CHECK(!sp_heap_has_failed());
    sp_heap_fail_after(UINT64_MAX);
    CHECK_OK(sp_event_release(event));
    gate_open(&blocker);
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(held));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_stamp_is_used_again_only_when_its_own_command_has_completed)
{
    runtime_begin();
    const sp_stream held = new_stream();
    const sp_stream stream = new_stream();
    const sp_event moved = timed_event();
    const sp_event start = timed_event();
    const sp_event end = timed_event();
    gate blocker = gate_closed(CPU);
    gate_hold(&blocker, held);
    CHECK_OK(sp_event_record(moved, held));
    CHECK_OK(sp_event_record(moved, stream)); /* releases the stamp of `held`, not written yet */
    CHECK_OK(sp_event_record(start, stream));
    CHECK_OK(sp_event_record(end, stream));
    int64_t before = -1;
    CHECK_OK(sp_event_elapsed(start, end, &before));
    CHECK(before >= 0);
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(held));
    gate_destroy(&blocker);
    int64_t after = -1;
    CHECK_OK(sp_event_elapsed(start, end, &after));
    CHECK_EQ_INT(after, before);
    const sp_event all[] = {moved, start, end};
    for (int i = 0; i < 3; i++) CHECK_OK(sp_event_release(all[i]));
    CHECK_OK(sp_stream_release(held));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

typedef struct measuring {
    sp_event event;
    sp_atomic_u32 is_done;
} measuring;

static void measure(void *arg)
{
    measuring *self = arg;
    int64_t ns = -1;
    CHECK_OK(sp_event_elapsed(self->event, self->event, &ns));
    CHECK_EQ_INT(ns, 0);
    raise_by_one(&self->is_done);
}

/* However often the event is recorded during the call. */
TEST(elapsed_waits_for_the_records_that_it_found_and_for_no_later_one)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    sp_stream_ref ref;
    CHECK_OK(sp__rt_stream_find(stream, &ref));
    measuring self = {.event = timed_event()};
    gate first = gate_closed(CPU);
    gate second = gate_closed(CPU);
    gate_hold(&first, stream);
    CHECK_OK(sp_event_record(self.event, stream));
    sp_thread thread;
    REQUIRE_OK(sp_thread_create(&thread, "measure", measure, &self));
    /* It waits for the first record once its node is registered with the stream's timeline. */
    const uint64_t deadline = sp_clock_deadline(30 * SECOND);
    while (sp_load_seq_cst(&ref.queue->timeline.wanted) == UINT64_MAX) {
        REQUIRE(sp_clock_now() < deadline);
        sp_thread_yield();
    }
    gate_hold(&second, stream);
    CHECK_OK(sp_event_record(self.event, stream));
    gate_open(&first);
    await_at_least(&self.is_done, 1);
    gate_open(&second);
    sp_thread_join(&thread);
    gate_destroy(&first);
    gate_destroy(&second);
    CHECK_OK(sp_event_release(self.event));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(elapsed_time_without_timing_or_record_is_an_error)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_event timed = timed_event();
    const sp_event fresh = timed_event();
    sp_event plain;
    CHECK_OK(sp_event_create(NULL, &plain));
    CHECK_OK(sp_event_record(timed, stream));
    CHECK_OK(sp_event_record(plain, stream));
    int64_t ns;
    CHECK_STATUS(sp_event_elapsed(timed, plain, &ns), SP_INVALID);
    CHECK_MESSAGE("enable_timing");
    CHECK_STATUS(sp_event_elapsed(plain, timed, &ns), SP_INVALID);
    CHECK_STATUS(sp_event_elapsed(timed, fresh, &ns), SP_INVALID);
    CHECK_MESSAGE("never recorded");
    CHECK_STATUS(sp_event_elapsed(fresh, timed, &ns), SP_INVALID);
    CHECK_STATUS(sp_event_elapsed(timed, timed, NULL), SP_INVALID);
    CHECK_OK(sp_event_elapsed(timed, timed, &ns));
    CHECK_EQ_INT(ns, 0);
    CHECK_OK(sp_event_release(timed));
    CHECK_OK(sp_event_release(fresh));
    CHECK_OK(sp_event_release(plain));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

typedef struct elapsed_misuse {
    sp_event timed, plain, fresh;
    sp_atomic_u32 done;
} elapsed_misuse;

static void refuse_elapsed(void *arg)
{
    elapsed_misuse *m = arg;
    int64_t ns;
    CHECK_STATUS(sp_event_elapsed(m->timed, m->plain, &ns), SP_INVALID);
    CHECK_STATUS(sp_event_elapsed(m->plain, m->timed, &ns), SP_INVALID);
    CHECK_STATUS(sp_event_elapsed(m->timed, m->fresh, &ns), SP_INVALID);
    CHECK_STATUS(sp_event_elapsed(m->fresh, m->timed, &ns), SP_INVALID);
    raise_by_one(&m->done);
}

/* Enough events that each slot has held one of the other kind before. */
TEST(an_event_without_timing_in_the_place_of_a_timed_one_takes_no_time)
{
    enum { EVENTS = 5000 };
    runtime_begin();
    const sp_stream stream = new_stream();
    int64_t ns;
    for (int i = 0; i < EVENTS; i++) {
        const sp_event event = timed_event();
        CHECK_OK(sp_event_record(event, stream));
        CHECK_OK(sp_event_release(event));
    }
    for (int i = 0; i < EVENTS; i++) {
        sp_event event;
        CHECK_OK(sp_event_create(NULL, &event));
        CHECK_OK(sp_event_record(event, stream));
        CHECK_STATUS(sp_event_elapsed(event, event, &ns), SP_INVALID);
        CHECK_OK(sp_event_release(event));
    }
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(elapsed_time_of_events_that_take_none_is_an_error_though_their_stream_is_held)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    elapsed_misuse m = {.timed = timed_event(), .fresh = timed_event()};
    CHECK_OK(sp_event_create(NULL, &m.plain));
    gate_hold(&blocker, stream);
    CHECK_OK(sp_event_record(m.timed, stream));
    CHECK_OK(sp_event_record(m.plain, stream));
    sp_thread thread;
    CHECK_OK(sp_thread_create(&thread, "misuse", refuse_elapsed, &m));
    await_at_least(&m.done, 1); /* with the gate still closed */
    sp_thread_join(&thread);
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_event_release(m.timed));
    CHECK_OK(sp_event_release(m.fresh));
    CHECK_OK(sp_event_release(m.plain));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(elapsed_time_waits_for_the_recording_streams_only)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    const sp_stream held = new_stream();
    gate_hold(&blocker, held);
    const sp_event start = timed_event();
    const sp_event end = timed_event();
    CHECK_OK(sp_event_record(start, stream));
    CHECK_OK(sp_event_record(end, stream));
    gate_hold(&blocker, stream); /* later commands of the stream do not count either */
    int64_t ns;
    CHECK_OK(sp_event_elapsed(start, end, &ns));
    CHECK(ns >= 0);
    CHECK_STATUS(sp_stream_query(held), SP_NOT_READY);
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
    gate_open(&blocker);
    CHECK_OK(sp_device_synchronize(CPU));
    CHECK_OK(sp_event_release(start));
    CHECK_OK(sp_event_release(end));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_stream_release(held));
    runtime_end();
}

TEST(a_timed_event_may_be_recorded_again_or_released_before_its_time_was_taken)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    gate_hold(&blocker, stream);
    for (int i = 0; i < 100; i++) {
        const sp_event event = timed_event();
        CHECK_OK(sp_event_record(event, stream));
        CHECK_OK(sp_event_record(event, stream));
        CHECK_OK(sp_event_release(event));
    }
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(stream));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

/* ---- callbacks ---- */

typedef struct called {
    sp_atomic_u32 count;
    sp_status status;
    bool was_executor;
    char message[128];
} called;

static void note_call(void *ctx, sp_status status)
{
    called *self = ctx;
    self->status = status;
    self->was_executor = sp__thread_record()->is_executor;
    strncpy(self->message, sp_last_error(), sizeof self->message - 1);
    raise_by_one(&self->count);
}

TEST(a_callback_comes_once_on_the_host_thread)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    gate_hold(&blocker, stream);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, stream));
    called before = {.count = {0}};
    called after = {.count = {0}};
    CHECK_OK(sp_event_on_complete(event, note_call, &before));
    let_callbacks_come();
    CHECK_EQ_U64(sp_load_acquire(&before.count), 0);
    gate_open(&blocker);
    CHECK_OK(sp_event_synchronize(event));
    CHECK_OK(sp_event_on_complete(event, note_call, &after)); /* reached already */
    await_at_least(&before.count, 1);
    await_at_least(&after.count, 1);
    CHECK(before.was_executor && after.was_executor);
    CHECK_STATUS(before.status, SP_OK);
    CHECK_STATUS(sp_event_on_complete(event, NULL, NULL), SP_INVALID);
    CHECK_OK(sp_event_release(event));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
    CHECK_EQ_U64(sp_load_acquire(&before.count), 1);
    CHECK_EQ_U64(sp_load_acquire(&after.count), 1);
}

TEST(a_callback_on_an_event_that_was_never_recorded_is_refused_and_never_comes)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    called self = {.count = {0}};
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_STATUS(sp_event_on_complete(event, note_call, &self), SP_INVALID);
    CHECK_MESSAGE("never recorded");
    CHECK_OK(sp_event_record(event, stream)); /* a later record does not matter */
    CHECK_OK(sp_event_synchronize(event));
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_release(stream));
    runtime_end(); /* all callbacks have run */
    CHECK_EQ_U64(sp_load_acquire(&self.count), 0);
}

typedef struct failing {
    sp_stream stream;
    sp_status status; /* of its own wait */
    char message[128];
    sp_atomic_u32 is_done;
} failing;

static void submit_failing_and_wait(void *ctx, sp_status status)
{
    failing *self = ctx;
    CHECK_STATUS(status, SP_OK);
    submit_failing(self->stream, (sp_storage){0});
    self->status = sp_stream_synchronize(self->stream);
    strncpy(self->message, sp_last_error(), sizeof self->message - 1);
    CHECK_OK(sp_stream_synchronize(self->stream)); /* reported once */
    raise_by_one(&self->is_done);
}

TEST(a_callback_whose_commands_fail_hurts_nobody_else)
{
    runtime_begin();
    failing self = {.stream = new_stream()};
    const sp_storage tracked = new_storage(64);
    const sp_storage untracked = new_storage_on(CPU, 64, true);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    fill(self.stream, tracked, 1);
    CHECK_OK(sp_event_record(event, self.stream));
    CHECK_OK(sp_event_on_complete(event, submit_failing_and_wait, &self));
    await_at_least(&self.is_done, 1);
    CHECK_STATUS(self.status, SP_FAILED);
    CHECK(strstr(self.message, "asked to fail") != NULL);
    /* This thread's commands on the same stream did not fail, and are unaffected. */
    CHECK_OK(sp_stream_synchronize(self.stream));
    CHECK_OK(sp_device_synchronize(CPU));
    CHECK_EQ_INT(first_other(tracked, 1), -1);
    fill(self.stream, tracked, 2);
    fill(self.stream, untracked, 3);
    CHECK_OK(sp_stream_synchronize(self.stream));
    CHECK_EQ_INT(first_other(tracked, 2), -1);
    CHECK_EQ_INT(first_other(untracked, 3), -1);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_storage_release(tracked));
    CHECK_OK(sp_storage_release(untracked));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

TEST(a_callback_behind_a_failed_command_gets_status_and_message)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    submit_failing(stream, (sp_storage){0});
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, stream));
    called self = {.count = {0}};
    CHECK_OK(sp_event_on_complete(event, note_call, &self));
    await_at_least(&self.count, 1);
    CHECK_STATUS(self.status, SP_FAILED);
    CHECK(strstr(self.message, "asked to fail") != NULL);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

typedef struct nosy {
    sp_stream stream;
    sp_storage storage;
    sp_event event;
    sp_status shutdown, close, any;
    sp_device device;
    sp_atomic_u32 count, ran;
} nosy;

static void run_on_host(void *ctx, sp_status status)
{
    (void)status;
    raise_by_one(&((nosy *)ctx)->ran);
}

static void submit_from_other_thread(void *arg)
{
    nosy *self = arg;
    CHECK_OK(sp_stream_host_function(self->stream, run_on_host, self));
}

/* Submits, waits, fails and tries to close. */
static void do_everything(void *ctx, sp_status status)
{
    nosy *self = ctx;
    CHECK_STATUS(status, SP_OK);
    fill(self->stream, self->storage, 7);
    CHECK_EQ_INT(first_other(self->storage, 7), -1);
    self->shutdown = sp_shutdown();
    self->close = sp_device_close(self->device);
    raise_by_one(&self->count);
}

TEST(a_callback_submits_waits_and_cannot_close)
{
    runtime_begin();
    nosy self = {.stream = new_stream(), .storage = new_storage(64), .device = open_null()};
    CHECK_OK(sp_event_create(NULL, &self.event));
    CHECK_OK(sp_event_record(self.event, self.stream));
    CHECK_OK(sp_event_on_complete(self.event, do_everything, &self));
    await_at_least(&self.count, 1);
    CHECK_STATUS(self.shutdown, SP_DEADLOCK);
    CHECK_STATUS(self.close, SP_DEADLOCK);
    CHECK_OK(sp_event_release(self.event));
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

/* It waits for work that needs the library's host thread, on which it runs itself. */
static void wait_for_host_functions(void *ctx, sp_status status)
{
    nosy *self = ctx;
    CHECK_STATUS(status, SP_OK);
    run_on_thread(submit_from_other_thread, self);
    CHECK_OK(sp_stream_synchronize(self->stream));
    run_on_thread(submit_from_other_thread, self);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, self->stream));
    uint32_t which = 9;
    self->any = sp_event_wait_any(&event, 1, 30 * SECOND, &which);
    CHECK_OK(sp_event_release(event));
    raise_by_one(&self->count);
}

TEST(a_callback_may_wait_for_host_functions_of_others)
{
    runtime_begin();
    nosy self = {.stream = new_stream()};
    CHECK_OK(sp_event_create(NULL, &self.event));
    CHECK_OK(sp_event_record(self.event, self.stream));
    CHECK_OK(sp_event_on_complete(self.event, wait_for_host_functions, &self));
    await_at_least(&self.count, 1);
    CHECK_STATUS(self.any, SP_OK);
    CHECK_EQ_U64(sp_load_acquire(&self.ran), 2);
    CHECK_OK(sp_event_release(self.event));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

TEST_MAIN
