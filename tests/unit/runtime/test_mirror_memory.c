/* SPDX-License-Identifier: Apache-2.0 */
/* How much pinned memory mirrors take, and how long. */
#include <streampool/tensor.h>

#include "base/backoff.h"
#include "base/heap.h"
#include "own_memory_fixture.h"
#include "runtime/host_ticket.h"
#include "runtime/mirror.h"

enum { LARGE = 2 * SP_MIRROR_KEPT_BYTES, ROUNDS = 40 };

/* Of a mirror of LARGE bytes. */
static uint64_t mirrors_in_use(const own_memory *o)
{
    return stats_of(o->device).pinned_bytes / LARGE;
}

static void read_once(sp_storage storage, uint8_t value)
{
    void *data = NULL;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    CHECK(data != NULL && *(uint8_t *)data == value);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
}

TEST(reads_beside_an_open_read_take_no_more_memory_each)
{
    own_memory o = own_memory_begin();
    const sp_storage storage = new_storage_on(o.device, LARGE, false);
    void *data;
    fill(o.stream, storage, 5);
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    for (int i = 0; i < ROUNDS; i++) read_once(storage, 5);
    CHECK_EQ_U64(mirrors_in_use(&o), 1);
    CHECK_EQ_INT(*(uint8_t *)data, 5);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_OK(sp_storage_release(storage));
    own_memory_end(&o);
}

static uint64_t pinned_after_trim(const own_memory *o)
{
    CHECK_OK(sp_device_empty_cache(o->device));
    return stats_of(o->device).pinned_bytes;
}

TEST(mirrors_that_are_kept_have_a_limit_together)
{
    enum { EACH = SP_MIRROR_KEPT_BYTES, COUNT = SP_MIRRORS_KEPT_BYTES / EACH + 8 };
    static sp_storage storages[COUNT];
    own_memory o = own_memory_begin();
    for (int round = 0; round < 2; round++) { /* the second has as much room */
        for (int i = 0; i < COUNT; i++) {
            storages[i] = new_storage_on(o.device, EACH, false);
            fill(o.stream, storages[i], 5);
            read_once(storages[i], 5);
            if (i % 3 == 0) put_bytes(storages[i], 0, EACH, 5);
            read_once(storages[i], 5);
        }
        CHECK_EQ_U64(pinned_after_trim(&o), SP_MIRRORS_KEPT_BYTES);
        for (int i = 0; i < COUNT; i++) CHECK_OK(sp_storage_release(storages[i]));
        CHECK_EQ_U64(pinned_after_trim(&o), 0);
    }
    own_memory_end(&o);
}

/* A tensor's read is over when it returns. */
TEST(reads_of_rows_beside_an_open_read_give_their_memory_back)
{
    enum { ROWS = 2, COLUMNS = LARGE };
    static const int64_t shape[] = {ROWS, COLUMNS};
    static uint8_t row[COLUMNS];
    own_memory o = own_memory_begin();
    sp_tensor tensor, rows[ROWS];
    sp_tensor_info info;
    void *data;
    CHECK_OK(sp_tensor_create(o.device, SP_U8, 2, shape, &tensor));
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    fill(o.stream, info.storage, 5);
    for (int64_t i = 0; i < ROWS; i++) CHECK_OK(sp_tensor_slice(tensor, 0, i, 1, 1, &rows[i]));
    CHECK_OK(sp_storage_host_begin_range(range_of(info.storage, 0, LARGE), SP_READ, &data));
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(sp_tensor_read(rows[(i + 1) % ROWS], row, sizeof row));
        CHECK(row[0] == 5 && row[COLUMNS - 1] == 5);
    }
    CHECK(mirrors_in_use(&o) <= 3);
    CHECK_EQ_INT(*(uint8_t *)data, 5);
    CHECK_OK(sp_storage_host_end(info.storage, SP_READ));
    for (int i = 0; i < ROWS; i++) CHECK_OK(sp_tensor_release(rows[i]));
    CHECK_OK(sp_tensor_release(tensor));
    own_memory_end(&o);
}

