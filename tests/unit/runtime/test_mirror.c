/* SPDX-License-Identifier: Apache-2.0 */
/* Host accesses by mirrors: what is copied and when, which mirrors are kept, what happens when a
 * copy fails. */
#include "runtime/mirror.h"

#include "base/heap.h"
#include "device/wait.h"
#include "own_memory_fixture.h"

enum { BYTES = 4096, MANY = 8 };

static unsigned char *begin(sp_storage storage, sp_access access)
{
    static unsigned char nothing[BYTES]; /* the test goes on after a failed check */
    void *data = NULL;
    CHECK_OK(sp_storage_host_begin(storage, access, &data));
    return data != NULL ? data : nothing;
}

static void end(sp_storage storage, sp_access access)
{
    CHECK_OK(sp_storage_host_end(storage, access));
}

TEST(the_host_reads_what_commands_wrote_and_commands_what_the_host_wrote)
{
    own_memory o = own_memory_begin();
    const sp_storage a = new_storage_on(o.device, BYTES, false);
    const sp_storage b = new_storage_on(o.device, BYTES, false);
    for (int i = 0; i < 50; i++) {
        fill(o.stream, a, (uint8_t)i);
        CHECK_EQ_INT(first_other(a, (uint8_t)i), -1);
        unsigned char *data = begin(a, SP_READ_WRITE);
        CHECK_EQ_INT(data[BYTES - 1], i);
        CHECK(data != device_bytes(a));
        data[0] = 200;
        end(a, SP_READ_WRITE);
        copy(o.stream, b, a);
        data = begin(b, SP_READ);
        CHECK(data[0] == 200 && data[1] == i && data[BYTES - 1] == i);
        end(b, SP_READ);
    }
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    own_memory_end(&o);
}

TEST(of_a_range_nothing_else_is_written)
{
    own_memory o = own_memory_begin();
    const sp_storage storage = new_storage_on(o.device, BYTES, false);
    fill(o.stream, storage, 1);
    put_bytes(storage, 100, 50, 2);
    unsigned char *data = begin(storage, SP_READ);
    for (int i = 0; i < BYTES; i++) CHECK_EQ_INT(data[i], i >= 100 && i < 150 ? 2 : 1);
    end(storage, SP_READ);
    void *part;
    CHECK_OK(sp_storage_host_begin_range(range_of(storage, 149, 2), SP_READ, &part));
    CHECK(((unsigned char *)part)[0] == 2 && ((unsigned char *)part)[1] == 1);
    end(storage, SP_READ);
    CHECK_OK(sp_storage_host_begin_range(range_of(storage, 99, 3), SP_READ_WRITE, &part));
    CHECK(((unsigned char *)part)[0] == 1 && ((unsigned char *)part)[1] == 2);
    end(storage, SP_READ_WRITE);
    CHECK_OK(sp_storage_host_begin_range(range_of(storage, BYTES, 0), SP_WRITE, &part));
    end(storage, SP_WRITE);
    CHECK_STATUS(sp_storage_host_begin_range(range_of(storage, BYTES, 1), SP_READ, &part),
                 SP_INVALID);
    CHECK_MESSAGE("outside of a storage of 4096 bytes");
    CHECK_STATUS(sp_storage_host_begin_range(range_of(storage, 8, UINT64_MAX), SP_READ, &part),
                 SP_INVALID);
    CHECK_STATUS(sp_storage_host_begin_range(range_of(storage, 0, 1), SP_READ, NULL), SP_INVALID);
    CHECK_MESSAGE("sp_storage_host_begin_range");
    CHECK_OK(sp_storage_release(storage));
    own_memory_end(&o);
}

/* Memory that the host reaches. */
TEST(a_range_is_at_its_place_in_the_memory_itself)
{
    runtime_begin();
    unsigned char bytes[16];
    sp_storage storage;
    void *part;
    CHECK_OK(sp_storage_adopt(CPU, bytes, sizeof bytes, NULL, &storage));
    CHECK_OK(sp_storage_host_begin_range(range_of(storage, 5, 3), SP_WRITE, &part));
    CHECK(part == &bytes[5]);
    end(storage, SP_WRITE);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

/* A read that is served without a command. */
static void check_is_kept(const own_memory *o, sp_storage storage, int value)
{
    sp__null_fail_command(o->dev, 0);
    const unsigned char *data = begin(storage, SP_READ);
    CHECK_EQ_INT(data[0], value);
    end(storage, SP_READ);
    CHECK(!sp__null_has_failed_command(o->dev));
    sp__null_fail_command(o->dev, UINT64_MAX);
}

/* A read that copies, and fails here. */
static void check_is_copied(const own_memory *o, sp_storage storage)
{
    void *data = &data;
    sp__null_fail_command(o->dev, 0);
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ, &data), SP_FAILED);
    CHECK_MESSAGE("injected fault");
    CHECK(data == NULL);
    CHECK(sp__null_has_failed_command(o->dev));
    sp__null_fail_command(o->dev, UINT64_MAX);
    CHECK_STATUS(sp_storage_host_end(storage, SP_READ), SP_INVALID);
}

