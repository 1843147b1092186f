/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on streams: order, synchronize and the failures it reports, time-outs, batching,
 * devices. */
#include "runtime_fixture.h"

#include <stdio.h>

#include "device/null/null.h"

typedef struct passed_on {
    sp_stream stream;
    sp_storage storage;
} passed_on;

static void create_here(void *arg)
{
    ((passed_on *)arg)->stream = new_stream();
}

static void run_here(void *arg)
{
    const passed_on *self = arg;
    fill(self->stream, self->storage, 4);
    CHECK_OK(sp_stream_synchronize(self->stream));
}

static void release_here(void *arg)
{
    CHECK_OK(sp_stream_release(((const passed_on *)arg)->stream));
}

TEST(a_stream_is_made_on_one_thread_used_on_a_second_and_released_on_a_third)
{
    runtime_begin();
    passed_on self = {.storage = new_storage(300)};
    run_on_thread(create_here, &self);
    run_on_thread(run_here, &self);
    run_on_thread(release_here, &self);
    CHECK_STATUS(sp_stream_query(self.stream), SP_INVALID);
    CHECK_EQ_INT(first_other(self.storage, 4), -1);
    CHECK_OK(sp_storage_release(self.storage));
    runtime_end();
}

typedef struct in_turn {
    sp_stream stream;
    sp_storage storage; /* untracked: only the stream keeps the order */
    sp_atomic_u32 turn;
    uint32_t rounds;
} in_turn;

static void append_in_turn(void *arg, uint32_t index)
{
    in_turn *self = arg;
    for (uint32_t i = index; i < self->rounds; i += 2) {
        while (sp_load_acquire(&self->turn) != i) sp_thread_yield();
        fill(self->stream, self->storage, (uint8_t)i);
        sp_store_release(&self->turn, i + 1);
    }
}

TEST(two_threads_append_to_one_stream_in_the_order_that_they_agree_on)
{
    runtime_begin();
    in_turn self = {.stream = new_stream(), .rounds = (uint32_t)test_count(2000, 500)};
    self.storage = new_storage_on(CPU, 4096, true);
    test_threads(2, append_in_turn, &self);
    CHECK_OK(sp_stream_synchronize(self.stream));
    CHECK_EQ_INT(first_other(self.storage, (uint8_t)(self.rounds - 1)), -1);
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

static void synchronize_elsewhere(void *arg)
{
    CHECK_OK(sp_stream_synchronize(*(const sp_stream *)arg));
    CHECK_OK(sp_device_synchronize(CPU));
}

TEST(synchronize_tells_a_failure_once_to_the_thread_that_submitted_it)
{
    runtime_begin();
    sp_stream stream = new_stream();
    submit_failing(stream, (sp_storage){0});
    run_on_thread(synchronize_elsewhere, &stream);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_MESSAGE("fail on stream");
    CHECK_MESSAGE("asked to fail");
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_device_synchronize(CPU));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(of_several_failures_the_first_is_told_and_the_others_not_again)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    submit_failing(stream, (sp_storage){0});
    submit_failing(stream, (sp_storage){0});
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(untracked_commands_after_a_failure_are_skipped_until_it_is_told)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage storage = new_storage_on(CPU, 64, true);
    fill(stream, storage, 1);
    submit_failing(stream, storage);
    fill(stream, storage, 2);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_STATUS(sp_stream_query(stream), SP_OK);
    fill(stream, storage, 3);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_EQ_INT(first_other(storage, 3), -1);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(when_several_failures_were_told_at_once_untracked_commands_go_on)
{
    runtime_begin();
    const sp_device null = open_null();
    const sp_stream stream = new_stream_on(null);
    const sp_storage bad[2] = {new_storage_on(null, 64, false), new_storage_on(null, 64, false)};
    const sp_storage storage = new_storage_on(null, 64, true);
    for (int i = 0; i < 2; i++) { /* two independent faults */
        sp__null_fail_command(rt_device(null)->dev, 0);
        fill(stream, bad[i], 1);
        if (i == 0) run_on_thread(synchronize_elsewhere, (void *)(uintptr_t)&stream);
    }
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    fill(stream, storage, 2);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_EQ_INT(first_other(storage, 2), -1);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(bad[i]));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_failure_that_was_not_told_yet_keeps_untracked_commands_from_running)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage storage = new_storage_on(CPU, 64, true);
    fill(stream, storage, 1);
    CHECK_OK(sp_stream_synchronize(stream));
    submit_failing(stream, (sp_storage){0});
    run_on_thread(synchronize_elsewhere, (void *)(uintptr_t)&stream); /* not that thread's */
    fill(stream, storage, 2);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    void *data; /* the skipped command should have written it */
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ, &data), SP_FAILED);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(independent_commands_behind_a_failure_run)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage bad = new_storage(64);
    const sp_storage good = new_storage(64);
    const sp_storage derived = new_storage(64);
    submit_failing(stream, bad);
    fill(stream, good, 5);
    copy(stream, derived, bad);
    CHECK_EQ_INT(first_other(good, 5), -1);
    void *data;
    CHECK_STATUS(sp_storage_host_begin(derived, SP_READ, &data), SP_FAILED);
    CHECK_MESSAGE("asked to fail");
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_storage_release(bad));
    CHECK_OK(sp_storage_release(good));
    CHECK_OK(sp_storage_release(derived));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(device_synchronize_waits_for_all_streams_and_tells_the_failure)
{
    runtime_begin();
    sp_stream streams[8];
    sp_storage storages[8];
    for (int i = 0; i < 8; i++) {
        streams[i] = new_stream();
        storages[i] = new_storage(64);
        submit_slow_fill(streams[i], storages[i], (uint8_t)i, 2 * MILLISECOND);
    }
    submit_failing(streams[5], (sp_storage){0});
    CHECK_STATUS(sp_device_synchronize(CPU), SP_FAILED);
    for (int i = 0; i < 8; i++) CHECK_OK(sp_stream_query(streams[i]));
    CHECK_OK(sp_device_synchronize(CPU));
    for (int i = 0; i < 8; i++) {
        CHECK_EQ_INT(first_other(storages[i], (uint8_t)i), -1);
        CHECK_OK(sp_storage_release(storages[i]));
        CHECK_OK(sp_stream_release(streams[i]));
    }
    runtime_end();
}