TEST(a_tensors_read_of_a_part_of_a_frozen_storage_takes_no_more_than_the_part)
{
    enum { PART = 4096 };
    static const int64_t shape[] = {LARGE};
    static uint8_t got[PART];
    own_memory o = own_memory_begin();
    sp_tensor tensor, part;
    sp_tensor_info info;
    CHECK_OK(sp_tensor_create(o.device, SP_U8, 1, shape, &tensor));
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    fill(o.stream, info.storage, 5);
    CHECK_OK(sp_storage_freeze(info.storage));
    CHECK_OK(sp_tensor_slice(tensor, 0, 100, PART, 1, &part));
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(sp_tensor_read(part, got, sizeof got));
        CHECK(got[0] == 5 && memcmp(got, got + 1, PART - 1) == 0);
    }
    CHECK_EQ_U64(mirrors_in_use(&o), 0);
    CHECK_EQ_U64(pinned_after_trim(&o), 0);
    read_once(info.storage, 5); /* stays */
    CHECK_EQ_U64(pinned_after_trim(&o), LARGE);
    CHECK_OK(sp_tensor_read(part, got, sizeof got));
    CHECK_OK(sp_tensor_release(part));
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_EQ_U64(pinned_after_trim(&o), 0);
    own_memory_end(&o);
}

/* The end of a read of a frozen storage, which has no ticket, may be taken for that of an earlier
 * one, which has. */
TEST(the_bytes_of_a_read_stay_though_the_storage_is_frozen_meanwhile)
{
    enum { PART = SP_MIRROR_KEPT_BYTES }; /* a slab */
    own_memory o = own_memory_begin();
    const sp_storage storage = new_storage_on(o.device, (uint64_t)2 * PART, false);
    const sp_storage other = new_storage_on(o.device, PART, false);
    void *part;
    fill(o.stream, storage, 5);
    CHECK_OK(sp_storage_host_begin_range(range_of(storage, PART, PART), SP_READ, &part));
    CHECK_OK(sp_storage_freeze(storage));
    read_once(storage, 5);
    put_bytes(other, 0, PART, 6); /* by a mirror of that size */
    CHECK_EQ_INT(*(uint8_t *)part, 5);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_release(other));
    own_memory_end(&o);
}

/* ---- a wait that fails while its copy runs ---- */

enum { ATTEMPTS = 8 };

typedef struct failing_reader {
    own_memory o;
    sp_storage storage;
    sp_storage others[ATTEMPTS]; /* a fresh one each time: an access to it waits for nothing */
    uint32_t refused;
    sp_atomic_u32 is_done;
} failing_reader;

/* Pinned memory that another access gets is its own: no copy writes it. */
static void write_slowly(sp_storage storage)
{
    void *data = NULL;
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, &data));
    if (data == NULL) return;
    memset(data, 6, LARGE);
    sp_clock_sleep(60 * MILLISECOND);
    const unsigned char *bytes = data;
    CHECK(bytes[0] == 6 && memcmp(bytes, bytes + 1, LARGE - 1) == 0);
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
}

/* To wait, a host function needs another thread of the executor, which is an allocation. */
static void read_until_granted(void *ctx, sp_status status)
{
    failing_reader *self = ctx;
    CHECK_OK(status);
    for (uint32_t i = 0; i < ATTEMPTS; i++) {
        void *data;
        sp_heap_fail_after(i / 2); /* what a failed attempt allocated may be there the next time */
        const sp_status began = sp_storage_host_begin(self->storage, SP_READ, &data);
        sp_heap_fail_after(UINT64_MAX);
        if (began == SP_OK) {
            CHECK_OK(sp_storage_host_end(self->storage, SP_READ));
            continue;
        }
        CHECK_EQ_INT(began, SP_OUT_OF_MEMORY);
        self->refused++;
        write_slowly(self->others[i]);
    }
    raise_by_one(&self->is_done);
}

TEST(memory_that_a_copy_writes_is_not_reused_when_the_wait_for_it_fails)
{
    failing_reader self = {.o = own_memory_begin()};
    self.storage = new_storage_on(self.o.device, LARGE, false);
    for (int i = 0; i < ATTEMPTS; i++) self.others[i] = new_storage_on(self.o.device, LARGE, false);
    fill(self.o.stream, self.storage, 5);
    read_once(self.storage, 5); /* queue and memory are there from now on */
    sp__null_set_latency(self.o.dev, 20 * MILLISECOND);
    CHECK_OK(sp_stream_host_function(self.o.stream, read_until_granted, &self));
    await_at_least(&self.is_done, 1);
    CHECK(self.refused > 0);
    CHECK_OK(sp_storage_release(self.storage));
    for (int i = 0; i < ATTEMPTS; i++) CHECK_OK(sp_storage_release(self.others[i]));
    own_memory_end(&self.o);
}

