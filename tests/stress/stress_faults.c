/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that fail at random: which threads are told of a failure, and which must not be. */
#include "stress.h"

#include <string.h>

#include "device/null/null.h"

#define THREADS 62

typedef struct neighbours {
    sp_device null;
    uint32_t rounds;
    sp_atomic_u32 arrived;
    uint32_t streams[THREADS]; /* the index of each thread's stream, once all have arrived */
    uint64_t failed, told;
    overlap calls;
} neighbours;

/* The failing thread: each synchronize reports its failures to it. */
static void fail_at_random(neighbours *self, sp_stream stream)
{
    uint64_t random = random_seed(99);
    const sp_storage storage = new_storage_on(self->null, 256, false);
    for (uint32_t i = 0; i < self->rounds; i++) {
        const bool fails = random_next(&random) % 2 == 0;
        if (fails) {
            submit_failing(stream, storage);
            self->failed++;
        } else {
            fill(stream, storage, (uint8_t)i);
        }
        const sp_status status = sp_stream_synchronize(stream);
        CHECK_STATUS(status, fails ? SP_FAILED : SP_OK);
        if (fails) CHECK_MESSAGE("asked to fail");
        self->told += status == SP_FAILED;
        if (!fails) CHECK_EQ_INT(first_other(storage, (uint8_t)i), -1);
    }
    CHECK_OK(sp_storage_release(storage));
}

/* The first thread whose stream is shared: it exists, since there are more threads than streams. */
static uint32_t unlucky_of(const neighbours *self)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        for (uint32_t k = i + 1; k < THREADS; k++) {
            if (self->streams[i] == self->streams[k]) return i;
        }
    }
    CHECK(false);
    return 0;
}

static void live_beside(void *arg, uint32_t index)
{
    neighbours *self = arg;
    sp_stream stream;
    REQUIRE_OK(sp_stream_current(self->null, &stream));
    self->streams[index] = index_of(stream);
    raise_by_one(&self->arrived);
    await_at_least(&self->arrived, THREADS);
    if (index == unlucky_of(self)) {
        fail_at_random(self, stream);
        return;
    }
    /* Half of them untracked: those see failures of their own lease only. */
    const bool is_untracked = index % 2 == 0;
    const sp_storage from = new_storage_on(self->null, 256, is_untracked);
    const sp_storage to = new_storage_on(self->null, 256, is_untracked);
    for (uint32_t i = 0; i < self->rounds; i++) {
        overlap_enter(&self->calls);
        if (i == 0) overlap_meet(&self->calls);
        fill(stream, from, (uint8_t)(index + i));
        copy(stream, to, from);
        CHECK_OK(sp_stream_synchronize(stream));
        CHECK_EQ_INT(first_other(to, (uint8_t)(index + i)), -1);
        overlap_leave(&self->calls);
    }
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
}

TEST(of_62_threads_on_31_streams_only_the_one_that_fails_hears_of_it)
{
    runtime_begin();
    neighbours self = {.null = open_null(), .rounds = (uint32_t)test_count(10000, 1000)};
    test_threads(THREADS, live_beside, &self);
    CHECK_EQ_U64(self.failed, self.told);
    CHECK(self.failed > 0);
    check_overlap(&self.calls, 2);
    runtime_end();
}

/* ---- injected faults ---- */

#define BATCH 32

typedef struct storm {
    sp_device null;
    uint64_t wanted; /* faults */
    sp_atomic_u64 failed, passed;
    sp_atomic_u64 dropped; /* failures whose message was overwritten by thousands of later ones */
} storm;

/* One batch of independent fills: each storage is either right or reports why not. */
static void run_batch(storm *self, sp_stream stream, const sp_storage *storages, uint8_t value)
{
    void *data;
    for (int i = 0; i < BATCH; i++) fill(stream, storages[i], value);
    sp_stream_synchronize(stream); /* FAILED if any fill failed; the storages report each */
    for (int i = 0; i < BATCH; i++) {
        const sp_status status = sp_storage_host_begin(storages[i], SP_READ, &data);
        if (status == SP_OK) {
            CHECK_EQ_INT(((unsigned char *)data)[0], value);
            CHECK_EQ_INT(((unsigned char *)data)[63], value);
            CHECK_OK(sp_storage_host_end(storages[i], SP_READ));
            sp_fetch_add_relaxed(&self->passed, (uint64_t)1);
        } else {
            CHECK_STATUS(status, SP_FAILED);
            sp_fetch_add_relaxed(&self->failed, (uint64_t)1);
            if (strstr(sp_last_error(), "its message was dropped") != NULL) {
                sp_fetch_add_relaxed(&self->dropped, (uint64_t)1);
            } else {
                CHECK_MESSAGE("fill on stream");
            }
        }
    }
}

