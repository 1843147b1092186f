/* SPDX-License-Identifier: Apache-2.0 */
/* Storages: sizes, ranges, properties, freezing, and how long their memory is reserved. */
#include "runtime_fixture.h"

#include <stdio.h>

#include "base/heap.h"
#include "runtime/storage.h"

TEST(a_storage_of_no_bytes_is_fine)
{
    runtime_begin();
    const sp_storage storage = new_storage(0);
    const sp_storage other = new_storage(0);
    CHECK_EQ_U64(whole(storage).bytes, 0);
    fill(current_stream(), storage, 1);
    copy(current_stream(), other, storage);
    CHECK_OK(sp_stream_synchronize(current_stream()));
    CHECK(address_of(storage) != NULL);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_release(other));
    runtime_end();
}

TEST(absurd_sizes_are_out_of_memory_and_change_nothing)
{
    runtime_begin();
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 63, (uint64_t)1 << 63,
                                     ((uint64_t)1 << 46) + 1};
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        sp_storage storage = {1};
        CHECK_STATUS(sp_storage_create(CPU, sizes[i], NULL, &storage), SP_OUT_OF_MEMORY);
        CHECK_EQ_U64(storage.bits, 0);
    }
    CHECK_EQ_U64(stats_of(CPU).reserved_bytes, 0);
    CHECK_STATUS(sp_storage_create(CPU, 64, NULL, NULL), SP_INVALID);
    runtime_end();
}

TEST(memory_is_aligned_and_not_shared)
{
    runtime_begin();
    sp_storage storages[40];
    for (uint64_t i = 0; i < 40; i++) {
        storages[i] = new_storage(i * 37 + 1);
        CHECK_EQ_U64((uintptr_t)address_of(storages[i]) % 64, 0);
        fill(current_stream(), storages[i], (uint8_t)i);
    }
    for (int i = 0; i < 40; i++) {
        CHECK_EQ_INT(first_other(storages[i], (uint8_t)i), -1);
        CHECK_OK(sp_storage_release(storages[i]));
    }
    runtime_end();
}

static sp_status fill_range(sp_storage storage, uint64_t offset, uint64_t bytes)
{
    const uint8_t one = 1;
    return sp_storage_fill_async(current_stream(), (sp_storage_range){storage, offset, bytes}, &one,
                                 1);
}

TEST(ranges_outside_of_a_storage_are_refused)
{
    runtime_begin();
    const sp_storage storage = new_storage(100);
    CHECK_OK(fill_range(storage, 0, 100));
    CHECK_OK(fill_range(storage, 100, 0));
    CHECK_STATUS(fill_range(storage, 0, 101), SP_INVALID);
    CHECK_MESSAGE("outside of a storage of 100 bytes");
    CHECK_STATUS(fill_range(storage, 101, 0), SP_INVALID);
    CHECK_STATUS(fill_range(storage, 1, 100), SP_INVALID);
    CHECK_STATUS(fill_range(storage, UINT64_MAX, 2), SP_INVALID);
    CHECK_STATUS(fill_range(storage, 2, UINT64_MAX), SP_INVALID);
    const sp_storage other = new_storage(50);
    CHECK_STATUS(sp_storage_copy_async(current_stream(), whole(other), whole(storage)),
                 SP_MISMATCH);
    CHECK_STATUS(sp_storage_copy_async(current_stream(), (sp_storage_range){other, 10, 50},
                                       (sp_storage_range){storage, 0, 50}),
                 SP_INVALID);
    CHECK_STATUS(sp_storage_copy_async(current_stream(), (sp_storage_range){other, 0, 50},
                                       (sp_storage_range){storage, 51, 50}),
                 SP_INVALID);
    const sp_storage_range beyond = {other, 0, UINT64_MAX};
    const sp_storage_range behind = {other, UINT64_MAX, 1};
    const sp_storage_range nothing = {other, UINT64_MAX, 0};
    const sp_storage_range good[2] = {{storage, 0, 1}, {storage, 0, 0}};
    CHECK_STATUS(sp_storage_copy_async(current_stream(), beyond, beyond), SP_INVALID);
    CHECK_STATUS(sp_storage_copy_async(current_stream(), behind, good[0]), SP_INVALID);
    CHECK_STATUS(sp_storage_copy_async(current_stream(), good[0], behind), SP_INVALID);
    CHECK_MESSAGE("18446744073709551615 + 1");
    CHECK_STATUS(sp_storage_copy_async(current_stream(), nothing, good[1]), SP_INVALID);
    CHECK_OK(sp_storage_copy_async(current_stream(), good[1], good[1]));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_release(other));
    runtime_end();
}

