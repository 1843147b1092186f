/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle of the runtime, its devices, and every kind of handle in wrong places. */
#include "runtime_calls.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "device/thread_record.h"

/* ---- start and shutdown ---- */

static void init_it(void *arg, uint32_t index)
{
    (void)arg, (void)index;
    CHECK_OK(sp_init());
    CHECK_EQ_U64(sp_device_count(), 1);
}

TEST(many_threads_bring_the_runtime_up_once)
{
    const uint64_t rounds = test_count(1000, 50);
    for (uint64_t i = 0; i < rounds; i++) {
        runtime_begin();
        test_threads(8, init_it, NULL);
        CHECK_OK(sp_init());
        runtime_end();
    }
    CHECK(sp_version()[0] != '\0');
}

TEST(after_a_shutdown_every_call_says_closed_and_releases_still_work)
{
    runtime_begin();
    call_context context;
    call_context_init(&context);
    CHECK_OK(sp_shutdown());
    for (uint32_t i = 0; i < public_call_count; i++) {
        const sp_status status = public_calls[i].run(&context);
        if (status != SP_CLOSED) test_note("%s", public_calls[i].name);
        CHECK_STATUS(status, SP_CLOSED);
        CHECK_MESSAGE("shut down");
    }
    CHECK_EQ_U64(sp_device_count(), 0);
    CHECK_OK(sp_shutdown());
    CHECK_OK(sp_thread_release_stream());
    call_context_deinit(&context);
    runtime_end();
}

TEST(a_shutdown_before_first_use_keeps_the_runtime_down)
{
    runtime_begin();
    CHECK_OK(sp_shutdown());
    CHECK_STATUS(sp_init(), SP_CLOSED);
    CHECK_OK(sp_shutdown());
    runtime_end();
}

typedef struct complaint {
    uint32_t count;
    uint32_t devices; /* as seen by the callback */
    char message[200];
} complaint;

static void ask_library(void *ctx, sp_log_level level, const char *message)
{
    complaint *self = ctx;
    self->count++;
    CHECK_EQ_INT(level, SP_LOG_WARN);
    snprintf(self->message, sizeof self->message, "%s", message);
    self->devices = sp_device_count();
}

TEST(a_log_callback_may_call_the_library_while_it_comes_up)
{
    complaint seen = {0};
    runtime_begin_with(&(runtime_setting){.streams = "x"});
    sp_log_set_level(SP_LOG_WARN);
    sp_log_set_callback(ask_library, &seen);
    CHECK_OK(sp_init());
    CHECK_EQ_U64(seen.count, 1);
    CHECK_EQ_U64(seen.devices, 1);
    CHECK(strstr(seen.message, "STREAMPOOL_STREAMS=x") != NULL);
    sp__log_reset();
    runtime_end();
}

static void count_host(void *ctx, sp_status status)
{
    (void)status;
    raise_by_one(ctx);
}

TEST(shutdown_completes_the_work_in_flight)
{
    runtime_begin();
    sp_atomic_u32 calls = {0};
    unsigned char bytes[8][64] = {{0}};
    for (int i = 0; i < 8; i++) {
        const sp_stream stream = new_stream();
        sp_storage storage;
        sp_event event;
        CHECK_OK(sp_storage_adopt(CPU, bytes[i], 64, NULL, &storage));
        submit_slow_fill(stream, storage, (uint8_t)(i + 1), 2 * MILLISECOND);
        CHECK_OK(sp_stream_host_function(stream, count_host, &calls));
        CHECK_OK(sp_event_create(NULL, &event));
        CHECK_OK(sp_event_record(event, stream));
        CHECK_OK(sp_event_on_complete(event, count_host, &calls));
        CHECK_OK(sp_event_release(event));
        CHECK_OK(sp_storage_release(storage));
        CHECK_OK(sp_stream_release(stream));
    }
    CHECK_OK(sp_shutdown());
    CHECK_EQ_U64(sp_load_acquire(&calls), 16);
    for (int i = 0; i < 8; i++) CHECK_EQ_INT(bytes[i][63], i + 1);
    runtime_end();
}

typedef struct busy {
    sp_atomic_u32 submitted; /* host functions that were accepted */
    sp_atomic_u32 ran;
    sp_atomic_u32 late; /* that ran after sp_shutdown had returned */
    sp_atomic_u32 is_down;
    sp_atomic_u32 working;
    sp_device null;
} busy;

