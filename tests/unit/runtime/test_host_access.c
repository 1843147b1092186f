/* SPDX-License-Identifier: Apache-2.0 */
/* Host access: the waits of begin, waits for end, misuse, failures. */
#include "runtime_fixture.h"

#include <string.h>

TEST(a_read_waits_for_the_storages_own_write_and_for_nothing_else)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    const sp_stream held = new_stream();
    const sp_storage storage = new_storage(128);
    submit_slow_fill(stream, storage, 1, 2 * MILLISECOND);
    gate_hold(&blocker, held);
    gate_hold(&blocker, stream); /* behind the write, on its own stream */
    CHECK_EQ_INT(first_other(storage, 1), -1);
    CHECK_STATUS(sp_stream_query(held), SP_NOT_READY);
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
    gate_open(&blocker);
    CHECK_OK(sp_device_synchronize(CPU));
    CHECK_OK(sp_storage_release(storage));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_stream_release(held));
    runtime_end();
}

TEST(device_work_waits_for_the_end_of_a_host_write)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage from = new_storage(128);
    const sp_storage to = new_storage(128);
    void *data;
    CHECK_OK(sp_storage_host_begin(from, SP_WRITE, &data));
    copy(stream, to, from);
    CHECK_STATUS(sp_stream_synchronize_for(stream, 5 * MILLISECOND), SP_TIMEOUT);
    memset(data, 6, 128);
    CHECK_OK(sp_storage_host_end(from, SP_WRITE));
    CHECK_EQ_INT(first_other(to, 6), -1);
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(device_reads_run_beside_a_host_read_and_device_writes_do_not)
{
    runtime_begin();
    const sp_stream reader = new_stream();
    const sp_stream writer = new_stream();
    const sp_storage storage = new_storage(128);
    const sp_storage to = new_storage(128);
    fill(reader, storage, 1);
    void *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    copy(reader, to, storage);
    CHECK_OK(sp_stream_synchronize(reader));
    fill(writer, storage, 2);
    CHECK_STATUS(sp_stream_synchronize_for(writer, 5 * MILLISECOND), SP_TIMEOUT);
    CHECK_EQ_INT(((unsigned char *)data)[127], 1);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_OK(sp_stream_synchronize(writer));
    CHECK_EQ_INT(first_other(storage, 2), -1);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_stream_release(reader));
    CHECK_OK(sp_stream_release(writer));
    runtime_end();
}

TEST(an_access_may_read_and_write)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    fill(current_stream(), storage, 1);
    unsigned char *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ_WRITE, (void **)&data));
    for (int i = 0; i < 64; i++) data[i]++;
    CHECK_OK(sp_storage_host_end(storage, SP_READ_WRITE));
    CHECK_EQ_INT(first_other(storage, 2), -1);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

typedef struct shared {
    sp_storage storage;
    sp_atomic_u32 reading;
    sp_atomic_u32 is_writing;
    sp_atomic_u32 has_written;
} shared;

/* Threads 0 and 1 read at the same time; thread 2 writes behind them. */
static void read_or_write(void *arg, uint32_t index)
{
    shared *self = arg;
    void *data;
    if (index < 2) {
        CHECK_OK(sp_storage_host_begin(self->storage, SP_READ, &data));
        raise_by_one(&self->reading);
        await_at_least(&self->reading, 2); /* both are inside */
        await_at_least(&self->is_writing, 1);
        sp_clock_sleep(5 * MILLISECOND); /* the writer waits; otherwise the test proves less */
        CHECK_EQ_U64(sp_load_acquire(&self->has_written), 0);
        CHECK_OK(sp_storage_host_end(self->storage, SP_READ));
    } else {
        await_at_least(&self->reading, 2);
        raise_by_one(&self->is_writing);
        CHECK_OK(sp_storage_host_begin(self->storage, SP_WRITE, &data));
        raise_by_one(&self->has_written);
        memset(data, 9, 64);
        CHECK_OK(sp_storage_host_end(self->storage, SP_WRITE));
    }
}

TEST(a_writer_waits_for_all_readers_and_readers_wait_for_no_reader)
{
    runtime_begin();
    shared self = {.storage = new_storage(64)};
    test_threads(3, read_or_write, &self);
    CHECK_EQ_INT(first_other(self.storage, 9), -1);
    CHECK_OK(sp_storage_release(self.storage));
    runtime_end();
}

typedef struct late_writer {
    sp_storage storage;
    sp_atomic_u32 is_begun;
    sp_atomic_u32 has_written;
} late_writer;

