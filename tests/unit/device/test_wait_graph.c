/* SPDX-License-Identifier: Apache-2.0 */
/* Wait cycles through host functions and host accesses are SP_DEADLOCK; waits that only look like a
 * cycle are not. */
#include "runtime_fixture.h"

#include <string.h>

#include "base/heap.h"
#include "device/wait_graph.h"

typedef struct world {
    sp_stream stream;
    sp_stream other;
    sp_storage storage;
    sp_storage second;
    sp_event event;
    sp_atomic_u32 may_wait;
    sp_atomic_u32 is_begun;
    sp_atomic_u32 is_done;
    sp_status status[4];
} world;

static void world_open(world *w)
{
    runtime_begin();
    memset(w, 0, sizeof *w);
    w->stream = new_stream();
    w->other = new_stream();
    w->storage = new_storage(64);
    w->second = new_storage(64);
    CHECK_OK(sp_event_create(NULL, &w->event));
}

static void world_close(world *w)
{
    CHECK_OK(sp_device_synchronize(CPU));
    CHECK_OK(sp_event_release(w->event));
    CHECK_OK(sp_storage_release(w->second));
    CHECK_OK(sp_storage_release(w->storage));
    CHECK_OK(sp_stream_release(w->other));
    CHECK_OK(sp_stream_release(w->stream));
    runtime_end();
}

static sp_status begin(sp_storage storage, sp_access access)
{
    void *data;
    return sp_storage_host_begin(storage, access, &data);
}

/* ---- host functions ---- */

static void begin_twice(void *ctx, sp_status status)
{
    world *w = ctx;
    (void)status;
    await_at_least(&w->may_wait, 1);
    for (int i = 0; i < 2; i++) w->status[i] = begin(w->storage, SP_WRITE);
    w->status[2] = begin(w->storage, SP_READ);
}

/* Each attempt leaves a ticket in the frontier of the storage, and the next one is behind it. */
TEST(an_access_that_gave_up_does_not_hide_a_cycle_from_the_next)
{
    world w;
    world_open(&w);
    CHECK_OK(sp_stream_host_function(w.stream, begin_twice, &w));
    fill(w.stream, w.storage, 1);
    raise_by_one(&w.may_wait);
    CHECK_OK(sp_stream_synchronize(w.stream));
    for (int i = 0; i < 3; i++) CHECK_STATUS(w.status[i], SP_DEADLOCK);
    CHECK_EQ_INT(first_other(w.storage, 1), -1);
    world_close(&w);
}

static void wait_for_event(void *ctx, sp_status status)
{
    world *w = ctx;
    (void)status;
    await_at_least(&w->may_wait, 1);
    w->status[0] = sp_event_synchronize(w->event);
    raise_by_one(&w->is_done);
}

/* Fills on `other`, behind the points in the storage's frontier, and records the event there. */
static void fill_and_record(world *w)
{
    fill(w->other, w->storage, 2);
    CHECK_OK(sp_event_record(w->event, w->other));
    CHECK_OK(sp_stream_flush(w->other));
}

static void access_in_between(void *arg, uint32_t index)
{
    world *w = arg;
    if (index == 0) {
        raise_by_one(&w->is_begun);
        w->status[1] = begin(w->storage, SP_READ_WRITE);
        if (w->status[1] == SP_OK) CHECK_OK(sp_storage_host_end(w->storage, SP_READ_WRITE));
        return;
    }
    await_at_least(&w->is_begun, 1);
    sp_clock_sleep(20 * MILLISECOND); /* the other thread probably waits in its begin by now */
    fill_and_record(w);
    raise_by_one(&w->may_wait);
}

TEST(a_cycle_through_an_access_that_another_thread_is_beginning_is_found)
{
    world w;
    world_open(&w);
    CHECK_OK(sp_stream_host_function(w.stream, wait_for_event, &w));
    fill(w.stream, w.storage, 1);
    CHECK_OK(sp_stream_flush(w.stream));
    test_threads(2, access_in_between, &w);
    CHECK_OK(sp_stream_synchronize(w.other));
    CHECK_STATUS(w.status[0], SP_DEADLOCK);
    CHECK_OK(w.status[1]);
    world_close(&w);
}

static void begin_and_leave_open(void *ctx, sp_status status)
{
    world *w = ctx;
    (void)status;
    w->status[1] = begin(w->storage, SP_WRITE);
    raise_by_one(&w->is_begun);
}

static void wait_and_begin(void *ctx, sp_status status)
{
    world *w = ctx;
    void *data;
    (void)status;
    w->status[2] = sp_storage_host_begin(w->storage, SP_READ, &data);
    if (w->status[2] == SP_OK) CHECK_OK(sp_storage_host_end(w->storage, SP_READ));
    wait_for_event(ctx, status);
}