TEST(what_nothing_has_written_since_is_not_copied_again)
{
    own_memory o = own_memory_begin();
    const sp_storage storage = new_storage_on(o.device, BYTES, false);
    const sp_storage other = new_storage_on(o.device, BYTES, false);
    fill(o.stream, storage, 1);
    CHECK_OK(sp_stream_synchronize(o.stream));
    check_is_copied(&o, storage);
    CHECK_EQ_INT(first_other(storage, 1), -1);
    check_is_kept(&o, storage, 1);
    copy(o.stream, other, storage); /* reads only */
    CHECK_OK(sp_stream_synchronize(o.stream));
    check_is_kept(&o, storage, 1);
    fill(o.stream, storage, 2);
    CHECK_OK(sp_stream_synchronize(o.stream));
    check_is_copied(&o, storage);
    put_bytes(storage, 0, BYTES, 3);
    CHECK_EQ_INT(first_other(storage, 3), -1); /* waits for the copy */
    check_is_kept(&o, storage, 3);
    put_bytes(storage, 8, 8, 4); /* the mirror of a part, or all of the one before */
    CHECK_EQ_INT(first_other(storage, 3), 8);
    check_is_kept(&o, storage, 3);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_release(other));
    own_memory_end(&o);
}

TEST(a_mirror_is_kept_only_where_the_library_sees_all_writes)
{
    own_memory o = own_memory_begin();
    const sp_storage large = new_storage_on(o.device, SP_MIRROR_KEPT_BYTES + 1, false);
    const sp_storage untracked = new_storage_on(o.device, BYTES, true);
    const sp_storage foreign = new_storage_on(o.device, BYTES, false);
    const sp_storage all[3] = {large, untracked, foreign};
    for (int i = 0; i < 3; i++) {
        fill(o.stream, all[i], 1);
        CHECK_OK(sp_stream_synchronize(o.stream));
        CHECK_EQ_INT(first_other(all[i], 1), -1);
    }
    check_is_copied(&o, large);
    check_is_copied(&o, untracked);
    check_is_kept(&o, foreign, 1);
    CHECK_OK(sp_storage_record_all_streams(foreign));
    device_bytes(foreign)[0] = 9; /* code outside the library */
    CHECK_EQ_INT(first_other(foreign, 1), 0);
    for (int i = 0; i < 3; i++) CHECK_OK(sp_storage_release(all[i]));
    own_memory_end(&o);
}

TEST(a_frozen_storage_is_copied_once_and_all_reads_are_at_one_address)
{
    own_memory o = own_memory_begin();
    const sp_storage storage = new_storage_on(o.device, 2 * SP_MIRROR_KEPT_BYTES, false);
    fill(o.stream, storage, 6);
    CHECK_OK(sp_storage_freeze(storage));
    void *part;
    CHECK_OK(sp_storage_host_begin_range(range_of(storage, 10, 1), SP_READ, &part));
    const unsigned char *first = begin(storage, SP_READ);
    CHECK(part == first + 10);
    check_is_kept(&o, storage, 6);
    end(storage, SP_READ);
    end(storage, SP_READ);
    CHECK_EQ_INT(first[2 * SP_MIRROR_KEPT_BYTES - 1], 6);
    CHECK_OK(sp_storage_release(storage));
    own_memory_end(&o);
}

enum { OTHERS = 32 };

/* Writes to pinned memory that nothing uses: more than a slab has. */
static void write_others(const sp_storage *others)
{
    for (int i = 0; i < OTHERS; i++) memset(begin(others[i], SP_WRITE), 6, BYTES);
    for (int i = 0; i < OTHERS; i++) end(others[i], SP_WRITE);
}

