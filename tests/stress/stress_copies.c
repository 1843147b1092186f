/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between devices by many threads: in chains that nobody waits for, and between storages
 * that all threads use. */
#include "stress.h"
#include "support/own_memory.h"

enum { MOST_DEVICES = 4, THREADS = 8 };

typedef struct world {
    sp_device devices[MOST_DEVICES];
    uint32_t count;
} world;

static world world_begin(void)
{
    runtime_begin();
    world w = {.devices = {CPU, TESTED}};
    sp_device second;
    if (TESTED.bits == CPU.bits) {
        w.devices[1] = open_null();
        w.devices[2] = open_own_memory(false);
        w.devices[3] = open_own_memory(false);
        w.count = 4;
        return w;
    }
    w.count = 2;
    if (sp_device_open("cuda:1", &second) == SP_OK) w.devices[w.count++] = second;
    return w;
}

/* The calling thread's stream of one of the two devices. */
static sp_stream stream_of_either(const world *w, uint32_t to, uint32_t from, uint64_t *random)
{
    sp_stream stream;
    CHECK_OK(sp_stream_current(w->devices[random_next(random) % 2 == 0 ? to : from], &stream));
    return stream;
}

static sp_stream stream_on(const world *w, uint32_t device)
{
    sp_stream stream;
    CHECK_OK(sp_stream_current(w->devices[device], &stream));
    return stream;
}

/* Every byte of the storage is equal; which one. */
static int even_byte(sp_storage storage, uint64_t bytes)
{
    const uint8_t *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, (void **)&data));
    uint64_t i = 1;
    while (i < bytes && data[i] == data[0]) i++;
    const int value = i == bytes ? data[0] : -1;
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    return value;
}

/* ---- chains ---- */

typedef struct chains {
    world w;
    uint32_t rounds;
    sp_atomic_u32 wrong;
    overlap calls;
} chains;

static void run_chain(chains *self, uint64_t *random, uint8_t value)
{
    const uint64_t bytes =
        1 + random_next(random) % (random_next(random) % 8 == 0 ? 5000000 : 9000);
    uint32_t at = random_next(random) % self->w.count;
    sp_storage storage = new_storage_on(self->w.devices[at], bytes, false);
    fill(stream_on(&self->w, at), storage, value);
    for (uint32_t links = 1 + random_next(random) % 6; links > 0; links--) {
        const uint32_t to = random_next(random) % self->w.count;
        const sp_storage next = new_storage_on(self->w.devices[to], bytes, false);
        copy(stream_of_either(&self->w, to, at, random), next, storage);
        CHECK_OK(sp_storage_release(storage)); /* the copy has yet to read it */
        storage = next;
        at = to;
    }
    if (even_byte(storage, bytes) != value) raise_by_one(&self->wrong);
    CHECK_OK(sp_storage_release(storage));
}

static void run_chains(void *arg, uint32_t index)
{
    chains *self = arg;
    uint64_t random = random_seed(index);
    overlap_enter(&self->calls);
    overlap_meet(&self->calls);
    for (uint32_t i = 0; i < self->rounds; i++) {
        run_chain(self, &random, (uint8_t)(index * 31 + i));
    }
    overlap_leave(&self->calls);
}

TEST(a_value_goes_from_device_to_device)
{
    chains self = {.w = world_begin(), .rounds = (uint32_t)test_count(3000, 25)};
    test_threads(THREADS, run_chains, &self);
    CHECK_EQ_U64(sp_load_relaxed(&self.wrong), 0);
    check_overlap(&self.calls, 2);
    runtime_end();
}

/* ---- shared storages ---- */

enum { SHELVES = 6 };
#define SHELF_BYTES ((uint64_t)(2 << 20) + 4096) /* two pieces of a copy through pinned memory */

typedef struct shelves {
    world w;
    sp_storage storages[SHELVES];
    uint32_t places[SHELVES]; /* the device of each */
    uint32_t rounds;
    sp_atomic_u32 mixed;
} shelves;

static void move_between_shelves(void *arg, uint32_t index)
{
    shelves *self = arg;
    uint64_t random = random_seed(index);
    for (uint32_t i = 0; i < self->rounds; i++) {
        const uint32_t to = random_next(&random) % SHELVES;
        const uint32_t from = random_next(&random) % SHELVES;
        const uint32_t what = random_next(&random) % 8;
        if (what == 0) {
            if (even_byte(self->storages[from], SHELF_BYTES) < 0) raise_by_one(&self->mixed);
        } else if (what < 3) {
            fill(stream_on(&self->w, self->places[to]), self->storages[to], (uint8_t)i);
        } else {
            copy(stream_of_either(&self->w, self->places[to], self->places[from], &random),
                 self->storages[to], self->storages[from]);
        }
    }
}

TEST(threads_copy_between_storages_of_all_devices_in_any_direction)
{
    shelves self = {.w = world_begin(), .rounds = (uint32_t)test_count(4000, 40)};
    for (uint32_t i = 0; i < SHELVES; i++) {
        self.places[i] = i % self.w.count;
        self.storages[i] = new_storage_on(self.w.devices[self.places[i]], SHELF_BYTES, false);
        fill(stream_on(&self.w, self.places[i]), self.storages[i], (uint8_t)i);
    }
    test_threads(THREADS, move_between_shelves, &self);
    for (uint32_t i = 0; i < SHELVES; i++) {
        CHECK(even_byte(self.storages[i], SHELF_BYTES) >= 0);
        CHECK_OK(sp_storage_release(self.storages[i]));
    }
    CHECK_EQ_U64(sp_load_relaxed(&self.mixed), 0);
    runtime_end();
}

TEST_MAIN