static void write_late(void *arg)
{
    late_writer *self = arg;
    void *data;
    raise_by_one(&self->is_begun);
    CHECK_OK(sp_storage_host_begin(self->storage, SP_WRITE, &data));
    raise_by_one(&self->has_written);
    CHECK_OK(sp_storage_host_end(self->storage, SP_WRITE));
}

TEST(a_writer_waits_for_the_last_of_more_readers_than_fit_in_its_ticket)
{
    enum { READERS = 3 * SP_MAX_WAITS };
    runtime_begin();
    late_writer self = {.storage = new_storage(64)};
    sp_thread thread;
    void *data;
    for (int i = 0; i < READERS; i++) {
        REQUIRE_OK(sp_storage_host_begin(self.storage, SP_READ, &data));
    }
    REQUIRE_OK(sp_thread_create(&thread, "sp-test", write_late, &self));
    await_at_least(&self.is_begun, 1);
    sp_clock_sleep(5 * MILLISECOND); /* the writer waits; otherwise the test proves less */
    for (int i = 0; i < READERS; i++) {
        CHECK_EQ_U64(sp_load_acquire(&self.has_written), 0);
        CHECK_OK(sp_storage_host_end(self.storage, SP_READ));
        if (i == READERS - 2) sp_clock_sleep(5 * MILLISECOND);
    }
    sp_thread_join(&thread);
    CHECK_EQ_U64(sp_load_acquire(&self.has_written), 1);
    CHECK_OK(sp_storage_release(self.storage));
    runtime_end();
}

typedef struct fairness {
    sp_storage storage;
    sp_atomic_u32 arrived; /* reads that began */
    sp_atomic_u32 has_written;
    sp_atomic_u64 waits_since; /* time at which the writer began to wait; 0: not waiting */
    uint64_t longest_ns;
} fairness;

/* Stays inside until another reader has begun too, so that one is always inside if the library
 * permits it; not for long, since none begins behind the writer. */
static void read_once(fairness *self)
{
    void *data;
    CHECK_OK(sp_storage_host_begin(self->storage, SP_READ, &data));
    const uint32_t mine = sp_fetch_add_acq_rel(&self->arrived, 1) + 1;
    const uint64_t deadline = sp_clock_deadline(MILLISECOND);
    while (sp_load_acquire(&self->arrived) == mine && sp_clock_now() < deadline) sp_thread_yield();
    CHECK_OK(sp_storage_host_end(self->storage, SP_READ));
}

/* Readers stop when the writer has starved, so that the test fails instead of hanging. */
static bool is_starving(const fairness *self)
{
    const uint64_t since = sp_load_acquire(&self->waits_since);
    return since != 0 && sp_clock_now() - since > 2 * SECOND;
}

static void read_or_write_often(void *arg, uint32_t index)
{
    fairness *self = arg;
    void *data;
    if (index > 0) {
        while (sp_load_acquire(&self->has_written) == 0 && !is_starving(self)) read_once(self);
        return;
    }
    for (int i = 0; i < 100 && self->longest_ns < SECOND; i++) {
        await_at_least(&self->arrived, sp_load_acquire(&self->arrived) + 16);
        const uint64_t start = sp_clock_now();
        sp_store_release(&self->waits_since, start);
        CHECK_OK(sp_storage_host_begin(self->storage, SP_WRITE, &data));
        const uint64_t took = sp_clock_now() - start;
        sp_store_release(&self->waits_since, 0);
        memset(data, 99, 64);
        CHECK_OK(sp_storage_host_end(self->storage, SP_WRITE));
        if (took > self->longest_ns) self->longest_ns = took;
    }
    raise_by_one(&self->has_written);
}

TEST(sixteen_readers_in_a_loop_do_not_keep_a_writer_out)
{
    runtime_begin();
    fairness self = {.storage = new_storage(64)};
    fill(current_stream(), self.storage, 1);
    test_threads(17, read_or_write_often, &self);
    test_note("of 100 writes the slowest waited %.1f ms", (double)self.longest_ns / 1e6);
    CHECK(self.longest_ns < SECOND);
    CHECK_EQ_INT(first_other(self.storage, 99), -1);
    CHECK_OK(sp_storage_release(self.storage));
    runtime_end();
}

typedef struct behind {
    sp_storage storage;
    sp_stream writer;
    sp_atomic_u32 is_waiting;
} behind;

