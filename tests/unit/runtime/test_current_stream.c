/* SPDX-License-Identifier: Apache-2.0 */
/* Current streams: of the main thread, of other threads, scopes, release. */
#include "runtime_fixture.h"

static void note_index(void *arg)
{
    *(uint32_t *)arg = index_of(current_stream());
}

TEST(the_main_thread_has_the_default_stream_even_if_it_comes_last)
{
    runtime_begin();
    uint32_t others[3];
    for (int i = 0; i < 3; i++) run_on_thread(note_index, &others[i]);
    for (int i = 0; i < 3; i++) CHECK(others[i] != 0);
    sp_stream stream;
    CHECK_OK(sp_stream_default(CPU, &stream));
    CHECK_EQ_U64(current_stream().bits, stream.bits);
    CHECK_EQ_U64(index_of(stream), 0);
    runtime_end();
}

static void keep_stream(void *arg)
{
    sp_stream *stream = arg;
    *stream = current_stream();
    CHECK_EQ_U64(current_stream().bits, stream->bits); /* the same at each call */
}

TEST(the_stream_of_a_thread_comes_back_at_its_end)
{
    runtime_begin_with(&(runtime_setting){.streams = "2", .policy = "fail"});
    sp_stream streams[3];
    for (int i = 0; i < 3; i++) {
        run_on_thread(keep_stream, &streams[i]);
        CHECK_STATUS(sp_stream_query(streams[i]), SP_INVALID);
    }
    CHECK(streams[0].bits != streams[1].bits && streams[1].bits != streams[2].bits);
    runtime_end();
}

static void release_and_ask_again(void *arg)
{
    (void)arg;
    CHECK_OK(sp_thread_release_stream()); /* it has none yet */
    const sp_stream first = current_stream();
    CHECK_OK(sp_thread_release_stream());
    CHECK_OK(sp_thread_release_stream());
    CHECK_STATUS(sp_stream_query(first), SP_INVALID);
    const sp_stream second = current_stream();
    CHECK(first.bits != second.bits);
    CHECK_OK(sp_stream_query(second));
}

TEST(a_thread_that_gave_its_stream_back_gets_another_when_it_needs_one)
{
    runtime_begin_with(&(runtime_setting){.streams = "2", .policy = "fail"});
    run_on_thread(release_and_ask_again, NULL);
    run_on_thread(release_and_ask_again, NULL);
    CHECK_OK(sp_thread_release_stream()); /* nothing to release on the main thread */
    CHECK_EQ_U64(index_of(current_stream()), 0);
    runtime_end();
}

static void release_what_is_released(void *arg)
{
    (void)arg;
    const sp_stream own = current_stream();
    CHECK_OK(sp_stream_release(own));
    CHECK_OK(sp_thread_release_stream());
    CHECK_EQ_STR(sp_last_error(), "");
    CHECK(current_stream().bits != own.bits);
}

TEST(a_thread_whose_stream_was_released_has_nothing_to_give_back)
{
    runtime_begin();
    run_on_thread(release_what_is_released, NULL);
    runtime_end();
}

TEST(guards_nest)
{
    runtime_begin();
    const sp_stream own = current_stream();
    const sp_stream a = new_stream();
    const sp_stream b = new_stream();
    sp_stream_guard outer;
    sp_stream_guard inner;
    CHECK_OK(sp_stream_guard_begin(a, &outer));
    CHECK_EQ_U64(current_stream().bits, a.bits);
    CHECK_OK(sp_stream_guard_begin(b, &inner));
    CHECK_EQ_U64(current_stream().bits, b.bits);
    CHECK_OK(sp_stream_guard_end(&inner));
    CHECK_EQ_U64(current_stream().bits, a.bits);
    CHECK_OK(sp_stream_guard_end(&outer));
    CHECK_EQ_U64(current_stream().bits, own.bits);
    CHECK_OK(sp_stream_release(a));
    CHECK_OK(sp_stream_release(b));
    runtime_end();
}

