/* SPDX-License-Identifier: Apache-2.0 */
/* Public command lists: effects, hazard tracking, refusals. */
#include "runtime_fixture.h"

#include <streampool/check.h>
#include <streampool/command_list.h>

#include "base/heap.h"
#include "device/null/null.h"

static const uint32_t one = 1;

static sp_storage words(uint32_t count)
{
    return new_storage(count * sizeof(uint32_t));
}

static sp_storage_range part(sp_storage storage, uint32_t first, uint32_t count)
{
    return (sp_storage_range){storage, first * sizeof(uint32_t), count * sizeof(uint32_t)};
}

static uint32_t word_at(sp_storage storage, uint32_t index)
{
    void *data = NULL;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    const uint32_t value = data != NULL ? ((const uint32_t *)data)[index] : 0;
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    return value;
}

TEST(a_list_does_its_commands_in_order_each_time_it_is_submitted)
{
    runtime_begin();
    sp_command_list list;
    const sp_stream stream = current_stream();
    sp_storage a = words(8);
    sp_storage b = words(8);
    const uint32_t seven = 7;
    const uint32_t eight = 8;
    CHECK_OK(sp_command_list_create(CPU, &list));
    CHECK_OK(sp_command_list_fill(list, part(a, 0, 8), &seven, 4));
    CHECK_OK(sp_command_list_copy(list, part(b, 4, 4), part(a, 0, 4)));
    CHECK_OK(sp_command_list_fill(list, part(a, 0, 1), &eight, 4));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(sp_storage_fill_async(stream, part(b, 0, 8), &eight, 4));
        CHECK_OK(sp_stream_submit_list(stream, list));
        CHECK_EQ_U64(word_at(a, 0), 8);
        CHECK_EQ_U64(word_at(a, 1), 7);
        CHECK_EQ_U64(word_at(b, 0), 8);
        CHECK_EQ_U64(word_at(b, 4), 7);
    }
    CHECK_STATUS(sp_command_list_fill(list, part(a, 0, 8), &seven, 4), SP_INVALID);
    CHECK_MESSAGE("closed");
    CHECK_OK(sp_command_list_release(list));
    CHECK_STATUS(sp_command_list_release(list), SP_INVALID);
    CHECK_STATUS(sp_stream_submit_list(stream, list), SP_INVALID);
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    runtime_end();
}

TEST(a_list_is_one_command_to_hazards)
{
    runtime_begin();
    const sp_stream streams[2] = {new_stream(), new_stream()};
    sp_command_list list;
    sp_storage a = words(1024);
    sp_storage b = words(1024);
    CHECK_OK(sp_command_list_create(CPU, &list));
    CHECK_OK(sp_command_list_copy(list, part(b, 0, 1024), part(a, 0, 1024)));
    for (uint32_t i = 0; i < test_count(20000, 1000); i++) {
        CHECK_OK(sp_storage_fill_async(streams[i % 2], part(a, 0, 1024), &i, 4));
        CHECK_OK(sp_stream_submit_list(streams[(i + 1) % 2], list));
        if (i % 16 == 0) REQUIRE_EQ_U64(word_at(b, 1023), i);
    }
    CHECK_OK(sp_command_list_release(list)); /* may still be queued */
    CHECK_OK(sp_device_synchronize(CPU));
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_storage_release(b));
    CHECK_OK(sp_stream_release(streams[0]));
    CHECK_OK(sp_stream_release(streams[1]));
    runtime_end();
}

/* Eight words on a null device, poisoned by a failed command. */
typedef struct spoilt {
    sp_device device;
    sp_stream stream;
    sp_storage words;
} spoilt;

static spoilt spoilt_open(void)
{
    spoilt s = {.device = open_null()};
    CHECK_OK(sp_stream_current(s.device, &s.stream));
    s.words = new_storage_on(s.device, 32, false);
    sp__null_fail_command(rt_device(s.device)->dev, 0);
    fill(s.stream, s.words, 1);
    return s;
}

static void spoilt_close(const spoilt *s)
{
    CHECK_OK(sp_storage_release(s->words));
    CHECK_OK(sp_device_close(s->device));
}

