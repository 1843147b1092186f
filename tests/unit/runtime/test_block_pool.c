/* SPDX-License-Identifier: Apache-2.0 */
/* Free memory by readiness: ready blocks are found whatever is pending, pending blocks are waited
 * for as a whole, and a closed device keeps nothing. */
#include "runtime_fixture.h"

#include <string.h>

#include "base/heap.h"

#define MEGABYTE ((uint64_t)1 << 20)

/* ---- by hand: queues that the test advances, with their own allocator ---- */

enum { QUEUES = 5, BLOCKS = 64, POINTS = 3 };
/* Two streams, a fallback queue, a submit queue, and no queue of the device. */
static const uint32_t queue_indices[QUEUES] = {0, 63, 64, 191, 192};

typedef struct bench {
    sp_allocator allocator;
    sp_queue queues[QUEUES];
    uint64_t done[QUEUES];
    sp_timeline foreign;
} bench;

static bench *bench_new(void)
{
    bench *self = sp_aligned_malloc(SP_CACHE_LINE, sizeof *self);
    memset(self, 0, sizeof *self);
    sp_rt_device *device = rt_device(CPU);
    sp__allocator_init(&self->allocator, device, device->dev);
    for (int i = 0; i < QUEUES; i++) {
        self->queues[i].device = device->dev;
        self->queues[i].index = queue_indices[i];
        sp__timeline_init(&self->queues[i].timeline, &self->queues[i]);
    }
    sp__timeline_init(&self->foreign, NULL);
    return self;
}

static void bench_free(bench *self)
{
    const bool is_consistent = sp__allocator_check(&self->allocator);
    CHECK(is_consistent);
    if (!is_consistent) test_note("%s", sp_last_error());
    sp__allocator_deinit(&self->allocator);
    CHECK_EQ_U64(sp_load_relaxed(&self->allocator.reserved_bytes), 0);
    for (int i = 0; i < QUEUES; i++) sp__timeline_deinit(&self->queues[i].timeline);
    sp__timeline_deinit(&self->foreign);
    sp_free(self);
}

static sp_block *take_any(bench *self, uint64_t bytes)
{
    sp_block *block = NULL;
    CHECK_OK(sp__allocator_acquire_any(&self->allocator, bytes, false, &block));
    return block;
}

static void add_use(sp_block *block, sp_timeline *timeline, uint64_t value)
{
    CHECK_OK(sp__frontier_reserve(&block->frontier));
    sp__frontier_publish(&block->frontier, SP_READ, (sp_point){timeline, value});
}

static void advance(bench *self, int queue)
{
    sp__timeline_advance(&self->queues[queue].timeline, ++self->done[queue]);
}

static uint64_t reserved_of(sp_allocator *allocator)
{
    sp_memory_stats stats;
    sp__allocator_stats(allocator, &stats);
    CHECK_EQ_U64(stats.in_use_bytes + stats.cached_bytes, stats.reserved_bytes);
    return stats.reserved_bytes;
}

/* The test's record of a block that it has given: the values it is behind; 0: none. */
typedef struct known {
    sp_block *block;
    uint64_t behind[QUEUES];
} known;

static bool is_ready(const bench *self, const known *of)
{
    for (int i = 0; i < QUEUES; i++) {
        if (of->behind[i] > self->done[i]) return false;
    }
    return true;
}

static int count_ready(const bench *self, const known *all)
{
    int count = 0;
    for (int i = 0; i < BLOCKS; i++) count += all[i].block != NULL && is_ready(self, &all[i]);
    return count;
}

static uint64_t random_below(uint64_t *random, uint64_t limit)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % limit;
}

static void give_with_random_points(bench *self, known *of, uint64_t *random)
{
    for (int i = 0; i < POINTS; i++) {
        const uint64_t queue = random_below(random, QUEUES);
        if (of->behind[queue] != 0) continue;
        of->behind[queue] = self->done[queue] + 1 + random_below(random, 6);
        add_use(of->block, &self->queues[queue].timeline, of->behind[queue]);
    }
    sp__allocator_release(&self->allocator, of->block);
}