static void end_foreign_guard(void *arg)
{
    CHECK_STATUS(sp_stream_guard_end(arg), SP_INVALID); /* this thread has no streams at all */
    current_stream();
    CHECK_STATUS(sp_stream_guard_end(arg), SP_INVALID);
    CHECK_MESSAGE("on the thread that began them");
}

TEST(a_guard_ended_out_of_order_or_elsewhere_is_refused)
{
    runtime_begin();
    const sp_stream a = new_stream();
    const sp_stream b = new_stream();
    sp_stream_guard outer;
    sp_stream_guard inner;
    CHECK_OK(sp_stream_guard_begin(a, &outer));
    CHECK_OK(sp_stream_guard_begin(b, &inner));
    CHECK_STATUS(sp_stream_guard_end(&outer), SP_INVALID);
    CHECK_EQ_U64(current_stream().bits, b.bits);
    run_on_thread(end_foreign_guard, &inner);
    CHECK_OK(sp_stream_guard_end(&inner));
    CHECK_OK(sp_stream_guard_end(&outer));
    CHECK_STATUS(sp_stream_guard_end(&outer), SP_INVALID);
    CHECK_STATUS(sp_stream_guard_end(NULL), SP_INVALID);
    CHECK_STATUS(sp_stream_guard_end(&(sp_stream_guard){0}), SP_INVALID);
    CHECK_STATUS(sp_stream_guard_begin(a, NULL), SP_INVALID);
    CHECK_STATUS(sp_stream_guard_begin((sp_stream){0}, &outer), SP_INVALID);
    CHECK_OK(sp_stream_release(a));
    CHECK_STATUS(sp_stream_guard_begin(a, &outer), SP_INVALID);
    CHECK_OK(sp_stream_release(b));
    runtime_end();
}

TEST(guards_of_one_stream_end_in_reverse_order_too)
{
    runtime_begin();
    const sp_stream a = new_stream();
    const sp_stream b = new_stream();
    sp_stream_guard guards[4];
    CHECK_OK(sp_stream_guard_begin(a, &guards[0]));
    CHECK_OK(sp_stream_guard_begin(b, &guards[1]));
    CHECK_OK(sp_stream_guard_begin(a, &guards[2]));
    CHECK_STATUS(sp_stream_guard_end(&guards[0]), SP_INVALID);
    CHECK_EQ_U64(current_stream().bits, a.bits);
    CHECK_OK(sp_stream_guard_end(&guards[2]));
    CHECK_EQ_U64(current_stream().bits, b.bits);
    CHECK_OK(sp_stream_guard_begin(a, &guards[3]));
    CHECK_STATUS(sp_stream_guard_end(&guards[2]), SP_INVALID); /* it has ended, in the same depth */
    CHECK_EQ_U64(current_stream().bits, a.bits);
    for (int i = 3; i >= 0; i -= i == 3 ? 2 : 1) CHECK_OK(sp_stream_guard_end(&guards[i]));
    CHECK_OK(sp_stream_release(a));
    CHECK_OK(sp_stream_release(b));
    runtime_end();
}

typedef struct shared_guard {
    sp_stream stream;
    sp_stream_guard guard;
} shared_guard;

static void end_guard_with_the_same_stream(void *arg)
{
    const shared_guard *self = arg;
    sp_stream_guard mine;
    CHECK_OK(sp_stream_set_current(self->stream));
    CHECK_STATUS(sp_stream_guard_end(&self->guard), SP_INVALID);
    CHECK_OK(sp_stream_guard_begin(self->stream, &mine));
    CHECK_STATUS(sp_stream_guard_end(&self->guard), SP_INVALID);
    CHECK_OK(sp_stream_guard_end(&mine));
    CHECK_EQ_U64(current_stream().bits, self->stream.bits);
}