/* ---- more copies than a queue or the device takes ---- */

enum { MANY = 400 };

static void write_many(const own_memory *o, sp_storage *storages)
{
    for (int i = 0; i < MANY; i++) storages[i] = new_storage_on(o->device, 64, false);
    for (int i = 0; i < MANY; i++) put_bytes(storages[i], 0, 64, i);
    for (int i = 0; i < MANY; i++) CHECK_EQ_INT(first_other(storages[i], (uint8_t)i), -1);
    for (int i = 0; i < MANY; i++) CHECK_OK(sp_storage_release(storages[i]));
}

/* A program cannot write again what the end of an access refuses. */
TEST(ends_of_writes_wait_for_room_in_the_queue)
{
    sp_storage storages[MANY];
    runtime_begin();
    const sp_null_options options = {.queue_bytes = 32768};
    own_memory o = {.device = open_own_memory_with(options)};
    o.dev = rt_device(o.device)->dev;
    o.stream = new_stream_on(o.device);
    sp__null_set_latency(o.dev, MILLISECOND);
    write_many(&o, storages);
    own_memory_end(&o);
}

/* What is behind the access cannot run before it has ended. */
TEST(ends_of_writes_need_no_room_among_what_is_in_flight)
{
    runtime_begin();
    const sp_null_options options = {.max_in_flight = 4};
    own_memory o = {.device = open_own_memory_with(options)};
    o.dev = rt_device(o.device)->dev;
    o.stream = new_stream_on(o.device);
    const sp_storage storage = new_storage_on(o.device, 64, false);
    const uint8_t value = 9;
    void *data = NULL;
    CHECK_OK(sp_storage_host_begin(storage, SP_WRITE, &data));
    const sp_storage_range last = range_of(storage, 63, 1);
    while (sp_storage_fill_async(o.stream, last, &value, 1) == SP_OK) {
    }
    CHECK_MESSAGE("in flight");
    if (data != NULL) memset(data, 7, 64);
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE));
    CHECK_OK(sp_stream_synchronize(o.stream));
    CHECK_EQ_INT(first_other(storage, 7), 63);
    CHECK_OK(sp_storage_release(storage));
    own_memory_end(&o);
}

/* ---- always an access that waits ---- */

typedef struct relay {
    own_memory o;
    sp_storage storage;
    sp_atomic_u32 left; /* threads that have ended all of their accesses */
} relay;

static uint32_t accesses_of(sp_storage handle)
{
    sp_rt_storage *storage = sp__storage_peek(handle);
    uint32_t count = 0;
    if (!sp__storage_lock(storage, handle)) return 0;
    for (const sp_host_ticket *at = storage->tickets; at != NULL; at = at->next) count++;
    sp_mutex_unlock(&storage->lock);
    return count;
}

/* Ends each access once the other thread waits for its own. */
static void access_in_turn(void *arg, uint32_t index)
{
    relay *self = arg;
    const sp_access access = index == 0 ? SP_READ : SP_WRITE;
    for (int i = 0; i < ROUNDS; i++) {
        sp_backoff backoff = {0};
        void *data;
        CHECK_OK(sp_storage_host_begin(self->storage, access, &data));
        while (accesses_of(self->storage) < 2 && sp_load_acquire(&self->left) == 0) {
            sp_backoff_turn(&backoff);
        }
        CHECK_OK(sp_storage_host_end(self->storage, access));
    }
    raise_by_one(&self->left);
}

TEST(mirrors_of_ended_reads_are_freed_though_an_access_waits)
{
    relay self = {.o = own_memory_begin()};
    self.storage = new_storage_on(self.o.device, LARGE, false);
    fill(self.o.stream, self.storage, 5);
    test_threads(2, access_in_turn, &self);
    CHECK(mirrors_in_use(&self.o) <= 4);
    CHECK_OK(sp_storage_release(self.storage));
    own_memory_end(&self.o);
}

TEST_MAIN