static void read_behind_a_write(void *arg, uint32_t index)
{
    behind *self = arg;
    void *data;
    if (index == 0) {
        CHECK_OK(sp_storage_host_begin(self->storage, SP_READ, &data));
        fill(self->writer, self->storage, 2); /* waits for this access */
        raise_by_one(&self->is_waiting);
        await_at_least(&self->is_waiting, 2);
        sp_clock_sleep(20 * MILLISECOND); /* the second reader is probably in its wait */
        CHECK_EQ_INT(((unsigned char *)data)[0], 1);
        CHECK_OK(sp_storage_host_end(self->storage, SP_READ)); /* this access, not the other */
    } else {
        await_at_least(&self->is_waiting, 1);
        raise_by_one(&self->is_waiting);
        CHECK_OK(sp_storage_host_begin(self->storage, SP_READ, &data));
        CHECK_EQ_INT(((unsigned char *)data)[0], 2);
        CHECK_OK(sp_storage_host_end(self->storage, SP_READ));
    }
}

TEST(a_reader_behind_a_queued_write_does_not_take_the_end_of_an_earlier_reader)
{
    runtime_begin();
    behind self = {.storage = new_storage(64), .writer = new_stream()};
    fill(self.writer, self.storage, 1);
    test_threads(2, read_behind_a_write, &self);
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.writer));
    runtime_end();
}

TEST(an_end_without_a_begin_of_its_kind_is_refused)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    void *data;
    CHECK_STATUS(sp_storage_host_end(storage, SP_READ), SP_INVALID);
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    CHECK_STATUS(sp_storage_host_end(storage, SP_WRITE), SP_INVALID);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_STATUS(sp_storage_host_end(storage, SP_READ), SP_INVALID);
    CHECK_STATUS(sp_storage_host_begin(storage, (sp_access)0, &data), SP_INVALID);
    CHECK_STATUS(sp_storage_host_begin(storage, (sp_access)4, &data), SP_INVALID);
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ, NULL), SP_INVALID);
    fill(current_stream(), storage, 1); /* nothing remained open */
    CHECK_EQ_INT(first_other(storage, 1), -1);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(a_read_tells_that_a_failed_command_wrote_the_storage_until_it_is_overwritten)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    submit_failing(current_stream(), storage);
    void *data = &data;
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ, &data), SP_FAILED);
    CHECK_MESSAGE("asked to fail");
    CHECK(data == NULL);
    CHECK_STATUS(sp_storage_host_end(storage, SP_READ), SP_INVALID); /* it did not begin */
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ_WRITE, &data), SP_FAILED);
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, &data)); /* declares to write all of it */
    memset(data, 5, 64);
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
    CHECK_EQ_INT(first_other(storage, 5), -1);
    CHECK_STATUS(sp_stream_synchronize(current_stream()), SP_FAILED);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(poison_spreads_by_copies_and_a_partial_write_does_not_heal)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage a = new_storage(64);
    const sp_storage b = new_storage(64);
    const uint8_t one = 1;
    submit_failing(stream, a);
    copy(current_stream(), b, a);
    CHECK_OK(sp_storage_fill_async(stream, (sp_storage_range){b, 0, 32}, &one, 1));
    void *data;
    CHECK_STATUS(sp_storage_host_begin(b, SP_READ, &data), SP_FAILED);
    fill(stream, b, 2);
    CHECK_EQ_INT(first_other(b, 2), -1);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(current_stream()), SP_FAILED);
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(poison_ends_with_the_life_of_the_storage)
{
    runtime_begin();
    const sp_storage bad = new_storage(64);
    const void *address = address_of(bad);
    submit_failing(current_stream(), bad);
    CHECK_STATUS(sp_stream_synchronize(current_stream()), SP_FAILED);
    CHECK_OK(sp_storage_release(bad));
    const sp_storage next = new_storage(64);
    void *data;
    CHECK_OK(sp_storage_host_begin(next, SP_READ, &data));
    CHECK(data == address);
    CHECK_OK(sp_storage_host_end(next, SP_READ));
    CHECK_OK(sp_storage_release(next));
    runtime_end();
}

TEST(a_release_with_an_open_access_ends_it)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage from = new_storage(64);
    const sp_storage to = new_storage(64);
    void *data;
    CHECK_OK(sp_storage_host_begin(from, SP_WRITE, &data));
    memset(data, 3, 64);
    copy(stream, to, from);
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_STATUS(sp_storage_host_end(from, SP_WRITE), SP_INVALID);
    CHECK_EQ_INT(first_other(to, 3), -1);
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

/* ---- shutting down ---- */

typedef struct closing {
    sp_storage storage;
    sp_atomic_u32 is_down;
} closing;