static void run_in_time(void *ctx, sp_status status)
{
    busy *self = ctx;
    (void)status;
    if (sp_load_acquire(&self->is_down)) raise_by_one(&self->late);
    raise_by_one(&self->ran);
}

/* Works until it is told that the runtime is shut down. */
static void work_until_closed(busy *self, sp_device device)
{
    sp_storage storage;
    sp_stream stream;
    sp_status status = sp_stream_current(device, &stream);
    if (status == SP_OK) status = sp_storage_create(device, 100, NULL, &storage);
    if (status != SP_OK) {
        CHECK_STATUS(status, SP_CLOSED);
        return;
    }
    raise_by_one(&self->working);
    const uint8_t one = 1;
    const sp_storage_range range = {storage, 0, 100};
    while (status == SP_OK) {
        status = sp_storage_fill_async(stream, range, &one, 1);
        if (status == SP_OK) status = sp_stream_host_function(stream, run_in_time, self);
        if (status == SP_OK) raise_by_one(&self->submitted);
        if (status == SP_OK) status = sp_stream_synchronize(stream);
        if (status == SP_BUSY) status = SP_OK;
    }
    CHECK_STATUS(status, SP_CLOSED);
    CHECK_OK(sp_storage_release(storage));
}

static void work_or_shut_down(void *arg, uint32_t index)
{
    busy *self = arg;
    if (index < 6) {
        work_until_closed(self, index % 2 == 0 ? CPU : self->null);
        return;
    }
    await_at_least(&self->working, 6);
    if (index == 6) sp_device_close(self->null); /* concurrent with the shutdowns, in any order */
    if (index >= 7) {
        CHECK_OK(sp_shutdown());
        sp_store_release(&self->is_down, 1);
    }
}

TEST(shutdown_and_close_beside_busy_threads_lose_nothing_and_return_when_all_is_done)
{
    const uint64_t rounds = test_count(2000, 60);
    for (uint64_t i = 0; i < rounds; i++) {
        runtime_begin();
        busy self = {.null = open_null()};
        test_threads(9, work_or_shut_down, &self);
        CHECK_EQ_U64(sp_load_acquire(&self.ran), sp_load_acquire(&self.submitted));
        CHECK_EQ_U64(sp_load_acquire(&self.late), 0);
        runtime_end();
    }
}

static void open_or_shut_down(void *arg, uint32_t index)
{
    (void)arg;
    sp_device device;
    if (index == 0) {
        CHECK_OK(sp_shutdown());
        return;
    }
    const sp_status status = sp_device_open("null", &device);
    CHECK(status == SP_OK || status == SP_CLOSED);
}

TEST(a_device_opened_beside_a_shutdown_is_taken_down_or_refused)
{
    const uint64_t rounds = test_count(2000, 100);
    for (uint64_t i = 0; i < rounds; i++) {
        runtime_begin();
        CHECK_OK(sp_init());
        test_threads(3, open_or_shut_down, NULL);
        runtime_end();
    }
}

/* ---- devices ---- */

TEST(devices_are_listed_with_name_kind_and_limits)
{
    runtime_begin_with(&(runtime_setting){.streams = "5"});
    sp_device cpu;
    sp_device_info info;
    CHECK_OK(sp_device_at(0, &cpu));
    CHECK_OK(sp_device_get_info(cpu, &info));
    CHECK_EQ_STR(info.kind, "cpu");
    CHECK_EQ_STR(info.name, "cpu");
    CHECK(info.width >= 1 && info.run_slots >= 1 && info.memory_bytes > 0);
    CHECK_EQ_U64(info.stream_count, 5);
    const sp_device null = open_null();
    CHECK_EQ_U64(sp_device_count(), 2);
    sp_device second;
    CHECK_OK(sp_device_at(1, &second));
    CHECK_EQ_U64(second.bits, null.bits);
    CHECK_OK(sp_device_get_info(null, &info));
    CHECK_EQ_STR(info.kind, "null");
    CHECK_EQ_STR(info.name, "null:1");
    CHECK_STATUS(sp_device_at(2, &second), SP_NOT_FOUND);
    CHECK_STATUS(sp_device_open("gpu", &second), SP_NOT_FOUND);
    CHECK_MESSAGE("gpu");
    CHECK_STATUS(sp_device_open(NULL, &second), SP_INVALID);
    CHECK_STATUS(sp_device_open("null", NULL), SP_INVALID);
    CHECK_STATUS(sp_device_at(0, NULL), SP_INVALID);
    CHECK_STATUS(sp_device_get_info(cpu, NULL), SP_INVALID);
    CHECK_OK(sp_device_open("cpu", &second));
    CHECK_EQ_U64(second.bits, cpu.bits);
    runtime_end();
}

