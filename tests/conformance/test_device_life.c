/* SPDX-License-Identifier: Apache-2.0 */
/* Device conformance: opening, refusals, and the failures that a null device injects. */
#include <string.h>
#include <time.h>

#include <streampool/log.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/option.h"
#include "base/thread.h"
#include "device/cpu/cpu.h"
#include "device/null/null.h"
#include "device/queue/queue.h"
#include "device_fixture.h"

static sp_status open_default(sp_dev **out)
{
    return strcmp(fixture_kind(), "null") == 0 ? sp__null_open(&(sp_null_options){0}, out)
                                               : sp__cpu_open(&(sp_cpu_options){0}, out);
}

TEST(opening_fails_cleanly_wherever_memory_runs_out)
{
    sp_dev *device = NULL;
    CHECK_OK(open_default(&device)); /* from here on the process keeps its permanent allocations */
    device->vtable->close(device);
    uint64_t failures = 0;
    for (sp_status status = SP_FAILED; status != SP_OK; failures++) {
        device = NULL;
        sp_heap_fail_after(failures);
        status = open_default(&device);
        sp_heap_fail_after(UINT64_MAX);
        if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        CHECK((device != NULL) == (status == SP_OK));
        REQUIRE(failures < 1000);
    }
    CHECK(failures > 2); /* the device, its workers, their threads */
    REQUIRE(device != NULL);
    device->vtable->close(device);
}

TEST(a_device_can_be_stopped_again_and_refuses_work_afterwards)
{
    fixture f = fixture_open();
    sp_point point = submit(f.queues[0], NULL, 0);
    f.device->vtable->stop(f.device);
    CHECK(sp__point_has_passed(point));
    const sp_submission submission = {0};
    CHECK_STATUS(try_submit(f.queues[0], &submission, &point), SP_CLOSED);
    CHECK_MESSAGE("is closed");
    f.device->vtable->stop(f.device);
    CHECK_OK(wait_point(point));
    fixture_close(&f);
}

typedef struct slow_waiter {
    sp_waiter waiter;
    sp_atomic_u32 is_inside;
} slow_waiter;

static void fire_slowly(sp_waiter *waiter)
{
    slow_waiter *self = SP_CONTAINER_OF(waiter, slow_waiter, waiter);
    sp_store_release(&self->is_inside, 1);
    sp_clock_sleep(600000000);
}

/* The processor time of this thread. primitive: base has no such clock. */
static uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); /* primitive: the same */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

TEST(a_stop_that_waits_for_a_thread_to_leave_a_queue_takes_no_processor)
{
    if (!fixture_has_meetings()) SKIP("a GPU does not see this memory of the host");
    fixture f = fixture_open();
    meeting held;
    const sp_point point = submit_held(f.queues[0], &held);
    slow_waiter self = {.waiter = {.value = point.value, .fire = fire_slowly}};
    REQUIRE(sp__timeline_register(point.timeline, &self.waiter));
    let_go(&held);
    while (sp_load_acquire(&self.is_inside) == 0) sp_clock_sleep(100000);
    const uint64_t before = processor_ns();
    f.device->vtable->stop(f.device);
    CHECK(processor_ns() - before < 100000000);
    fixture_close(&f);
}

TEST(a_stopped_device_makes_no_more_queues)
{
    fixture f = fixture_open();
    const sp_queue_options options = {.is_batching = true};
    sp_queue *queue = NULL;
    f.device->vtable->stop(f.device);
    CHECK_STATUS(f.device->vtable->queue_create(f.device, 20, &options, &queue), SP_CLOSED);
    CHECK_MESSAGE("is closed");
    CHECK(queue == NULL);
    fixture_close(&f);
}

TEST(a_queue_needs_memory_and_a_place)
{
    sp_dev *device = NULL;
    CHECK_OK(open_default(&device));
    sp_queue *queue = NULL;
    const sp_queue_options options = {.is_batching = true};
    for (uint64_t skip = 0; skip < 4; skip++) {
        sp_heap_fail_after(skip);
        CHECK_STATUS(device->vtable->queue_create(device, 0, &options, &queue), SP_OUT_OF_MEMORY);
        sp_heap_fail_after(UINT64_MAX);
    }
    const uint32_t most = SP_DEVICE_QUEUES;
    CHECK_STATUS(device->vtable->queue_create(device, most, &options, &queue), SP_EXHAUSTED);
    CHECK(queue == NULL);
    CHECK_OK(device->vtable->queue_create(device, most - 1, &options, &queue));
    CHECK_OK(wait_point(submit(queue, NULL, 0)));
    device->vtable->close(device);
}