/* An end does not say which of its thread's reads it ends. Of an untracked storage no mirror is
 * kept, so each read has its own. */
TEST(the_bytes_of_reads_stay_until_the_last_of_them_has_ended)
{
    own_memory o = own_memory_begin();
    const sp_storage storage = new_storage_on(o.device, BYTES, true);
    sp_storage others[OTHERS];
    void *parts[MANY];
    for (int i = 0; i < OTHERS; i++) others[i] = new_storage_on(o.device, BYTES, true);
    fill(o.stream, storage, 5);
    CHECK_OK(sp_stream_synchronize(o.stream));
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_OK(sp_storage_host_begin_range(range_of(storage, i, BYTES - i), SP_READ, &parts[i]));
    }
    for (int ended = 0; ended < MANY; ended++) {
        for (int i = 0; i < MANY; i++) CHECK_EQ_INT(*(unsigned char *)parts[i], 5);
        end(storage, SP_READ);
        write_others(others);
    }
    CHECK_OK(sp_storage_release(storage));
    for (int i = 0; i < OTHERS; i++) CHECK_OK(sp_storage_release(others[i]));
    own_memory_end(&o);
}

TEST(commands_submitted_during_a_write_follow_its_copy)
{
    own_memory o = own_memory_begin();
    const sp_storage from = new_storage_on(o.device, BYTES, false);
    const sp_storage to = new_storage_on(o.device, BYTES, false);
    sp__null_set_latency(o.dev, 2000000);
    for (int i = 1; i <= 10; i++) {
        unsigned char *data = begin(from, SP_WRITE);
        copy(o.stream, to, from); /* waits */
        memset(data, i, BYTES);
        end(from, SP_WRITE);
        CHECK_EQ_INT(first_other(to, (uint8_t)i), -1);
    }
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
    own_memory_end(&o);
}

TEST(a_released_storage_is_written_for_the_commands_that_read_it)
{
    own_memory o = own_memory_begin();
    const sp_storage to = new_storage_on(o.device, BYTES, false);
    const sp_storage from = new_storage_on(o.device, BYTES, false);
    memset(begin(from, SP_WRITE), 8, BYTES);
    copy(o.stream, to, from);
    CHECK_OK(sp_storage_release(from)); /* ends the access */
    CHECK_EQ_INT(first_other(to, 8), -1);
    CHECK_OK(sp_storage_release(to));
    own_memory_end(&o);
}

TEST(the_end_of_an_untracked_write_waits_for_the_copy)
{
    own_memory o = own_memory_begin();
    const sp_storage storage = new_storage_on(o.device, BYTES, true);
    sp__null_set_latency(o.dev, 5000000);
    for (int i = 1; i <= 5; i++) {
        put_bytes(storage, 0, BYTES, i);
        CHECK_EQ_INT(device_bytes(storage)[BYTES - 1], i);
    }
    CHECK_OK(sp_storage_release(storage));
    own_memory_end(&o);
}

TEST(a_copy_to_the_device_that_fails_poisons_until_all_is_overwritten)
{
    own_memory o = own_memory_begin();
    const sp_storage storage = new_storage_on(o.device, BYTES, false);
    const sp_storage other = new_storage_on(o.device, BYTES, false);
    void *data;
    fill(o.stream, storage, 1);
    CHECK_OK(sp_stream_synchronize(o.stream));
    begin(storage, SP_WRITE);
    sp__null_fail_command(o.dev, 0);
    CHECK_OK(sp_storage_host_end(storage, SP_WRITE)); /* it is not waited for */
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ, &data), SP_FAILED);
    CHECK_MESSAGE("injected fault");
    CHECK_STATUS(sp_storage_host_begin_range(range_of(storage, 0, 8), SP_WRITE, &data), SP_FAILED);
    copy(o.stream, other, storage);
    CHECK_STATUS(sp_stream_synchronize(o.stream), SP_FAILED);
    put_bytes(storage, 0, BYTES, 2);
    CHECK_EQ_INT(first_other(storage, 2), -1);
    put_bytes(other, 0, BYTES, 2);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_storage_release(other));
    own_memory_end(&o);
}

