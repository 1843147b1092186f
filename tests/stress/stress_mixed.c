/* SPDX-License-Identifier: Apache-2.0 */
/* 31 threads submit mixed commands to their own and to shared streams. Each applies the same
 * operations to a shadow of its storages in program order: the result of a serial run. */
#include "stress.h"

#include <string.h>

#define THREADS 31
#define SHARED_STREAMS 4
#define STORAGES 4
#define BYTES 512
#define SLICE 64 /* each thread's part of the storage that all threads write */

typedef struct mixed {
    sp_stream shared[SHARED_STREAMS];
    sp_storage common;
    uint32_t commands;
    overlap calls;
    sp_atomic_u32 arrived;
    sp_atomic_u32 inside, met; /* of kernel_meet */
    sp_atomic_u64 submitted_host, ran_host;
} mixed;

typedef struct worker {
    mixed *all;
    uint32_t index;
    uint64_t random;
    sp_storage storages[STORAGES];
    unsigned char shadow[STORAGES][BYTES];
    unsigned char slice[SLICE];
    sp_event event;
} worker;

/* A range with random bounds. */
static void random_range(worker *self, uint64_t limit, uint64_t *offset, uint64_t *bytes)
{
    *offset = random_next(&self->random) % limit;
    *bytes = 1 + random_next(&self->random) % (limit - *offset);
}

static sp_stream random_stream(worker *self)
{
    const uint32_t pick = random_next(&self->random) % (2 * SHARED_STREAMS);
    return pick < SHARED_STREAMS ? self->all->shared[pick] : current_stream();
}

static void do_fill(worker *self, sp_stream stream)
{
    const uint32_t to = random_next(&self->random) % STORAGES;
    const uint8_t value = (uint8_t)random_next(&self->random);
    sp_storage_range range = {.storage = self->storages[to]};
    random_range(self, BYTES, &range.offset, &range.bytes);
    sp_status status;
    do {
        status = sp_storage_fill_async(stream, range, &value, 1);
    } while (is_busy(status, stream));
    CHECK_OK(status);
    memset(self->shadow[to] + range.offset, value, range.bytes);
}

static void do_copy(worker *self, sp_stream stream)
{
    const uint32_t to = random_next(&self->random) % STORAGES;
    const uint32_t from = random_next(&self->random) % STORAGES;
    sp_storage_range target = {.storage = self->storages[to]};
    sp_storage_range source = {.storage = self->storages[from]};
    random_range(self, BYTES, &target.offset, &target.bytes);
    source.offset = random_next(&self->random) % (BYTES - target.bytes + 1);
    source.bytes = target.bytes;
    sp_status status;
    do {
        status = sp_storage_copy_async(stream, target, source);
    } while (is_busy(status, stream));
    CHECK_OK(status);
    memmove(self->shadow[to] + target.offset, self->shadow[from] + source.offset, target.bytes);
}

static void do_common(worker *self, sp_stream stream)
{
    const uint8_t value = (uint8_t)random_next(&self->random);
    const sp_storage_range range = {self->all->common, self->index * SLICE, SLICE};
    sp_status status;
    do {
        status = sp_storage_fill_async(stream, range, &value, 1);
    } while (is_busy(status, stream));
    CHECK_OK(status);
    memset(self->slice, value, SLICE);
}

static void run_on_host(void *ctx, sp_status status)
{
    CHECK_STATUS(status, SP_OK);
    sp_fetch_add_relaxed(&((mixed *)ctx)->ran_host, (uint64_t)1);
}

static void do_event(worker *self, sp_stream stream)
{
    const sp_stream other = random_stream(self);
    CHECK_OK(sp_event_record(self->event, stream));
    sp_status status;
    do {
        status = sp_stream_wait_event(other, self->event);
    } while (is_busy(status, other));
    CHECK_OK(status);
}

static void do_host_function(worker *self, sp_stream stream)
{
    sp_status status;
    do {
        status = sp_stream_host_function(stream, run_on_host, self->all);
    } while (is_busy(status, stream));
    CHECK_OK(status);
    sp_fetch_add_relaxed(&self->all->submitted_host, (uint64_t)1);
}

/* Compares all bytes, and changes some. */
static void do_host_access(worker *self)
{
    const uint32_t at = random_next(&self->random) % STORAGES;
    unsigned char *data;
    CHECK_OK(sp_storage_host_begin(self->storages[at], SP_READ_WRITE, (void **)&data));
    CHECK_EQ_MEM(data, self->shadow[at], BYTES);
    uint64_t offset;
    uint64_t bytes;
    random_range(self, BYTES, &offset, &bytes);
    for (uint64_t i = offset; i < offset + bytes; i++) {
        self->shadow[at][i] ^= 0x5a;
        data[i] ^= 0x5a;
    }
    CHECK_OK(sp_storage_host_end(self->storages[at], SP_READ_WRITE));
}

