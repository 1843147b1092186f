/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the host cannot reach, used by many threads at once: reads of any range, writes,
 * commands, frozen storages, releases in the midst of it, commands and copies that fail. All bytes
 * of a storage are equal whenever an access to it begins. */
#include "stress.h"

#include <streampool/tensor.h>

#include <string.h>

#include "device/null/null.h"
#include "support/own_memory.h"

enum { THREADS = 8, PLACES = 6, BYTES = 4096, DEVICES = 2 };

typedef struct mirrors {
    sp_device devices[DEVICES];
    uint32_t rounds;
    bool has_faults;
    /* Handles of storages, by device; any thread replaces one, and then releases the old one. */
    sp_atomic_u64 places[DEVICES][PLACES];
    sp_atomic_u64 done, refused;
} mirrors;

typedef struct mover {
    mirrors *self;
    uint64_t random;
    uint32_t device;
    sp_stream stream;
} mover;

static void note(mover *m, sp_status status)
{
    const bool is_known = status == SP_OK || status == SP_INVALID || status == SP_DEADLOCK ||
                          (status == SP_FAILED && m->self->has_faults);
    if (!is_known) CHECK_STATUS(status, SP_OK);
    sp_fetch_add_relaxed(status == SP_OK ? &m->self->done : &m->self->refused, (uint64_t)1);
}

static sp_storage any_storage(mover *m)
{
    return (sp_storage){
        sp_load_acquire(&m->self->places[m->device][random_next(&m->random) % PLACES])};
}

static sp_storage_range part_of(sp_storage storage, uint64_t offset, uint64_t bytes)
{
    return (sp_storage_range){.storage = storage, .offset = offset, .bytes = bytes};
}

static bool are_equal(const unsigned char *bytes, uint64_t count)
{
    return count == 0 || memcmp(bytes, bytes + 1, count - 1) == 0;
}

/* ---- moves ---- */

static void move_fill(mover *m)
{
    const uint8_t value = (uint8_t)random_next(&m->random);
    note(m, sp_storage_fill_async(m->stream, part_of(any_storage(m), 0, BYTES), &value, 1));
}

static void move_copy(mover *m)
{
    note(m, sp_storage_copy_async(m->stream, part_of(any_storage(m), 0, BYTES),
                                  part_of(any_storage(m), 0, BYTES)));
}

static void move_read(mover *m)
{
    const sp_storage storage = any_storage(m);
    const uint64_t offset = random_next(&m->random) % BYTES;
    const uint64_t bytes = random_next(&m->random) % (BYTES - offset + 1);
    void *data;
    if (sp_storage_retain(storage) != SP_OK) return; /* replaced meanwhile */
    const sp_status status =
        sp_storage_host_begin_range(part_of(storage, offset, bytes), SP_READ, &data);
    note(m, status);
    if (status == SP_OK) {
        CHECK(are_equal(data, bytes));
        CHECK_OK(sp_storage_host_end(storage, SP_READ));
    }
    CHECK_OK(sp_storage_release(storage));
}

static void move_write(mover *m)
{
    const sp_access access = random_next(&m->random) % 2 == 0 ? SP_WRITE : SP_READ_WRITE;
    const sp_storage storage = any_storage(m);
    void *data;
    if (sp_storage_retain(storage) != SP_OK) return;
    const sp_status status = sp_storage_host_begin(storage, access, &data);
    note(m, status);
    if (status == SP_OK) {
        CHECK(access == SP_WRITE || are_equal(data, BYTES));
        memset(data, (int)random_next(&m->random), BYTES);
        CHECK_OK(sp_storage_host_end(storage, access));
    }
    CHECK_OK(sp_storage_release(storage));
}

/* Reads that are all open at once, and end in any order. */
static void move_nest(mover *m)
{
    const sp_storage storage = any_storage(m);
    unsigned char *parts[3];
    uint32_t count = 0;
    if (sp_storage_retain(storage) != SP_OK) return;
    for (; count < 3; count++) {
        void *data;
        const uint64_t offset = random_next(&m->random) % (BYTES / 2);
        if (sp_storage_host_begin_range(part_of(storage, offset, BYTES / 2), SP_READ, &data) !=
            SP_OK)
            break;
        parts[count] = data;
    }
    while (count > 0) {
        for (uint32_t i = 0; i < count; i++) CHECK(are_equal(parts[i], BYTES / 2));
        CHECK_OK(sp_storage_host_end(storage, SP_READ));
        count--;
    }
    CHECK_OK(sp_storage_release(storage));
}

static void move_freeze(mover *m)
{
    if (random_next(&m->random) % 8 != 0) return;
    const sp_status status = sp_storage_freeze(any_storage(m));
    if (status != SP_BUSY) note(m, status);
}