/* Takes until nothing is left; each block must be ready according to the test's record. */
static int take_all_ready(bench *self, known *all, uint64_t bytes)
{
    for (int count = 0;; count++) {
        sp_block *block = NULL;
        if (sp__allocator_acquire_any(&self->allocator, bytes, true, &block) != SP_OK) return count;
        int at = 0;
        while (at < BLOCKS - 1 && all[at].block != block) at++;
        CHECK(all[at].block == block && is_ready(self, &all[at]));
        all[at].block = NULL;
    }
}

TEST(exactly_the_blocks_whose_points_have_all_passed_are_taken)
{
    runtime_begin();
    bench *self = bench_new();
    known all[BLOCKS];
    sp_block *blocks[BLOCKS];
    const uint64_t bytes = 30000; /* 32 in a slab */
    uint64_t random = 7;
    const uint64_t rounds = test_count(300, 20);
    for (int i = 0; i < BLOCKS; i++) blocks[i] = take_any(self, bytes);
    sp__allocator_set_limit(&self->allocator, reserved_of(&self->allocator));
    CHECK_EQ_INT(sp_load_relaxed(&self->allocator.shared.cached_bytes), 0); /* no others */
    for (uint64_t round = 0; round < rounds; round++) {
        memset(all, 0, sizeof all);
        for (int i = 0; i < BLOCKS; i++) {
            all[i].block = blocks[i];
            give_with_random_points(self, &all[i], &random);
        }
        int left = BLOCKS;
        while (left > 0) {
            const int ready = count_ready(self, all);
            const int taken = take_all_ready(self, all, bytes);
            CHECK_EQ_INT(taken, ready);
            left -= taken;
            advance(self, (int)random_below(&random, QUEUES));
            if (left % 16 == 0) CHECK(sp__allocator_check(&self->allocator));
        }
    }
    for (int i = 0; i < BLOCKS; i++) sp__allocator_release(&self->allocator, blocks[i]);
    bench_free(self);
    runtime_end();
}

/* Blocks that only the host can make ready are checked in rotation. */
TEST(one_ready_block_among_many_that_wait_for_the_host_is_found_within_some_takes)
{
    runtime_begin();
    bench *self = bench_new();
    sp_block *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = take_any(self, 2 * MEGABYTE);
    for (int i = 0; i < BLOCKS; i++) {
        add_use(blocks[i], &self->foreign, i == BLOCKS / 2 ? 1 : 2);
        sp__allocator_release(&self->allocator, blocks[i]);
    }
    sp__timeline_advance(&self->foreign, 1);
    sp_block *taken[BLOCKS / 8];
    int count = 0;
    bool is_found = false;
    while (!is_found && count < BLOCKS / 8) {
        taken[count] = take_any(self, 2 * MEGABYTE);
        is_found = taken[count++] == blocks[BLOCKS / 2];
    }
    CHECK(is_found);
    sp__timeline_advance(&self->foreign, 2);
    for (int i = 0; i < count; i++) sp__allocator_release(&self->allocator, taken[i]);
    bench_free(self);
    runtime_end();
}

TEST(a_stream_takes_back_at_once_what_is_pending_on_itself_alone)
{
    runtime_begin();
    bench *self = bench_new();
    enum { COUNT = 6 }; /* more than the stream's cache keeps of this size */
    sp_block *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) blocks[i] = take_any(self, 16 * MEGABYTE);
    for (uint64_t i = 0; i < COUNT; i++) {
        add_use(blocks[i], &self->queues[1].timeline, i + 1);
        sp__allocator_release(&self->allocator, blocks[i]);
    }
    const uint64_t reserved = reserved_of(&self->allocator);
    for (int i = 0; i < COUNT; i++) {
        CHECK_OK(
            sp__allocator_acquire(&self->allocator, 16 * MEGABYTE, &self->queues[1], &blocks[i]));
        CHECK(blocks[i]->frontier.write.timeline == &self->queues[1].timeline);
    }
    CHECK_EQ_U64(reserved_of(&self->allocator), reserved);
    for (int i = 0; i < COUNT; i++) sp__allocator_release(&self->allocator, blocks[i]);
    /* Another stream does not. */
    sp_block *other;
    CHECK_OK(sp__allocator_acquire(&self->allocator, 16 * MEGABYTE, &self->queues[0], &other));
    CHECK(reserved_of(&self->allocator) > reserved);
    CHECK(sp__frontier_is_empty(&other->frontier));
    sp__allocator_release(&self->allocator, other);
    while (self->done[1] < COUNT) advance(self, 1);
    bench_free(self);
    runtime_end();
}