TEST(a_closed_device_completes_its_work_refuses_more_and_keeps_its_storages)
{
    runtime_begin();
    const sp_device null = open_null();
    const sp_stream stream = new_stream_on(null);
    const sp_storage storage = new_storage_on(null, 64, false);
    submit_slow_fill(stream, storage, 6, 5 * MILLISECOND);
    CHECK_OK(sp_device_close(null));
    CHECK_OK(sp_stream_query(stream));
    CHECK_EQ_INT(first_other(storage, 6), -1);
    const uint8_t one = 1;
    CHECK_STATUS(sp_storage_fill_async(stream, whole(storage), &one, 1), SP_CLOSED);
    sp_storage more;
    sp_stream other;
    CHECK_STATUS(sp_storage_create(null, 64, NULL, &more), SP_CLOSED);
    CHECK_MESSAGE("null:1");
    CHECK_STATUS(sp_stream_from_pool(null, &other), SP_CLOSED);
    CHECK_STATUS(sp_device_synchronize(null), SP_CLOSED);
    CHECK_STATUS(sp_device_close(null), SP_CLOSED);
    CHECK_STATUS(sp_device_close(CPU), SP_INVALID);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    /* cpu is unaffected, and so is another null device. */
    const sp_device next = open_null();
    CHECK(next.bits != null.bits);
    const sp_storage there = new_storage_on(next, 64, false);
    CHECK_OK(sp_storage_release(there));
    fill(current_stream(), (more = new_storage(8)), 1);
    CHECK_OK(sp_storage_release(more));
    runtime_end();
}

TEST(closed_devices_are_not_listed)
{
    runtime_begin();
    const sp_device devices[3] = {open_null(), open_null(), open_null()};
    sp_device found;
    CHECK_OK(sp_device_close(devices[1]));
    CHECK_EQ_U64(sp_device_count(), 3);
    CHECK_OK(sp_device_at(1, &found));
    CHECK_EQ_U64(found.bits, devices[0].bits);
    CHECK_OK(sp_device_at(2, &found));
    CHECK_EQ_U64(found.bits, devices[2].bits);
    CHECK_STATUS(sp_device_at(3, &found), SP_NOT_FOUND);
    CHECK_MESSAGE("3 are open");
    CHECK_OK(sp_device_close(devices[0]));
    CHECK_OK(sp_device_close(devices[2]));
    CHECK_EQ_U64(sp_device_count(), 1);
    runtime_end();
}

TEST(no_more_than_sixty_four_devices_are_opened)
{
    runtime_begin();
    sp_device device = {0};
    for (int i = 1; i < SP_MAX_DEVICES; i++) CHECK_OK(sp_device_open("null", &device));
    CHECK_STATUS(sp_device_open("null", &device), SP_EXHAUSTED);
    CHECK_EQ_U64(device.bits, 0);
    CHECK_EQ_U64(sp_device_count(), SP_MAX_DEVICES);
    runtime_end();
}

/* ---- handles ---- */

/* Every call that takes a device. The close is last: it changes the results of the others. */
static sp_status on_device_get_info(sp_device device)
{
    sp_device_info info;
    return sp_device_get_info(device, &info);
}

static sp_status on_get_memory_stats(sp_device device)
{
    sp_memory_stats stats;
    return sp_device_get_memory_stats(device, &stats);
}

static sp_status on_set_memory_limit(sp_device device)
{
    return sp_device_set_memory_limit(device, 0);
}

static sp_status on_set_watermarks(sp_device device)
{
    return sp_device_set_cache_watermarks(device, 0, 0);
}

static sp_status on_stream_current(sp_device device)
{
    sp_stream stream = {1};
    const sp_status status = sp_stream_current(device, &stream);
    CHECK((status == SP_OK) == (stream.bits != 0));
    return status;
}

static sp_status on_stream_default(sp_device device)
{
    sp_stream stream = {1};
    const sp_status status = sp_stream_default(device, &stream);
    CHECK((status == SP_OK) == (stream.bits != 0));
    return status;
}