static void move_replace(mover *m)
{
    const sp_storage fresh = new_storage_on(m->self->devices[m->device], BYTES, false);
    const uint8_t value = (uint8_t)random_next(&m->random);
    note(m, sp_storage_fill_async(m->stream, part_of(fresh, 0, BYTES), &value, 1));
    const uint64_t old = sp_exchange_acq_rel(
        &m->self->places[m->device][random_next(&m->random) % PLACES], fresh.bits);
    CHECK_OK(sp_storage_release((sp_storage){old}));
}

/* By a view of any part: such accesses are the library's own. */
static void move_tensor(mover *m)
{
    unsigned char bytes[BYTES];
    const sp_storage storage = any_storage(m);
    const bool is_whole = random_next(&m->random) % 4 == 0;
    const uint64_t offset = is_whole ? 0 : random_next(&m->random) % BYTES;
    const int64_t count =
        is_whole ? BYTES : 1 + (int64_t)(random_next(&m->random) % (BYTES - offset));
    sp_tensor tensor;
    if (sp_storage_retain(storage) != SP_OK) return;
    const sp_status status =
        sp_tensor_from_storage(storage, offset, SP_U8, 1, &count, NULL, &tensor);
    CHECK_OK(status);
    if (status == SP_OK) {
        const sp_status got = sp_tensor_read(tensor, bytes, (uint64_t)count);
        note(m, got);
        CHECK(got != SP_OK || are_equal(bytes, (uint64_t)count));
        memset(bytes, (int)random_next(&m->random), sizeof bytes);
        if (count == BYTES) note(m, sp_tensor_write(tensor, bytes, sizeof bytes));
        CHECK_OK(sp_tensor_release(tensor));
    }
    CHECK_OK(sp_storage_release(storage));
}

typedef struct host_read {
    sp_storage storage;
    mover m;
    sp_atomic_u32 is_done;
} host_read;

static void read_in_function(void *ctx, sp_status status)
{
    host_read *self = ctx;
    void *data;
    if (status == SP_OK) {
        const sp_status began = sp_storage_host_begin(self->storage, SP_READ, &data);
        note(&self->m, began);
        if (began == SP_OK) {
            CHECK(are_equal(data, BYTES));
            CHECK_OK(sp_storage_host_end(self->storage, SP_READ));
        }
    }
    raise_by_one(&self->is_done);
}

static void move_function(mover *m)
{
    host_read call = {.storage = any_storage(m), .m = *m};
    if (sp_storage_retain(call.storage) != SP_OK) return;
    CHECK_OK(sp_stream_host_function(m->stream, read_in_function, &call));
    await_at_least(&call.is_done, 1);
    CHECK_OK(sp_storage_release(call.storage));
}

/* ---- threads ---- */

static void move_about(void *arg, uint32_t index)
{
    static void (*const moves[])(mover *) = {move_fill,    move_copy,     move_read,   move_read,
                                             move_write,   move_write,    move_nest,   move_freeze,
                                             move_replace, move_function, move_tensor, move_tensor};
    mirrors *self = arg;
    mover m = {.self = self, .random = random_seed(index), .device = index % DEVICES};
    m.stream = new_stream_on(self->devices[m.device]);
    for (uint32_t i = 0; i < self->rounds; i++) {
        moves[random_next(&m.random) % SP_COUNT_OF(moves)](&m);
    }
    (void)sp_stream_synchronize(m.stream);
    CHECK_OK(sp_stream_release(m.stream));
}

static void mirrors_run(bool has_faults)
{
    runtime_begin();
    mirrors self = {.rounds = (uint32_t)test_count(20000, 400), .has_faults = has_faults};
    for (uint32_t d = 0; d < DEVICES; d++) {
        self.devices[d] = open_own_memory(false);
        const sp_stream stream = new_stream_on(self.devices[d]);
        for (uint32_t i = 0; i < PLACES; i++) {
            const sp_storage storage = new_storage_on(self.devices[d], BYTES, false);
            fill(stream, storage, 0);
            sp_store_release(&self.places[d][i], storage.bits);
        }
        CHECK_OK(sp_stream_release(stream));
        if (has_faults) sp__null_fail_randomly(rt_device(self.devices[d])->dev, 30, 7 + d);
    }
    test_threads(THREADS, move_about, &self);
    CHECK(sp_load_relaxed(&self.done) > 0);
    for (uint32_t d = 0; d < DEVICES; d++) {
        sp__null_fail_randomly(rt_device(self.devices[d])->dev, 0, 0);
        for (uint32_t i = 0; i < PLACES; i++) {
            CHECK_OK(sp_storage_release((sp_storage){sp_load_acquire(&self.places[d][i])}));
        }
        CHECK_OK(sp_device_close(self.devices[d]));
    }
    runtime_end();
}

TEST(every_access_finds_bytes_of_one_write)
{
    mirrors_run(false);
}

TEST(every_access_finds_bytes_of_one_write_or_says_why_not)
{
    mirrors_run(true);
}

TEST_MAIN