TEST(a_fill_repeats_a_pattern_of_1_2_4_or_8_bytes)
{
    runtime_begin();
    const sp_storage storage = new_storage(48);
    static const uint8_t pattern[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (uint32_t bytes = 0; bytes <= 9; bytes++) {
        const bool is_good = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
        CHECK_STATUS(sp_storage_fill_async(current_stream(), whole(storage), pattern, bytes),
                     is_good ? SP_OK : SP_INVALID);
        if (!is_good) continue;
        void *data;
        CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
        for (uint32_t i = 0; i < 48; i++) CHECK_EQ_U64(((uint8_t *)data)[i], pattern[i % bytes]);
        CHECK_OK(sp_storage_host_end(storage, SP_READ));
    }
    const sp_storage_range odd = {storage, 0, 47};
    CHECK_STATUS(sp_storage_fill_async(current_stream(), odd, pattern, 2), SP_INVALID);
    CHECK_STATUS(sp_storage_fill_async(current_stream(), whole(storage), NULL, 1), SP_INVALID);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(ranges_of_one_storage_may_overlap_in_a_copy)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    unsigned char *bytes;
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, (void **)&bytes));
    for (int i = 0; i < 64; i++) bytes[i] = (unsigned char)i;
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
    CHECK_OK(sp_storage_copy_async(current_stream(), (sp_storage_range){storage, 8, 48},
                                   (sp_storage_range){storage, 0, 48}));
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, (void **)&bytes));
    for (int i = 8; i < 56; i++) CHECK_EQ_INT(bytes[i], i - 8);
    CHECK_EQ_INT(bytes[7], 7);
    CHECK_EQ_INT(bytes[56], 56);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(storages_belong_to_the_streams_of_their_device)
{
    runtime_begin();
    const sp_device null = open_null();
    const sp_storage here = new_storage(64);
    const sp_storage there = new_storage_on(null, 64, false);
    const sp_stream on_null = new_stream_on(null);
    const uint8_t one = 1;
    CHECK_STATUS(sp_storage_fill_async(current_stream(), whole(there), &one, 1), SP_INVALID);
    CHECK_MESSAGE("null:1");
    CHECK_STATUS(sp_storage_fill_async(on_null, whole(here), &one, 1), SP_INVALID);
    CHECK_STATUS(sp_storage_record_stream(here, on_null), SP_INVALID);
    fill(on_null, there, 3);
    CHECK_EQ_INT(first_other(there, 3), -1);
    sp_storage_info info;
    CHECK_OK(sp_storage_get_info(there, &info));
    CHECK_EQ_U64(info.device.bits, null.bits);
    CHECK_OK(sp_storage_release(here));
    CHECK_OK(sp_storage_release(there));
    CHECK_OK(sp_stream_release(on_null));
    runtime_end();
}