static sp_status on_stream_from_pool(sp_device device)
{
    sp_stream stream = {1};
    const sp_status status = sp_stream_from_pool(device, &stream);
    CHECK((status == SP_OK) == (stream.bits != 0));
    CHECK_OK(sp_stream_release(stream));
    return status;
}

static sp_status on_storage_create(sp_device device)
{
    sp_storage storage = {1};
    const sp_status status = sp_storage_create(device, 64, NULL, &storage);
    CHECK((status == SP_OK) == (storage.bits != 0));
    CHECK_OK(sp_storage_release(storage));
    return status;
}

static sp_status on_adopt(sp_device device)
{
    static unsigned char bytes[64];
    sp_storage storage = {1};
    const sp_status status = sp_storage_adopt(device, bytes, sizeof bytes, NULL, &storage);
    CHECK((status == SP_OK) == (storage.bits != 0));
    CHECK_OK(sp_storage_release(storage));
    return status;
}

static sp_status on_list_create(sp_device device)
{
    sp_command_list list = {1};
    const sp_status status = sp_command_list_create(device, &list);
    CHECK((status == SP_OK) == (list.bits != 0));
    CHECK_OK(sp_command_list_release(list));
    return status;
}

typedef struct device_call {
    const char *name;
    sp_status (*run)(sp_device device);
} device_call;

static const device_call device_calls[] = {
    {"sp_device_get_info", on_device_get_info},
    {"sp_device_synchronize", sp_device_synchronize},
    {"sp_device_get_memory_stats", on_get_memory_stats},
    {"sp_device_empty_cache", sp_device_empty_cache},
    {"sp_device_set_memory_limit", on_set_memory_limit},
    {"sp_device_set_cache_watermarks", on_set_watermarks},
    {"sp_stream_current", on_stream_current},
    {"sp_stream_default", on_stream_default},
    {"sp_stream_from_pool", on_stream_from_pool},
    {"sp_storage_create", on_storage_create},
    {"sp_storage_adopt", on_adopt},
    {"sp_command_list_create", on_list_create},
    {"sp_device_close", sp_device_close},
};

static void expect_of_device(sp_device device, sp_status expected)
{
    for (size_t i = 0; i < SP_COUNT_OF(device_calls); i++) {
        const sp_status status = device_calls[i].run(device);
        if (status != expected) test_note("%s", device_calls[i].name);
        CHECK_STATUS(status, expected);
    }
}

TEST(a_closed_device_is_refused_by_every_call_that_takes_a_device)
{
    runtime_begin();
    const sp_device null = open_null();
    expect_of_device(null, SP_OK); /* the last of them closes it */
    const sp_device unused = open_null();
    CHECK_OK(sp_device_close(unused));
    expect_of_device(unused, SP_CLOSED);
    CHECK_MESSAGE("null:2");
    runtime_end();
}

/* Every call that takes a handle, with bits of another type or none. The other arguments come from
 * `good`; its list is open. */
static void expect_no_stream(uint64_t bits, const call_context *good)
{
    const sp_stream stream = {bits};
    const uint8_t one = 1;
    sp_stream_info info;
    sp_stream_guard guard;
    CHECK_STATUS(sp_stream_synchronize(stream), SP_INVALID);
    CHECK_STATUS(sp_stream_synchronize_for(stream, 0), SP_INVALID);
    CHECK_STATUS(sp_stream_query(stream), SP_INVALID);
    CHECK_STATUS(sp_stream_flush(stream), SP_INVALID);
    CHECK_STATUS(sp_stream_set_batching(stream, true), SP_INVALID);
    CHECK_STATUS(sp_stream_get_info(stream, &info), SP_INVALID);
    CHECK_STATUS(sp_stream_host_function(stream, count_host, NULL), SP_INVALID);
    CHECK_STATUS(sp_stream_guard_begin(stream, &guard), SP_INVALID);
    CHECK_STATUS(sp_stream_wait_event(stream, good->event), SP_INVALID);
    CHECK_STATUS(sp_event_record(good->event, stream), SP_INVALID);
    CHECK_STATUS(sp_storage_record_stream(good->a, stream), SP_INVALID);
    CHECK_STATUS(sp_storage_fill_async(stream, whole(good->a), &one, 1), SP_INVALID);
    CHECK_STATUS(sp_storage_copy_async(stream, whole(good->a), whole(good->b)), SP_INVALID);
    CHECK_STATUS(sp_stream_submit_list(stream, good->list), SP_INVALID);
    CHECK_MESSAGE("stream handle");
    if (bits == 0) return; /* the release of the zero handle succeeds, set_current means the own */
    CHECK_STATUS(sp_stream_release(stream), SP_INVALID);
    CHECK_STATUS(sp_stream_set_current(stream), SP_INVALID);
}