/* ---- through the public calls ---- */

/* Reads that leave a point of both streams in the storage's frontier. */
static void read_on(sp_storage storage, sp_stream a, sp_stream b, const sp_storage *sinks)
{
    CHECK_OK(sp_storage_copy_async(a, (sp_storage_range){sinks[0], 0, 64},
                                   (sp_storage_range){storage, 0, 64}));
    CHECK_OK(sp_storage_copy_async(b, (sp_storage_range){sinks[1], 0, 64},
                                   (sp_storage_range){storage, 0, 64}));
}

static void cycle(sp_stream b, sp_stream c, uint64_t bytes)
{
    const sp_storage sinks[2] = {new_storage(64), new_storage(64)};
    const sp_storage storage = new_storage(bytes);
    gate blocker = gate_closed(CPU);
    gate_hold(&blocker, b);
    gate_hold(&blocker, c);
    read_on(storage, b, c, sinks);
    CHECK_OK(sp_storage_release(storage));
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(b));
    CHECK_OK(sp_stream_synchronize(c));
    gate_destroy(&blocker);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(sinks[i]));
}

TEST(memory_that_stays_pending_hides_no_ready_memory)
{
    runtime_begin();
    enum { STUCK = 8 };
    const sp_stream a = new_stream();
    const sp_stream b = new_stream();
    const sp_stream c = new_stream();
    const sp_storage sinks[2] = {new_storage(64), new_storage(64)};
    sp_storage stuck[STUCK];
    for (int i = 0; i < STUCK; i++) stuck[i] = new_storage(MEGABYTE);
    gate blocker = gate_closed(CPU);
    gate other = gate_closed(CPU);
    gate_hold(&blocker, a);
    gate_hold(&other, b);
    for (int i = 0; i < STUCK; i++) {
        read_on(stuck[i], a, b, sinks);
        CHECK_OK(sp_storage_release(stuck[i]));
    }
    gate_open(&other); /* only `a` stays held */
    CHECK_OK(sp_stream_synchronize(b));
    gate_destroy(&other);
    cycle(b, c, MEGABYTE);
    const uint64_t reserved = stats_of(CPU).reserved_bytes;
    for (uint64_t i = 0; i < test_count(400, 50); i++) cycle(b, c, MEGABYTE);
    CHECK_EQ_U64(stats_of(CPU).reserved_bytes, reserved);
    gate_open(&blocker);
    gate_destroy(&blocker);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(sinks[i]));
    CHECK_OK(sp_stream_release(a));
    CHECK_OK(sp_stream_release(b));
    CHECK_OK(sp_stream_release(c));
    runtime_end();
}

