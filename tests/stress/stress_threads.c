/* SPDX-License-Identifier: Apache-2.0 */
/* More threads than streams, and short-lived threads. */
#include "stress.h"

typedef struct crowd {
    uint32_t rounds;
    overlap calls;
    sp_atomic_u32 arrived;
    uint32_t count;
    uint32_t streams[500]; /* of each thread; all held at the same time if count > 0 */
    uint32_t holders_seen; /* seen by one thread while it held its stream */
} crowd;

static void work_in_the_crowd(void *arg, uint32_t index)
{
    crowd *self = arg;
    const sp_stream stream = current_stream();
    CHECK(index_of(stream) != 0);
    self->streams[index] = index_of(stream);
    raise_by_one(&self->arrived);
    if (self->count > 0) await_at_least(&self->arrived, self->count);
    if (index == 0) self->holders_seen = holders_of(stream);
    const sp_storage from = new_storage(700 + index);
    const sp_storage to = new_storage(700 + index);
    for (uint32_t i = 0; i < self->rounds; i++) {
        const uint8_t value = (uint8_t)(index * 7 + i);
        overlap_enter(&self->calls);
        if (i == 0) overlap_meet(&self->calls);
        fill(stream, from, value);
        copy(stream, to, from);
        if (i % 5 == 0) CHECK_OK(sp_stream_synchronize(stream));
        if (i % 3 == 0) CHECK_EQ_INT(first_other(to, value), -1);
        overlap_leave(&self->calls);
    }
    CHECK_EQ_INT(first_other(to, (uint8_t)(index * 7 + self->rounds - 1)), -1);
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
}

TEST(five_hundred_threads_share_31_streams)
{
    runtime_begin();
    crowd self = {.rounds = (uint32_t)test_count(1000, 60), .count = 500};
    test_threads(500, work_in_the_crowd, &self);
    check_overlap(&self.calls, 2);
    uint32_t threads_on[32] = {0};
    for (int i = 0; i < 500; i++) threads_on[self.streams[i]]++;
    CHECK_EQ_U64(threads_on[0], 0);
    /* Round robin gives 16 each; a round may miss a stream that is being acquired. */
    for (int i = 1; i < 32; i++) CHECK(threads_on[i] >= 8);
    runtime_end();
}

TEST(five_hundred_threads_take_turns_on_31_streams)
{
    runtime_begin_with(&(runtime_setting){.policy = "wait", .wait_ms = "-1"});
    crowd self = {.rounds = (uint32_t)test_count(1000, 60)};
    test_threads(500, work_in_the_crowd, &self);
    CHECK_EQ_U64(self.holders_seen, 1);
    runtime_end();
}

typedef struct churn {
    sp_storage storages[16];
} churn;

static void live_for_a_moment(void *arg, uint32_t index)
{
    churn *self = arg;
    CHECK_EQ_STR(sp_last_error(), "");
    CHECK(index_of(current_stream()) != 0);
    fill(current_stream(), self->storages[index], (uint8_t)(index + 1));
    const sp_storage own = new_storage(200);
    copy(current_stream(), own, own);
    CHECK_OK(sp_storage_release(own)); /* with work in flight, like the thread itself */
}

TEST(a_hundred_thousand_short_threads_leave_nothing_behind)
{
    runtime_begin_with(&(runtime_setting){.policy = "fail"});
    churn self;
    for (int i = 0; i < 16; i++) self.storages[i] = new_storage(200);
    const uint64_t waves = test_count(100000, 30000) / 16 + 1;
    uint64_t settled = 0;
    for (uint64_t i = 0; i < waves; i++) {
        test_threads(16, live_for_a_moment, &self);
        if (i == waves / 2) settled = stats_of(TESTED).reserved_bytes;
    }
    CHECK(stats_of(TESTED).reserved_bytes <= settled + (1 << 20));
    for (int i = 0; i < 16; i++) {
        CHECK_EQ_INT(first_other(self.storages[i], (uint8_t)(i + 1)), -1);
        CHECK_OK(sp_storage_release(self.storages[i]));
    }
    sp_stream streams[31];
    for (int i = 0; i < 31; i++) streams[i] = new_stream(); /* all streams have been returned */
    for (int i = 0; i < 31; i++) CHECK_OK(sp_stream_release(streams[i]));
    runtime_end();
}

TEST_MAIN