static sp_status read_spoilt(const spoilt *s)
{
    void *data;
    SP_TRY(sp_storage_host_begin(s->words, SP_READ, &data));
    return sp_storage_host_end(s->words, SP_READ);
}

TEST(only_a_list_that_writes_all_of_a_poisoned_storage_makes_it_good)
{
    runtime_begin();
    const spoilt s = spoilt_open();
    sp_command_list part_of_it;
    sp_command_list all_of_it;
    CHECK_OK(sp_command_list_create(s.device, &part_of_it));
    CHECK_OK(sp_command_list_fill(part_of_it, part(s.words, 0, 4), &one, 4));
    CHECK_OK(sp_command_list_create(s.device, &all_of_it));
    CHECK_OK(sp_command_list_fill(all_of_it, part(s.words, 0, 8), &one, 4));
    CHECK_STATUS(read_spoilt(&s), SP_FAILED);
    CHECK_OK(sp_stream_submit_list(s.stream, part_of_it));
    CHECK_STATUS(read_spoilt(&s), SP_FAILED);
    CHECK_OK(sp_stream_submit_list(s.stream, all_of_it));
    CHECK_OK(read_spoilt(&s));
    CHECK_OK(sp_command_list_release(part_of_it));
    CHECK_OK(sp_command_list_release(all_of_it));
    spoilt_close(&s);
    runtime_end();
}

/* A list that fills the first `before` words of `words`, copies all of them to `to`, and fills the
 * first `after`. */
static sp_command_list list_around_a_read(const spoilt *s, sp_storage to, uint32_t before,
                                          uint32_t after)
{
    sp_command_list list;
    CHECK_OK(sp_command_list_create(s->device, &list));
    if (before > 0) CHECK_OK(sp_command_list_fill(list, part(s->words, 0, before), &one, 4));
    CHECK_OK(sp_command_list_copy(list, part(to, 0, 8), part(s->words, 0, 8)));
    if (after > 0) CHECK_OK(sp_command_list_fill(list, part(s->words, 0, after), &one, 4));
    return list;
}

TEST(a_list_that_overwrites_all_of_a_poisoned_storage_before_it_reads_it_makes_it_good)
{
    runtime_begin();
    const spoilt s = spoilt_open();
    const sp_storage to = new_storage_on(s.device, 32, false);
    sp_command_list lists[4] = {
        list_around_a_read(&s, to, 0, 8), /* the read comes first */
        list_around_a_read(&s, to, 4, 0), /* some poisoned words would be read */
        list_around_a_read(&s, to, 4, 8),
        list_around_a_read(&s, to, 8, 4),
    };
    CHECK_STATUS(sp_stream_synchronize(s.stream), SP_FAILED);
    sp_command_list onto_itself;
    CHECK_OK(sp_command_list_create(s.device, &onto_itself));
    CHECK_OK(sp_command_list_copy(onto_itself, part(s.words, 0, 8), part(s.words, 0, 8)));
    CHECK_OK(sp_stream_submit_list(s.stream, onto_itself));
    CHECK_STATUS(sp_stream_synchronize(s.stream), SP_FAILED);
    CHECK_OK(sp_command_list_release(onto_itself));
    for (int i = 0; i < 4; i++) {
        const sp_status status = i < 3 ? SP_FAILED : SP_OK;
        CHECK_OK(sp_stream_submit_list(s.stream, lists[i]));
        CHECK_STATUS(sp_stream_synchronize(s.stream), status);
        CHECK_STATUS(read_spoilt(&s), status);
        CHECK_OK(sp_command_list_release(lists[i]));
    }
    CHECK_EQ_U64(word_at(to, 7), 1);
    CHECK_OK(sp_storage_release(to));
    spoilt_close(&s);
    runtime_end();
}

