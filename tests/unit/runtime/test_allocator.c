/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator: classes, reuse, figures, limits, pressure. */
#include "runtime_fixture.h"

#include <stdio.h>
#include <string.h>

#include "device/null/null.h"

TEST(a_size_class_holds_its_request_with_a_quarter_to_spare_at_most)
{
    uint32_t former_class = 0;
    uint64_t former = 0;
    for (uint64_t bytes = 1; bytes < (uint64_t)1 << 45; bytes += 1 + bytes / 7) {
        uint32_t size_class;
        uint64_t rounded;
        CHECK(sp__size_class_of(bytes, &size_class, &rounded));
        CHECK(size_class < SP_SIZE_CLASSES);
        CHECK(rounded >= bytes && rounded % 64 == 0);
        CHECK(rounded <= 256 || rounded - bytes <= bytes / 4 + 1);
        CHECK(rounded >= former && size_class >= former_class);
        CHECK((rounded == former) == (size_class == former_class) || former == 0);
        uint32_t same;
        uint64_t fixed;
        CHECK(sp__size_class_of(rounded, &same, &fixed));
        CHECK(same == size_class && fixed == rounded);
        former = rounded;
        former_class = size_class;
    }
}

TEST(thirty_four_requests_of_one_size_reuse_one_region)
{
    runtime_begin();
    const void *address = NULL;
    for (int i = 0; i < 34; i++) {
        const sp_storage storage = new_storage(3 << 20);
        fill(current_stream(), storage, (uint8_t)i);
        const void *here = address_of(storage);
        if (address == NULL) address = here;
        CHECK(here == address);
        CHECK_OK(sp_storage_release(storage));
    }
    const sp_memory_stats stats = stats_of(CPU);
    CHECK_EQ_U64(stats.device_allocations, 1);
    CHECK_EQ_U64(stats.allocations, 34);
    CHECK_EQ_U64(stats.frees, 34);
    CHECK_EQ_U64(stats.waits, 0);
    CHECK(stats.reserved_bytes <= (3 << 20) * 5 / 4);
    runtime_end();
}

TEST(a_ping_pong_between_two_streams_keeps_two_regions_at_most)
{
    runtime_begin();
    const sp_stream streams[2] = {new_stream(), new_stream()};
    for (int i = 0; i < 200; i++) {
        sp_stream_guard guard;
        CHECK_OK(sp_stream_guard_begin(streams[i % 2], &guard));
        const sp_storage storage = new_storage(2 << 20);
        fill(streams[i % 2], storage, 1);
        CHECK_OK(sp_storage_release(storage));
        CHECK_OK(sp_stream_guard_end(&guard));
    }
    CHECK(stats_of(CPU).peak_bytes <= 2 * (2 << 20));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(streams[i]));
    runtime_end();
}

TEST(idle_donors_cause_no_waits_and_no_growth)
{
    runtime_begin();
    const sp_stream donor = new_stream();
    sp_storage storages[8];
    sp_stream_guard guard;
    CHECK_OK(sp_stream_guard_begin(donor, &guard));
    for (int i = 0; i < 8; i++) {
        storages[i] = new_storage(1 << 20);
        fill(donor, storages[i], 1);
    }
    CHECK_OK(sp_stream_synchronize(donor));
    for (int i = 0; i < 8; i++) CHECK_OK(sp_storage_release(storages[i]));
    CHECK_OK(sp_stream_guard_end(&guard));
    const uint64_t reserved = stats_of(CPU).reserved_bytes;
    for (int i = 0; i < 8; i++) storages[i] = new_storage(1 << 20); /* on another stream */
    const sp_memory_stats stats = stats_of(CPU);
    CHECK_EQ_U64(stats.reserved_bytes, reserved);
    CHECK_EQ_U64(stats.waits, 0);
    for (int i = 0; i < 8; i++) CHECK_OK(sp_storage_release(storages[i]));
    CHECK_OK(sp_stream_release(donor));
    runtime_end();
}

static void churn_once(void *arg, uint32_t index)
{
    (void)arg;
    sp_storage storages[4];
    for (uint64_t i = 0; i < 4; i++) {
        storages[i] = new_storage((uint64_t)1000 << i);
        fill(current_stream(), storages[i], (uint8_t)index);
    }
    for (int i = 0; i < 4; i++) CHECK_EQ_INT(first_other(storages[i], (uint8_t)index), -1);
    for (int i = 0; i < 4; i++) CHECK_OK(sp_storage_release(storages[i]));
}

