/* SPDX-License-Identifier: Apache-2.0 */
/* Lists whose last kernel tells that they are done: what threads that wait for them look at. */
#include "base/clock.h"
#include "base/thread.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "fake_signal.h"
#include "gpu_fixture.h"
#include "support/test.h"

/* As sp_cuda_bindings of a kernel's parameters. */
typedef struct bindings {
    void *at[SP_MAX_BINDINGS];
} bindings;

static void fake_increment(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid, (void)block;
    sp_fetch_add_relaxed((sp_atomic_u32 *)((const bindings *)params[0])->at[0], 1);
}

static void fake_signal(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid, (void)block;
    fake_signal_run(((const bindings *)params[0])->at, params[1]);
}

static const char image[] = "FAKE\nincrement 144 8\nsignal 144 8\n";
static const gpu_fake_kernel fake_kernels[] = {{"increment", fake_increment},
                                               {"signal", fake_signal}};

static sp_gpu_program program = {.name = "words", .source = image, .kernel_count = 2};
static const sp_gpu_kernel gpu_increment = {.program = &program, .entry = "increment", .index = 0};
static const sp_gpu_kernel gpu_signal = {
    .program = &program, .entry = "signal", .index = 1, .signals = true};
static const sp_kernel kernel_increment = {.name = "increment", .gpu = &gpu_increment};
static const sp_kernel kernel_signal = {.name = "signal", .gpu = &gpu_signal};
static const uint64_t one = 1;

/* A GPU with a queue and a number in its memory, which the host can read too: it is the fake
 * driver's. */
typedef struct words_case {
    sp_dev *device;
    sp_queue *queue;
    sp_memory memory;
    sp_binding number;
} words_case;

static void case_open(words_case *c)
{
    *c = (words_case){0};
    gpu_program_begin(&program, image, fake_kernels, SP_COUNT_OF(fake_kernels));
    CHECK_OK(sp__cuda_open(0, &c->device));
    const sp_device_vtable *vtable = c->device->vtable;
    CHECK_OK(
        vtable->queue_create(c->device, 0, &(sp_queue_options){.is_batching = true}, &c->queue));
    CHECK_OK(vtable->staging_create(c->device, sizeof(uint32_t), &c->memory));
    sp_store_relaxed((sp_atomic_u32 *)c->memory.host, 0);
    c->number =
        (sp_binding){.memory = &c->memory, .bytes = sizeof(uint32_t), .access = SP_READ_WRITE};
}

static void case_close(words_case *c)
{
    c->device->vtable->stop(c->device);
    c->device->vtable->staging_destroy(&c->memory);
    c->device->vtable->close(c->device);
    fake_cuda_reset();
    CHECK_EQ_U64(fake_cuda_live_all(), 0);
}

static sp_atomic_u32 *number_at(const words_case *c)
{
    return (sp_atomic_u32 *)c->memory.host;
}

static uint32_t number_of(const words_case *c)
{
    return sp_load_relaxed(number_at(c));
}

static sp_command increment(const words_case *c)
{
    return (sp_command){.type = SP_COMMAND_DISPATCH,
                        .kernel = &kernel_increment,
                        .grid = {1, 1, 1},
                        .bindings = &c->number,
                        .binding_count = 1,
                        .constants = &one,
                        .constant_bytes = sizeof one};
}

/* An increment, then a signal, unless there is none. */
static sp_list *list_of(const words_case *c, bool signals)
{
    sp_list *list = NULL;
    const sp_command commands[] = {increment(c),
                                   {.type = SP_COMMAND_DISPATCH,
                                    .kernel = &kernel_signal,
                                    .grid = {1, 1, 1},
                                    .constants = &one,
                                    .constant_bytes = sizeof one}};
    CHECK_OK(c->device->vtable->list_create(c->device, commands, signals ? 2 : 1, 0, &list));
    return list;
}

static void list_release(const words_case *c, sp_list *list)
{
    c->device->vtable->list_release(list);
}

static sp_list *open_with_list(words_case *c, bool signals)
{
    case_open(c);
    return list_of(c, signals);
}

static void close_with_list(words_case *c, sp_list *list)
{
    list_release(c, list);
    case_close(c);
}

