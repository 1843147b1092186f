/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that commands with untracked bindings consume: which threads they affect, and for how
 * long. */
#include "runtime_fixture.h"

static const runtime_setting one_stream = {.streams = "2", .policy = "share"};

/* The status of the calling thread's next command with untracked bindings on the stream. */
static sp_status next_command(sp_stream stream, sp_storage storage)
{
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    fill(stream, storage, 7);
    CHECK_OK(sp_event_record(event, stream));
    const sp_status status = sp_event_synchronize(event);
    CHECK_OK(sp_event_release(event));
    return status;
}

TEST(a_lease_stays_failed_when_another_lease_of_its_stream_fails)
{
    runtime_begin_with(&one_stream);
    const sp_stream a = new_stream();
    const sp_stream b = new_stream();
    REQUIRE_EQ_U64(index_of(a), index_of(b));
    const sp_storage x = new_storage_on(CPU, 64, true);
    const sp_storage y = new_storage_on(CPU, 64, true);
    submit_failing(a, x);
    submit_failing(b, y);
    CHECK_STATUS(next_command(a, x), SP_FAILED);
    CHECK_STATUS(next_command(b, y), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(a), SP_FAILED);
    CHECK_OK(next_command(a, x));
    CHECK_OK(next_command(b, y)); /* the same thread, to which all were reported at once */
    CHECK_EQ_INT(first_other(x, 7), -1);
    CHECK_OK(sp_storage_release(x));
    CHECK_OK(sp_storage_release(y));
    CHECK_OK(sp_stream_release(a));
    CHECK_OK(sp_stream_release(b));
    runtime_end();
}

typedef struct shared_lease {
    sp_stream stream;
    sp_storage mine, other;
} shared_lease;

static void be_told(void *arg)
{
    const shared_lease *self = arg;
    CHECK_STATUS(next_command(self->stream, self->other), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(self->stream), SP_FAILED);
    CHECK_OK(next_command(self->stream, self->other));
}