TEST(thread_churn_leaves_bytes_flat)
{
    runtime_begin();
    for (int i = 0; i < 50; i++) test_threads(8, churn_once, NULL);
    const uint64_t settled = stats_of(CPU).reserved_bytes;
    const uint64_t rounds = test_count(5000, 200);
    for (uint64_t i = 0; i < rounds; i++) test_threads(8, churn_once, NULL);
    /* Eight threads at once, on any streams: at most one slab of each class. */
    CHECK(stats_of(CPU).reserved_bytes <= settled + (4 << 20));
    runtime_end();
}

TEST(the_peak_begins_again_where_it_is_reset)
{
    runtime_begin();
    const sp_storage small = new_storage(2 << 20);
    const sp_storage large = new_storage(16 << 20);
    CHECK_OK(sp_storage_release(large));
    CHECK_OK(sp_device_empty_cache(CPU));
    const sp_memory_stats before = stats_of(CPU);
    CHECK(before.peak_bytes >= before.reserved_bytes + (16 << 20));
    CHECK_OK(sp_device_reset_peak_memory(CPU));
    CHECK_EQ_U64(stats_of(CPU).peak_bytes, before.reserved_bytes);
    const sp_storage next = new_storage(4 << 20);
    const sp_memory_stats after = stats_of(CPU);
    CHECK(after.peak_bytes >= before.reserved_bytes + (4 << 20));
    CHECK(after.peak_bytes < before.peak_bytes);
    CHECK_STATUS(sp_device_reset_peak_memory((sp_device){12345}), SP_INVALID);
    CHECK_OK(sp_storage_release(next));
    CHECK_OK(sp_storage_release(small));
    runtime_end();
}

/* ---- reuse of a stream ---- */

static sp_storage new_storage_of(sp_stream stream, uint64_t bytes)
{
    sp_stream_guard guard;
    CHECK_OK(sp_stream_guard_begin(stream, &guard));
    const sp_storage storage = new_storage(bytes);
    CHECK_OK(sp_stream_guard_end(&guard));
    return storage;
}

static bool is_taken_again_by(sp_stream stream, const void *address, uint64_t bytes)
{
    sp_stream_guard guard;
    CHECK_OK(sp_stream_guard_begin(stream, &guard));
    const bool is_taken = is_taken_again(address, bytes);
    CHECK_OK(sp_stream_guard_end(&guard));
    return is_taken;
}

/* The lease under which memory was created and used ends before the memory is released, and the
 * stream gets its next holder: the last use belongs to the stream and not to the lease. */
static void release_after_the_lease(uint64_t bytes)
{
    runtime_begin_with(&(runtime_setting){.streams = "3"});
    gate blocker = gate_closed(CPU);
    const sp_stream first = new_stream();
    const sp_stream other = new_stream();
    const uint32_t index = index_of(first);
    const sp_storage storage = new_storage_of(first, bytes);
    const void *address = address_of(storage);
    gate_hold(&blocker, first);
    fill(first, storage, 1);
    CHECK_OK(sp_stream_release(first));
    const sp_stream next = new_stream();
    CHECK_EQ_U64(index_of(next), index);
    CHECK(next.bits != first.bits);
    CHECK_OK(sp_storage_release(storage));
    CHECK(!is_taken_again_by(other, address, bytes));
    CHECK(!is_taken_again(address, bytes)); /* the default stream */
    CHECK_STATUS(sp_stream_query(next), SP_NOT_READY);
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(next));
    CHECK(is_taken_again_by(other, address, bytes));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(next));
    CHECK_OK(sp_stream_release(other));
    runtime_end();
}

TEST(memory_released_after_its_stream_got_another_holder_waits_for_the_former_ones_use)
{
    release_after_the_lease(200);
    release_after_the_lease(300000);
    release_after_the_lease(3 << 20);
}

/* ---- figures ---- */

typedef struct ledger {
    uint64_t in_use, allocations, frees;
} ledger;

static uint64_t rounded_size(uint64_t bytes)
{
    uint32_t size_class;
    uint64_t rounded = 0;
    CHECK(sp__size_class_of(bytes, &size_class, &rounded));
    return rounded;
}