TEST(a_copy_takes_a_stream_of_one_of_its_storages_devices)
{
    runtime_begin();
    const sp_device null = open_null();
    const sp_stream here = new_stream();
    const sp_stream there = new_stream_on(null);
    const sp_storage a = new_storage(64);
    const sp_storage b = new_storage(64);
    const sp_storage far_a = new_storage_on(null, 64, false);
    const sp_storage far_b = new_storage_on(null, 64, false);
    fill(here, a, 1);
    fill(here, b, 2);
    fill(there, far_a, 3);
    fill(there, far_b, 4);
    CHECK_STATUS(sp_storage_copy_async(here, whole(far_a), whole(far_b)), SP_INVALID);
    CHECK_MESSAGE("a copy from null:1 to null:1 on a stream of cpu");
    CHECK_STATUS(sp_storage_copy_async(there, whole(a), whole(b)), SP_INVALID);
    CHECK_MESSAGE("a copy from cpu to cpu on a stream of null:1");
    /* Nothing was written, and nothing remained locked. */
    CHECK_EQ_INT(first_other(far_a, 3), -1);
    CHECK_EQ_INT(first_other(a, 1), -1);
    copy(here, a, b);
    copy(there, far_a, far_b);
    CHECK_EQ_INT(first_other(a, 2), -1);
    CHECK_EQ_INT(first_other(far_a, 4), -1);
    const sp_storage all[] = {a, b, far_a, far_b};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) CHECK_OK(sp_storage_release(all[i]));
    CHECK_OK(sp_stream_release(here));
    CHECK_OK(sp_stream_release(there));
    runtime_end();
}

TEST(the_address_of_a_storage_is_known_without_a_wait)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    const sp_storage storage = new_storage(256);
    gate_hold(&blocker, stream);
    fill(stream, storage, 4);
    sp_storage_info info;
    CHECK_OK(sp_storage_get_info(storage, &info));
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
    gate_open(&blocker);
    void *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    CHECK(data != NULL && data == info.address);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_OK(sp_storage_release(storage));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_frozen_storage_is_read_and_never_written_again)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_storage storage = new_storage(256);
    const sp_storage other = new_storage(256);
    submit_slow_fill(stream, storage, 4, 5 * MILLISECOND);
    CHECK_OK(sp_storage_freeze(storage)); /* waits for the write */
    sp_storage_info info;
    CHECK_OK(sp_storage_get_info(storage, &info));
    CHECK(info.is_frozen && info.is_tracked && !info.is_adopted);
    const uint8_t one = 1;
    CHECK_STATUS(sp_storage_fill_async(stream, whole(storage), &one, 1), SP_INVALID);
    CHECK_MESSAGE("frozen");
    void *data;
    CHECK_STATUS(sp_storage_host_begin(storage, SP_WRITE, &data), SP_INVALID);
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ_WRITE, &data), SP_INVALID);
    CHECK_STATUS(sp_storage_copy_async(stream, whole(storage), whole(other)), SP_INVALID);
    copy(stream, other, storage);
    CHECK_EQ_INT(first_other(other, 4), -1);
    CHECK_EQ_INT(first_other(storage, 4), -1);
    CHECK_OK(sp_storage_freeze(storage)); /* again: nothing to do */
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_release(other));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(freezing_a_storage_that_the_thread_itself_writes_is_a_deadlock_and_freezes_nothing)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    void *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, &data));
    CHECK_STATUS(sp_storage_freeze(storage), SP_DEADLOCK);
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
    fill(current_stream(), storage, 4);
    CHECK_OK(sp_storage_freeze(storage));
    CHECK_EQ_INT(first_other(storage, 4), -1);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(freezing_a_storage_that_a_failed_command_wrote_tells_the_failure)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    submit_failing(current_stream(), storage);
    CHECK_STATUS(sp_storage_freeze(storage), SP_FAILED);
    CHECK_MESSAGE("asked to fail");
    fill(current_stream(), storage, 1); /* overwritten: good again */
    CHECK_OK(sp_storage_freeze(storage));
    CHECK_STATUS(sp_stream_synchronize(current_stream()), SP_FAILED);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(a_storage_lives_until_its_last_reference_goes)
{
    runtime_begin();
    const sp_storage storage = new_storage(64);
    CHECK_OK(sp_storage_retain(storage));
    CHECK_OK(sp_storage_release(storage));
    fill(current_stream(), storage, 2);
    CHECK_EQ_INT(first_other(storage, 2), -1);
    CHECK_OK(sp_storage_release(storage));
    CHECK_STATUS(sp_storage_release(storage), SP_INVALID);
    CHECK_STATUS(sp_storage_retain(storage), SP_INVALID);
    runtime_end();
}

/* The last generation of the storage's slot; returns its new handle. The effect of 2^28 - 2 creates
 * and releases. */
