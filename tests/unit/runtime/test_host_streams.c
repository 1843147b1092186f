/* SPDX-License-Identifier: Apache-2.0 */
/* State that callbacks leave on the threads that run them: no stream, no current stream, no guard,
 * and only a few threads. */
#include "runtime_fixture.h"
#include "thread_list.h"

static void ask_for_current(void *ctx, sp_status status)
{
    CHECK_OK(status);
    *(uint32_t *)ctx = index_of(current_stream());
}

static void take_current(void *arg)
{
    (void)arg;
    CHECK_EQ_U64(index_of(current_stream()), 1);
    CHECK_EQ_U64(holders_of(current_stream()), 1);
}

TEST(the_stream_that_a_callback_asked_for_is_free_when_it_is_done)
{
    runtime_begin_with(&(runtime_setting){.streams = "2", .policy = "fail"});
    sp_stream stream;
    sp_event event;
    CHECK_OK(sp_stream_default(CPU, &stream));
    CHECK_OK(sp_event_create(NULL, &event));
    for (int i = 0; i < 10; i++) {
        uint32_t index = 9;
        CHECK_OK(sp_stream_host_function(stream, ask_for_current, &index));
        CHECK_OK(sp_event_record(event, stream));
        CHECK_OK(sp_event_synchronize_for(event, 30 * SECOND)); /* without helping */
        CHECK_EQ_U64(index, 1);
        run_on_thread(take_current, NULL);
    }
    CHECK_OK(sp_event_release(event));
    runtime_end();
}

/* ---- many at once ---- */

#define MANY 31 /* as many as there are streams */

typedef struct crowd {
    sp_event gate;
    sp_atomic_u32 arrived;
    sp_atomic_u32 left;
} crowd;

static void ask_and_wait(void *ctx, sp_status status)
{
    crowd *self = ctx;
    CHECK_OK(status);
    (void)current_stream();
    raise_by_one(&self->arrived);
    CHECK_OK(sp_event_synchronize(self->gate));
    raise_by_one(&self->left);
}

static uint32_t host_thread_count(void)
{
    return threads_called("sp-host").threads;
}

static void await_host_threads(uint32_t most)
{
    const uint64_t deadline = sp_clock_deadline(30 * SECOND);
    while (host_thread_count() > most && sp_clock_now() < deadline) sp_clock_sleep(MILLISECOND);
    CHECK(host_thread_count() >= 1 && host_thread_count() <= most);
}

static void block_many(crowd *self, sp_stream held)
{
    CHECK_OK(sp_event_create(NULL, &self->gate));
    CHECK_OK(sp_event_record(self->gate, held));
    sp_event now;
    CHECK_OK(sp_event_create(NULL, &now));
    CHECK_OK(sp_event_record(now, current_stream()));
    for (int i = 0; i < MANY; i++) CHECK_OK(sp_event_on_complete(now, ask_and_wait, self));
    await_at_least(&self->arrived, MANY);
    CHECK_OK(sp_event_release(now));
}

TEST(callbacks_that_waited_leave_neither_streams_nor_threads)
{
    runtime_begin();
    const sp_device device = open_null();
    const sp_stream held = new_stream_on(device);
    for (int round = 0; round < 3; round++) {
        gate blocker = gate_closed(device);
        crowd self = {.arrived = {0}};
        gate_hold(&blocker, held);
        block_many(&self, held);
        CHECK(host_thread_count() >= MANY);
        gate_open(&blocker);
        await_at_least(&self.left, MANY);
        await_host_threads(2);
        let_callbacks_come(); /* one starts after the effects of earlier ones have ended */
        sp_stream streams[MANY];
        for (int i = 0; i < MANY; i++) streams[i] = new_stream();
        for (int i = 0; i < MANY; i++) {
            CHECK_EQ_U64(holders_of(streams[i]), 1);
            CHECK_OK(sp_stream_release(streams[i]));
        }
        CHECK_OK(sp_event_release(self.gate));
        gate_destroy(&blocker);
    }
    CHECK_OK(sp_stream_release(held));
    runtime_end();
}

/* ---- current streams set by callbacks ---- */

typedef struct leak {
    sp_stream stream;
    sp_stream_guard guard;
    uint64_t thread;
    sp_atomic_u32 calls;
} leak;

static void make_current_and_guard(void *ctx, sp_status status)
{
    leak *self = ctx;
    CHECK_OK(status);
    self->thread = sp_thread_number();
    CHECK_OK(sp_stream_set_current(self->stream));
    CHECK_OK(sp_stream_guard_begin(self->stream, &self->guard));
    raise_by_one(&self->calls);
}

static void expect_own_current(void *ctx, sp_status status)
{
    leak *self = ctx;
    sp_stream_guard guard;
    CHECK_OK(status);
    CHECK_EQ_U64(sp_thread_number(), self->thread);
    CHECK(index_of(current_stream()) != index_of(self->stream));
    CHECK_OK(sp_stream_guard_begin(self->stream, &guard));
    CHECK_STATUS(sp_stream_guard_end(&self->guard), SP_INVALID);
    CHECK_OK(sp_stream_guard_end(&guard));
    raise_by_one(&self->calls);
}

TEST(what_a_callback_makes_current_is_not_current_in_the_next_one)
{
    runtime_begin();
    leak self = {.stream = new_stream()};
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, self.stream));
    CHECK_OK(sp_event_on_complete(event, make_current_and_guard, &self));
    CHECK_OK(sp_event_on_complete(event, expect_own_current, &self));
    await_at_least(&self.calls, 2);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

TEST_MAIN