static sp_point submit(const words_case *c, const sp_command *commands, uint32_t count)
{
    sp_point point = {0};
    const sp_submission submission = {
        .commands = commands, .command_count = count, .thread = sp__thread_record()->number};
    CHECK_OK(c->device->vtable->submit(c->queue, &submission, &point));
    c->device->vtable->kick(c->queue);
    return point;
}

static sp_point submit_list(const words_case *c, sp_list *list)
{
    const sp_command command = {.type = SP_COMMAND_LIST, .list = list};
    return submit(c, &command, 1);
}

static sp_status wait_for(sp_point point)
{
    return sp__point_wait(point, sp_clock_deadline(INT64_C(30000000000)));
}

static uint64_t calls_of_events(void)
{
    return sp__cuda_call_count(SP_CUDA_CALL_cuEventRecord) +
           sp__cuda_call_count(SP_CUDA_CALL_cuEventQuery);
}

TEST(a_list_that_signals_is_done_without_a_call_of_the_driver)
{
    words_case c;
    sp_list *list = open_with_list(&c, true);
    const uint64_t before = calls_of_events();
    for (uint32_t i = 1; i <= 50; i++) {
        const sp_point point = submit_list(&c, list);
        while (number_of(&c) != i) sp_thread_yield();
        fake_cuda_drain(); /* the stream has ended the list */
        for (uint32_t look = 0; look < 100 && !sp__point_poll(point); look++) sp_thread_yield();
        CHECK(sp__point_poll(point));
    }
    CHECK_EQ_U64(calls_of_events(), before);
    close_with_list(&c, list);
}

TEST(a_list_without_a_signal_is_done_by_an_event)
{
    words_case c;
    sp_list *list = open_with_list(&c, false);
    const uint64_t before = calls_of_events();
    CHECK_OK(wait_for(submit_list(&c, list)));
    CHECK_EQ_U64(number_of(&c), 1);
    CHECK(calls_of_events() > before);
    close_with_list(&c, list);
}

TEST(launches_of_one_list_in_flight_are_told_apart)
{
    words_case c;
    sp_list *list = open_with_list(&c, true);
    sp_point points[8];
    fake_cuda_hold(true);
    for (uint32_t i = 0; i < SP_COUNT_OF(points); i++) {
        points[i] = submit_list(&c, list);
        (void)sp__point_poll(points[i]); /* a signal for each */
    }
    for (uint32_t i = 0; i < SP_COUNT_OF(points); i++) CHECK(!sp__point_poll(points[i]));
    fake_cuda_hold(false);
    for (uint32_t i = 0; i < SP_COUNT_OF(points); i++) {
        CHECK_OK(wait_for(points[i]));
        CHECK(number_of(&c) >= i + 1);
    }
    close_with_list(&c, list);
}

/* The list is done, and its word raised, while what comes behind it is held. */
static void check_held_behind(words_case *c, const sp_command *commands, uint32_t count)
{
    fake_cuda_set_delay(20000000); /* of each command of a stream */
    const sp_point point = submit(c, commands, count);
    while (number_of(c) == 0) sp_thread_yield();
    for (uint32_t look = 0; look < 1000 && number_of(c) < 2; look++) {
        const bool is_done = sp__point_poll(point);
        CHECK(!is_done || number_of(c) == 2);
    }
    CHECK_OK(wait_for(point));
    CHECK_EQ_U64(number_of(c), 2);
}

TEST(what_follows_a_list_in_its_submission_is_waited_for)
{
    words_case c;
    case_open(&c);
    sp_list *list = list_of(&c, true), *plain = list_of(&c, false);
    const sp_command first = {.type = SP_COMMAND_LIST, .list = list};
    check_held_behind(&c, (const sp_command[]){first, increment(&c)}, 2);
    sp_store_relaxed(number_at(&c), 0);
    check_held_behind(&c, (const sp_command[]){first, {.type = SP_COMMAND_LIST, .list = plain}}, 2);
    list_release(&c, plain);
    close_with_list(&c, list);
}

