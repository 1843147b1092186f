/* SPDX-License-Identifier: Apache-2.0 */
/* The stream pool: leases, the three policies, the state that a stream has from its last holder. */
#include "runtime_fixture.h"

#include <stdlib.h>

#define LEASED 31 /* all streams except the default one, which is never leased */

typedef struct holding {
    sp_stream streams[64];
    uint32_t indices[64];
    uint32_t count;
    sp_atomic_u32 arrived;
} holding;

/* Acquires the thread's stream and keeps it until all the others have theirs. */
static void take_and_meet(void *arg, uint32_t index)
{
    holding *self = arg;
    self->streams[index] = current_stream();
    self->indices[index] = index_of(self->streams[index]);
    raise_by_one(&self->arrived);
    await_at_least(&self->arrived, self->count);
}

TEST(threads_that_call_first_at_the_same_time_hold_different_streams)
{
    runtime_begin();
    holding self = {.count = LEASED};
    test_threads(LEASED, take_and_meet, &self); /* initialises the runtime */
    uint64_t seen = 0;
    for (uint32_t i = 0; i < LEASED; i++) {
        CHECK(self.indices[i] >= 1 && self.indices[i] <= LEASED);
        CHECK_EQ_U64(seen >> self.indices[i] & 1, 0);
        seen |= (uint64_t)1 << self.indices[i];
    }
    runtime_end();
}

TEST(forty_threads_share_streams_but_never_handles_and_never_the_default_stream)
{
    runtime_begin();
    holding self = {.count = 40};
    test_threads(40, take_and_meet, &self);
    for (uint32_t i = 0; i < 40; i++) {
        CHECK(self.indices[i] != 0);
        for (uint32_t k = 0; k < i; k++) CHECK(self.streams[i].bits != self.streams[k].bits);
    }
    runtime_end();
}

static void lease_all(sp_stream *streams)
{
    for (uint32_t i = 0; i < LEASED; i++) streams[i] = new_stream();
}

static void release_all(const sp_stream *streams)
{
    for (uint32_t i = 0; i < LEASED; i++) CHECK_OK(sp_stream_release(streams[i]));
}

TEST(sharing_goes_round_so_that_no_stream_has_two_more_holders_than_another)
{
    runtime_begin();
    sp_stream rounds[3][LEASED];
    for (int round = 0; round < 3; round++) lease_all(rounds[round]);
    for (uint32_t i = 0; i < LEASED; i++) CHECK_EQ_U64(holders_of(rounds[0][i]), 3);
    for (int round = 0; round < 3; round++) release_all(rounds[round]);
    runtime_end();
}

TEST(a_shared_stream_is_free_again_when_its_last_holder_has_gone)
{
    runtime_begin();
    sp_stream first[LEASED];
    lease_all(first);
    const sp_stream second = new_stream();
    CHECK_EQ_U64(holders_of(second), 2);
    release_all(first);
    CHECK_EQ_U64(holders_of(second), 1);
    /* 30 free streams, each with one holder; the 31st is the one that `second` holds. */
    sp_stream again[LEASED];
    lease_all(again);
    uint32_t shared = 0;
    for (uint32_t i = 0; i < LEASED; i++) shared += holders_of(again[i]) == 2;
    CHECK(shared <= 2);
    CHECK_OK(sp_stream_release(second));
    release_all(again);
    runtime_end();
}

TEST(policy_fail_refuses_the_thread_after_the_last)
{
    runtime_begin_with(&(runtime_setting){.policy = "fail"});
    sp_stream streams[LEASED];
    lease_all(streams);
    sp_stream extra = {1};
    CHECK_STATUS(sp_stream_from_pool(CPU, &extra), SP_EXHAUSTED);
    CHECK_EQ_U64(extra.bits, 0);
    CHECK_MESSAGE("all 31 streams");
    CHECK_MESSAGE("STREAMPOOL_STREAM_POLICY");
    CHECK_OK(sp_stream_release(streams[7]));
    streams[7] = new_stream();
    CHECK_EQ_U64(holders_of(streams[7]), 1);
    release_all(streams);
    runtime_end();
}