static void end_it_later(void *arg)
{
    world *w = arg;
    sp_clock_sleep(20 * MILLISECOND);
    CHECK_OK(sp_storage_host_end(w->storage, SP_WRITE));
}

/* Both probably run on the same thread of the library. */
TEST(an_access_that_a_host_function_left_open_is_not_that_of_the_next_one)
{
    world w;
    world_open(&w);
    CHECK_OK(sp_stream_host_function(w.stream, begin_and_leave_open, &w));
    CHECK_OK(sp_stream_flush(w.stream));
    await_at_least(&w.is_begun, 1);
    CHECK_OK(w.status[1]);
    fill_and_record(&w);
    raise_by_one(&w.may_wait);
    CHECK_OK(sp_stream_host_function(w.stream, wait_and_begin, &w));
    CHECK_OK(sp_stream_flush(w.stream));
    run_on_thread(end_it_later, &w);
    await_at_least(&w.is_done, 1);
    CHECK_OK(w.status[2]);
    CHECK_OK(w.status[0]);
    world_close(&w);
}

static void wait_in_place(void *arg, uint32_t index)
{
    world *w = arg;
    if (index == 1) {
        await_at_least(&w->is_begun, 1);
        end_it_later(w);
        return;
    }
    CHECK_OK(begin(w->storage, SP_WRITE));
    fill_and_record(w);
    raise_by_one(&w->may_wait);
    CHECK_OK(sp_stream_host_function(w->stream, wait_for_event, w));
    raise_by_one(&w->is_begun);
    CHECK_OK(sp_stream_synchronize(w->stream)); /* perhaps the function runs here */
}

TEST(a_host_function_waits_behind_an_access_of_the_thread_that_it_runs_on)
{
    world w;
    world_open(&w);
    test_threads(2, wait_in_place, &w);
    CHECK_OK(w.status[0]);
    world_close(&w);
}

typedef struct any_of {
    sp_stream streams[3];
    sp_event behind_first;  /* after the first host function */
    sp_event behind_second; /* after the second */
    sp_event gate;          /* after the host access that the test has open */
    bool has_gate;
    sp_atomic_u32 is_running;
    sp_atomic_u32 may_wait;
    sp_atomic_u32 is_waiting;
    sp_status status[2];
} any_of;

static void wait_for_second_or_gate(void *ctx, sp_status status)
{
    any_of *self = ctx;
    (void)status;
    uint32_t which;
    raise_by_one(&self->is_running);
    await_at_least(&self->may_wait, 1);
    const sp_event events[2] = {self->behind_second,
                                self->has_gate ? self->gate : self->behind_second};
    raise_by_one(&self->is_waiting);
    self->status[0] = sp_event_wait_any(events, 2, SP_FOREVER, &which);
}

static void wait_for_first(void *ctx, sp_status status)
{
    any_of *self = ctx;
    (void)status;
    await_at_least(&self->is_waiting, 1);
    sp_clock_sleep(10 * MILLISECOND); /* the first function probably waits by now */
    raise_by_one(&self->is_waiting);
    self->status[1] = sp_event_synchronize(self->behind_first);
}

static void run_any_of(any_of *self, sp_storage storage)
{
    sp_event *const events[3] = {&self->behind_first, &self->behind_second, &self->gate};
    CHECK_OK(begin(storage, SP_WRITE));
    fill(self->streams[2], storage, 1);
    CHECK_OK(sp_stream_host_function(self->streams[0], wait_for_second_or_gate, self));
    CHECK_OK(sp_stream_flush(self->streams[0]));
    await_at_least(&self->is_running, 1); /* otherwise the second would keep it from starting */
    CHECK_OK(sp_stream_host_function(self->streams[1], wait_for_first, self));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(sp_event_create(NULL, events[i]));
        CHECK_OK(sp_event_record(*events[i], self->streams[i]));
        CHECK_OK(sp_stream_flush(self->streams[i]));
    }
    raise_by_one(&self->may_wait);
    await_at_least(&self->is_waiting, 2);
    sp_clock_sleep(10 * MILLISECOND); /* and the second one */
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
    for (int i = 0; i < 3; i++) CHECK_OK(sp_stream_synchronize(self->streams[i]));
    for (int i = 0; i < 3; i++) CHECK_OK(sp_event_release(*events[i]));
}

/* The first function waits for any of two points. The second, which one of the points is behind,
 * waits for the first: a cycle only if the other point is behind it too. */