static void compare(const ledger *shadow)
{
    const sp_memory_stats stats = stats_of(CPU);
    CHECK_EQ_U64(stats.in_use_bytes, shadow->in_use);
    CHECK_EQ_U64(stats.allocations, shadow->allocations);
    CHECK_EQ_U64(stats.frees, shadow->frees);
    CHECK_EQ_U64(stats.in_use_bytes + stats.cached_bytes, stats.reserved_bytes);
    CHECK(stats.peak_bytes >= stats.reserved_bytes);
}

TEST(the_figures_agree_with_a_ledger_kept_beside_them)
{
    runtime_begin();
    enum { SLOTS = 64 };
    sp_storage storages[SLOTS] = {{0}};
    uint64_t sizes[SLOTS];
    ledger shadow = {0};
    uint64_t random = 12345;
    const uint64_t rounds = test_count(100000, 5000);
    for (uint64_t i = 0; i < rounds; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t slot = (random >> 33) % SLOTS;
        if (storages[slot].bits == 0) {
            sizes[slot] = (random >> 40) % 200000;
            storages[slot] = new_storage(sizes[slot]);
            shadow.in_use += rounded_size(sizes[slot]);
            shadow.allocations++;
        } else {
            CHECK_OK(sp_storage_release(storages[slot]));
            storages[slot].bits = 0;
            shadow.in_use -= rounded_size(sizes[slot]);
            shadow.frees++;
        }
        if (i % 97 == 0) compare(&shadow);
    }
    for (int i = 0; i < SLOTS; i++) {
        if (storages[i].bits == 0) continue;
        CHECK_OK(sp_storage_release(storages[i]));
        shadow.frees++;
    }
    shadow.in_use = 0;
    compare(&shadow);
    CHECK_OK(sp_device_empty_cache(CPU));
    compare(&shadow);
    CHECK_EQ_U64(stats_of(CPU).reserved_bytes, 0);
    runtime_end();
}

TEST(emptying_the_cache_keeps_what_is_in_use_or_still_pending)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = new_stream();
    const sp_storage used = new_storage(1 << 20);
    const sp_storage pending = new_storage(1 << 20);
    const sp_storage idle = new_storage(1 << 20);
    gate_hold(&blocker, stream);
    fill(stream, pending, 1);
    CHECK_OK(sp_storage_release(pending));
    CHECK_OK(sp_storage_release(idle));
    const uint64_t before = stats_of(CPU).reserved_bytes;
    CHECK_OK(sp_device_empty_cache(CPU));
    CHECK_EQ_U64(stats_of(CPU).reserved_bytes, before - (1 << 20));
    gate_open(&blocker);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_device_empty_cache(CPU));
    CHECK_EQ_U64(stats_of(CPU).reserved_bytes, before - (2 << 20));
    fill(current_stream(), used, 4);
    CHECK_EQ_INT(first_other(used, 4), -1);
    CHECK_OK(sp_storage_release(used));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

/* ---- limits and pressure ---- */

TEST(above_the_high_watermark_the_cache_shrinks_to_the_low_one)
{
    runtime_begin();
    CHECK_STATUS(sp_device_set_cache_watermarks(CPU, 2, 1), SP_INVALID);
    CHECK_OK(sp_device_set_cache_watermarks(CPU, 8 << 20, 16 << 20));
    sp_storage storages[64];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 64; i++) storages[i] = new_storage(2 << 20);
        for (int i = 0; i < 64; i++) CHECK_OK(sp_storage_release(storages[i]));
        /* The stream's own cache, 8 MiB per class, does not count for the pools. */
        CHECK(stats_of(CPU).cached_bytes <= (16 + 8 + 2) << 20);
    }
    runtime_end();
}