static sp_storage aged(sp_storage storage)
{
    sp_object *object = &sp__storage_peek(storage)->object;
    const uint64_t last = (UINT64_C(1) << 28) - 1;
    const uint64_t counts = sp_load_relaxed(&object->word) & ((UINT64_C(1) << 36) - 1);
    sp_store_relaxed(&object->word, last << 36 | counts);
    return (sp_storage){(storage.bits & ~(last << 28)) | last << 28};
}

TEST(memory_outlives_the_handles_of_its_slot)
{
    runtime_begin();
    const sp_storage storage = aged(new_storage(1000));
    fill(current_stream(), storage, 1);
    const void *address = address_of(storage);
    CHECK_OK(sp_storage_release(storage));
    CHECK_STATUS(sp_storage_retain(storage), SP_INVALID);
    const uint64_t asked = stats_of(CPU).device_allocations;

    const sp_storage again = new_storage(1000);
    CHECK(address_of(again) == address);
    CHECK((again.bits & 0xfffffff) != (storage.bits & 0xfffffff));
    CHECK_EQ_U64(stats_of(CPU).device_allocations, asked);
    fill(current_stream(), again, 2);
    CHECK_EQ_INT(first_other(again, 2), -1);
    CHECK_STATUS(sp_storage_release(storage), SP_INVALID);
    CHECK_OK(sp_storage_release(again));
    runtime_end();
}

/* ---- reuse of memory: each test delays a use and checks the addresses of new memory ---- */

/* The paths of freed memory. */
typedef struct flavour {
    const char *name;
    uint64_t bytes;
    bool is_adopted;
} flavour;

static const flavour flavours[] = {
    {"the cache of a stream", 200, false},
    {"a slab of three", 300000, false},
    {"a slab of its own", 3 << 20, false},
    {"adopted", 4096, true},
};

typedef struct reuse {
    const flavour *way;
    gate blocker;
    sp_stream user;
    sp_storage storage;
    const void *address;
    unsigned char adopted[4096];
    sp_atomic_u32 released; /* calls of the owner */
} reuse;

static void note_release(void *ctx, void *data)
{
    reuse *self = ctx;
    CHECK(data == self->adopted);
    raise_by_one(&self->released);
}

static void reuse_begin(reuse *self, const flavour *way, bool is_untracked)
{
    *self = (reuse){.way = way};
    runtime_begin();
    self->blocker = gate_closed(CPU);
    self->user = new_stream();
    if (way->is_adopted) {
        const sp_adopt_options options = {
            .is_untracked = is_untracked, .release = note_release, .ctx = self};
        CHECK_OK(sp_storage_adopt(CPU, self->adopted, way->bytes, &options, &self->storage));
    } else {
        self->storage = new_storage_on(CPU, way->bytes, is_untracked);
    }
    self->address = address_of(self->storage);
}

/* The memory may be reused: by a new storage of this thread's stream, or by its owner. */
static bool is_given_away(reuse *self)
{
    if (!self->way->is_adopted) return is_taken_again(self->address, self->way->bytes);
    let_callbacks_come();
    return sp_load_acquire(&self->released) != 0;
}

static void reuse_end(reuse *self)
{
    const bool is_early = is_given_away(self);
    CHECK(!is_early); /* the use is pending */
    if (!is_early) {
        CHECK_OK(sp_device_empty_cache(CPU)); /* not by the device either, which would unmap it */
        if (!self->way->is_adopted) CHECK(stats_of(CPU).cached_bytes >= self->way->bytes);
        CHECK(!is_given_away(self));
    }
    gate_open(&self->blocker);
    CHECK_OK(sp_stream_synchronize(self->user));
    if (self->way->is_adopted) await_at_least(&self->released, 1);
    CHECK(is_given_away(self)); /* now it has */
    gate_destroy(&self->blocker);
    CHECK_OK(sp_stream_release(self->user));
    runtime_end();
    CHECK_EQ_U64(sp_load_acquire(&self->released), self->way->is_adopted);
}