TEST(parts_that_a_list_writes_before_all_of_a_storage_do_not_matter)
{
    runtime_begin();
    const spoilt s = spoilt_open();
    const sp_storage to = new_storage_on(s.device, 32, false);
    sp_command_list list;
    CHECK_OK(sp_command_list_create(s.device, &list));
    CHECK_OK(sp_command_list_fill(list, part(s.words, 0, 4), &one, 4));
    CHECK_OK(sp_command_list_fill(list, part(s.words, 0, 8), &one, 4));
    CHECK_OK(sp_command_list_copy(list, part(to, 0, 8), part(s.words, 0, 8)));
    CHECK_STATUS(sp_stream_synchronize(s.stream), SP_FAILED);
    CHECK_OK(sp_stream_submit_list(s.stream, list));
    CHECK_OK(sp_stream_synchronize(s.stream));
    CHECK_OK(read_spoilt(&s));
    CHECK_EQ_U64(word_at(to, 7), 1);
    CHECK_OK(sp_command_list_release(list));
    CHECK_OK(sp_storage_release(to));
    spoilt_close(&s);
    runtime_end();
}

TEST(a_list_with_a_scratch_recovers_from_a_failure_at_its_next_submission)
{
    runtime_begin();
    const spoilt s = spoilt_open();
    const sp_storage scratch = new_storage_on(s.device, 32, false);
    const sp_storage to = new_storage_on(s.device, 32, false);
    sp_command_list list;
    fill(s.stream, s.words, 5); /* no longer poisoned */
    CHECK_STATUS(sp_stream_synchronize(s.stream), SP_FAILED);
    CHECK_OK(sp_command_list_create(s.device, &list));
    CHECK_OK(sp_command_list_copy(list, part(scratch, 0, 8), part(s.words, 0, 8)));
    CHECK_OK(sp_command_list_copy(list, part(to, 0, 8), part(scratch, 0, 8)));
    for (uint64_t at = 0; at < 2; at++) { /* the index of the failing command */
        sp__null_fail_command(rt_device(s.device)->dev, at);
        CHECK_OK(sp_stream_submit_list(s.stream, list));
        CHECK_STATUS(sp_stream_synchronize(s.stream), SP_FAILED);
        void *data;
        CHECK_STATUS(sp_storage_host_begin(scratch, SP_READ, &data), SP_FAILED);
        CHECK_STATUS(sp_storage_host_begin(to, SP_READ, &data), SP_FAILED);
        CHECK_OK(sp_stream_submit_list(s.stream, list));
        CHECK_OK(sp_stream_synchronize(s.stream));
        CHECK_EQ_INT(first_other(scratch, 5), -1);
        CHECK_EQ_INT(first_other(to, 5), -1);
    }
    CHECK_OK(sp_command_list_release(list));
    CHECK_OK(sp_storage_release(scratch));
    CHECK_OK(sp_storage_release(to));
    spoilt_close(&s);
    runtime_end();
}

TEST(a_refused_command_changes_nothing_of_what_a_list_does)
{
    runtime_begin();
    const spoilt s = spoilt_open();
    sp_command_list list;
    CHECK_OK(sp_command_list_create(s.device, &list));
    CHECK_OK(sp_command_list_fill(list, part(s.words, 0, 4), &one, 4));
    /* All of it would be written, but the source is out of range. */
    CHECK_STATUS(sp_command_list_copy(list, part(s.words, 0, 8), part(s.words, 8, 8)), SP_INVALID);
    CHECK_STATUS(read_spoilt(&s), SP_FAILED);
    CHECK_OK(sp_stream_submit_list(s.stream, list));
    CHECK_STATUS(read_spoilt(&s), SP_FAILED);
    CHECK_OK(sp_command_list_release(list));
    spoilt_close(&s);
    runtime_end();
}

typedef struct shared_pair {
    sp_stream stream;
    sp_storage pair;
    sp_command_list lists[8];
} shared_pair;

/* Writes its number into both words; it must never be mixed with another thread's pair. */
static void submit_pairs(void *arg, uint32_t index)
{
    const shared_pair *shared = arg;
    for (uint64_t i = 0; i < test_count(20000, 500); i++) {
        sp_status status;
        while ((status = sp_stream_submit_list(shared->stream, shared->lists[index])) == SP_BUSY) {
            CHECK_OK(sp_stream_synchronize(shared->stream)); /* full: eight submit, one executes */
        }
        CHECK_OK(status);
    }
}