static void shut_down_or_end_the_access(void *arg, uint32_t index)
{
    closing *self = arg;
    if (index == 0) {
        CHECK_OK(sp_shutdown());
        raise_by_one(&self->is_down);
        return;
    }
    while (sp_init() == SP_OK) sp_thread_yield(); /* until the shutdown has begun */
    CHECK_EQ_U64(sp_load_acquire(&self->is_down), 0);
    CHECK_OK(sp_storage_host_end(self->storage, SP_WRITE));
    CHECK_STATUS(sp_storage_host_end(self->storage, SP_WRITE), SP_INVALID);
}

TEST(a_shutdown_waits_for_work_behind_an_open_access_whose_end_still_works)
{
    runtime_begin();
    closing self = {.storage = new_storage(64)};
    void *data;
    CHECK_OK(sp_storage_host_begin(self.storage, SP_WRITE, &data));
    memset(data, 1, 64);
    fill(current_stream(), self.storage, 2);
    test_threads(2, shut_down_or_end_the_access, &self);
    CHECK_EQ_INT(((unsigned char *)data)[63], 2); /* the fill has run */
    CHECK_OK(sp_storage_release(self.storage));
    runtime_end();
}

TEST(an_access_can_end_after_the_shutdown_and_none_can_begin)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    void *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, &data));
    CHECK_OK(sp_shutdown());
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE)); /* also when it is down */
    CHECK_STATUS(sp_storage_host_begin(storage, SP_WRITE, &data), SP_CLOSED);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

typedef struct released_early {
    gate blocker;
    sp_stream user;
    sp_storage storage;
    uint64_t bytes;
    const void *address;
    sp_atomic_u32 step;
} released_early;

static void begin_or_release(void *arg, uint32_t index)
{
    released_early *self = arg;
    if (index == 0) {
        void *data;
        raise_by_one(&self->step);
        /* The handle becomes stale during the wait: any status is allowed, but it must return. */
        sp_storage_host_begin(self->storage, SP_WRITE, &data);
        raise_by_one(&self->step);
        return;
    }
    await_at_least(&self->step, 1);
    sp_clock_sleep(20 * MILLISECOND); /* thread 0 is in its wait; otherwise the test proves less */
    CHECK_OK(sp_storage_release(self->storage));
    CHECK(!is_taken_again(self->address, self->bytes)); /* the fill is pending */
    gate_open(&self->blocker);
    await_at_least(&self->step, 2);
}

TEST(memory_released_while_a_begin_waits_is_not_reused_before_the_pending_work)
{
    static const uint64_t sizes[] = {200, 300000, 3 << 20}; /* each takes another path when freed */
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        runtime_begin();
        released_early self = {
            .blocker = gate_closed(CPU), .user = new_stream(), .bytes = sizes[i]};
        self.storage = new_storage(self.bytes);
        self.address = address_of(self.storage);
        gate_hold(&self.blocker, self.user);
        fill(self.user, self.storage, 1);
        test_threads(2, begin_or_release, &self);
        CHECK_OK(sp_stream_synchronize(self.user));
        gate_destroy(&self.blocker);
        CHECK_OK(sp_stream_release(self.user));
        runtime_end();
    }
}

typedef struct refused {
    sp_stream stream;
    sp_storage storage;
    sp_status status;
    sp_atomic_u32 is_done;
} refused;

static void begin_that_is_refused(void *ctx, sp_status status)
{
    refused *self = ctx;
    void *data;
    (void)status;
    submit_slow_fill(self->stream, self->storage, 7, 20 * MILLISECOND); /* comes after this */
    self->status = sp_storage_host_begin(self->storage, SP_WRITE, &data);
    raise_by_one(&self->is_done);
}

TEST(a_write_access_that_was_refused_leaves_the_order_of_earlier_uses_as_it_was)
{
    runtime_begin();
    refused self = {.stream = new_stream(), .storage = new_storage(64)};
    const sp_storage to = new_storage(64);
    CHECK_OK(sp_stream_host_function(self.stream, begin_that_is_refused, &self));
    CHECK_OK(sp_stream_flush(self.stream));
    await_at_least(&self.is_done, 1);
    CHECK_STATUS(self.status, SP_DEADLOCK);
    const sp_stream reader = new_stream();
    copy(reader, to, self.storage); /* follows the fill that the begin could not wait for */
    CHECK_EQ_INT(first_other(to, 7), -1);
    CHECK_OK(sp_stream_synchronize(self.stream));
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_stream_release(self.stream));
    CHECK_OK(sp_stream_release(reader));
    runtime_end();
}

TEST_MAIN