TEST(a_wait_for_any_of_several_points_is_stuck_only_if_all_of_them_are)
{
    for (int has_gate = 0; has_gate < 2; has_gate++) {
        world w;
        world_open(&w);
        any_of self = {.streams = {w.stream, w.other, new_stream()}, .has_gate = has_gate != 0};
        run_any_of(&self, w.storage);
        const bool is_refused = self.status[0] == SP_DEADLOCK || self.status[1] == SP_DEADLOCK;
        CHECK(is_refused == !self.has_gate);
        CHECK_OK(sp_stream_release(self.streams[2]));
        world_close(&w);
    }
}

/* ---- accesses of one thread ---- */

TEST(a_begin_behind_an_open_access_of_the_same_thread_is_a_deadlock)
{
    world w;
    world_open(&w);
    CHECK_OK(begin(w.storage, SP_WRITE));
    CHECK_STATUS(begin(w.storage, SP_WRITE), SP_DEADLOCK);
    CHECK_MESSAGE("sp_storage_host_end");
    CHECK_STATUS(begin(w.storage, SP_READ), SP_DEADLOCK);
    CHECK_STATUS(sp_storage_freeze(w.storage), SP_DEADLOCK);
    CHECK_OK(begin(w.second, SP_WRITE)); /* of another storage: allowed */
    CHECK_OK(sp_storage_host_end(w.second, SP_WRITE));
    CHECK_OK(sp_storage_host_end(w.storage, SP_WRITE));
    CHECK_OK(begin(w.storage, SP_READ));
    CHECK_OK(begin(w.storage, SP_READ)); /* readers do not wait for each other */
    CHECK_STATUS(begin(w.storage, SP_WRITE), SP_DEADLOCK);
    CHECK_OK(sp_storage_host_end(w.storage, SP_READ));
    CHECK_OK(sp_storage_host_end(w.storage, SP_READ));
    CHECK_OK(begin(w.storage, SP_WRITE));
    CHECK_OK(sp_storage_host_end(w.storage, SP_WRITE));
    world_close(&w);
}

TEST(a_begin_behind_a_command_that_waits_for_the_threads_own_access_is_a_deadlock)
{
    world w;
    world_open(&w);
    CHECK_OK(begin(w.storage, SP_WRITE));
    copy(w.stream, w.second, w.storage);
    copy(w.other, w.second, w.second); /* one more stream between */
    CHECK_STATUS(begin(w.second, SP_READ), SP_DEADLOCK);
    CHECK_OK(sp_storage_host_end(w.storage, SP_WRITE));
    CHECK_OK(begin(w.second, SP_READ));
    CHECK_OK(sp_storage_host_end(w.second, SP_READ));
    world_close(&w);
}

/* ---- accesses of several threads ---- */

static void end_later(void *arg, uint32_t index)
{
    world *w = arg;
    if (index == 1) {
        await_at_least(&w->is_begun, 1);
        sp_clock_sleep(5 * MILLISECOND);
        CHECK_OK(sp_storage_host_end(w->storage, SP_WRITE));
        return;
    }
    CHECK_OK(begin(w->storage, SP_WRITE));
    fill(w->stream, w->storage, 1);
    raise_by_one(&w->is_begun);
    /* Another thread ends the access: only a further begin on this one is refused. */
    CHECK_OK(sp_stream_synchronize(w->stream));
}

TEST(a_thread_may_wait_for_a_stream_behind_its_access_since_another_may_end_it)
{
    world w;
    world_open(&w);
    test_threads(2, end_later, &w);
    CHECK_OK(begin(w.storage, SP_WRITE));
    CHECK_OK(sp_storage_host_end(w.storage, SP_WRITE));
    world_close(&w);
}

static void lock_both(void *arg, uint32_t index)
{
    world *w = arg;
    const sp_storage first = index == 0 ? w->storage : w->second;
    const sp_storage then = index == 0 ? w->second : w->storage;
    CHECK_OK(begin(first, SP_WRITE));
    raise_by_one(&w->is_begun);
    await_at_least(&w->is_begun, 2);
    w->status[index] = begin(then, SP_WRITE);
    if (w->status[index] == SP_OK) CHECK_OK(sp_storage_host_end(then, SP_WRITE));
    CHECK_OK(sp_storage_host_end(first, SP_WRITE));
}

TEST(of_two_threads_that_begin_in_opposite_orders_one_is_refused)
{
    const uint64_t rounds = test_count(2000, 100);
    for (uint64_t i = 0; i < rounds; i++) {
        world w;
        world_open(&w);
        test_threads(2, lock_both, &w);
        const bool is_first = w.status[0] == SP_DEADLOCK;
        CHECK_STATUS(w.status[is_first ? 1 : 0], SP_OK);
        CHECK_STATUS(w.status[is_first ? 0 : 1], SP_DEADLOCK);
        world_close(&w);
    }
}