static void expect_exhausted(void *arg)
{
    sp_storage storage;
    (void)arg;
    CHECK_STATUS(sp_storage_create(CPU, 64, NULL, &storage), SP_EXHAUSTED);
    CHECK_EQ_U64(storage.bits, 0);
}

TEST(a_thread_without_a_stream_gets_no_storage_and_no_foreign_stream)
{
    runtime_begin_with(&(runtime_setting){.policy = "fail"});
    sp_stream streams[LEASED];
    lease_all(streams);
    run_on_thread(expect_exhausted, NULL);
    release_all(streams);
    runtime_end();
}

TEST(policy_wait_with_time_out_0_fails_at_once)
{
    runtime_begin_with(&(runtime_setting){.policy = "wait", .wait_ms = "0"});
    sp_stream streams[LEASED];
    lease_all(streams);
    sp_stream extra;
    CHECK_STATUS(sp_stream_from_pool(CPU, &extra), SP_TIMEOUT);
    CHECK_MESSAGE("all 31 are leased");
    release_all(streams);
    runtime_end();
}

TEST(policy_wait_with_a_time_out_waits_that_long)
{
    runtime_begin_with(&(runtime_setting){.policy = "wait", .wait_ms = "50"});
    sp_stream streams[LEASED];
    lease_all(streams);
    sp_stream extra;
    const uint64_t start = sp_clock_now();
    CHECK_STATUS(sp_stream_from_pool(CPU, &extra), SP_TIMEOUT);
    CHECK(sp_clock_now() - start >= 50 * MILLISECOND);
    CHECK_MESSAGE("50 ms");
    release_all(streams);
    runtime_end();
}

/* ---- more threads than streams ---- */

typedef struct crowd {
    sp_atomic_u32 ready;
    sp_atomic_u32 answered;
    sp_atomic_u32 have_others_ended;
} crowd;

typedef struct crowd_member {
    crowd *all;
    sp_thread thread;
    sp_status status;
    uint64_t waited_ns;
    sp_stream stream;
} crowd_member;

/* Acquires together with all others and keeps the result until all have one; if refused, acquires
 * again after those that got a stream have ended. */
static void ask_in_a_crowd(void *arg)
{
    crowd_member *self = arg;
    raise_by_one(&self->all->ready);
    await_at_least(&self->all->ready, 40);
    const uint64_t start = sp_clock_now();
    self->status = sp_stream_current(CPU, &self->stream);
    self->waited_ns = sp_clock_now() - start;
    raise_by_one(&self->all->answered);
    await_at_least(&self->all->answered, 40);
    if (self->status == SP_OK) return;
    CHECK_EQ_U64(self->stream.bits, 0);
    await_at_least(&self->all->have_others_ended, 1);
    CHECK_OK(sp_stream_current(CPU, &self->stream));
    CHECK_EQ_U64(holders_of(self->stream), 1);
    CHECK_OK(sp_stream_synchronize(self->stream));
}

static uint32_t join_if(crowd_member *members, bool is_refused)
{
    uint32_t count = 0;
    for (int i = 0; i < 40; i++) {
        if ((members[i].status != SP_OK) != is_refused) continue;
        sp_thread_join(&members[i].thread);
        count++;
    }
    return count;
}

static void refuse_nine_of_forty(const runtime_setting *setting, sp_status refusal, uint64_t ns)
{
    runtime_begin_with(setting);
    crowd all = {.ready = {0}};
    crowd_member members[40];
    for (int i = 0; i < 40; i++) {
        members[i] = (crowd_member){.all = &all};
        if (sp_thread_create(&members[i].thread, "crowd", ask_in_a_crowd, &members[i]) != SP_OK) {
            abort(); /* the started threads would wait for it for ever */
        }
    }
    await_at_least(&all.answered, 40);
    for (int i = 0; i < 40; i++) {
        if (members[i].status == SP_OK) continue;
        CHECK_STATUS(members[i].status, refusal);
        CHECK(members[i].waited_ns >= ns);
    }
    CHECK_EQ_U64(join_if(members, false), LEASED);
    raise_by_one(&all.have_others_ended);
    CHECK_EQ_U64(join_if(members, true), 40 - LEASED);
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < i; k++) CHECK(members[i].stream.bits != members[k].stream.bits);
    }
    runtime_end();
}

