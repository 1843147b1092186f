/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for elements that the host writes at once: no command uses it any more. */
#include "runtime/storage.h"
#include "runtime_fixture.h"

#define MEGABYTE ((uint64_t)1 << 20)

static sp_storage new_unused(uint64_t bytes)
{
    sp_storage storage = {0};
    CHECK_OK(sp__storage_create_for_host(rt_device(CPU), bytes, &storage));
    return storage;
}

/* Waits for nothing if the storage is unused. */
static void write_first(sp_storage storage, uint8_t value)
{
    void *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, &data));
    *(uint8_t *)data = value;
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
}

TEST(what_queued_commands_still_use_is_not_taken)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = current_stream();
    const sp_storage queued = new_storage(MEGABYTE);
    const void *address = address_of(queued);
    gate_hold(&blocker, stream);
    fill(stream, queued, 1);
    CHECK_OK(sp_storage_release(queued));
    const sp_storage unused = new_unused(MEGABYTE);
    write_first(unused, 7); /* the gate is still closed */
    CHECK(address_of(unused) != address);
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
    gate_open(&blocker);
    gate_destroy(&blocker);
    CHECK_OK(sp_storage_release(unused));
    runtime_end();
}

/* The newest block of the stream's cache is still used, the one below it is not. */
TEST(blocks_of_the_stream_that_are_unused_are_found_below_used_ones)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = current_stream();
    const sp_storage idle = new_storage(MEGABYTE);
    const sp_storage queued = new_storage(MEGABYTE);
    const void *address = address_of(idle);
    fill(stream, idle, 1);
    CHECK_OK(sp_stream_synchronize(stream));
    gate_hold(&blocker, stream);
    fill(stream, queued, 1);
    CHECK_OK(sp_storage_release(idle));
    CHECK_OK(sp_storage_release(queued));
    const uint64_t before = stats_of(CPU).device_allocations;
    const sp_storage unused = new_unused(MEGABYTE);
    CHECK(address_of(unused) == address);
    CHECK_EQ_U64(stats_of(CPU).device_allocations, before);
    gate_open(&blocker);
    gate_destroy(&blocker);
    CHECK_OK(sp_storage_release(unused));
    runtime_end();
}

TEST(a_block_that_was_never_used_returns_to_the_stream_that_took_it)
{
    runtime_begin();
    (void)current_stream();
    const sp_storage first = new_unused(MEGABYTE);
    const void *address = address_of(first);
    CHECK_OK(sp_storage_release(first));
    const sp_storage second = new_storage(MEGABYTE);
    CHECK(address_of(second) == address);
    CHECK_OK(sp_storage_release(second));
    runtime_end();
}

/* Each command's memory is still used when the next one asks. What is reserved is what the stream's
 * cache keeps, 8 MiB of a class, and one block more: then the oldest command is waited for. */
TEST(memory_of_commands_in_flight_is_bounded)
{
    runtime_begin();
    const sp_stream stream = current_stream();
    for (uint64_t i = 0; i < test_count(2000, 200); i++) {
        const sp_storage storage = new_unused(MEGABYTE);
        write_first(storage, 1);
        fill(stream, storage, 2);
        CHECK_OK(sp_storage_release(storage));
    }
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK(stats_of(CPU).peak_bytes <= 9 * MEGABYTE);
    runtime_end();
}

/* A wait for the stream would be one for the thread's own access. */
TEST(beside_an_open_access_memory_is_not_bounded)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    const sp_stream stream = current_stream();
    gate_hold(&blocker, stream); /* by an access of this thread */
    for (int i = 0; i < 20; i++) {
        const sp_storage storage = new_unused(MEGABYTE);
        write_first(storage, 1);
        fill(stream, storage, 2);
        CHECK_OK(sp_storage_release(storage));
    }
    CHECK_STATUS(sp_stream_query(stream), SP_NOT_READY);
    gate_open(&blocker);
    gate_destroy(&blocker);
    runtime_end();
}

TEST(at_the_limit_it_waits_for_what_is_still_used)
{
    runtime_begin();
    const sp_device device = CPU;
    CHECK_OK(sp_device_set_memory_limit(device, MEGABYTE));
    const sp_stream stream = current_stream();
    const sp_storage queued = new_storage(MEGABYTE);
    hold_until_an_allocation_waits(stream, &device);
    fill(stream, queued, 1);
    CHECK_OK(sp_storage_release(queued));
    const sp_storage unused = new_unused(MEGABYTE);
    write_first(unused, 7);
    CHECK(stats_of(device).waits > 0);
    CHECK_OK(sp_storage_release(unused));
    runtime_end();
}

static void create_without_a_stream(void *arg)
{
    (void)arg;
    const sp_storage storage = new_unused(4096);
    write_first(storage, 3);
    CHECK_OK(sp_storage_release(storage));
}

TEST(a_thread_needs_no_stream_for_it)
{
    runtime_begin_with(&(runtime_setting){.streams = "1", .policy = "fail"});
    (void)current_stream();
    run_on_thread(create_without_a_stream, NULL);
    runtime_end();
}

static void create_use_release(void *arg, uint32_t index)
{
    (void)arg;
    for (uint64_t i = 0; i < test_count(2000, 100); i++) {
        const sp_storage storage = new_unused((uint64_t)300 << i % 3);
        write_first(storage, (uint8_t)index);
        fill(current_stream(), storage, (uint8_t)(index + 1));
        if (i % 7 == 0) CHECK_EQ_INT(first_other(storage, (uint8_t)(index + 1)), -1);
        CHECK_OK(sp_storage_release(storage));
    }
}

TEST(threads_that_take_unused_memory_never_share_it)
{
    runtime_begin();
    test_threads(8, create_use_release, NULL);
    runtime_end();
}

TEST_MAIN
