/* SPDX-License-Identifier: Apache-2.0 */
/* Device conformance: command lists, recorded once and replayed from any thread. */
#include <string.h>

#include "base/heap.h"
#include "base/thread.h"
#include "device_fixture.h"

static sp_list *list_of(fixture *f, const sp_command *commands, uint32_t count, uint32_t slots)
{
    sp_list *list = NULL;
    CHECK_OK(f->device->vtable->list_create(f->device, commands, count, slots, &list));
    return list;
}

static sp_command command_list(sp_list *list, const sp_binding *slots, uint32_t count)
{
    return (sp_command){
        .type = SP_COMMAND_LIST, .list = list, .bindings = slots, .binding_count = count};
}

static sp_binding slot_words(uint16_t slot, uint32_t first, uint32_t count, sp_access access)
{
    return (sp_binding){
        .slot = slot, .offset = first * 4, .bytes = count * 4, .access = (uint8_t)access};
}

TEST(a_list_runs_on_whatever_its_slots_are)
{
    fixture f = fixture_open();
    const sp_binding add = slot_words(0, 2, 4, SP_READ_WRITE);
    const sp_binding copy[2] = {slot_words(1, 0, 8, SP_WRITE), slot_words(0, 0, 8, SP_READ)};
    const sp_command commands[2] = {command_dispatch(&kernel_add_one, 4, &add, 1, NULL, 0),
                                    command_copy(copy)};
    sp_list *list = list_of(&f, commands, 2, 2);
    for (int i = 0; i < 3; i++) {
        sp_memory a = fixture_words(&f, 16);
        sp_memory b = fixture_words(&f, 8);
        const sp_binding slots[2] = {bind_words(&a, 8, 8, SP_READ_WRITE),
                                     bind_words(&b, 0, 8, SP_WRITE)};
        const sp_command command = command_list(list, slots, 2);
        CHECK_OK(wait_point(submit(f.queues[i], &command, 1)));
        for (uint32_t w = 0; w < 8; w++) {
            CHECK_EQ_U64(words_of(&a)[w], 0);
            CHECK_EQ_U64(words_of(&b)[w], w >= 2 && w < 6);
        }
        fixture_free(&a);
        fixture_free(&b);
    }
    f.device->vtable->list_release(list);
    fixture_close(&f);
}

TEST(a_list_lives_until_its_last_replay_has_completed)
{
    fixture f = fixture_open();
    sp_memory words = fixture_words(&f, 1);
    const uint64_t ns = 2000000;
    const sp_binding binding = bind_words(&words, 0, 1, SP_READ_WRITE);
    const sp_command slow = command_dispatch(&kernel_slow, 1, &binding, 1, &ns, sizeof ns);
    sp_point point = {0};
    for (int i = 0; i < 10; i++) {
        sp_list *list = list_of(&f, &slow, 1, 0);
        const sp_command command = command_list(list, NULL, 0);
        point = submit(f.queues[0], &command, 1);
        f.device->vtable->list_release(list);
    }
    CHECK_OK(wait_point(point));
    CHECK_EQ_U64(words_of(&words)[0], 10);
    fixture_free(&words);
    fixture_close(&f);
}

typedef struct replay {
    fixture f;
    sp_list *list;
    sp_memory words;
    uint32_t rounds;
} replay;

static void replay_thread(void *arg, uint32_t index)
{
    replay *shared = arg;
    const sp_binding slot = bind_words(&shared->words, index * 16, 16, SP_READ_WRITE);
    const sp_command command = command_list(shared->list, &slot, 1);
    for (uint32_t i = 0; i < shared->rounds; i++) {
        CHECK_OK(wait_point(submit(shared->f.queues[index % FIXTURE_QUEUES], &command, 1)));
    }
}

TEST(one_list_replays_on_many_streams_at_once)
{
    enum { THREADS = 12 };
    replay shared = {.f = fixture_open(), .rounds = (uint32_t)test_count(20000, 500)};
    const sp_binding add = slot_words(0, 0, 16, SP_READ_WRITE);
    sp_command commands[3];
    for (int i = 0; i < 3; i++) {
        commands[i] = command_dispatch(&kernel_add_one, 16, &add, 1, NULL, 0);
    }
    shared.list = list_of(&shared.f, commands, 3, 1);
    shared.words = fixture_words(&shared.f, THREADS * 16);
    test_threads(THREADS, replay_thread, &shared);
    for (uint32_t i = 0; i < THREADS * 16; i++) {
        REQUIRE_EQ_U64(words_of(&shared.words)[i], 3 * shared.rounds);
    }
    shared.f.device->vtable->list_release(shared.list);
    fixture_free(&shared.words);
    fixture_close(&shared.f);
}