/* `use_and_release` uses the storage behind the gate and releases it. */
static void expect_no_early_reuse(void (*use_and_release)(reuse *self), bool is_untracked)
{
    for (size_t i = 0; i < SP_COUNT_OF(flavours); i++) {
        reuse self;
        reuse_begin(&self, &flavours[i], is_untracked);
        use_and_release(&self);
        reuse_end(&self);
    }
}

static void use_on_another_stream(reuse *self)
{
    gate_hold(&self->blocker, self->user);
    fill(self->user, self->storage, 1);
    CHECK_OK(sp_storage_release(self->storage));
}

TEST(memory_in_use_on_another_stream_is_not_reused)
{
    expect_no_early_reuse(use_on_another_stream, false);
}

static void use_twice(reuse *self)
{
    fill(self->user, self->storage, 1);
    CHECK_OK(sp_stream_synchronize(self->user));
    gate_hold(&self->blocker, self->user);
    fill(self->user, self->storage, 2);
    CHECK_OK(sp_storage_release(self->storage));
}

TEST(memory_of_an_untracked_storage_waits_for_its_last_use_and_not_for_its_first)
{
    expect_no_early_reuse(use_twice, true);
}

static void freeze_and_read(reuse *self)
{
    fill(self->user, self->storage, 1);
    CHECK_OK(sp_storage_freeze(self->storage));
    const sp_storage to = new_storage(self->way->bytes);
    gate_hold(&self->blocker, self->user);
    copy(self->user, to, self->storage);
    CHECK_OK(sp_storage_release(self->storage));
    CHECK_OK(sp_storage_release(to));
}

TEST(memory_of_a_frozen_storage_waits_for_its_readers)
{
    expect_no_early_reuse(freeze_and_read, false);
}

static void record_and_submit_later(reuse *self)
{
    CHECK_OK(sp_storage_record_stream(self->storage, self->user));
    gate_hold(&self->blocker, self->user); /* after the record: the last use counts */
    CHECK_OK(sp_storage_release(self->storage));
}

TEST(a_recorded_stream_keeps_memory_until_all_that_was_submitted_before_the_release)
{
    expect_no_early_reuse(record_and_submit_later, false);
}

static void record_three_consumers(reuse *self)
{
    sp_stream quick[2] = {new_stream(), new_stream()};
    gate_hold(&self->blocker, self->user);
    CHECK_OK(sp_storage_record_stream(self->storage, self->user));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_record_stream(self->storage, quick[i]));
    CHECK_OK(sp_storage_release(self->storage));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(quick[i]));
}

TEST(memory_recorded_for_all_streams_waits_for_those_too_that_were_first_used_later)
{
    reuse self;
    reuse_begin(&self, &flavours[1], false);
    CHECK_OK(sp_storage_record_all_streams(self.storage));
    const sp_stream later = new_stream();
    gate_hold(&self.blocker, later);
    CHECK_OK(sp_storage_release(self.storage));
    CHECK(!is_given_away(&self));
    CHECK_OK(sp_stream_query(self.user)); /* a stream without work keeps nothing */
    gate_open(&self.blocker);
    CHECK_OK(sp_stream_synchronize(later));
    CHECK(is_given_away(&self));
    CHECK_OK(sp_stream_release(later));
    gate_destroy(&self.blocker);
    CHECK_OK(sp_stream_release(self.user));
    runtime_end();
}

TEST(every_stream_of_a_full_pool_can_be_recorded)
{
    runtime_begin_with(&(runtime_setting){.streams = "64"});
    const sp_storage storage = new_storage(64);
    CHECK_OK(sp_storage_record_all_streams(storage));
    CHECK_OK(sp_storage_release(storage));
    CHECK_STATUS(sp_storage_record_all_streams(storage), SP_INVALID);
    runtime_end();
}

TEST(the_slowest_of_three_consumers_counts_though_it_was_recorded_first)
{
    expect_no_early_reuse(record_three_consumers, false);
}