TEST(at_the_limit_the_ready_block_of_a_slab_is_found_behind_a_pending_one)
{
    runtime_begin();
    const sp_stream a = new_stream();
    const sp_stream b = new_stream();
    const sp_stream c = new_stream();
    const uint64_t bytes = MEGABYTE / 2; /* two in a slab */
    const sp_storage sinks[4] = {new_storage(64), new_storage(64), new_storage(64),
                                 new_storage(64)};
    gate blocker = gate_closed(CPU);
    gate other = gate_closed(CPU);
    gate_hold(&blocker, a);
    gate_hold(&other, b);
    gate_hold(&other, c);
    const sp_storage first = new_storage(bytes);
    const sp_storage second = new_storage(bytes);
    CHECK_OK(sp_device_set_memory_limit(CPU, stats_of(CPU).reserved_bytes));
    read_on(first, a, b, sinks);
    read_on(second, b, c, sinks + 2);
    CHECK_OK(sp_storage_release(first));
    CHECK_OK(sp_storage_release(second));
    gate_open(&other);
    CHECK_OK(sp_stream_synchronize(b));
    CHECK_OK(sp_stream_synchronize(c));
    const sp_storage found = new_storage(bytes); /* otherwise it waits for the gate for ever */
    CHECK_EQ_U64(stats_of(CPU).waits, 0);
    CHECK_OK(sp_storage_release(found));
    gate_open(&blocker);
    gate_destroy(&blocker);
    gate_destroy(&other);
    for (int i = 0; i < 4; i++) CHECK_OK(sp_storage_release(sinks[i]));
    CHECK_OK(sp_stream_release(a));
    CHECK_OK(sp_stream_release(b));
    CHECK_OK(sp_stream_release(c));
    runtime_end();
}

/* ---- out of memory ---- */

/* Two pending storages fill the device's memory: the first one's stream is held by the caller's own
 * host access, on cpu or, through an event, on another device; the second one's until the wait. */
static void wait_beside_a_held_stream(bool is_held_elsewhere)
{
    runtime_begin();
    const sp_device holder = is_held_elsewhere ? open_null() : CPU;
    gate blocker = gate_closed(holder);
    const sp_stream held = new_stream();
    const sp_stream other = new_stream();
    const sp_stream far = new_stream_on(holder);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    const sp_storage first = new_storage(MEGABYTE);
    const sp_storage second = new_storage(MEGABYTE);
    gate_hold(&blocker, far);
    CHECK_OK(sp_event_record(event, far));
    CHECK_OK(sp_stream_wait_event(held, event));
    CHECK_OK(sp_device_set_memory_limit(CPU, stats_of(CPU).reserved_bytes));
    fill(held, first, 1);
    hold_until_an_allocation_waits(other, &CPU);
    fill(other, second, 2);
    CHECK_OK(sp_storage_release(first));
    CHECK_OK(sp_storage_release(second));
    const sp_storage next = new_storage(MEGABYTE); /* otherwise it waits for the gate for ever */
    CHECK_STATUS(sp_stream_query(held), SP_NOT_READY);
    CHECK_EQ_U64(stats_of(CPU).waits, 1);
    CHECK_OK(sp_storage_release(next));
    gate_open(&blocker);
    gate_destroy(&blocker);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_synchronize(held));
    CHECK_OK(sp_stream_release(held));
    CHECK_OK(sp_stream_release(other));
    CHECK_OK(sp_stream_release(far));
    runtime_end();
}

TEST(without_memory_a_create_takes_the_first_pending_block_that_becomes_ready)
{
    wait_beside_a_held_stream(true);
}

TEST(without_memory_a_create_does_not_wait_for_its_own_threads_host_access)
{
    wait_beside_a_held_stream(false);
}

typedef struct host_create {
    sp_status status;
    sp_atomic_u32 is_done;
} host_create;

static void create_in_host_function(void *ctx, sp_status status)
{
    host_create *self = ctx;
    CHECK_OK(status);
    sp_storage storage;
    self->status = sp_storage_create(CPU, MEGABYTE, NULL, &storage);
    raise_by_one(&self->is_done);
}