typedef struct beside {
    sp_atomic_u32 finished;
    uint32_t workers;
    uint32_t rounds;
} beside;

static void work_or_sync_all(void *arg, uint32_t index)
{
    beside *self = arg;
    if (index == self->workers) {
        do {
            CHECK_OK(sp_device_synchronize(CPU));
        } while (sp_load_acquire(&self->finished) < self->workers);
        return;
    }
    const sp_storage storage = new_storage(512);
    for (uint32_t i = 0; i < self->rounds; i++) {
        fill(current_stream(), storage, (uint8_t)(i + index));
        CHECK_EQ_INT(first_other(storage, (uint8_t)(i + index)), -1);
    }
    CHECK_OK(sp_storage_release(storage));
    raise_by_one(&self->finished);
}

TEST(device_synchronize_in_a_loop_disturbs_no_thread_that_works)
{
    runtime_begin();
    beside self = {.workers = 8, .rounds = (uint32_t)test_count(2000, 200)};
    test_threads(9, work_or_sync_all, &self);
    runtime_end();
}

TEST(synchronize_with_a_time_out_ends_in_time)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    gate_hold(&blocker, stream);
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
    CHECK_STATUS(sp_stream_synchronize_for(stream, 0), SP_TIMEOUT);
    const uint64_t start = sp_clock_now();
    CHECK_STATUS(sp_stream_synchronize_for(stream, 50 * MILLISECOND), SP_TIMEOUT);
    CHECK(sp_clock_now() - start >= 50 * MILLISECOND);
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize_for(stream, 30 * SECOND));
    CHECK_OK(sp_stream_synchronize_for(stream, 0));
    CHECK_OK(sp_stream_query(stream));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

static void leave_work_behind(void *arg)
{
    const sp_storage *storages = arg;
    submit_slow_fill(current_stream(), storages[0], 6, 10 * MILLISECOND);
    copy(current_stream(), storages[1], storages[0]);
}

TEST(work_in_flight_when_its_thread_ends_completes)
{
    runtime_begin();
    sp_storage storages[2] = {new_storage(64), new_storage(64)};
    run_on_thread(leave_work_behind, storages);
    CHECK_EQ_INT(first_other(storages[1], 6), -1);
    CHECK_OK(sp_storage_release(storages[0]));
    CHECK_OK(sp_storage_release(storages[1]));
    runtime_end();
}