static void expect_no_event(uint64_t bits, const call_context *good)
{
    const sp_event event = {bits};
    const sp_event pair[2] = {good->event, event};
    const sp_adopt_options options = {.ready = event};
    unsigned char byte = 0;
    sp_storage storage;
    int64_t ns;
    uint32_t which;
    CHECK_STATUS(sp_event_retain(event), SP_INVALID);
    CHECK_STATUS(sp_event_record(event, good->stream), SP_INVALID);
    CHECK_STATUS(sp_event_query(event), SP_INVALID);
    CHECK_STATUS(sp_event_synchronize(event), SP_INVALID);
    CHECK_STATUS(sp_event_synchronize_for(event, 0), SP_INVALID);
    CHECK_STATUS(sp_event_wait_all(&event, 1, 0), SP_INVALID);
    CHECK_STATUS(sp_event_wait_all(pair, 2, 0), SP_INVALID);
    CHECK_STATUS(sp_event_wait_any(&event, 1, 0, &which), SP_INVALID);
    CHECK_STATUS(sp_event_wait_any(pair, 2, 0, &which), SP_INVALID);
    CHECK_MESSAGE("event 1 of 2");
    CHECK_STATUS(sp_stream_wait_event(good->stream, event), SP_INVALID);
    CHECK_STATUS(sp_event_elapsed(event, good->timed[0], &ns), SP_INVALID);
    CHECK_STATUS(sp_event_elapsed(good->timed[0], event, &ns), SP_INVALID);
    CHECK_STATUS(sp_event_on_complete(event, count_host, NULL), SP_INVALID);
    CHECK_MESSAGE("event handle");
    if (bits == 0) return; /* the release of the zero handle succeeds, adopted memory is ready */
    CHECK_STATUS(sp_storage_adopt(CPU, &byte, 1, &options, &storage), SP_INVALID);
    CHECK_STATUS(sp_event_release(event), SP_INVALID);
}

static void expect_no_storage(uint64_t bits, const call_context *good)
{
    const sp_storage storage = {bits};
    const sp_storage_range range = {storage, 0, 64};
    const uint8_t one = 1;
    sp_storage_info info;
    void *data;
    CHECK_STATUS(sp_storage_retain(storage), SP_INVALID);
    CHECK_STATUS(sp_storage_get_info(storage, &info), SP_INVALID);
    CHECK_STATUS(sp_storage_freeze(storage), SP_INVALID);
    CHECK_STATUS(sp_storage_host_begin(storage, SP_READ, &data), SP_INVALID);
    CHECK_STATUS(sp_storage_host_end(storage, SP_READ), SP_INVALID);
    CHECK_STATUS(sp_storage_record_stream(storage, good->stream), SP_INVALID);
    CHECK_STATUS(sp_storage_fill_async(good->stream, range, &one, 1), SP_INVALID);
    CHECK_STATUS(sp_storage_copy_async(good->stream, range, whole(good->a)), SP_INVALID);
    CHECK_STATUS(sp_storage_copy_async(good->stream, whole(good->a), range), SP_INVALID);
    CHECK_STATUS(sp_command_list_fill(good->list, range, &one, 1), SP_INVALID);
    CHECK_STATUS(sp_command_list_copy(good->list, range, whole(good->a)), SP_INVALID);
    CHECK_STATUS(sp_command_list_copy(good->list, whole(good->a), range), SP_INVALID);
    CHECK_MESSAGE("storage handle");
    if (bits == 0) return; /* release is silent */
    CHECK_STATUS(sp_storage_release(storage), SP_INVALID);
}

static void expect_no_list(uint64_t bits, const call_context *good)
{
    const sp_command_list list = {bits};
    const uint8_t one = 1;
    CHECK_STATUS(sp_command_list_retain(list), SP_INVALID);
    CHECK_STATUS(sp_command_list_fill(list, whole(good->a), &one, 1), SP_INVALID);
    CHECK_STATUS(sp_command_list_copy(list, whole(good->a), whole(good->b)), SP_INVALID);
    CHECK_STATUS(sp_stream_submit_list(good->stream, list), SP_INVALID);
    CHECK_MESSAGE("command list");
    if (bits == 0) return; /* release is silent */
    CHECK_STATUS(sp_command_list_release(list), SP_INVALID);
}