/* All pending blocks are behind work that only this thread, or this function, can end. */
TEST(without_memory_a_create_fails_if_it_would_wait_for_itself)
{
    runtime_begin();
    const sp_stream held[2] = {new_stream(), new_stream()};
    const sp_stream stream = new_stream();
    gate blocker = gate_closed(CPU);
    gate start = gate_closed(CPU);
    sp_storage pending[3];
    for (int i = 0; i < 3; i++) pending[i] = new_storage(MEGABYTE);
    for (int i = 0; i < 2; i++) gate_hold(&blocker, held[i]);
    gate_hold(&start, stream);
    CHECK_OK(sp_device_set_memory_limit(CPU, stats_of(CPU).reserved_bytes));
    for (int i = 0; i < 2; i++) fill(held[i], pending[i], 1);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(pending[i]));
    sp_storage none;
    CHECK_STATUS(sp_storage_create(CPU, MEGABYTE, NULL, &none), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("1048576 bytes requested");
    gate_open(&blocker);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_synchronize(held[i]));
    gate_destroy(&blocker);
    CHECK_OK(sp_device_empty_cache(CPU));
    CHECK_OK(sp_device_set_memory_limit(CPU, stats_of(CPU).reserved_bytes));
    host_create self = {.status = SP_OK};
    CHECK_OK(sp_stream_host_function(stream, create_in_host_function, &self));
    fill(stream, pending[2], 2);
    CHECK_OK(sp_storage_release(pending[2]));
    gate_open(&start);
    await_at_least(&self.is_done, 1);
    CHECK_EQ_INT(self.status, SP_OUT_OF_MEMORY);
    CHECK_OK(sp_stream_synchronize(stream));
    gate_destroy(&start);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(held[i]));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

/* ---- a closed device keeps nothing ---- */

static void use_and_release(void *arg, uint32_t index)
{
    const sp_device device = *(const sp_device *)arg;
    const sp_stream stream = new_stream_on(device);
    sp_stream_guard guard;
    CHECK_OK(sp_stream_guard_begin(stream, &guard));
    for (uint64_t i = 0; i < 20; i++) {
        const sp_storage storage = new_storage_on(device, (uint64_t)1000 << i % 14, false);
        fill(stream, storage, (uint8_t)index);
        CHECK_OK(sp_storage_release(storage));
    }
    CHECK_OK(sp_stream_guard_end(&guard));
    CHECK_OK(sp_stream_release(stream));
}

TEST(a_closed_device_gives_its_free_memory_back_and_the_rest_when_it_is_released)
{
    runtime_begin();
    sp_device null = open_null();
    sp_allocator *allocator = &rt_device(null)->allocator;
    const sp_storage kept = new_storage_on(null, 3 * MEGABYTE, false);
    const sp_storage also = new_storage_on(null, 100, false);
    test_threads(4, use_and_release, &null);
    CHECK(reserved_of(allocator) > 4 * MEGABYTE);
    CHECK_OK(sp_device_close(null));
    const uint64_t left = reserved_of(allocator);
    CHECK(left < 4 * MEGABYTE); /* the two slabs in use */
    CHECK_STATUS(sp_device_empty_cache(null), SP_CLOSED);
    CHECK_OK(sp_storage_release(kept));
    CHECK(reserved_of(allocator) <= left - 3 * MEGABYTE);
    CHECK_OK(sp_storage_release(also));
    CHECK_EQ_U64(reserved_of(allocator), 0);
    runtime_end();
}

TEST(memory_of_a_closed_allocator_that_waits_for_others_goes_when_these_are_done)
{
    runtime_begin();
    bench *self = bench_new();
    sp_block *before = take_any(self, 2 * MEGABYTE);
    sp_block *after = take_any(self, 2 * MEGABYTE);
    sp_block *idle = take_any(self, 2 * MEGABYTE);
    add_use(before, &self->foreign, 1);
    add_use(before, &self->queues[4].timeline, 1);
    add_use(after, &self->foreign, 2);
    sp__allocator_release(&self->allocator, before);
    sp__allocator_close(&self->allocator);
    CHECK_EQ_U64(reserved_of(&self->allocator), 6 * MEGABYTE);
    sp__allocator_release(&self->allocator, idle);
    CHECK_EQ_U64(reserved_of(&self->allocator), 4 * MEGABYTE);
    sp__allocator_release(&self->allocator, after);
    sp__timeline_advance(&self->foreign, 1);
    CHECK_EQ_U64(reserved_of(&self->allocator), 4 * MEGABYTE);
    advance(self, 4);
    CHECK_EQ_U64(reserved_of(&self->allocator), 2 * MEGABYTE);
    sp__timeline_advance(&self->foreign, 2);
    CHECK_EQ_U64(reserved_of(&self->allocator), 0);
    bench_free(self);
    runtime_end();
}

TEST_MAIN