TEST(of_forty_threads_nine_are_refused_by_policy_fail)
{
    const runtime_setting setting = {.policy = "fail"};
    refuse_nine_of_forty(&setting, SP_EXHAUSTED, 0);
}

TEST(of_forty_threads_nine_are_refused_by_policy_wait_at_once)
{
    const runtime_setting setting = {.policy = "wait", .wait_ms = "0"};
    refuse_nine_of_forty(&setting, SP_TIMEOUT, 0);
}

TEST(of_forty_threads_nine_are_refused_by_policy_wait_after_its_time)
{
    const runtime_setting setting = {.policy = "wait", .wait_ms = "50"};
    refuse_nine_of_forty(&setting, SP_TIMEOUT, 50 * MILLISECOND);
}

/* ---- waiting ---- */

typedef struct waiting {
    sp_atomic_u32 about_to_wait;
    sp_atomic_u32 got;
} waiting;

static void wait_for_a_stream(void *arg, uint32_t index)
{
    waiting *self = arg;
    (void)index;
    raise_by_one(&self->about_to_wait);
    const sp_stream stream = new_stream();
    raise_by_one(&self->got);
    CHECK_OK(sp_stream_release(stream));
}

typedef struct release_later {
    waiting wait;
    sp_stream streams[LEASED];
    uint32_t waiters;
} release_later;

/* The last thread releases; the others wait. */
static void wait_or_release(void *arg, uint32_t index)
{
    release_later *self = arg;
    if (index < self->waiters) {
        wait_for_a_stream(&self->wait, index);
        return;
    }
    await_at_least(&self->wait.about_to_wait, self->waiters);
    sp_clock_sleep(10 * MILLISECOND); /* time to fall asleep; no check depends on it */
    CHECK_EQ_U64(sp_load_acquire(&self->wait.got), 0);
    release_all(self->streams);
}

TEST(policy_wait_for_ever_ends_when_a_stream_comes_back)
{
    runtime_begin_with(&(runtime_setting){.policy = "wait", .wait_ms = "-1"});
    release_later self = {.waiters = 1};
    lease_all(self.streams);
    test_threads(2, wait_or_release, &self);
    CHECK_EQ_U64(sp_load_acquire(&self.wait.got), 1);
    runtime_end();
}

TEST(of_fifty_waiting_threads_each_gets_a_stream)
{
    runtime_begin_with(&(runtime_setting){.policy = "wait", .wait_ms = "-1"});
    release_later self = {.waiters = 50};
    lease_all(self.streams);
    test_threads(51, wait_or_release, &self);
    CHECK_EQ_U64(sp_load_acquire(&self.wait.got), 50);
    runtime_end();
}

TEST(a_pool_of_one_stream_is_shared_by_all)
{
    runtime_begin_with(&(runtime_setting){.streams = "1", .policy = "fail"});
    holding self = {.count = 8};
    test_threads(8, take_and_meet, &self);
    for (uint32_t i = 0; i < 8; i++) CHECK_EQ_U64(self.indices[i], 0);
    CHECK_EQ_U64(holders_of(current_stream()), 1);
    runtime_end();
}

TEST(a_released_handle_is_stale_and_stays_stale)
{
    runtime_begin_with(&(runtime_setting){.streams = "2"});
    const sp_stream first = new_stream();
    CHECK_OK(sp_stream_release(first));
    CHECK_STATUS(sp_stream_release(first), SP_INVALID);
    CHECK_MESSAGE("stale");
    CHECK_STATUS(sp_stream_synchronize(first), SP_INVALID);
    /* The same stream and handle slot are reused many times; no handle equals `first`. */
    for (int life = 0; life < 1000; life++) {
        const sp_stream next = new_stream();
        CHECK(next.bits != first.bits);
        CHECK_EQ_U64(index_of(next), 1);
        CHECK_STATUS(sp_stream_query(first), SP_INVALID);
        CHECK_OK(sp_stream_release(next));
    }
    runtime_end();
}

