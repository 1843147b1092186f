/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard step: uses of one storage on several streams are ordered without calls by the user. */
#include "runtime_fixture.h"

#include <stdio.h>
#include <string.h>

TEST(a_read_on_another_stream_follows_the_write)
{
    runtime_begin();
    const sp_storage from = new_storage(1000);
    const sp_storage to = new_storage(1000);
    const sp_stream writer = new_stream();
    const sp_stream reader = new_stream();
    submit_slow_fill(writer, from, 5, 5 * MILLISECOND);
    copy(reader, to, from);
    CHECK_OK(sp_stream_synchronize(reader));
    CHECK_OK(sp_stream_query(writer));
    CHECK_EQ_INT(first_other(to, 5), -1);
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_stream_release(writer));
    CHECK_OK(sp_stream_release(reader));
    runtime_end();
}

TEST(a_write_follows_all_reads_of_other_streams)
{
    runtime_begin();
    enum { READERS = 12 }; /* more than a frontier holds inline */
    const sp_storage from = new_storage(256);
    sp_storage to[READERS];
    sp_stream readers[READERS];
    fill(current_stream(), from, 1);
    const kernel_constants slow = {.ns = 2 * MILLISECOND, .bytes = 256};
    for (int i = 0; i < READERS; i++) {
        readers[i] = new_stream();
        to[i] = new_storage(256);
        const sp_use uses[2] = {use_of(to[i], SP_WRITE), use_of(from, SP_READ)};
        CHECK_OK(dispatch(readers[i], &kernel_slow_copy, &slow, uses, 2));
    }
    fill(current_stream(), from, 2);
    for (int i = 0; i < READERS; i++) {
        CHECK_EQ_INT(first_other(to[i], 1), -1);
        CHECK_OK(sp_storage_release(to[i]));
        CHECK_OK(sp_stream_release(readers[i]));
    }
    CHECK_EQ_INT(first_other(from, 2), -1);
    CHECK_OK(sp_storage_release(from));
    runtime_end();
}

TEST(readers_do_not_wait_for_each_other)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_storage from = new_storage(64);
    const sp_storage to[2] = {new_storage(64), new_storage(64)};
    const sp_stream readers[2] = {new_stream(), new_stream()};
    fill(current_stream(), from, 1);
    gate_hold(&blocker, readers[0]);
    for (int i = 0; i < 2; i++) copy(readers[i], to[i], from);
    CHECK_OK(sp_stream_synchronize(readers[1]));
    CHECK_STATUS(sp_stream_query(readers[0]), SP_NOT_READY);
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(readers[0]));
    CHECK_OK(sp_storage_release(from));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(to[i]));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(readers[i]));
    gate_destroy(&blocker);
    runtime_end();
}

TEST(a_storage_may_be_source_and_destination_of_one_command)
{
    runtime_begin();
    const sp_storage storage = new_storage(128);
    const sp_stream streams[2] = {new_stream(), new_stream()};
    fill(streams[0], storage, 1);
    CHECK_OK(sp_storage_copy_async(streams[1], (sp_storage_range){storage, 0, 64},
                                   (sp_storage_range){storage, 64, 64}));
    fill(streams[0], storage, 2);
    copy(streams[1], storage, storage);
    CHECK_EQ_INT(first_other(storage, 2), -1);
    CHECK_OK(sp_storage_release(storage));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(streams[i]));
    runtime_end();
}