TEST(the_option_allows_as_many_workers_as_a_device_has_and_no_more)
{
    CHECK_EQ_INT(sp_option_describe(SP_OPTION_CPU_WORKERS)->max, SP_DEVICE_WORKERS);
    const sp_cpu_options options = {.worker_count = SP_DEVICE_WORKERS};
    sp_dev *device = NULL;
    REQUIRE_OK(sp__cpu_open(&options, &device));
    CHECK_EQ_U64(device->limits.width, SP_DEVICE_WORKERS);
    device->vtable->close(device);
}

TEST(memory_that_the_system_does_not_have_is_an_error)
{
    if (strcmp(fixture_kind(), "cuda") == 0) SKIP("the driver knows what memory there is");
    fixture f = fixture_open();
    sp_memory memory = {0};
    sp_heap_fail_after(0);
    CHECK_STATUS(f.device->vtable->memory_create(f.device, 4096, &memory), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    CHECK_STATUS(f.device->vtable->memory_create(f.device, UINT64_MAX, &memory), SP_OUT_OF_MEMORY);
    CHECK(memory.host == NULL);
    memory = fixture_words(&f, 1024); /* a failure releases nothing */
    CHECK(memory.host != NULL);
    fixture_free(&memory);
    fixture_close(&f);
}

static sp_status do_nothing(const sp_tile *tile)
{
    (void)tile;
    return SP_OK;
}

TEST(a_command_larger_than_a_queue_takes_is_refused_and_leaves_no_trace)
{
    static const sp_kernel kernel = {.name = "nothing", .run = do_nothing};
    static const unsigned char constants[20000];
    fixture f = fixture_open();
    const sp_command command =
        command_dispatch(&kernel, 1, NULL, 0, constants, (uint32_t)sizeof constants);
    const sp_submission submission = {.commands = &command, .command_count = 1};
    sp_point point;
    CHECK_STATUS(try_submit(f.queues[0], &submission, &point), SP_INVALID);
    CHECK_MESSAGE("are allowed");
    point = submit(f.queues[0], NULL, 0);
    CHECK_EQ_U64(point.value, 1);
    CHECK_OK(wait_point(point));
    fixture_close(&f);
}

enum { SLOTS = 1000 };

static sp_status write_slot(const sp_tile *tile)
{
    *(uint32_t *)tile->bindings[0] = *(const uint32_t *)tile->constants;
    return SP_OK;
}

/* Its slots take more than a chunk of the queue. */
static sp_list *list_of_slots(sp_dev *device)
{
    static const sp_kernel kernel = {.name = "write", .run = write_slot};
    static uint32_t values[SLOTS];
    static sp_binding bindings[SLOTS];
    static sp_command commands[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++) {
        values[i] = i + 1;
        bindings[i] = (sp_binding){.slot = (uint16_t)i, .bytes = 4, .access = SP_WRITE};
        commands[i] = command_dispatch(&kernel, 1, &bindings[i], 1, &values[i], 4);
    }
    sp_list *list = NULL;
    CHECK_OK(device->vtable->list_create(device, commands, SLOTS, SLOTS, &list));
    return list;
}

TEST(a_list_with_more_slots_than_a_chunk_holds_is_run)
{
    if (strcmp(fixture_kind(), "cuda") == 0) SKIP("the kernel is for the host");
    fixture f = fixture_open();
    sp_list *list = list_of_slots(f.device);
    sp_memory memory = fixture_words(&f, SLOTS);
    static sp_binding slots[SLOTS];
    uint32_t *words = memory.host;
    for (uint32_t i = 0; i < SLOTS; i++) {
        slots[i] = (sp_binding){.memory = &memory, .offset = 4 * i, .bytes = 4, .access = SP_WRITE};
    }
    const sp_command command = {
        .type = SP_COMMAND_LIST, .list = list, .bindings = slots, .binding_count = SLOTS};
    for (int round = 0; round < 20; round++) {
        memset(words, 0, SLOTS * sizeof *words);
        sp_point point = {0};
        for (int i = 0; i < 3; i++) point = submit(f.queues[0], &command, 1);
        CHECK_OK(wait_point(point));
        for (uint32_t i = 0; i < SLOTS; i++) CHECK_EQ_U64(words[i], i + 1);
    }
    f.device->vtable->list_release(list);
    fixture_free(&memory);
    fixture_close(&f);
}

/* ---- the null device's requests ---- */

TEST(each_kind_of_command_names_itself_when_it_fails)
{
    fixture f = fixture_open_kind("null");
    sp_memory words = fixture_words(&f, 8);
    sp_atomic_u64 time = {0};
    const uint32_t seven = 7;
    const sp_binding target = bind_words(&words, 0, 4, SP_WRITE);
    const sp_binding pair[2] = {target, bind_words(&words, 4, 4, SP_READ)};
    const sp_command commands[4] = {
        command_dispatch(&kernel_add_one, 4, &target, 1, NULL, 0),
        command_copy(pair),
        command_fill(&target, &seven),
        {.type = SP_COMMAND_TIMESTAMP, .timestamp = &time},
    };
    static const char *const names[4] = {"add_one on stream", "copy on stream", "fill on stream",
                                         "timestamp on stream"};
    for (int i = 0; i < 4; i++) {
        sp__null_fail_command(f.device, 0);
        CHECK_STATUS(wait_point(submit(f.queues[0], &commands[i], 1)), SP_FAILED);
        CHECK_MESSAGE(names[i]);
        CHECK_MESSAGE("injected fault in command");
    }
    CHECK(sp_load_acquire(&time) > 0); /* a wait for a missing time ends */
    CHECK_EQ_U64(words_of(&words)[0], 0);
    fixture_free(&words);
    fixture_close(&f);
}

TEST(about_as_many_commands_fail_as_asked_and_the_same_ones_each_time)
{
    uint64_t failed[2] = {0};
    for (int round = 0; round < 2; round++) {
        fixture f = fixture_open_kind("null");
        sp_memory word = fixture_words(&f, 1);
        const sp_binding binding = bind_words(&word, 0, 1, SP_READ_WRITE);
        const sp_command command = command_dispatch(&kernel_add_one, 1, &binding, 1, NULL, 0);
        sp__null_fail_randomly(f.device, 100, 12345);
        for (uint64_t i = 0; i < 1000; i++) {
            const sp_status status = wait_point(submit(f.queues[0], &command, 1));
            if (status != SP_OK) failed[round] += i * i + 1; /* which ones, not only how many */
        }
        CHECK(words_of(&word)[0] > 850 && words_of(&word)[0] < 950);
        sp__null_fail_randomly(f.device, 0, 0);
        CHECK_OK(wait_point(submit(f.queues[0], &command, 1)));
        fixture_free(&word);
        fixture_close(&f);
    }
    CHECK_EQ_U64(failed[0], failed[1]);
}

TEST(commands_take_as_long_as_asked)
{
    fixture f = fixture_open_kind("null");
    sp_memory word = fixture_words(&f, 1);
    const sp_binding binding = bind_words(&word, 0, 1, SP_READ_WRITE);
    const sp_command command = command_dispatch(&kernel_add_one, 1, &binding, 1, NULL, 0);
    sp__null_set_latency(f.device, 20000000);
    const uint64_t start = sp_clock_now();
    const sp_command commands[2] = {command, command};
    CHECK_OK(wait_point(submit(f.queues[0], commands, 2)));
    CHECK(sp_clock_now() - start >= 40000000);
    sp__null_set_latency(f.device, 0);
    CHECK_OK(wait_point(submit(f.queues[0], &command, 1)));
    CHECK_EQ_U64(words_of(&word)[0], 3);
    fixture_free(&word);
    fixture_close(&f);
}

TEST(the_null_device_has_the_memory_it_was_given_and_no_more)
{
    sp_dev *device = NULL;
    CHECK_OK(sp__null_open(&(sp_null_options){.memory_bytes = 1 << 20}, &device));
    CHECK_EQ_U64(device->limits.memory_bytes, 1 << 20);
    sp_memory half;
    sp_memory rest;
    CHECK_OK(device->vtable->memory_create(device, 1 << 19, &half));
    CHECK_OK(device->vtable->memory_create(device, 1 << 19, &rest));
    sp_memory more;
    CHECK_STATUS(device->vtable->memory_create(device, 1, &more), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("0 of 1048576 free");
    device->vtable->memory_destroy(&half);
    CHECK_OK(device->vtable->memory_create(device, 1, &half));
    device->vtable->memory_destroy(&half);
    device->vtable->memory_destroy(&rest);
    device->vtable->close(device);
}

typedef struct slow_log {
    sp_atomic_u32 has_begun, has_ended;
} slow_log;

static void log_slowly(void *ctx, sp_log_level level, const char *message)
{
    slow_log *self = ctx;
    (void)level;
    if (strstr(message, "is lost") == NULL) return;
    sp_store_release(&self->has_begun, 1);
    sp_clock_sleep(20000000);
    sp_store_release(&self->has_ended, 1);
}

TEST(a_lost_device_is_freed_after_its_loss_was_logged)
{
    slow_log log = {0};
    sp_dev *device = NULL;
    REQUIRE_OK(open_default(&device));
    sp_log_set_level(SP_LOG_ERROR);
    sp_log_set_callback(log_slowly, &log);
    (void)sp__fail(SP_DEVICE_LOST, "on request");
    sp__device_lose(device, sp__fault_create(SP_DEVICE_LOST));
    while (sp_load_acquire(&log.has_begun) == 0) sp_thread_yield();
    device->vtable->close(device);
    CHECK_EQ_U64(sp_load_acquire(&log.has_ended), 1);
    sp_log_set_callback(NULL, NULL);
    sp_log_set_level(SP_LOG_WARN);
}

TEST_MAIN