TEST(what_a_stream_accepted_is_done_or_failed_when_it_is_idle)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    const sp_stream stream = new_stream();
    gate blocker = gate_closed(CPU);
    gate_hold(&blocker, stream);
    for (int i = 0; i < 3; i++) fill(stream, storage, 1);
    for (int i = 0; i < 2; i++) submit_failing(stream, (sp_storage){0});
    CHECK_EQ_U64(info_of(stream).submissions, 6);
    CHECK_EQ_U64(info_of(stream).done + info_of(stream).failed, 0);
    gate_open(&blocker);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_EQ_U64(info_of(stream).done, 4);
    CHECK_EQ_U64(info_of(stream).failed, 2);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    gate_destroy(&blocker);
    runtime_end();
}

TEST(without_batching_each_submission_is_handed_over_at_once)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    const sp_stream stream = new_stream();
    CHECK_OK(sp_stream_set_batching(stream, false));
    for (int i = 0; i < 10; i++) fill(stream, storage, (uint8_t)i);
    CHECK_EQ_U64(info_of(stream).commits, 10);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_stream_set_batching(stream, true));
    const uint64_t before = info_of(stream).commits;
    for (int i = 0; i < 10; i++) fill(stream, storage, (uint8_t)i);
    CHECK_EQ_U64(info_of(stream).commits, before);
    CHECK_OK(sp_stream_flush(stream));
    CHECK_EQ_U64(info_of(stream).commits, before + 1);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_stream_can_be_taken_unbatched)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    sp_stream stream;
    CHECK_OK(sp_stream_from_pool_with(CPU, &(sp_stream_options){.is_unbatched = true}, &stream));
    for (int i = 0; i < 10; i++) fill(stream, storage, (uint8_t)i);
    CHECK_EQ_U64(info_of(stream).commits, 10);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_stream_option_that_is_not_known_is_refused_and_takes_no_stream)
{
    runtime_begin_with(&(runtime_setting){.streams = "2", .policy = "fail"});
    sp_stream stream;
    for (int i = 0; i < 7; i++) {
        sp_stream_options options = {.is_unbatched = false};
        options.reserved[i] = 1;
        CHECK_STATUS(sp_stream_from_pool_with(CPU, &options, &stream), SP_UNSUPPORTED);
        CHECK_EQ_U64(stream.bits, 0);
    }
    CHECK_OK(sp_stream_from_pool_with(CPU, NULL, &stream));
    CHECK_OK(sp_stream_release(stream));
    CHECK_STATUS(sp_stream_from_pool_with(CPU, NULL, NULL), SP_INVALID);
    runtime_end();
}

TEST(batching_that_was_turned_off_is_on_again_for_the_next_holder)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    const sp_stream former = new_stream();
    const uint32_t index = index_of(former);
    CHECK_OK(sp_stream_set_batching(former, false));
    CHECK_OK(sp_stream_release(former));
    const sp_stream stream = new_stream();
    CHECK_EQ_U64(index_of(stream), index);
    const uint64_t before = info_of(stream).commits;
    for (int i = 0; i < 10; i++) fill(stream, storage, (uint8_t)i);
    CHECK_EQ_U64(info_of(stream).commits, before);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(what_was_gathered_runs_without_any_further_call)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    const sp_stream stream = new_stream();
    fill(stream, storage, 1);
    const uint64_t deadline = sp_clock_deadline(30 * SECOND);
    /* Queries do not flush. */
    while (info_of(stream).by_workers == 0 && sp_clock_now() < deadline) sp_clock_sleep(100000);
    CHECK_EQ_U64(info_of(stream).by_workers, 1);
    CHECK_EQ_U64(info_of(stream).submissions, 1);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(two_streams_run_at_the_same_time)
{
    runtime_begin_with(&(runtime_setting){.workers = "2"});
    sp_atomic_u32 inside = {0};
    sp_atomic_u32 met = {0};
    const kernel_constants constants = {.inside = &inside, .met = &met, .wanted = 2};
    sp_stream streams[2] = {new_stream(), new_stream()};
    for (int i = 0; i < 2; i++) CHECK_OK(dispatch(streams[i], &kernel_meet, &constants, NULL, 0));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_flush(streams[i]));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_synchronize(streams[i]));
    CHECK_EQ_U64(sp_load_acquire(&met), 2);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(streams[i]));
    runtime_end();
}

/* ---- work that a waiting thread runs for others ---- */