static void run_storm(void *arg, uint32_t index)
{
    storm *self = arg;
    sp_stream stream;
    sp_storage storages[BATCH];
    REQUIRE_OK(sp_stream_current(self->null, &stream));
    for (int i = 0; i < BATCH; i++) storages[i] = new_storage_on(self->null, 64, false);
    for (uint32_t i = index; sp_load_relaxed(&self->failed) < self->wanted; i++) {
        run_batch(self, stream, storages, (uint8_t)i);
    }
    for (int i = 0; i < BATCH; i++) CHECK_OK(sp_storage_release(storages[i]));
}

TEST(a_million_injected_faults_are_each_told_where_they_happened)
{
    runtime_begin();
    storm self = {.null = open_null(), .wanted = test_count(1000000, 200000)};
    sp__null_fail_randomly(rt_device(self.null)->dev, 400, 7);
    test_threads(8, run_storm, &self);
    sp__null_fail_randomly(rt_device(self.null)->dev, 0, 0);
    const uint64_t failed = sp_load_relaxed(&self.failed);
    const uint64_t passed = sp_load_relaxed(&self.passed);
    const uint64_t dropped = sp_load_relaxed(&self.dropped);
    test_note("%llu failed, %llu passed, %llu messages dropped", (unsigned long long)failed,
              (unsigned long long)passed, (unsigned long long)dropped);
    CHECK(dropped < failed / 2);
    CHECK(failed * 10 > (failed + passed) * 3 && failed * 10 < (failed + passed) * 5);
    runtime_end();
}

typedef struct scarce {
    sp_device null;
    uint32_t rounds;
    sp_atomic_u32 refused;
} scarce;

static void allocate_with_faults(void *arg, uint32_t index)
{
    scarce *self = arg;
    sp_stream stream;
    REQUIRE_OK(sp_stream_current(self->null, &stream));
    for (uint32_t i = 0; i < self->rounds; i++) {
        if (index == 0) sp__null_fail_allocation(rt_device(self->null)->dev, i % 3);
        sp_storage storage;
        const sp_status status = sp_storage_create(self->null, 2 << 20, NULL, &storage);
        if (status != SP_OK) {
            CHECK_STATUS(status, SP_OUT_OF_MEMORY);
            raise_by_one(&self->refused);
            continue;
        }
        const sp_storage_range start = {storage, 0, 64};
        CHECK_OK(sp_storage_fill_async(stream, start, &index, 4));
        CHECK_OK(sp_storage_release(storage));
        if (i % 4 == 0) CHECK_OK(sp_device_empty_cache(self->null));
        /* Keeps the queue from filling, however late the device's threads run. */
        if (i % 256 == 255) CHECK_OK(sp_stream_synchronize(stream));
    }
}

TEST(failed_allocations_of_the_device_lose_no_memory)
{
    runtime_begin();
    scarce self = {.null = open_null(), .rounds = (uint32_t)test_count(20000, 3000)};
    test_threads(8, allocate_with_faults, &self);
    test_note("%u refused", sp_load_relaxed(&self.refused));
    /* A fault may be compensated by memory returned concurrently, but not without any. */
    sp_storage storage;
    CHECK_OK(sp_device_synchronize(self.null));
    CHECK_OK(sp_device_empty_cache(self.null));
    sp__null_fail_allocation(rt_device(self.null)->dev, 0);
    CHECK_STATUS(sp_storage_create(self.null, 2 << 20, NULL, &storage), SP_OUT_OF_MEMORY);
    storage = new_storage_on(self.null, 2 << 20, false);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST_MAIN