static void expect_no_device(uint64_t bits)
{
    if (bits == 0) return; /* cpu */
    expect_of_device((sp_device){bits}, SP_INVALID);
    CHECK_MESSAGE("is not a device");
}

static void expect_invalid_everywhere(uint64_t bits, const call_context *good)
{
    expect_no_stream(bits, good);
    expect_no_event(bits, good);
    expect_no_storage(bits, good);
    expect_no_list(bits, good);
    expect_no_device(bits);
}

/* Good calls work on the context after all the bad ones. */
static void expect_still_good(call_context *good)
{
    for (uint32_t i = 0; i < public_call_count; i++) CHECK_OK(public_calls[i].run(good));
    call_context_deinit(good);
}

TEST(zero_and_forged_handles_are_invalid_everywhere)
{
    runtime_begin();
    call_context good;
    call_context_init(&good);
    expect_invalid_everywhere(0, &good);
    expect_invalid_everywhere(1, &good);
    expect_invalid_everywhere(UINT64_MAX, &good);
    uint64_t random = 99;
    for (int i = 0; i < 2000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        expect_invalid_everywhere(random, &good);
    }
    for (uint64_t kind = 0; kind < 16; kind++) {
        expect_invalid_everywhere(kind << 56 | (uint64_t)7 << 28 | 0xfffffff, &good);
        expect_invalid_everywhere(kind << 56 | (uint64_t)0 << 28 | 1, &good);
    }
    CHECK_OK(sp_event_release((sp_event){0}));
    CHECK_OK(sp_storage_release((sp_storage){0}));
    CHECK_OK(sp_command_list_release((sp_command_list){0}));
    expect_still_good(&good);
    runtime_end();
}

TEST(released_handles_are_invalid_everywhere)
{
    runtime_begin();
    call_context good;
    call_context gone;
    call_context_init(&good);
    call_context_init(&gone);
    call_context_deinit(&gone);
    const uint64_t bits[] = {gone.stream.bits, gone.event.bits, gone.timed[0].bits,
                             gone.a.bits,      gone.b.bits,     gone.list.bits};
    for (size_t i = 0; i < SP_COUNT_OF(bits); i++) expect_invalid_everywhere(bits[i], &good);
    expect_still_good(&good);
    runtime_end();
}

TEST(handles_of_one_kind_are_refused_where_another_is_expected)
{
    runtime_begin();
    call_context good;
    call_context_init(&good);
    sp_device cpu;
    CHECK_OK(sp_device_at(0, &cpu));
    const uint64_t all[] = {good.stream.bits, good.event.bits, good.a.bits, good.list.bits,
                            cpu.bits};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) {
        if (all[i] != good.stream.bits) expect_no_stream(all[i], &good);
        if (all[i] != good.event.bits) expect_no_event(all[i], &good);
        if (all[i] != good.a.bits) expect_no_storage(all[i], &good);
        if (all[i] != good.list.bits) expect_no_list(all[i], &good);
        if (all[i] != cpu.bits) expect_no_device(all[i]);
    }
    expect_still_good(&good);
    runtime_end();
}

static void shut_down_here(void *arg)
{
    (void)arg;
    CHECK_OK(sp_shutdown());
}

TEST(a_thread_is_not_taken_for_the_library_thread_whose_record_it_inherits)
{
    runtime_begin();
    CHECK_OK(sp_init());
    run_on_thread(shut_down_here, NULL); /* ends the library's threads */
    for (int i = 0; i < 4; i++) run_on_thread(shut_down_here, NULL);
    runtime_end();
}

static void note_number(void *arg)
{
    *(uint64_t *)arg = sp__thread_record()->number;
}

TEST(thread_numbers_differ_also_after_the_runtime_was_taken_apart)
{
    runtime_begin();
    CHECK_OK(sp_init());
    CHECK(sp__thread_record() != NULL);
    runtime_end();
    runtime_begin();
    uint64_t numbers[4] = {0};
    for (int i = 0; i < 3; i++) run_on_thread(note_number, &numbers[i]);
    numbers[3] = sp__thread_record()->number;
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < i; k++) CHECK(numbers[i] != numbers[k]);
    }
    runtime_end();
}

TEST_MAIN