TEST(a_command_that_follows_more_points_than_one_submission_holds_still_waits_for_all)
{
    runtime_begin_with(&(runtime_setting){.streams = "64"});
    enum { EACH = 60 };
    gate blocker = gate_closed(CPU);
    sp_stream streams[EACH];
    sp_storage storages[2] = {new_storage(64), new_storage(64)};
    sp_storage to[EACH];
    for (int i = 0; i < 2; i++) fill(current_stream(), storages[i], 1);
    CHECK_OK(sp_stream_synchronize(current_stream()));
    for (int i = 0; i < EACH; i++) {
        streams[i] = new_stream();
        to[i] = new_storage(64);
        gate_hold(&blocker, streams[i]);
        copy(streams[i], to[i], storages[i % 2]);
    }
    /* Each host access has its own timeline: together more than 64. */
    void *data;
    for (int i = 0; i < 20; i++) CHECK_OK(sp_storage_host_begin(storages[0], SP_READ, &data));
    copy(current_stream(), storages[0], storages[1]);
    fill(current_stream(), storages[0], 2);
    CHECK_STATUS(sp_stream_query(current_stream()), SP_NOT_READY);
    gate_open(&blocker);
    CHECK_STATUS(sp_stream_synchronize_for(current_stream(), 2 * MILLISECOND), SP_TIMEOUT);
    for (int i = 0; i < 20; i++) CHECK_OK(sp_storage_host_end(storages[0], SP_READ));
    CHECK_EQ_INT(first_other(storages[0], 2), -1);
    for (int i = 0; i < EACH; i++) {
        CHECK_EQ_INT(first_other(to[i], 1), -1);
        CHECK_OK(sp_storage_release(to[i]));
        CHECK_OK(sp_stream_release(streams[i]));
    }
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(storages[i]));
    gate_destroy(&blocker);
    runtime_end();
}

/* The number of submissions of a fill that must follow that many open reads of its storage. */
static uint64_t submissions_behind(uint32_t reads)
{
    const sp_stream stream = new_stream();
    const sp_storage storage = new_storage(64);
    void *data;
    for (uint32_t i = 0; i < reads; i++) {
        CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    }
    const uint64_t before = info_of(stream).submissions;
    fill(stream, storage, 5);
    const uint64_t taken = info_of(stream).submissions - before;
    for (uint32_t i = 0; i < reads; i++) {
        CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY); /* the last one counts too */
        CHECK_OK(sp_storage_host_end(storage, SP_READ));
    }
    CHECK_EQ_INT(first_other(storage, 5), -1);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    return taken;
}

TEST(points_of_one_storage_beyond_a_full_set_are_waited_for_once_each)
{
    runtime_begin();
    CHECK_EQ_U64(submissions_behind(SP_MAX_WAITS), 1);
    CHECK_EQ_U64(submissions_behind(SP_MAX_WAITS + 1), 2);
    CHECK_EQ_U64(submissions_behind(200), 4);
    runtime_end();
}

TEST(a_stale_handle_beside_the_living_one_of_its_slot_is_refused)
{
    runtime_begin();
    const sp_storage stale = new_storage(64);
    CHECK_OK(sp_storage_release(stale));
    const sp_storage alive = new_storage(64);
    const uint64_t slot = ((uint64_t)1 << SP_SLOT_BITS) - 1;
    CHECK_EQ_U64(alive.bits & slot, stale.bits & slot); /* the newest free block comes first */
    const sp_storage pairs[2][2] = {{alive, stale}, {stale, alive}};
    char name[32];
    snprintf(name, sizeof name, "%#llx", (unsigned long long)stale.bits);
    for (int i = 0; i < 2; i++) {
        const sp_storage_range to = {pairs[i][0], 0, 32};
        const sp_storage_range from = {pairs[i][1], 32, 32};
        CHECK_STATUS(sp_storage_copy_async(current_stream(), to, from), SP_INVALID);
        CHECK_MESSAGE(name);
    }
    CHECK_OK(sp_storage_release(alive));
    runtime_end();
}