TEST(a_submission_behind_that_of_a_list_is_waited_for)
{
    words_case c;
    sp_list *list = open_with_list(&c, true);
    CHECK_OK(wait_for(submit_list(&c, list)));
    sp_store_relaxed(number_at(&c), 0);
    const sp_command commands[] = {increment(&c), increment(&c)};
    check_held_behind(&c, commands, 2);
    close_with_list(&c, list);
}

TEST(another_queue_waits_for_a_list_on_the_gpu)
{
    words_case c;
    sp_list *list = open_with_list(&c, true);
    words_case other = c; /* the same number */
    CHECK_OK(c.device->vtable->queue_create(c.device, 1, &(sp_queue_options){.is_batching = true},
                                            &other.queue));
    fake_cuda_hold(true);
    const sp_point first = submit_list(&c, list);
    (void)sp__point_poll(first); /* its signal is a word, without an event */
    const sp_command command = increment(&other);
    const sp_submission submission = {.commands = &command,
                                      .command_count = 1,
                                      .waits = &first,
                                      .wait_count = 1,
                                      .thread = sp__thread_record()->number};
    sp_point second = {0};
    const uint64_t before = sp__cuda_call_count(SP_CUDA_CALL_cuStreamWaitEvent);
    CHECK_OK(c.device->vtable->submit(other.queue, &submission, &second));
    c.device->vtable->kick(other.queue);
    CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuStreamWaitEvent), before + 1);
    CHECK(!sp__point_poll(second));
    fake_cuda_hold(false);
    CHECK_OK(wait_for(second));
    CHECK_EQ_U64(number_of(&c), 2);
    close_with_list(&c, list);
}

TEST(a_list_that_is_issued_by_commands_leaves_its_signal_out)
{
    words_case c;
    case_open(&c);
    sp_atomic_u64 time = {0};
    sp_list *list = NULL;
    const sp_command commands[] = {{.type = SP_COMMAND_TIMESTAMP, .timestamp = &time},
                                   increment(&c),
                                   {.type = SP_COMMAND_DISPATCH,
                                    .kernel = &kernel_signal,
                                    .grid = {1, 1, 1},
                                    .constants = &one,
                                    .constant_bytes = sizeof one}};
    CHECK_OK(c.device->vtable->list_create(c.device, commands, 3, 0, &list));
    CHECK_OK(wait_for(submit_list(&c, list)));
    CHECK_EQ_U64(number_of(&c), 1);
    CHECK(sp_load_relaxed(&time) != 0);
    close_with_list(&c, list);
}

TEST(words_are_used_again)
{
    enum { LISTS = 300 }; /* more than are made at a time */
    words_case c;
    case_open(&c);
    sp_list *lists[LISTS];
    uint32_t expected = 0;
    for (uint32_t round = 0; round < 3; round++) {
        const uint64_t pinned = fake_cuda_live(FAKE_PINNED_MEMORY);
        for (uint32_t i = 0; i < LISTS; i++) {
            lists[i] = list_of(&c, true);
            for (uint32_t k = 0; k <= i % 3; k++, expected++) {
                CHECK_OK(wait_for(submit_list(&c, lists[i])));
            }
        }
        CHECK_EQ_U64(number_of(&c), expected);
        if (round > 0) CHECK_EQ_U64(fake_cuda_live(FAKE_PINNED_MEMORY), pinned);
        for (uint32_t i = 0; i < LISTS; i++) list_release(&c, lists[i]);
    }
    case_close(&c);
}

static uint64_t calls_that_free(void)
{
    return sp__cuda_call_count(SP_CUDA_CALL_cuMemFreeHost) +
           sp__cuda_call_count(SP_CUDA_CALL_cuMemFree);
}