TEST(a_failure_inside_a_list_poisons_the_slots_it_writes)
{
    fixture f = fixture_open();
    sp_memory a = fixture_words(&f, 4);
    sp_poison poison = {0};
    const sp_binding out = slot_words(0, 0, 4, SP_WRITE);
    const sp_command commands[2] = {command_dispatch(&kernel_fail, 1, NULL, 0, NULL, 0),
                                    command_dispatch(&kernel_add_one, 4, &out, 1, NULL, 0)};
    sp_list *bad = list_of(&f, commands, 2, 1);
    sp_list *good = list_of(&f, &commands[1], 1, 1);
    const sp_binding slot = bind_poison(&a, 0, 4, SP_WRITE, &poison);
    const sp_command replay_bad = command_list(bad, &slot, 1);
    const sp_command replay_good = command_list(good, &slot, 1);
    CHECK_STATUS(wait_point(submit(f.queues[0], &replay_bad, 1)), SP_FAILED);
    CHECK(sp__poison_fault(&poison, 1) != SP_NO_FAULT);
    CHECK_EQ_U64(words_of(&a)[0], 0);
    CHECK_OK(wait_point(submit(f.queues[0], &replay_good, 1)));
    CHECK_EQ_U64(sp__poison_fault(&poison, 1), SP_NO_FAULT);

    /* A list does not start on poisoned input. */
    sp__poison_set(&poison, 1, sp__fault_create(SP_FAILED));
    const sp_binding input = bind_poison(&a, 0, 4, SP_READ, &poison);
    const sp_command consume = command_list(good, &input, 1);
    CHECK_STATUS(wait_point(submit(f.queues[0], &consume, 1)), SP_FAILED);
    CHECK_EQ_U64(words_of(&a)[0], 1);
    f.device->vtable->list_release(bad);
    f.device->vtable->list_release(good);
    fixture_free(&a);
    fixture_close(&f);
}

TEST(a_slot_that_a_list_overwrites_before_it_reads_it_may_be_poisoned)
{
    fixture f = fixture_open();
    const uint32_t seven = 7;
    sp_memory words = fixture_words(&f, 8);
    sp_memory copy = fixture_words(&f, 8);
    sp_poison cells[2] = {0};
    const sp_binding target = slot_words(0, 0, 8, SP_WRITE);
    const sp_binding pair[2] = {slot_words(1, 0, 8, SP_WRITE), slot_words(0, 0, 8, SP_READ)};
    const sp_command commands[2] = {command_fill(&target, &seven), command_copy(pair)};
    sp_list *list = list_of(&f, commands, 2, 2);
    sp_binding slots[2] = {bind_poison(&words, 0, 8, SP_READ_WRITE, &cells[0]),
                           bind_poison(&copy, 0, 8, SP_WRITE, &cells[1])};
    const sp_command replay_it = command_list(list, slots, 2);
    sp__poison_set(&cells[0], 1, sp__fault_create(SP_FAILED));
    CHECK_STATUS(wait_point(submit(f.queues[0], &replay_it, 1)), SP_FAILED);
    CHECK(sp__poison_fault(&cells[0], 1) != SP_NO_FAULT);
    CHECK(sp__poison_fault(&cells[1], 1) != SP_NO_FAULT);
    slots[0].is_overwritten = true;
    CHECK_OK(wait_point(submit(f.queues[0], &replay_it, 1)));
    CHECK_EQ_U64(sp__poison_fault(&cells[0], 1), SP_NO_FAULT);
    CHECK_EQ_U64(sp__poison_fault(&cells[1], 1), SP_NO_FAULT);
    CHECK_EQ_U64(words_of(&copy)[7], 7);
    f.device->vtable->list_release(list);
    fixture_free(&words);
    fixture_free(&copy);
    fixture_close(&f);
}

static sp_status nothing(void *ctx, sp_fault fault)
{
    (void)ctx;
    (void)fault;
    return SP_OK;
}