static void do_one(worker *self)
{
    const sp_stream stream = random_stream(self);
    switch (random_next(&self->random) % 16) {
    case 0:
        CHECK_OK(sp_stream_synchronize(stream));
        break;
    case 1:
        do_host_access(self);
        break;
    case 2:
        do_host_function(self, stream);
        break;
    case 3:
    case 4:
        do_event(self, stream);
        break;
    case 5:
        do_common(self, stream);
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        do_fill(self, stream);
        break;
    default:
        do_copy(self, stream);
        break;
    }
}

static void finish(worker *self)
{
    void *data;
    for (int i = 0; i < STORAGES; i++) {
        CHECK_OK(sp_storage_host_begin(self->storages[i], SP_READ, &data));
        CHECK_EQ_MEM(data, self->shadow[i], BYTES);
        CHECK_OK(sp_storage_host_end(self->storages[i], SP_READ));
        CHECK_OK(sp_storage_release(self->storages[i]));
    }
    CHECK_OK(sp_storage_host_begin(self->all->common, SP_READ, &data));
    CHECK_EQ_MEM((unsigned char *)data + self->index * SLICE, self->slice, SLICE);
    CHECK_OK(sp_storage_host_end(self->all->common, SP_READ));
    CHECK_OK(sp_event_release(self->event));
    CHECK_OK(sp_stream_synchronize(current_stream()));
}

/* The first kernel waits inside for one of another stream, which never comes if the library runs
 * commands serially. No thread continues before all have submitted, since the streams then wait for
 * each other. */
static void meet_inside_kernels(worker *self)
{
    mixed *all = self->all;
    const kernel_constants constants = {.inside = &all->inside, .met = &all->met, .wanted = 2};
    const sp_stream stream = all->shared[self->index % SHARED_STREAMS];
    if (has_meetings()) CHECK_OK(dispatch(stream, &kernel_meet, &constants, NULL, 0));
    CHECK_OK(sp_stream_flush(stream));
    raise_by_one(&all->arrived);
    await_at_least(&all->arrived, THREADS);
}

static void run_mixed(void *arg, uint32_t index)
{
    mixed *all = arg;
    worker self = {.all = all, .index = index, .random = random_seed(index)};
    meet_inside_kernels(&self);
    CHECK_OK(sp_event_create(NULL, &self.event));
    for (int i = 0; i < STORAGES; i++) {
        self.storages[i] = new_storage(BYTES);
        fill(current_stream(), self.storages[i], 0);
    }
    do_common(&self, current_stream());
    for (uint32_t i = 0; i < all->commands; i++) {
        overlap_enter(&all->calls);
        if (i == 0) overlap_meet(&all->calls);
        do_one(&self);
        overlap_leave(&all->calls);
    }
    finish(&self);
}

static uint64_t helped_and_worked(const mixed *all, uint64_t *by_workers)
{
    uint64_t by_helpers = 0;
    for (int i = 0; i < SHARED_STREAMS; i++) {
        const sp_stream_info info = info_of(all->shared[i]);
        *by_workers += info.by_workers;
        by_helpers += info.by_helpers;
    }
    return by_helpers;
}

static void run_all(const runtime_setting *setting)
{
    runtime_begin_with(setting);
    mixed all = {.commands = (uint32_t)test_count(10000, 4000)};
    all.common = new_storage(THREADS * SLICE);
    for (int i = 0; i < SHARED_STREAMS; i++) all.shared[i] = new_stream();
    test_threads(THREADS, run_mixed, &all);
    CHECK_OK(sp_device_synchronize(TESTED));
    CHECK_EQ_U64(sp_load_relaxed(&all.ran_host), sp_load_relaxed(&all.submitted_host));
    check_overlap(&all.calls, 2);
    if (has_meetings()) CHECK_EQ_U64(sp_load_acquire(&all.met), THREADS);
    uint64_t by_workers = 0;
    const uint64_t by_helpers = helped_and_worked(&all, &by_workers);
    test_note("%u commands each; on shared streams %llu by workers, %llu by helpers", all.commands,
              (unsigned long long)by_workers, (unsigned long long)by_helpers);
    CHECK(by_workers > 0);
    CHECK(by_helpers > 0);
    for (int i = 0; i < SHARED_STREAMS; i++) CHECK_OK(sp_stream_release(all.shared[i]));
    CHECK_OK(sp_storage_release(all.common));
    runtime_end();
}

TEST(mixed_commands_of_31_threads_give_the_bytes_of_a_serial_run)
{
    run_all(&(runtime_setting){.workers = "2"});
}

TEST(mixed_commands_give_the_same_bytes_on_a_pool_that_all_share)
{
    run_all(&(runtime_setting){.workers = "3", .streams = "5"});
}

TEST_MAIN