TEST(a_command_that_is_refused_on_its_own_stream_holds_nothing)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    fill(current_stream(), storage, 1); /* a write on this stream was the last use */
    const sp_storage_range beyond = {storage, 32, 64};
    const uint32_t word = 2;
    CHECK_STATUS(sp_storage_fill_async(current_stream(), beyond, &word, sizeof word), SP_INVALID);
    CHECK_MESSAGE("outside");
    const sp_stream other = new_stream();
    fill(other, storage, 3); /* not locked */
    CHECK_EQ_INT(first_other(storage, 3), -1);
    CHECK_OK(sp_stream_release(other));
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(a_refused_command_leaves_no_trace)
{
    runtime_begin();
    const sp_storage good = new_storage(64);
    const sp_storage frozen = new_storage(64);
    fill(current_stream(), frozen, 1);
    CHECK_OK(sp_storage_freeze(frozen));
    const sp_use uses[3] = {use_of(good, SP_WRITE), use_of(frozen, SP_WRITE), {.access = SP_WRITE}};
    const kernel_constants constants = {.bytes = 64};
    CHECK_STATUS(dispatch(current_stream(), &kernel_slow_fill, &constants, uses, 2), SP_INVALID);
    CHECK_STATUS(dispatch(current_stream(), &kernel_slow_fill, &constants, &uses[2], 1),
                 SP_INVALID);
    sp_use many[SP_MAX_BINDINGS + 1];
    for (int i = 0; i <= SP_MAX_BINDINGS; i++) many[i] = use_of(good, SP_READ);
    CHECK_STATUS(
        dispatch(current_stream(), &kernel_slow_fill, &constants, many, SP_MAX_BINDINGS + 1),
        SP_INVALID);
    CHECK_OK(dispatch(current_stream(), &kernel_slow_fill, &(kernel_constants){.bytes = 1}, many,
                      SP_MAX_BINDINGS));
    fill(new_stream(), good, 3); /* nothing remained locked, nothing to wait for */
    CHECK_EQ_INT(first_other(good, 3), -1);
    CHECK_OK(sp_storage_release(good));
    CHECK_OK(sp_storage_release(frozen));
    runtime_end();
}

/* ---- several commands ---- */

static sp_stream_ref ref_of(sp_stream stream)
{
    sp_stream_ref ref = {0};
    CHECK_OK(sp__stream_find(stream, &ref));
    return ref;
}

/* All that was on it may have completed between the refusal and the wait. */
TEST(a_stream_that_is_empty_by_now_is_asked_once_more)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_stream_ref ref = ref_of(stream);
    sp_room room = {.stream = &ref};
    const sp_storage storage = new_storage(64);
    sp_status status = SP_BUSY;
    CHECK(!sp__submit_again(&room, &status)); /* this thread does not wait */
    CHECK_STATUS(status, SP_BUSY);
    CHECK_OK(sp_thread_set_wait_for_room(true));
    for (int i = 0; i < 2; i++) {
        fill(stream, storage, 1);
        CHECK_OK(sp_stream_synchronize(stream));
        CHECK(sp__submit_again(&room, &status));
        CHECK(!sp__submit_again(&room, &status)); /* it was submitted */
        status = SP_BUSY;
        CHECK(!sp__submit_again(&room, &status)); /* the stream was empty before */
        CHECK_STATUS(status, SP_BUSY);
    }
    CHECK_OK(sp_thread_set_wait_for_room(false));
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(commands_of_one_submission_may_have_any_number_of_storages)
{
    enum { COPIES = 3 * SP_MAX_USES };
    runtime_begin();
    static sp_command commands[COPIES];
    static sp_use uses[2 * COPIES];
    sp_storage to[COPIES];
    const sp_storage from = new_storage(64);
    const sp_stream writer = new_stream(), reader = new_stream();
    const sp_stream_ref ref = ref_of(reader);
    submit_slow_fill(writer, from, 7, 5 * MILLISECOND);
    for (uint32_t i = 0; i < COPIES; i++) {
        to[i] = new_storage(64);
        commands[i] = (sp_command){.type = SP_COMMAND_COPY, .binding_count = 2};
        uses[2 * i] = use_of(to[i], SP_WRITE);
        uses[2 * i + 1] = use_of(i == 0 ? from : to[i - 1], SP_READ);
    }
    const sp_command_batch batch = {
        .commands = commands, .command_count = COPIES, .uses = uses, .use_count = 2 * COPIES};
    sp_point point;
    const uint64_t before = info_of(reader).submissions;
    CHECK_OK(sp__submit_commands(&ref, &batch, &point));
    CHECK_EQ_U64(info_of(reader).submissions, before + 1);
    CHECK(commands[0].bindings == NULL);
    CHECK_EQ_INT(first_other(to[COPIES - 1], 7), -1);
    CHECK_OK(sp_stream_query(writer)); /* it was followed */
    for (uint32_t i = 0; i < COPIES; i++) CHECK_OK(sp_storage_release(to[i]));
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_stream_release(writer));
    CHECK_OK(sp_stream_release(reader));
    runtime_end();
}

