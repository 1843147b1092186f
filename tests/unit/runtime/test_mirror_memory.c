/* SPDX-License-Identifier: Apache-2.0 */
/* How much pinned memory mirrors take, and how long. */
#include <streampool/tensor.h>

#include "base/backoff.h"
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