static void read_beside_others(void *arg, uint32_t index)
{
    world *w = arg;
    if (index == 2) {
        await_at_least(&w->is_begun, 2);
        CHECK_OK(sp_storage_host_end(w->storage, SP_READ)); /* one of the two, either one */
        raise_by_one(&w->is_done);
        return;
    }
    CHECK_OK(begin(w->storage, SP_READ));
    raise_by_one(&w->is_begun);
    await_at_least(&w->is_done, 1);
    if (index == 0) {
        CHECK_OK(begin(w->storage, SP_WRITE)); /* behind the access of the other reader */
        CHECK_OK(sp_storage_host_end(w->storage, SP_WRITE));
    } else {
        sp_clock_sleep(5 * MILLISECOND);
        CHECK_OK(sp_storage_host_end(w->storage, SP_READ));
    }
}

TEST(a_thread_whose_access_another_may_have_ended_begins_again)
{
    const uint64_t rounds = test_count(200, 10);
    for (uint64_t i = 0; i < rounds; i++) {
        world w;
        world_open(&w);
        test_threads(3, read_beside_others, &w);
        world_close(&w);
    }
}

TEST(a_begin_that_is_refused_again_and_again_leaves_nothing_behind)
{
    world w;
    world_open(&w);
    const uint64_t tries = test_count(200000, 50000);
    CHECK_OK(begin(w.storage, SP_WRITE));
    copy(w.stream, w.second, w.storage);
    for (uint64_t i = 0; i < tries; i++) CHECK_STATUS(begin(w.second, SP_WRITE), SP_DEADLOCK);
    copy(w.other, w.second, w.second); /* still behind the copy */
    CHECK_STATUS(sp_stream_synchronize_for(w.other, MILLISECOND), SP_TIMEOUT);
    CHECK_OK(sp_storage_host_end(w.storage, SP_WRITE));
    CHECK_OK(begin(w.second, SP_WRITE));
    CHECK_OK(sp_storage_host_end(w.second, SP_WRITE));
    world_close(&w);
}

/* ---- many waits ---- */

TEST(a_search_follows_very_many_waits)
{
    world w;
    world_open(&w);
    const uint64_t waits = test_count(80000, 20000);
    CHECK_OK(begin(w.storage, SP_WRITE));
    fill(w.other, w.storage, 1);
    CHECK_OK(sp_event_record(w.event, w.other));
    fill(w.stream, w.second, 2);
    for (uint64_t i = 0; i < waits; i++) CHECK_OK(sp_stream_wait_event(w.stream, w.event));
    fill(w.stream, w.second, 3);
    CHECK_STATUS(begin(w.second, SP_READ), SP_DEADLOCK);
    CHECK_OK(sp_storage_host_end(w.storage, SP_WRITE));
    CHECK_EQ_INT(first_other(w.second, 3), -1);
    world_close(&w);
}

/* With a walk over all earlier waits for each one visited, this many would take a minute. */
TEST(meeting_a_wait_does_not_cost_more_the_more_are_ahead)
{
    world w;
    world_open(&w);
    const uint64_t waits = test_count(1000000, 400000);
    CHECK_OK(begin(w.storage, SP_WRITE));
    fill(w.other, w.storage, 1);
    CHECK_OK(sp_event_record(w.event, w.other));
    uint64_t accepted = 0;
    while (accepted < waits && sp_stream_wait_event(w.stream, w.event) == SP_OK) accepted++;
    CHECK(accepted >= 50000 || accepted == waits);
    CHECK_OK(sp_storage_host_end(w.storage, SP_WRITE));
    CHECK_OK(sp_stream_synchronize(w.stream));
    world_close(&w);
}

static void count_call(void *ctx, sp_status status)
{
    CHECK_OK(status);
    raise_by_one(ctx);
}

/* With a walk over all others for each, a million of them would take 15 minutes. */
TEST(registering_a_callback_does_not_cost_more_the_more_there_are)
{
    world w;
    world_open(&w);
    const uint64_t count = test_count(1000000, 300000);
    sp_atomic_u32 calls = {0};
    CHECK_OK(begin(w.storage, SP_WRITE));
    fill(w.other, w.storage, 1);
    CHECK_OK(sp_event_record(w.event, w.other));
    for (uint64_t i = 0; i < count; i++) {
        CHECK_OK(sp_event_on_complete(w.event, count_call, &calls));
    }
    CHECK_OK(sp_storage_host_end(w.storage, SP_WRITE));
    await_at_least(&calls, (uint32_t)count);
    world_close(&w);
}

TEST_MAIN