TEST(without_memory_an_access_begins_not_at_all)
{
    own_memory o = own_memory_begin();
    const sp_storage storage = new_storage_on(o.device, BYTES, false);
    fill(o.stream, storage, 1);
    CHECK_OK(sp_stream_synchronize(o.stream));
    uint32_t refused = 0;
    for (uint64_t skip = 0; skip < 40; skip++) {
        void *data;
        sp_heap_fail_after(skip);
        const sp_status status = sp_storage_host_begin(storage, SP_READ, &data);
        sp_heap_fail_after(UINT64_MAX);
        if (status == SP_OK) {
            CHECK_EQ_INT(*(unsigned char *)data, 1);
            end(storage, SP_READ);
            break;
        }
        refused++;
        CHECK_EQ_INT(status, SP_OUT_OF_MEMORY);
        CHECK_STATUS(sp_storage_host_end(storage, SP_READ), SP_INVALID);
        fill(o.stream, storage, 1); /* follows no access */
        CHECK_OK(sp_stream_synchronize(o.stream));
    }
    CHECK(refused > 0);
    CHECK_OK(sp_storage_release(storage));
    own_memory_end(&o);
}

TEST(an_end_after_the_shutdown_says_that_nothing_was_written)
{
    runtime_begin();
    const sp_device device = open_own_memory(false);
    const sp_storage storage = new_storage_on(device, BYTES, false);
    begin(storage, SP_WRITE);
    CHECK_OK(sp_shutdown());
    CHECK_STATUS(sp_storage_host_end(storage, SP_WRITE), SP_CLOSED);
    CHECK_STATUS(sp_storage_host_end(storage, SP_WRITE), SP_INVALID);
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

/* ---- threads ---- */

typedef struct shared_bytes {
    own_memory o;
    sp_storage storage;
    uint32_t rounds;
} shared_bytes;

/* All bytes of the storage are equal whenever nobody writes it. */
static void access_at_random(void *arg, uint32_t index)
{
    const shared_bytes *s = arg;
    const sp_stream stream = new_stream_on(s->o.device);
    uint32_t random = index * 2654435761u + 1;
    for (uint32_t i = 0; i < s->rounds; i++) {
        random = random * 1664525u + 1013904223u;
        const uint8_t value = (uint8_t)(random >> 16);
        switch (random >> 30) {
        case 0:
            fill(stream, s->storage, value);
            break;
        case 1:
            memset(begin(s->storage, SP_WRITE), value, BYTES);
            end(s->storage, SP_WRITE);
            break;
        case 2: {
            unsigned char *data = begin(s->storage, SP_READ_WRITE);
            CHECK(data[0] == data[BYTES / 2] && data[0] == data[BYTES - 1]);
            memset(data, value, BYTES);
            end(s->storage, SP_READ_WRITE);
            break;
        }
        default: {
            const uint64_t offset = (random >> 8) % BYTES;
            void *data;
            CHECK_OK(sp_storage_host_begin_range(range_of(s->storage, offset, BYTES - offset),
                                                 SP_READ, &data));
            const unsigned char *bytes = data;
            CHECK_EQ_INT(bytes[0], bytes[BYTES - offset - 1]);
            end(s->storage, SP_READ);
        }
        }
    }
    CHECK_OK(sp_stream_release(stream));
}

TEST(threads_see_whole_writes_only)
{
    shared_bytes s = {.o = own_memory_begin(), .rounds = (uint32_t)test_count(2000, 150)};
    s.storage = new_storage_on(s.o.device, BYTES, false);
    fill(s.o.stream, s.storage, 0);
    test_threads(8, access_at_random, &s);
    CHECK_OK(sp_storage_release(s.storage));
    own_memory_end(&s.o);
}

static void read_frozen(void *arg, uint32_t index)
{
    const shared_bytes *s = arg;
    (void)index;
    for (uint32_t i = 0; i < s->rounds; i++) {
        const unsigned char *data = begin(s->storage, SP_READ);
        CHECK(data[0] == 3 && data[BYTES - 1] == 3);
        end(s->storage, SP_READ);
    }
}

TEST(threads_share_the_mirror_of_a_frozen_storage)
{
    shared_bytes s = {.o = own_memory_begin(), .rounds = 5};
    for (uint64_t round = 0; round < test_count(300, 30); round++) {
        s.storage = new_storage_on(s.o.device, BYTES, false);
        fill(s.o.stream, s.storage, 3);
        CHECK_OK(sp_storage_freeze(s.storage));
        test_threads(4, read_frozen, &s);
        CHECK_OK(sp_storage_release(s.storage));
    }
    own_memory_end(&s.o);
}

TEST_MAIN