static void read_three_times(reuse *self)
{
    sp_storage to[3];
    sp_stream readers[3] = {self->user, new_stream(), new_stream()};
    fill(current_stream(), self->storage, 1);
    gate_hold(&self->blocker, self->user);
    for (int i = 0; i < 3; i++) {
        to[i] = new_storage(self->way->bytes);
        copy(readers[i], to[i], self->storage);
    }
    CHECK_OK(sp_storage_release(self->storage));
    for (int i = 1; i < 3; i++) {
        CHECK_OK(sp_stream_synchronize(readers[i]));
        CHECK_OK(sp_stream_release(readers[i]));
    }
    for (int i = 0; i < 3; i++) CHECK_OK(sp_storage_release(to[i]));
}

TEST(the_slowest_of_three_tracked_readers_counts_though_it_came_first)
{
    expect_no_early_reuse(read_three_times, false);
}

/* ---- out of memory ---- */

#define HELD_STREAMS 4 /* the number of uses that a frontier holds without memory */

typedef struct starved {
    reuse base;
    sp_stream held[HELD_STREAMS];
    sp_stream own; /* runs the host function */
    gate later;    /* holds what is submitted to `own` after the release */
    sp_atomic_u32 is_done;
} starved;

/* A separate part for each stream, since nothing orders them. */
static void fill_part(const starved *self, sp_stream stream, uint32_t part)
{
    const sp_storage_range range = {self->base.storage, part * (uint64_t)64, 64};
    const uint8_t value = 1;
    CHECK_OK(sp_storage_fill_async(stream, range, &value, 1));
}

static void release_before_own_use(void *ctx, sp_status status)
{
    starved *self = ctx;
    CHECK_OK(status);
    fill_part(self, self->own, HELD_STREAMS); /* ordered after this function */
    char last_error[512];
    snprintf(last_error, sizeof last_error, "%s", sp_last_error());
    sp_heap_fail_after(0);
    CHECK_OK(sp_storage_release(self->base.storage));
    CHECK(sp_heap_has_failed());
    sp_heap_fail_after(UINT64_MAX);
    CHECK_EQ_STR(sp_last_error(), last_error); /* no failure for the caller */
    gate_hold(&self->later, self->own);
    gate_open(&self->base.blocker);
    for (int i = 0; i < HELD_STREAMS; i++) CHECK_OK(sp_stream_synchronize(self->held[i]));
    CHECK(!is_given_away(&self->base));
    raise_by_one(&self->is_done);
}

/* The thread that completes the last use frees the memory afterwards: slightly later than the use
 * is observed to be complete. */
static bool is_given_away_soon(reuse *self)
{
    const uint64_t deadline = sp_clock_deadline(30 * SECOND);
    while (!is_given_away(self)) {
        if (sp_clock_now() > deadline) return false;
        sp_thread_yield();
    }
    return true;
}

TEST(memory_released_without_memory_to_note_its_uses_waits_for_all_of_them)
{
    starved self = {0};
    reuse_begin(&self.base, &flavours[1], true);
    expect_reports(); /* the checker tracks whole storages: these streams use parts of one */
    self.held[0] = self.base.user;
    for (int i = 1; i < HELD_STREAMS; i++) self.held[i] = new_stream();
    self.own = new_stream();
    self.later = gate_closed(CPU);
    for (uint32_t i = 0; i < HELD_STREAMS; i++) {
        gate_hold(&self.base.blocker, self.held[i]);
        fill_part(&self, self.held[i], i);
    }
    CHECK_OK(sp_stream_host_function(self.own, release_before_own_use, &self));
    CHECK_OK(sp_stream_flush(self.own));
    await_at_least(&self.is_done, 1);
    CHECK(is_given_away_soon(&self.base)); /* whatever was submitted to the streams later */
    gate_open(&self.later);
    CHECK_OK(sp_stream_synchronize(self.own));
    for (int i = 1; i < HELD_STREAMS; i++) CHECK_OK(sp_stream_release(self.held[i]));
    CHECK_OK(sp_stream_release(self.own));
    gate_destroy(&self.later);
    gate_destroy(&self.base.blocker);
    CHECK_OK(sp_stream_release(self.base.user));
    runtime_end();
}

TEST_MAIN
