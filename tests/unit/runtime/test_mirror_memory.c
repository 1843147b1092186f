/* SPDX-License-Identifier: Apache-2.0 */
/* How much pinned memory mirrors take, and how long. */
#include "own_memory_fixture.h"
#include "runtime/mirror.h"

static void read_once(sp_storage storage, uint8_t value)
{
    void *data = NULL;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    CHECK(data != NULL && *(uint8_t *)data == value);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
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

TEST_MAIN