TEST(at_the_limit_the_message_names_the_sizes)
{
    runtime_begin();
    CHECK_OK(sp_device_set_memory_limit(CPU, 4 << 20));
    const sp_storage storage = new_storage(3 << 20);
    sp_storage more = {1};
    CHECK_STATUS(sp_storage_create(CPU, 2 << 20, NULL, &more), SP_OUT_OF_MEMORY);
    CHECK_EQ_U64(more.bits, 0);
    CHECK_MESSAGE("cpu: 2097152 bytes requested");
    CHECK_MESSAGE("3145728 in use");
    CHECK_MESSAGE("limit 4194304");
    CHECK_OK(sp_device_set_memory_limit(CPU, 0)); /* none */
    CHECK_OK(sp_storage_create(CPU, 2 << 20, NULL, &more));
    CHECK_OK(sp_storage_release(more));
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(the_largest_limits_are_none)
{
    runtime_begin();
    CHECK_OK(sp_device_set_memory_limit(CPU, UINT64_MAX));
    CHECK_OK(sp_device_set_cache_watermarks(CPU, UINT64_MAX, UINT64_MAX));
    CHECK_STATUS(sp_device_set_cache_watermarks(CPU, UINT64_MAX, UINT64_MAX - 1), SP_INVALID);
    CHECK_OK(sp_device_set_cache_watermarks(CPU, 0, UINT64_MAX));
    for (int i = 0; i < 40; i++) {
        sp_storage storages[4];
        for (uint64_t k = 0; k < 4; k++) storages[k] = new_storage((k + 1) << 20);
        for (int k = 0; k < 4; k++) CHECK_OK(sp_storage_release(storages[k]));
    }
    CHECK_EQ_U64(stats_of(CPU).reserved_bytes, 10 << 20); /* all kept, nothing allocated twice */
    sp_storage none;
    CHECK_STATUS(sp_storage_create(CPU, UINT64_MAX, NULL, &none), SP_OUT_OF_MEMORY);
    CHECK_EQ_U64(stats_of(CPU).reserved_bytes, 10 << 20);
    runtime_end();
}

TEST(more_than_the_machine_has_is_refused_with_the_sizes)
{
    runtime_begin();
    sp_device_info info = {0};
    sp_storage storage;
    CHECK_OK(sp_device_get_info(CPU, &info));
    const uint64_t all = info.memory_bytes;
    CHECK_STATUS(sp_storage_create(CPU, all + 1, NULL, &storage), SP_OUT_OF_MEMORY);
    CHECK_STATUS(sp_storage_create(CPU, UINT64_C(1) << 45, NULL, &storage), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("35184372088832 bytes requested");
    CHECK_OK(sp_device_set_memory_limit(CPU, UINT64_C(1) << 50)); /* raises nothing */
    CHECK_STATUS(sp_storage_create(CPU, UINT64_C(1) << 45, NULL, &storage), SP_OUT_OF_MEMORY);
    CHECK_EQ_U64(stats_of(CPU).reserved_bytes, 0);
    runtime_end();
}

TEST(many_storages_together_get_no_more_than_the_machine_has)
{
    runtime_begin();
    enum { MANY = 40 };
    sp_device_info info = {0};
    sp_storage storages[MANY] = {{0}};
    CHECK_OK(sp_device_get_info(CPU, &info));
    sp_status status = SP_OK;
    int count = 0;
    /* None of them is accessed: the system would overcommit all. */
    while (count < MANY && status == SP_OK) {
        status = sp_storage_create(CPU, info.memory_bytes / 16, NULL, &storages[count]);
        if (status == SP_OK) count++;
    }
    CHECK_STATUS(status, SP_OUT_OF_MEMORY);
    CHECK(count >= 12 && count <= 16); /* a quarter at most is lost to the classes */
    CHECK(stats_of(CPU).reserved_bytes <= info.memory_bytes);
    CHECK_OK(sp_storage_release(storages[0]));
    CHECK_OK(sp_storage_create(CPU, info.memory_bytes / 16, NULL, &storages[0]));
    for (int i = 0; i < count; i++) CHECK_OK(sp_storage_release(storages[i]));
    runtime_end();
}

TEST(at_the_limit_cached_memory_of_other_sizes_is_given_back_first)
{
    runtime_begin();
    CHECK_OK(sp_device_set_memory_limit(CPU, 8 << 20));
    for (uint64_t megabytes = 1; megabytes <= 7; megabytes++) {
        const sp_storage storage = new_storage(megabytes << 20);
        fill(current_stream(), storage, 1);
        CHECK_OK(sp_stream_synchronize(current_stream()));
        CHECK_OK(sp_storage_release(storage));
    }
    CHECK(stats_of(CPU).peak_bytes <= 8 << 20);
    runtime_end();
}

TEST(an_allocation_that_succeeds_in_the_end_keeps_the_last_error)
{
    runtime_begin();
    CHECK_OK(sp_device_set_memory_limit(CPU, 8 << 20));
    const sp_storage first = new_storage(6 << 20);
    CHECK_OK(sp_storage_release(first));
    CHECK_STATUS(sp_storage_retain((sp_storage){0}), SP_INVALID);
    char message[512];
    snprintf(message, sizeof message, "%s", sp_last_error());
    const sp_storage second = new_storage(3 << 20); /* after the first one's slab was returned */
    CHECK_EQ_STR(sp_last_error(), message);
    CHECK_EQ_U64(stats_of(CPU).device_allocations, 2); /* made */
    CHECK_OK(sp_storage_release(second));
    runtime_end();
}

TEST(at_the_limit_an_allocation_waits_for_pending_memory_before_it_fails)
{
    runtime_begin();
    CHECK_OK(sp_device_set_memory_limit(CPU, 4 << 20));
    const sp_stream stream = new_stream();
    const sp_storage pending = new_storage(3 << 20);
    hold_until_an_allocation_waits(stream, &CPU);
    fill(stream, pending, 1);
    CHECK_OK(sp_storage_release(pending));
    const sp_storage next = new_storage(3 << 20); /* fits only where the fill writes */
    CHECK_OK(sp_stream_query(stream));
    CHECK(stats_of(CPU).waits >= 1);
    fill(current_stream(), next, 2);
    CHECK_EQ_INT(first_other(next, 2), -1);
    CHECK_OK(sp_storage_release(next));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_device_without_memory_waits_for_pending_frees_of_any_size)
{
    runtime_begin();
    const sp_device null = open_null(); /* 1 GiB */
    const sp_stream stream = new_stream_on(null);
    const uint64_t big = (uint64_t)640 << 20;
    const sp_storage pending = new_storage_on(null, big, false);
    const uint8_t one = 1;
    hold_until_an_allocation_waits(stream, &null);
    CHECK_OK(sp_storage_fill_async(stream, (sp_storage_range){pending, 0, 64}, &one, 1));
    CHECK_OK(sp_storage_release(pending));
    const sp_storage next = new_storage_on(null, (uint64_t)512 << 20, false);
    CHECK(stats_of(null).waits >= 1);
    sp_storage none;
    CHECK_STATUS(sp_storage_create(null, big, NULL, &none), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("671088640 bytes requested");
    CHECK_OK(sp_storage_release(next));
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_failed_allocation_of_the_device_is_told_and_the_next_one_works)
{
    runtime_begin();
    const sp_device null = open_null();
    sp__null_fail_allocation(rt_device(null)->dev, 0);
    sp_storage storage = {1};
    CHECK_STATUS(sp_storage_create(null, 1000, NULL, &storage), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("injected failure");
    CHECK_EQ_U64(storage.bits, 0);
    CHECK_EQ_U64(stats_of(null).reserved_bytes, 0);
    CHECK_OK(sp_storage_create(null, 1000, NULL, &storage));
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

typedef struct squeeze {
    uint32_t rounds;
    sp_atomic_u32 failed;
} squeeze;

static void allocate_under_pressure(void *arg, uint32_t index)
{
    squeeze *self = arg;
    for (uint32_t i = 0; i < self->rounds; i++) {
        sp_storage storage;
        const sp_status status = sp_storage_create(CPU, 1 << 20, NULL, &storage);
        if (status != SP_OK) {
            CHECK_STATUS(status, SP_OUT_OF_MEMORY);
            raise_by_one(&self->failed);
            continue;
        }
        fill(current_stream(), storage, (uint8_t)index);
        if (i % 3 == 0) CHECK_EQ_INT(first_other(storage, (uint8_t)index), -1);
        CHECK_OK(sp_storage_release(storage));
    }
}

TEST(eight_threads_share_memory_for_eight_without_failure)
{
    runtime_begin();
    CHECK_OK(sp_device_set_memory_limit(CPU, 8 << 20));
    squeeze self = {.rounds = (uint32_t)test_count(5000, 300)};
    test_threads(8, allocate_under_pressure, &self);
    CHECK_EQ_U64(sp_load_acquire(&self.failed), 0);
    CHECK(stats_of(CPU).peak_bytes <= 8 << 20);
    runtime_end();
}

TEST_MAIN