TEST(lists_of_threads_that_share_a_stream_stay_whole)
{
    runtime_begin();
    shared_pair shared;
    CHECK_OK(sp_stream_from_pool(CPU, &shared.stream));
    shared.pair = words(2);
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_OK(sp_command_list_create(CPU, &shared.lists[i]));
        CHECK_OK(sp_command_list_fill(shared.lists[i], part(shared.pair, 0, 1), &i, 4));
        CHECK_OK(sp_command_list_fill(shared.lists[i], part(shared.pair, 1, 1), &i, 4));
    }
    test_threads(8, submit_pairs, &shared);
    CHECK_EQ_U64(word_at(shared.pair, 0), word_at(shared.pair, 1));
    for (uint32_t i = 0; i < 8; i++) CHECK_OK(sp_command_list_release(shared.lists[i]));
    CHECK_OK(sp_storage_release(shared.pair));
    CHECK_OK(sp_stream_release(shared.stream));
    runtime_end();
}

TEST(bad_commands_are_refused_and_leave_the_list_as_it_was)
{
    runtime_begin();
    sp_command_list list;
    sp_storage foreign;
    sp_storage a = words(8);
    const sp_stream stream = current_stream();
    const sp_device other = open_null();
    CHECK_OK(sp_storage_create(other, 32, NULL, &foreign));
    CHECK_OK(sp_command_list_create(CPU, &list));
    CHECK_STATUS(sp_command_list_copy(list, part(a, 0, 1), part(a, 1, 2)), SP_MISMATCH);
    CHECK_STATUS(sp_command_list_copy(list, part(a, 0, 1), part(a, 8, 1)), SP_INVALID);
    CHECK_STATUS(sp_command_list_fill(list, part(a, 0, 8), &one, 3), SP_INVALID);
    CHECK_STATUS(sp_command_list_fill(list, part(a, 0, 8), NULL, 4), SP_INVALID);
    CHECK_STATUS(sp_command_list_fill(list, part(foreign, 0, 8), &one, 4), SP_INVALID);
    CHECK_STATUS(sp_command_list_copy(list, part(foreign, 0, 1), part(a, 0, 1)), SP_INVALID);
    CHECK_STATUS(sp_command_list_copy(list, part(a, 0, 1), part(foreign, 0, 1)), SP_INVALID);
    CHECK_MESSAGE("another device");
    CHECK_STATUS(sp_command_list_fill((sp_command_list){0}, part(a, 0, 8), &one, 4), SP_INVALID);
    CHECK_STATUS(sp_command_list_create(CPU, NULL), SP_INVALID);
    CHECK_OK(sp_stream_submit_list(stream, list)); /* empty */
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_command_list_release(list));
    CHECK_OK(sp_storage_release(foreign));
    CHECK_OK(sp_device_close(other));
    runtime_end();
}

TEST(a_list_that_a_foreign_stream_refused_works_on_its_own_device)
{
    runtime_begin();
    sp_stream foreign;
    sp_command_list list;
    sp_storage a = words(8);
    const uint32_t two = 2;
    const sp_stream stream = current_stream();
    const sp_device null = open_null();
    CHECK_OK(sp_stream_default(null, &foreign));
    CHECK_OK(sp_command_list_create(CPU, &list));
    CHECK_OK(sp_command_list_fill(list, part(a, 0, 8), &one, 4));
    CHECK_STATUS(sp_stream_submit_list(foreign, list), SP_INVALID);
    CHECK_MESSAGE("another device");
    CHECK_OK(sp_command_list_fill(list, part(a, 0, 4), &two, 4)); /* it is still open */
    CHECK_OK(sp_stream_submit_list(stream, list));
    CHECK_EQ_U64(word_at(a, 3), 2);
    CHECK_EQ_U64(word_at(a, 4), 1);
    CHECK_STATUS(sp_stream_submit_list(foreign, list), SP_INVALID); /* closed now */
    CHECK_OK(sp_stream_submit_list(stream, list));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_command_list_release(list));
    CHECK_OK(sp_storage_release(a));
    CHECK_OK(sp_device_close(null));
    runtime_end();
}