TEST(telling_one_thread_of_a_lease_does_not_clear_what_another_was_not_told)
{
    runtime_begin();
    shared_lease self = {.stream = new_stream(),
                         .mine = new_storage_on(CPU, 64, true),
                         .other = new_storage_on(CPU, 64, true)};
    submit_failing(self.stream, self.mine);
    run_on_thread(be_told, &self);
    CHECK_STATUS(next_command(self.stream, self.mine), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(self.stream), SP_FAILED);
    CHECK_OK(next_command(self.stream, self.mine));
    CHECK_OK(sp_stream_synchronize(self.stream));
    CHECK_OK(sp_storage_release(self.mine));
    CHECK_OK(sp_storage_release(self.other));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

static void fail_here(void *arg)
{
    const shared_lease *self = arg;
    submit_failing(self->stream, self->mine);
}

TEST(a_thread_that_ends_untold_does_not_stop_the_lease_for_ever)
{
    runtime_begin();
    shared_lease self = {.stream = new_stream(), .mine = new_storage_on(CPU, 64, true)};
    for (int i = 0; i < 50; i++) run_on_thread(fail_here, &self);
    CHECK_STATUS(next_command(self.stream, self.mine), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(self.stream), SP_FAILED);
    CHECK_OK(next_command(self.stream, self.mine));
    CHECK_OK(sp_storage_release(self.mine));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

/* Two threads on one lease that alternate: A submits, B submits; then A synchronizes and submits, B
 * synchronizes and submits, and so on. So each synchronizes while the other has a later command. */
enum { TURNS = 40 };

typedef struct turn_world {
    sp_stream stream;
    sp_storage storages[2];
    sp_atomic_u32 turn;
    uint32_t failed[2]; /* plain: written by one thread each, read after the joins */
} turn_world;

static void synchronize_in_turn(void *arg, uint32_t self)
{
    turn_world *w = arg;
    for (uint32_t i = 0; i < TURNS; i++) {
        await_at_least(&w->turn, 2 * i + (uint32_t)self);
        if (i > 0 && sp_stream_synchronize(w->stream) != SP_OK) w->failed[self]++;
        fill(w->stream, w->storages[self], 7);
        sp_store_release(&w->turn, 2 * i + (uint32_t)self + 1);
    }
    if (sp_stream_synchronize(w->stream) != SP_OK) w->failed[self]++;
}

TEST(a_failure_is_reported_once_to_each_of_two_threads_that_take_turns)
{
    runtime_begin();
    turn_world w = {.stream = new_stream_on(CPU)};
    for (int i = 0; i < 2; i++) w.storages[i] = new_storage_on(CPU, 64, true);
    shared_lease failing = {.stream = w.stream, .mine = w.storages[0]};
    run_on_thread(fail_here, &failing);
    test_threads(2, synchronize_in_turn, &w);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_U64(w.failed[i], 1);
        CHECK_OK(sp_storage_release(w.storages[i]));
    }
    CHECK_OK(sp_stream_release(w.stream));
    runtime_end();
}

enum { CROWD = 12, CROWD_COMMANDS = 100 };

typedef struct crowd_world {
    sp_stream stream;
    sp_storage storages[CROWD];
    sp_atomic_u32 failed;
} crowd_world;

static void submit_and_synchronize(void *arg, uint32_t self)
{
    crowd_world *w = arg;
    for (uint32_t i = 0; i < CROWD_COMMANDS; i++) {
        fill(w->stream, w->storages[self], 7);
        if (sp_stream_synchronize(w->stream) != SP_OK) sp_fetch_add_relaxed(&w->failed, 1);
    }
}

TEST(each_of_many_threads_is_told_once_of_what_a_thread_that_ended_left)
{
    runtime_begin();
    crowd_world w = {.stream = new_stream_on(CPU)};
    for (int i = 0; i < CROWD; i++) w.storages[i] = new_storage_on(CPU, 64, true);
    shared_lease failing = {.stream = w.stream, .mine = w.storages[0]};
    run_on_thread(fail_here, &failing);
    test_threads(CROWD, submit_and_synchronize, &w);
    CHECK_EQ_U64(sp_load_relaxed(&w.failed), CROWD);
    for (int i = 0; i < CROWD; i++) CHECK_OK(sp_storage_release(w.storages[i]));
    CHECK_OK(sp_stream_release(w.stream));
    runtime_end();
}

TEST(a_new_lease_of_a_failed_stream_inherits_nothing)
{
    runtime_begin_with(&one_stream);
    const sp_storage storage = new_storage_on(CPU, 64, true);
    for (int i = 0; i < 100; i++) {
        const sp_stream failed = new_stream();
        submit_failing(failed, storage);
        CHECK_OK(sp_stream_release(failed));
        const sp_stream fresh = new_stream();
        CHECK_OK(next_command(fresh, storage));
        CHECK_OK(sp_stream_release(fresh));
    }
    CHECK_STATUS(sp_device_synchronize(CPU), SP_FAILED);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(a_wait_for_a_device_that_times_out_reports_what_has_failed_by_then)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream held = new_stream();
    const sp_stream failed = new_stream();
    const sp_storage x = new_storage_on(CPU, 64, true);
    const sp_storage y = new_storage(64);
    gate_hold(&blocker, held);
    submit_failing(held, x);
    submit_failing(failed, y);
    while (sp_stream_query(failed) == SP_NOT_READY) sp_thread_yield();
    CHECK_STATUS(sp_device_synchronize_for(CPU, 0), SP_FAILED);
    const uint64_t start = sp_clock_now();
    CHECK_STATUS(sp_device_synchronize_for(CPU, 20 * MILLISECOND), SP_TIMEOUT);
    CHECK(sp_clock_now() - start >= 20 * MILLISECOND);
    gate_open(&blocker);
    /* The failure behind the gate had not happened when the other one was reported. */
    CHECK_STATUS(next_command(held, x), SP_FAILED);
    CHECK_STATUS(sp_device_synchronize_for(CPU, 30 * SECOND), SP_FAILED);
    CHECK_OK(sp_device_synchronize_for(CPU, -1));
    gate_destroy(&blocker);
    CHECK_OK(sp_storage_release(x));
    CHECK_OK(sp_storage_release(y));
    CHECK_OK(sp_stream_release(held));
    CHECK_OK(sp_stream_release(failed));
    runtime_end();
}

TEST(commands_behind_a_failure_consume_it_though_their_lease_has_ended)
{
    runtime_begin_with(&one_stream);
    gate blocker = gate_closed(CPU);
    const sp_storage storage = new_storage_on(CPU, 64, true);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    const sp_stream ended = new_stream();
    gate_hold(&blocker, ended);
    submit_failing(ended, storage);
    fill(ended, storage, 1);
    CHECK_OK(sp_event_record(event, ended));
    CHECK_OK(sp_stream_release(ended));
    const sp_stream fresh = new_stream();
    gate_open(&blocker);
    CHECK_STATUS(sp_event_synchronize(event), SP_FAILED);
    CHECK_OK(next_command(fresh, storage));
    CHECK_STATUS(sp_device_synchronize(CPU), SP_FAILED);
    CHECK_OK(sp_stream_release(fresh));
    CHECK_OK(sp_event_release(event));
    gate_destroy(&blocker);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

/* Makes stream `b` wait for a failure on `a`, which is held until then if `is_pending`. */
static void wait_for_a_failure(sp_stream a, sp_stream b, bool is_pending, bool is_timed)
{
    gate blocker = gate_closed(CPU);
    const sp_storage storage = new_storage_on(CPU, 64, true);
    sp_event event;
    CHECK_OK(sp_event_create(&(sp_event_options){.enable_timing = is_timed}, &event));
    gate_hold(&blocker, a);
    submit_failing(a, (sp_storage){0});
    CHECK_OK(sp_event_record(event, a));
    if (!is_pending) {
        gate_open(&blocker);
        CHECK_STATUS(sp_event_synchronize(event), SP_FAILED);
    }
    CHECK_OK(sp_stream_wait_event(b, event));
    if (is_pending) gate_open(&blocker);
    CHECK_STATUS(next_command(b, storage), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(b), SP_FAILED);
    CHECK_OK(next_command(b, storage));
    CHECK_OK(sp_event_release(event));
    gate_destroy(&blocker);
    CHECK_OK(sp_storage_release(storage));
}

TEST(an_error_on_an_event_moves_to_the_lease_that_waits_also_on_the_same_stream)
{
    for (int i = 0; i < 8; i++) {
        runtime_begin_with(i % 4 < 2 ? &one_stream : &(runtime_setting){0});
        const sp_stream a = new_stream();
        const sp_stream b = new_stream();
        CHECK((index_of(a) == index_of(b)) == (i % 4 < 2));
        wait_for_a_failure(a, b, i % 2 == 0, i >= 4);
        CHECK_OK(sp_stream_release(a));
        CHECK_OK(sp_stream_release(b));
        runtime_end();
    }
}

TEST_MAIN