TEST(a_wait_runs_no_more_of_another_stream_than_it_waits_for)
{
    runtime_begin_with(&(runtime_setting){.workers = "1"});
    busy_worker worker = {0};
    occupy_worker(&worker);
    const sp_stream behind = new_stream();
    const sp_stream stream = new_stream();
    const sp_storage storage = new_storage(64);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    for (uint32_t i = 0; i < 1000; i++) {
        fill(behind, storage, (uint8_t)i);
        if (i > 2 && i != 5) continue;
        CHECK_OK(sp_event_record(event, behind));
        CHECK_OK(sp_stream_wait_event(stream, event));
    }
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_EQ_U64(info_of(behind).by_helpers, 6);
    CHECK_STATUS(sp_stream_query(behind), SP_NOT_READY);
    free_worker(&worker);
    CHECK_EQ_INT(first_other(storage, (uint8_t)999), -1);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(behind));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_wait_with_a_time_out_does_not_run_a_long_queue_itself)
{
    runtime_begin_with(&(runtime_setting){.workers = "1"});
    busy_worker worker = {0};
    occupy_worker(&worker);
    const sp_stream stream = new_stream();
    const sp_storage storage = new_storage(64);
    for (uint32_t i = 0; i < 60; i++) fill(stream, storage, (uint8_t)i);
    CHECK_STATUS(sp_stream_synchronize_for(stream, 30 * MILLISECOND), SP_TIMEOUT);
    CHECK_EQ_U64(info_of(stream).done, 0); /* a single command might take longer than the wait */
    free_worker(&worker);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

static void fail_here(void *arg)
{
    submit_failing(((const passed_on *)arg)->stream, (sp_storage){0});
}

TEST(a_wait_that_runs_a_failing_command_of_another_thread_keeps_the_last_error)
{
    runtime_begin_with(&(runtime_setting){.workers = "1"});
    busy_worker worker = {0};
    occupy_worker(&worker);
    passed_on other = {.stream = new_stream()};
    run_on_thread(fail_here, &other);
    CHECK_STATUS(sp_storage_retain((sp_storage){0}), SP_INVALID);
    char message[512];
    snprintf(message, sizeof message, "%s", sp_last_error());
    CHECK_OK(sp_stream_synchronize(other.stream));
    CHECK_EQ_U64(info_of(other.stream).by_helpers, 1);
    CHECK_EQ_STR(sp_last_error(), message);
    free_worker(&worker);
    CHECK_OK(sp_stream_release(other.stream));
    runtime_end();
}

TEST(a_lost_device_fails_fast_with_its_first_cause_and_cpu_lives_on)
{
    runtime_begin();
    const sp_device null = open_null();
    const sp_stream stream = new_stream_on(null);
    const sp_storage there = new_storage_on(null, 64, false);
    const sp_storage held = new_storage_on(null, 64, false);
    void *data;
    CHECK_OK(sp_storage_host_begin(held, SP_READ, &data));
    sp__null_lose(rt_device(null)->dev);
    fill(stream, there, 1);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_DEVICE_LOST);
    const uint8_t one = 1;
    CHECK_STATUS(sp_storage_fill_async(stream, whole(there), &one, 1), SP_DEVICE_LOST);
    CHECK_MESSAGE("injected loss");
    sp_storage more;
    sp_stream other;
    char bytes[8];
    CHECK_STATUS(sp_storage_create(null, 64, NULL, &more), SP_DEVICE_LOST);
    CHECK_MESSAGE("injected loss");
    CHECK_STATUS(sp_storage_adopt(null, bytes, sizeof bytes, NULL, &more), SP_DEVICE_LOST);
    CHECK_STATUS(sp_stream_from_pool(null, &other), SP_DEVICE_LOST);
    CHECK_MESSAGE("injected loss");
    for (int i = 0; i < 2; i++) { /* each time, although it was reported to this thread */
        CHECK_STATUS(sp_device_synchronize(null), SP_DEVICE_LOST);
        CHECK_MESSAGE("injected loss");
    }
    /* Accesses begun before are ended as usual. */
    CHECK_OK(sp_storage_host_end(held, SP_READ));
    CHECK_OK(sp_storage_release(held));
    const sp_storage here = new_storage(64);
    fill(current_stream(), here, 2);
    CHECK_EQ_INT(first_other(here, 2), -1);
    CHECK_OK(sp_storage_release(here));
    CHECK_OK(sp_storage_release(there));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST_MAIN