TEST(absurd_ranges_are_refused_and_leave_the_list_as_it_was)
{
    runtime_begin();
    sp_command_list list;
    sp_storage a = words(8);
    const uint8_t seven = 7;
    static const sp_storage_range absurd[] = {
        {.offset = 0, .bytes = UINT64_MAX},          {.offset = 1, .bytes = UINT64_MAX},
        {.offset = UINT64_MAX, .bytes = 0},          {.offset = UINT64_MAX, .bytes = 1},
        {.offset = UINT64_MAX, .bytes = UINT64_MAX}, {.offset = 33, .bytes = 0}};
    const sp_stream stream = current_stream();
    CHECK_OK(sp_command_list_create(CPU, &list));
    CHECK_OK(sp_command_list_fill(list, (sp_storage_range){a, 0, 32}, &seven, 1));
    CHECK_OK(sp_command_list_fill(list, (sp_storage_range){a, 32, 0}, &seven, 1));
    CHECK_OK(sp_command_list_copy(list, (sp_storage_range){a, 32, 0}, (sp_storage_range){a, 0, 0}));
    for (size_t i = 0; i < SP_COUNT_OF(absurd); i++) {
        const sp_storage_range bad = {a, absurd[i].offset, absurd[i].bytes};
        const sp_storage_range same_size = {a, 0, absurd[i].bytes};
        CHECK_STATUS(sp_command_list_fill(list, bad, &seven, 1), SP_INVALID);
        CHECK_STATUS(sp_command_list_copy(list, bad, same_size), SP_INVALID);
        CHECK_STATUS(sp_command_list_copy(list, same_size, bad), SP_INVALID);
    }
    CHECK_OK(sp_stream_submit_list(stream, list));
    CHECK_EQ_U64(word_at(a, 0), 0x07070707);
    CHECK_EQ_U64(word_at(a, 7), 0x07070707);
    CHECK_OK(sp_command_list_release(list));
    CHECK_OK(sp_storage_release(a));
    runtime_end();
}

TEST(a_list_whose_storage_is_gone_is_refused)
{
    runtime_begin();
    sp_command_list list;
    sp_storage a = words(8);
    const sp_stream stream = current_stream();
    CHECK_OK(sp_command_list_create(CPU, &list));
    CHECK_OK(sp_command_list_fill(list, part(a, 0, 8), &one, 4));
    CHECK_OK(sp_storage_release(a));
    CHECK_STATUS(sp_stream_submit_list(stream, list), SP_INVALID);
    CHECK_MESSAGE("stale");
    CHECK_OK(sp_command_list_release(list));
    runtime_end();
}

TEST(every_allocation_of_a_list_may_fail)
{
    runtime_begin();
    sp_storage a = words(8);
    const sp_stream stream = current_stream();
    bool is_done = false;
    for (uint64_t skip = 0; !is_done; skip++) {
        sp_command_list list = {0};
        sp_heap_fail_after(skip);
        sp_status status = sp_command_list_create(CPU, &list);
        for (int i = 0; i < 20 && status == SP_OK; i++) {
            status = sp_command_list_fill(list, part(a, 0, 8), &one, 4);
        }
        if (status == SP_OK) status = sp_stream_submit_list(stream, list);
        is_done = !sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        /* The checker, if on, works without the memory of its reports. */
        if (!is_done && !sp_check_is_on()) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        CHECK_OK(sp_command_list_release(list));
    }
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_storage_release(a));
    runtime_end();
}

TEST(a_list_uses_so_many_storages_and_no_more)
{
    runtime_begin();
    sp_command_list list;
    sp_storage all[SP_COMMAND_LIST_STORAGES + 1];
    const sp_stream stream = current_stream();
    CHECK_OK(sp_command_list_create(CPU, &list));
    for (uint32_t i = 0; i <= SP_COMMAND_LIST_STORAGES; i++) {
        all[i] = words(4);
        CHECK_STATUS(sp_command_list_fill(list, part(all[i], 0, 4), &i, 4),
                     i < SP_COMMAND_LIST_STORAGES ? SP_OK : SP_EXHAUSTED);
    }
    CHECK_OK(sp_stream_submit_list(stream, list));
    for (uint32_t i = 0; i < SP_COMMAND_LIST_STORAGES; i++) CHECK_EQ_U64(word_at(all[i], 3), i);
    for (uint32_t i = 0; i <= SP_COMMAND_LIST_STORAGES; i++) CHECK_OK(sp_storage_release(all[i]));
    CHECK_OK(sp_command_list_release(list));
    runtime_end();
}

TEST_MAIN