TEST(without_memory_for_a_word_a_list_is_done_by_an_event)
{
    /* In the order of the calls: so many allocations have been made before. */
    static const char *const calls[] = {"cuMemHostAlloc", "cuMemAlloc", "cuMemsetD8Async"};
    for (size_t i = 0; i < SP_COUNT_OF(calls); i++) {
        words_case c;
        case_open(&c);
        fake_cuda_fail_call(calls[i], 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
        const uint64_t frees = calls_that_free();
        sp_list *list = list_of(&c, true);
        CHECK_EQ_U64(calls_that_free() - frees, i);
        const uint64_t before = calls_of_events();
        CHECK_OK(wait_for(submit_list(&c, list)));
        CHECK_EQ_U64(number_of(&c), 1);
        CHECK(calls_of_events() > before);
        close_with_list(&c, list);
    }
}

/* An increment of what slot 0 is bound to, and a signal. */
static sp_list *list_with_slot(const words_case *c)
{
    sp_list *list = NULL;
    const sp_binding slot = {.bytes = sizeof(uint32_t), .access = SP_READ_WRITE};
    sp_command commands[] = {increment(c),
                             {.type = SP_COMMAND_DISPATCH,
                              .kernel = &kernel_signal,
                              .grid = {1, 1, 1},
                              .constants = &one,
                              .constant_bytes = sizeof one}};
    commands[0].bindings = &slot;
    CHECK_OK(c->device->vtable->list_create(c->device, commands, 2, 1, &list));
    return list;
}

static sp_point submit_list_with_slot(const words_case *c, sp_list *list)
{
    const sp_command command = {
        .type = SP_COMMAND_LIST, .list = list, .bindings = &c->number, .binding_count = 1};
    return submit(c, &command, 1);
}

TEST(a_list_whose_launch_failed_is_launched_again)
{
    static const char *const calls[] = {"cuGraphLaunch", "cuGraphExecKernelNodeSetParams"};
    for (size_t i = 0; i < SP_COUNT_OF(calls); i++) {
        words_case c;
        case_open(&c);
        sp_list *list = list_with_slot(&c);
        fake_cuda_fail_call(calls[i], 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(wait_for(submit_list_with_slot(&c, list)), SP_OUT_OF_MEMORY);
        CHECK_MESSAGE(calls[i]);
        for (uint32_t n = 1; n <= 3; n++) {
            fake_cuda_set_delay(1000000);
            CHECK_OK(wait_for(submit_list_with_slot(&c, list)));
            CHECK_EQ_U64(number_of(&c), n);
        }
        close_with_list(&c, list);
    }
}

TEST(a_launch_can_find_the_device_lost)
{
    static const char *const calls[] = {"cuGraphLaunch", "cuGraphExecKernelNodeSetParams"};
    for (size_t i = 0; i < SP_COUNT_OF(calls); i++) {
        words_case c;
        case_open(&c);
        sp_list *list = list_with_slot(&c);
        fake_cuda_fail_call(calls[i], 1, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK_STATUS(wait_for(submit_list_with_slot(&c, list)), SP_DEVICE_LOST);
        CHECK_MESSAGE(calls[i]);
        close_with_list(&c, list);
    }
}

/* No wait asks for the list, so only the looks can find the fault. */
TEST(a_fault_in_a_list_that_signals_is_seen_by_a_thread_that_looks_seldom)
{
    enum { LOOKS = 100 };
    words_case c;
    sp_list *list = open_with_list(&c, true);
    CHECK_OK(wait_for(submit_list(&c, list)));
    fake_cuda_fail_kernel(1, CUDA_ERROR_ILLEGAL_ADDRESS);
    const sp_point point = submit_list(&c, list);
    uint32_t looks = 0;
    while (!sp__point_poll(point) && ++looks < LOOKS) sp_clock_sleep(10000000);
    fake_cuda_reset();
    REQUIRE(looks < LOOKS); /* else nothing ends the list */
    CHECK_STATUS(wait_for(point), SP_DEVICE_LOST);
    close_with_list(&c, list);
}

/* The last one: a device whose list does not end cannot be closed. */
TEST(a_fault_in_a_list_that_signals_ends_the_wait)
{
    words_case c;
    sp_list *list = open_with_list(&c, true);
    CHECK_OK(wait_for(submit_list(&c, list)));
    fake_cuda_fail_kernel(1, CUDA_ERROR_ILLEGAL_ADDRESS);
    const sp_status status =
        sp__point_wait(submit_list(&c, list), sp_clock_deadline(INT64_C(5000000000)));
    REQUIRE_EQ_INT(status, SP_DEVICE_LOST); /* else nothing ends the list */
    CHECK_MESSAGE("CUDA_ERROR_ILLEGAL_ADDRESS");
    CHECK_MESSAGE("kernel increment"); /* not the one that signals */
    close_with_list(&c, list);
}

TEST_MAIN