/* In any order, more than are entered one by one. */
TEST(many_uses_of_some_storages_are_those_of_each)
{
    enum { COPIES = SP_MAX_USES, STORAGES = 9 };
    runtime_begin();
    sp_command commands[COPIES];
    sp_use uses[2 * COPIES];
    sp_storage storages[STORAGES];
    uint8_t wanted[STORAGES];
    const sp_stream stream = new_stream();
    const sp_stream_ref ref = ref_of(stream);
    sp_point point;
    for (uint32_t i = 0; i < STORAGES; i++) {
        storages[i] = new_storage(64);
        wanted[i] = (uint8_t)(i + 1);
        submit_slow_fill(current_stream(), storages[i], wanted[i], 0);
    }
    for (uint32_t i = 0; i < COPIES; i++) {
        const uint32_t to = i * 5 % STORAGES, from = (to + 1 + i % 8) % STORAGES;
        commands[i] = (sp_command){.type = SP_COMMAND_COPY, .binding_count = 2};
        uses[2 * i] = use_of(storages[to], SP_WRITE);
        uses[2 * i + 1] = use_of(storages[from], SP_READ);
        wanted[to] = wanted[from];
    }
    const sp_command_batch batch = {
        .commands = commands, .command_count = COPIES, .uses = uses, .use_count = 2 * COPIES};
    CHECK_OK(sp__submit_commands(&ref, &batch, &point));
    for (uint32_t i = 0; i < STORAGES; i++) CHECK_EQ_INT(first_other(storages[i], wanted[i]), -1);
    const sp_storage stale = storages[4];
    CHECK_OK(sp_storage_release(stale));
    storages[4] = new_storage(64);
    uses[9] = use_of(storages[4], SP_READ); /* the same slot, if the block is the newest free one */
    CHECK_STATUS(sp__submit_commands(&ref, &batch, &point), SP_INVALID);
    CHECK_MESSAGE("stale");
    for (uint32_t i = 0; i < STORAGES; i++) fill(current_stream(), storages[i], 1); /* not locked */
    for (uint32_t i = 0; i < STORAGES; i++) CHECK_OK(sp_storage_release(storages[i]));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

/* A copy on `second`, behind a point of `first`, whose command fails. */
static void check_point_before(bool is_cause, sp_status expected)
{
    runtime_begin();
    const sp_storage from = new_storage(64), to = new_storage(64);
    const sp_stream first = new_stream(), second = new_stream();
    const sp_stream_ref ref = ref_of(second);
    fill(second, from, 3);
    submit_failing(first, (sp_storage){0});
    const sp_point failed = sp__queue_last_point(ref_of(first).queue);
    sp_command command = {.type = SP_COMMAND_COPY, .binding_count = 2};
    const sp_use uses[2] = {use_of(to, SP_WRITE), use_of(from, SP_READ)};
    sp_command_batch batch = {
        .commands = &command, .command_count = 1, .uses = uses, .use_count = 2};
    if (is_cause) batch.cause = failed;
    else batch.after = failed;
    sp_point point;
    void *data;
    CHECK_OK(sp__submit_commands(&ref, &batch, &point));
    CHECK_STATUS(sp_storage_host_begin(to, SP_READ, &data), expected);
    if (expected == SP_OK) CHECK_OK(sp_storage_host_end(to, SP_READ));
    CHECK_OK(sp_stream_query(first));
    (void)sp_stream_synchronize(first);
    (void)sp_stream_synchronize(second);
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_stream_release(first));
    CHECK_OK(sp_stream_release(second));
    runtime_end();
}

TEST(a_submission_takes_over_the_fault_of_its_cause)
{
    check_point_before(true, SP_FAILED);
}