TEST(a_thread_with_the_same_current_stream_cannot_end_anothers_guard)
{
    runtime_begin();
    shared_guard self = {.stream = new_stream()};
    CHECK_OK(sp_stream_guard_begin(self.stream, &self.guard));
    run_on_thread(end_guard_with_the_same_stream, &self);
    CHECK_OK(sp_stream_guard_end(&self.guard));
    CHECK_EQ_U64(index_of(current_stream()), 0);
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

TEST(a_guard_ends_what_was_made_current_inside_it_or_released_there)
{
    runtime_begin();
    const sp_stream a = new_stream();
    const sp_stream b = new_stream();
    sp_stream_guard guard;
    CHECK_OK(sp_stream_guard_begin(a, &guard));
    CHECK_OK(sp_stream_set_current(b));
    CHECK_OK(sp_stream_release(a));
    CHECK_OK(sp_stream_guard_end(&guard));
    CHECK_EQ_U64(index_of(current_stream()), 0);
    CHECK_OK(sp_stream_release(b));
    runtime_end();
}

TEST(a_closed_device_has_no_current_stream_any_more)
{
    runtime_begin();
    const sp_device null = open_null();
    sp_stream stream;
    CHECK_OK(sp_stream_current(null, &stream));
    CHECK_OK(sp_stream_current(null, &stream)); /* from the thread's own record */
    CHECK_OK(sp_device_close(null));
    CHECK_STATUS(sp_stream_current(null, &stream), SP_CLOSED);
    CHECK_EQ_U64(stream.bits, 0);
    CHECK_OK(sp_stream_current(CPU, &stream));
    runtime_end();
}

static void release_inside_a_guard(void *arg)
{
    sp_stream_guard guard;
    const sp_stream own = current_stream();
    CHECK_OK(sp_stream_guard_begin(*(const sp_stream *)arg, &guard));
    CHECK_OK(sp_thread_release_stream());
    CHECK_EQ_U64(current_stream().bits, ((const sp_stream *)arg)->bits);
    CHECK_OK(sp_stream_guard_end(&guard));
    /* The previous stream has another holder by now. */
    CHECK(current_stream().bits != own.bits);
    CHECK_OK(sp_stream_synchronize(current_stream()));
}

TEST(a_guard_does_not_bring_a_stream_back_that_was_released_inside_it)
{
    runtime_begin();
    sp_stream stream = new_stream();
    run_on_thread(release_inside_a_guard, &stream);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

static void set_and_go_back(void *arg)
{
    const sp_stream other = *(const sp_stream *)arg;
    const sp_stream own = current_stream();
    CHECK_OK(sp_stream_set_current(other));
    CHECK_EQ_U64(current_stream().bits, other.bits);
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
    CHECK_EQ_U64(current_stream().bits, own.bits);
    CHECK_OK(sp_stream_set_current(other)); /* not released: current at the end of the thread */
}

TEST(a_thread_sets_its_current_stream_and_goes_back_to_its_own)
{
    runtime_begin();
    sp_stream other = new_stream();
    run_on_thread(set_and_go_back, &other);
    CHECK_OK(sp_stream_query(other));
    CHECK_OK(sp_stream_set_current(other));
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
    CHECK_EQ_U64(index_of(current_stream()), 0);
    CHECK_OK(sp_stream_release(other));
    CHECK_STATUS(sp_stream_set_current(other), SP_INVALID);
    CHECK_STATUS(sp_stream_set_current((sp_stream){12345}), SP_INVALID);
    CHECK_EQ_U64(index_of(current_stream()), 0);
    runtime_end();
}

TEST(a_current_stream_that_was_released_is_an_error_and_no_other_stream)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    CHECK_OK(sp_stream_set_current(stream));
    CHECK_OK(sp_stream_release(stream));
    sp_storage storage;
    CHECK_STATUS(sp_storage_create(CPU, 64, NULL, &storage), SP_INVALID);
    CHECK_MESSAGE("stale");
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
    CHECK_OK(sp_storage_create(CPU, 64, NULL, &storage));
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

static void release_own_and_go_back(void *arg)
{
    (void)arg;
    sp_storage storage;
    const sp_stream own = current_stream();
    CHECK_OK(sp_stream_release(own));
    CHECK_STATUS(sp_storage_create(CPU, 64, NULL, &storage), SP_INVALID);
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
    CHECK(current_stream().bits != own.bits);
    CHECK_OK(sp_storage_create(CPU, 64, NULL, &storage));
    CHECK_OK(sp_storage_release(storage));
}

TEST(a_thread_that_has_released_its_own_stream_goes_back_to_another)
{
    runtime_begin();
    run_on_thread(release_own_and_go_back, NULL);
    runtime_end();
}

TEST(each_device_has_a_current_stream_of_its_own)
{
    runtime_begin();
    const sp_device null = open_null();
    sp_stream on_null;
    CHECK_OK(sp_stream_current(null, &on_null));
    CHECK(on_null.bits != current_stream().bits);
    const sp_stream leased = new_stream_on(null);
    CHECK_OK(sp_stream_set_current(leased));
    CHECK_EQ_U64(index_of(current_stream()), 0); /* cpu's is unchanged */
    sp_stream now;
    CHECK_OK(sp_stream_current(null, &now));
    CHECK_EQ_U64(now.bits, leased.bits);
    CHECK_OK(sp_stream_release(leased));
    runtime_end();
}

TEST(a_storage_is_ordered_on_the_stream_of_the_scope_it_is_made_in)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    gate blocker = gate_closed(CPU);
    sp_stream_guard guard;
    CHECK_OK(sp_stream_guard_begin(stream, &guard));
    const sp_storage first = new_storage(100000);
    const void *const address = address_of(first);
    gate_hold(&blocker, stream);
    fill(stream, first, 1);
    CHECK_OK(sp_storage_release(first));
    /* Its last use is pending, on the stream on which it is used again: no wait is needed. */
    const sp_storage second = new_storage(100000);
    gate_open(&blocker);
    CHECK(address_of(second) == address);
    CHECK_OK(sp_stream_guard_end(&guard));
    CHECK_OK(sp_storage_release(second));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

typedef struct handed_over {
    sp_storage from, to;
    sp_stream producer; /* the value of the producer's current stream */
    sp_atomic_u32 is_filled;
} handed_over;

static void produce_or_consume(void *arg, uint32_t index)
{
    handed_over *self = arg;
    if (index == 0) {
        self->producer = current_stream();
        submit_slow_fill(self->producer, self->from, 9, 20 * MILLISECOND);
        raise_by_one(&self->is_filled);
        await_at_least(&self->is_filled, 2);
    } else {
        await_at_least(&self->is_filled, 1);
        /* Not the producer's stream by silent sharing, so the copy could overtake the fill. */
        CHECK(current_stream().bits != self->producer.bits);
        copy(current_stream(), self->to, self->from);
        CHECK_EQ_INT(first_other(self->to, 9), -1);
        /* The value names the producer's stream on this thread too. */
        CHECK(index_of(self->producer) != index_of(current_stream()));
        fill(self->producer, self->to, 10);
        CHECK_OK(sp_stream_synchronize(self->producer));
        CHECK_EQ_INT(first_other(self->to, 10), -1);
        raise_by_one(&self->is_filled);
    }
}

TEST(a_consumer_on_another_thread_sees_what_a_slow_stream_produces)
{
    runtime_begin();
    handed_over self = {.from = new_storage(5000), .to = new_storage(5000)};
    test_threads(2, produce_or_consume, &self);
    CHECK_OK(sp_storage_release(self.from));
    CHECK_OK(sp_storage_release(self.to));
    runtime_end();
}

TEST_MAIN