TEST(lists_refuse_host_functions_other_lists_and_slots_they_do_not_have)
{
    fixture f = fixture_open();
    sp_list *list = NULL;
    const sp_command host = command_host(nothing, NULL);
    CHECK_STATUS(f.device->vtable->list_create(f.device, &host, 1, 0, &list), SP_INVALID);
    const sp_binding out = slot_words(2, 0, 1, SP_WRITE);
    const sp_command dispatch = command_dispatch(&kernel_add_one, 1, &out, 1, NULL, 0);
    CHECK_STATUS(f.device->vtable->list_create(f.device, &dispatch, 1, 2, &list), SP_INVALID);
    sp_list *inner = list_of(&f, NULL, 0, 0);
    const sp_command nested = command_list(inner, NULL, 0);
    CHECK_STATUS(f.device->vtable->list_create(f.device, &nested, 1, 0, &list), SP_INVALID);
    sp_heap_fail_after(0);
    CHECK_STATUS(f.device->vtable->list_create(f.device, NULL, 0, 0, &list), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    f.device->vtable->list_release(inner);
    fixture_close(&f);
}

/* ---- cancelled lists ---- */

TEST(a_list_whose_flag_is_set_computes_nothing_and_fails_what_follows_its_point)
{
    fixture f = fixture_open();
    sp_memory words = fixture_words(&f, 4);
    sp_atomic_u32 cancel = {1};
    const sp_binding slot = bind_words(&words, 0, 4, SP_READ_WRITE);
    const sp_binding add = slot_words(0, 0, 4, SP_READ_WRITE);
    const sp_command one = command_dispatch(&kernel_add_one, 4, &add, 1, NULL, 0);
    sp_list *list = list_of(&f, &one, 1, 1);
    sp_command command = command_list(list, &slot, 1);
    command.cancel = &cancel;
    const sp_point point = submit(f.queues[0], &command, 1);
    CHECK_STATUS(wait_point(point), SP_CANCELLED);
    CHECK_EQ_STR(sp_last_error(), "the run was cancelled; its outputs are undefined");
    CHECK_EQ_U64(words_of(&words)[0], 0);
    const sp_submission after = {.waits = &point,
                                 .wait_count = 1,
                                 .fault_count = 1,
                                 .commands = &command,
                                 .command_count = 1};
    sp_point last;
    CHECK_OK(try_submit(f.queues[1], &after, &last));
    CHECK_STATUS(wait_point(last), SP_CANCELLED);
    CHECK_EQ_U64(words_of(&words)[0], 0);
    sp_store_relaxed(&cancel, 0);
    CHECK_OK(wait_point(submit(f.queues[0], &command, 1)));
    CHECK_EQ_U64(words_of(&words)[0], 1);
    f.device->vtable->list_release(list);
    fixture_free(&words);
    fixture_close(&f);
}

TEST(a_cancelled_list_is_no_failure_of_its_lease_that_a_synchronize_would_report)
{
    fixture f = fixture_open();
    sp_memory words = fixture_words(&f, 1);
    sp_atomic_u32 cancel = {1};
    sp_list *list = list_of(&f, NULL, 0, 0);
    sp_command command = command_list(list, NULL, 0);
    command.cancel = &cancel;
    const sp_submission cancelled = {
        .commands = &command, .command_count = 1, .thread = 7, .lease = 9};
    sp_point point;
    CHECK_OK(try_submit(f.queues[0], &cancelled, &point));
    CHECK_STATUS(wait_point(point), SP_CANCELLED);
    sp_fault first;
    CHECK_EQ_U64(sp__timeline_take_failures(point.timeline, point.value, 7), SP_NO_FAULT);
    CHECK_EQ_U64(sp__timeline_unreported(point.timeline, &first), 0);
    const sp_binding target = bind_words(&words, 0, 1, SP_WRITE);
    const uint32_t five = 5;
    const sp_command fill = command_fill(&target, &five);
    const sp_submission consumer = {
        .commands = &fill, .command_count = 1, .thread = 7, .lease = 9, .is_untracked = true};
    CHECK_OK(try_submit(f.queues[0], &consumer, &point));
    CHECK_OK(wait_point(point));
    CHECK_EQ_U64(words_of(&words)[0], 5);
    f.device->vtable->list_release(list);
    fixture_free(&words);
    fixture_close(&f);
}

TEST(a_list_that_is_cancelled_while_it_runs_ends_before_its_next_command)
{
    fixture f = fixture_open();
    if (!fixture_has_meetings() || strcmp(fixture_kind(), "cuda") == 0) {
        fixture_close(&f);
        SKIP("lists run command by command on threads only");
    }
    sp_memory words = fixture_words(&f, 4);
    sp_atomic_u32 cancel = {0};
    meeting held = {.wanted = 2};
    const sp_binding slot = bind_words(&words, 0, 4, SP_READ_WRITE);
    const sp_binding add = slot_words(0, 0, 4, SP_READ_WRITE);
    const sp_command one = command_dispatch(&kernel_add_one, 4, &add, 1, NULL, 0);
    const sp_command commands[3] = {one, command_meet(&held, 1), one};
    sp_list *list = list_of(&f, commands, 3, 1);
    sp_command command = command_list(list, &slot, 1);
    command.cancel = &cancel;
    const sp_point point = submit(f.queues[0], &command, 1);
    while (sp_load_acquire(&held.arrived) == 0) sp_thread_yield();
    sp_store_release(&cancel, 1);
    let_go(&held);
    CHECK_STATUS(wait_point(point), SP_CANCELLED);
    CHECK_EQ_U64(words_of(&words)[0], 1);
    f.device->vtable->list_release(list);
    fixture_free(&words);
    fixture_close(&f);
}

TEST_MAIN