TEST(a_submission_only_follows_the_point_that_it_is_after)
{
    check_point_before(false, SP_OK);
}

/* ---- hand-over between threads ---- */

#define SLOT_BYTES 2048

typedef struct relay {
    sp_storage slots[4];
    sp_stream streams[2];
    uint32_t rounds;
    sp_atomic_u32 produced; /* submitted, not necessarily done */
    sp_atomic_u32 consumed;
    uint32_t wrong;
} relay;

static void produce_and_consume(void *arg, uint32_t index)
{
    relay *self = arg;
    const sp_storage own = new_storage(SLOT_BYTES);
    for (uint32_t i = 0; i < self->rounds; i++) {
        const sp_storage slot = self->slots[i % 4];
        if (index == 0) {
            while (i - sp_load_acquire(&self->consumed) >= 4) sp_thread_yield();
            fill(self->streams[0], slot, (uint8_t)i);
            sp_store_release(&self->produced, i + 1);
        } else {
            while (sp_load_acquire(&self->produced) <= i) sp_thread_yield();
            copy(self->streams[1], own, slot);
            sp_store_release(&self->consumed, i + 1); /* the copy is still queued */
            if (first_other(own, (uint8_t)i) >= 0) self->wrong++;
        }
    }
    CHECK_OK(sp_storage_release(own));
}

TEST(storages_go_from_thread_to_thread_without_synchronisation)
{
    runtime_begin();
    set_delays(100); /* at every publish, in builds with delays */
    relay self = {.rounds = (uint32_t)test_count(10000, 500)};
    for (int i = 0; i < 4; i++) self.slots[i] = new_storage(SLOT_BYTES);
    for (int i = 0; i < 2; i++) self.streams[i] = new_stream();
    test_threads(2, produce_and_consume, &self);
    CHECK_EQ_U64(self.wrong, 0);
    for (int i = 0; i < 4; i++) CHECK_OK(sp_storage_release(self.slots[i]));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(self.streams[i]));
    runtime_end();
}

typedef struct crossing {
    sp_storage storages[2];
    uint32_t rounds;
} crossing;

static void copy_both_ways(void *arg, uint32_t index)
{
    const crossing *self = arg;
    for (uint32_t i = 0; i < self->rounds; i++) {
        const uint32_t from = (index + i) % 2;
        copy(current_stream(), self->storages[1 - from], self->storages[from]);
    }
}

TEST(threads_that_lock_the_same_storages_in_both_orders_never_meet_in_a_deadlock)
{
    runtime_begin();
    crossing self = {.storages = {new_storage(512), new_storage(512)},
                     .rounds = (uint32_t)test_count(20000, 500)};
    fill(current_stream(), self.storages[0], 8);
    fill(current_stream(), self.storages[1], 8);
    test_threads(8, copy_both_ways, &self);
    for (int i = 0; i < 2; i++) CHECK_EQ_INT(first_other(self.storages[i], 8), -1);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(self.storages[i]));
    runtime_end();
}

#define HANDED_OVER 64

static void use_or_release(void *arg, uint32_t index)
{
    const sp_storage *storages = arg;
    const sp_storage mine = new_storage(64);
    for (uint32_t i = 0; i < HANDED_OVER; i++) {
        if (index == 0) {
            CHECK_OK(sp_storage_release(storages[i]));
            continue;
        }
        const sp_storage_range to = {mine, 0, 64};
        const sp_storage_range from = {storages[i], 0, 64};
        const sp_status status = sp_storage_copy_async(current_stream(), to, from);
        CHECK(status == SP_OK || status == SP_INVALID);
    }
    CHECK_OK(sp_storage_release(mine));
}

TEST(a_use_beside_the_last_release_happens_or_is_refused)
{
    runtime_begin();
    const uint64_t rounds = test_count(2000, 100);
    for (uint64_t round = 0; round < rounds; round++) {
        sp_storage storages[HANDED_OVER];
        for (int i = 0; i < HANDED_OVER; i++) storages[i] = new_storage(64);
        test_threads(3, use_or_release, storages);
    }
    runtime_end();
}

TEST_MAIN