static void release_it(void *arg)
{
    CHECK_OK(sp_stream_release(*(const sp_stream *)arg));
}

TEST(a_lease_is_released_from_another_thread)
{
    runtime_begin();
    sp_stream stream = new_stream();
    run_on_thread(release_it, &stream);
    CHECK_STATUS(sp_stream_query(stream), SP_INVALID);
    runtime_end();
}

TEST(the_zero_handle_is_released_silently_and_the_default_stream_never)
{
    runtime_begin();
    CHECK_OK(sp_stream_release((sp_stream){0}));
    sp_stream stream;
    CHECK_OK(sp_stream_default(CPU, &stream));
    CHECK_STATUS(sp_stream_release(stream), SP_INVALID);
    CHECK_OK(sp_stream_synchronize(stream));
    runtime_end();
}

TEST(work_of_the_former_holder_comes_before_that_of_the_next)
{
    runtime_begin_with(&(runtime_setting){.streams = "2"});
    gate blocker = gate_closed(CPU);
    const sp_storage storage = new_storage_on(CPU, 4096, true); /* ordered by the stream only */
    const sp_stream former = new_stream();
    gate_hold(&blocker, former);
    fill(former, storage, 1);
    CHECK_OK(sp_stream_release(former));
    const sp_stream next = new_stream();
    CHECK_EQ_U64(index_of(next), 1);
    CHECK_STATUS(sp_stream_query(next), SP_NOT_READY);
    fill(next, storage, 2);
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(next));
    CHECK_EQ_INT(first_other(storage, 2), -1);
    CHECK_OK(sp_stream_release(next));
    CHECK_OK(sp_storage_release(storage));
    gate_destroy(&blocker);
    runtime_end();
}

static void fail_and_end(void *arg)
{
    submit_failing(current_stream(), *(const sp_storage *)arg);
}

static void expect_no_error(void *arg)
{
    const sp_storage storage = *(const sp_storage *)arg;
    CHECK_EQ_STR(sp_last_error(), "");
    fill(current_stream(), storage, 3);
    CHECK_OK(sp_stream_synchronize(current_stream()));
    CHECK_EQ_INT(first_other(storage, 3), -1);
}

TEST(no_error_goes_with_a_stream_to_its_next_holder)
{
    runtime_begin_with(&(runtime_setting){.streams = "2"});
    /* Untracked: within a lease a failure stops later untracked commands. */
    sp_storage storage = new_storage_on(CPU, 256, true);
    run_on_thread(fail_and_end, &storage);
    run_on_thread(expect_no_error, &storage);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

static void live_shortly(void *arg, uint32_t index)
{
    const sp_storage *storages = arg;
    CHECK_EQ_STR(sp_last_error(), "");
    const sp_stream stream = current_stream();
    CHECK(index_of(stream) != 0);
    CHECK_EQ_U64(holders_of(stream), 1);
    fill(stream, storages[index], (uint8_t)(index + 1));
    if (index % 2 == 0) CHECK_OK(sp_stream_synchronize(stream)); /* the others leave work behind */
}

TEST(ten_thousand_short_threads_leave_no_foreign_state)
{
    enum { AT_ONCE = 16 };
    runtime_begin_with(&(runtime_setting){.policy = "fail"});
    sp_storage storages[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) storages[i] = new_storage(64);
    const uint64_t rounds = test_count(10000, 10000) / AT_ONCE + 1;
    for (uint64_t round = 0; round < rounds; round++) {
        test_threads(AT_ONCE, live_shortly, storages);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        CHECK_EQ_INT(first_other(storages[i], (uint8_t)(i + 1)), -1);
        CHECK_OK(sp_storage_release(storages[i]));
    }
    sp_stream streams[LEASED];
    lease_all(streams); /* all streams have been returned */
    release_all(streams);
    runtime_end();
}

TEST_MAIN
