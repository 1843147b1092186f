/* SPDX-License-Identifier: Apache-2.0 */
/* Device conformance: failures, poison, full queues, lost devices, throttles. */
#include <string.h>

#include "base/heap.h"
#include "base/thread.h"
#include "device/cpu/cpu.h"
#include "device/null/null.h"
#include "device_fixture.h"

TEST(a_failed_command_fails_its_point_and_no_other)
{
    fixture f = fixture_open();
    const sp_command bad = {.type = SP_COMMAND_DISPATCH,
                            .kernel = &kernel_fail,
                            .grid = {1, 1, 1},
                            .label = "node 3 (Conv)"};
    const sp_point before = submit(f.queues[0], NULL, 0);
    const sp_point failed = submit(f.queues[0], &bad, 1);
    const sp_point after = submit(f.queues[0], NULL, 0);
    CHECK_OK(wait_point(after));
    CHECK_OK(wait_point(before));
    for (int i = 0; i < 2; i++) { /* every query gives the same result */
        CHECK_STATUS(wait_point(failed), SP_FAILED);
        CHECK_MESSAGE(fixture_failure());
        CHECK_MESSAGE("node 3 (Conv): fail on stream 0 of");
    }
    fixture_close(&f);
}

TEST(a_failed_command_skips_the_rest_of_its_submission)
{
    fixture f = fixture_open();
    sp_memory words = fixture_words(&f, 2);
    const sp_binding first = bind_words(&words, 0, 1, SP_READ_WRITE);
    const sp_binding second = bind_words(&words, 1, 1, SP_READ_WRITE);
    const sp_command commands[3] = {command_dispatch(&kernel_add_one, 1, &first, 1, NULL, 0),
                                    command_dispatch(&kernel_fail, 1, NULL, 0, NULL, 0),
                                    command_dispatch(&kernel_add_one, 1, &second, 1, NULL, 0)};
    CHECK_STATUS(wait_point(submit(f.queues[0], commands, 3)), SP_FAILED);
    CHECK_EQ_U64(words_of(&words)[0], 1);
    CHECK_EQ_U64(words_of(&words)[1], 0);
    fixture_free(&words);
    fixture_close(&f);
}

TEST(poison_follows_the_data_across_streams_until_it_is_overwritten)
{
    fixture f = fixture_open();
    sp_memory a = fixture_words(&f, 4);
    sp_memory b = fixture_words(&f, 4);
    sp_poison cells[2] = {0};
    const uint32_t seven = 7;
    const sp_binding write_a = bind_poison(&a, 0, 4, SP_WRITE, &cells[0]);
    const sp_command bad = command_dispatch(&kernel_fail, 1, &write_a, 1, NULL, 0);
    const sp_point failed = submit(f.queues[0], &bad, 1);

    const sp_binding copy[2] = {bind_poison(&b, 0, 4, SP_WRITE, &cells[1]),
                                bind_poison(&a, 0, 4, SP_READ, &cells[0])};
    const sp_command consume = command_copy(copy);
    const sp_point consumed = submit_after(f.queues[1], &failed, 1, &consume, 1);
    CHECK_STATUS(wait_point(consumed), SP_FAILED);
    CHECK_MESSAGE(fixture_failure());

    /* A partial write keeps the poison, a full write clears it. */
    const sp_binding part = bind_poison(&a, 0, 2, SP_WRITE, &cells[0]);
    const sp_command fill_part = command_fill(&part, &seven);
    CHECK_OK(wait_point(submit(f.queues[0], &fill_part, 1)));
    CHECK_STATUS(wait_point(submit(f.queues[0], &consume, 1)), SP_FAILED);
    const sp_command fill_all = command_fill(&write_a, &seven);
    CHECK_OK(wait_point(submit(f.queues[0], &fill_all, 1)));
    CHECK_OK(wait_point(submit(f.queues[0], &consume, 1)));
    CHECK_EQ_U64(words_of(&b)[3], 7);
    fixture_free(&a);
    fixture_free(&b);
    fixture_close(&f);
}

TEST(poison_of_an_earlier_life_of_the_memory_does_not_count)
{
    sp_poison poison = {0};
    const sp_fault fault = sp__fault_create(SP_FAILED);
    sp__poison_set(&poison, 4, fault);
    CHECK_EQ_U64(sp__poison_fault(&poison, 4), fault);
    CHECK_EQ_U64(sp__poison_fault(&poison, 5), SP_NO_FAULT);
    sp__poison_set(&poison, 6, fault);
    sp__poison_set(&poison, 5, sp__fault_create(SP_FAILED)); /* late: the memory still exists */
    CHECK_EQ_U64(sp__poison_fault(&poison, 6), fault);
    sp__poison_clear(&poison, 6);
    CHECK_EQ_U64(sp__poison_fault(&poison, 6), SP_NO_FAULT);
}

TEST(untracked_commands_of_a_lease_consume_its_faults)
{
    fixture f = fixture_open();
    const sp_command bad = command_dispatch(&kernel_fail, 1, NULL, 0, NULL, 0);
    sp_submission submission = {
        .commands = &bad, .command_count = 1, .lease = 5, .is_untracked = true};
    sp_point points[3];
    CHECK_OK(try_submit(f.queues[0], &submission, &points[0]));
    submission.command_count = 0;
    CHECK_OK(try_submit(f.queues[0], &submission, &points[1]));
    submission.lease = 6;
    CHECK_OK(try_submit(f.queues[0], &submission, &points[2]));
    CHECK_STATUS(wait_point(points[0]), SP_FAILED);
    CHECK_STATUS(wait_point(points[1]), SP_FAILED);
    CHECK_OK(wait_point(points[2]));
    fixture_close(&f);
}

TEST(a_submission_takes_the_faults_of_those_of_its_waits_that_hand_them_on)
{
    fixture f = fixture_open();
    const sp_command bad = command_dispatch(&kernel_fail, 1, NULL, 0, NULL, 0);
    const sp_point failed = submit(f.queues[0], &bad, 1);
    sp_point waits[2] = {failed, submit(f.queues[0], NULL, 0)};
    sp_submission submission = {.waits = waits, .wait_count = 2};
    sp_point only_after;
    sp_point with_fault;
    sp_point with_other;
    CHECK_OK(try_submit(f.queues[1], &submission, &only_after));
    submission.fault_count = 1;
    CHECK_OK(try_submit(f.queues[1], &submission, &with_fault));
    waits[0] = waits[1];
    waits[1] = failed; /* only followed */
    CHECK_OK(try_submit(f.queues[1], &submission, &with_other));
    CHECK_OK(wait_point(only_after));
    CHECK_STATUS(wait_point(with_fault), SP_FAILED);
    CHECK_OK(wait_point(with_other));
    fixture_close(&f);
}

/* The thread's first failure that was not reported to it yet. */
static sp_fault take_failure(sp_timeline *timeline, uint64_t value, uint64_t thread)
{
    return sp__timeline_take_failures(timeline, value, thread);
}

TEST(each_thread_takes_its_own_failures_once)
{
    fixture f = fixture_open();
    const sp_command bad = command_dispatch(&kernel_fail, 1, NULL, 0, NULL, 0);
    sp_submission submission = {.commands = &bad, .command_count = 1, .thread = 77};
    sp_point point;
    CHECK_OK(f.device->vtable->submit(f.queues[0], &submission, &point));
    CHECK_OK(sp__point_wait_passed(point, SP_NO_DEADLINE));
    sp_timeline *timeline = &f.queues[0]->timeline;
    CHECK_EQ_U64(take_failure(timeline, point.value, 78), SP_NO_FAULT);
    CHECK(take_failure(timeline, point.value, 77) != SP_NO_FAULT);
    CHECK_EQ_U64(take_failure(timeline, point.value, 77), SP_NO_FAULT);
    fixture_close(&f);
}

TEST(failures_beyond_the_ring_are_errors_of_unknown_cause_not_successes)
{
    fixture f = fixture_open();
    const sp_command bad = command_dispatch(&kernel_fail, 1, NULL, 0, NULL, 0);
    sp_point first = {0};
    sp_point last = {0};
    for (int i = 0; i < SP_TIMELINE_FAILURES + 10; i++) {
        last = submit(f.queues[0], &bad, 1);
        if (i == 0) first = last;
        if (i % 512 == 0) CHECK_OK(sp__point_wait_passed(last, SP_NO_DEADLINE));
    }
    CHECK_STATUS(wait_point(last), SP_FAILED);
    CHECK_MESSAGE(fixture_failure());
    CHECK_STATUS(wait_point(first), SP_FAILED);
    CHECK_MESSAGE("no longer known");
    fixture_close(&f);
}

TEST(a_kernel_that_fails_in_one_of_many_tiles_fails_the_dispatch)
{
    fixture f = fixture_open();
    const sp_command bad = command_dispatch(&kernel_fail, 100, NULL, 0, NULL, 0);
    for (int i = 0; i < 20; i++) {
        CHECK_STATUS(wait_point(submit(f.queues[i % FIXTURE_QUEUES], &bad, 1)), SP_FAILED);
        CHECK_MESSAGE(fixture_failure());
    }
    fixture_close(&f);
}

/* ---- limits ---- */

static sp_dev *open_small(uint64_t queue_bytes, uint32_t max_in_flight)
{
    sp_dev *device = NULL;
    if (strcmp(fixture_kind(), "null") == 0) {
        CHECK_OK(sp__null_open(
            &(sp_null_options){.queue_bytes = queue_bytes, .max_in_flight = max_in_flight},
            &device));
    } else {
        CHECK_OK(sp__cpu_open(
            &(sp_cpu_options){.queue_bytes = queue_bytes, .max_in_flight = max_in_flight},
            &device));
    }
    return device;
}

/* Fills the queue behind a held command until it refuses; returns the number of accepted
 * submissions. */
static uint32_t fill_queue(sp_queue *queue, sp_point *last)
{
    meeting held;
    *last = submit_held(queue, &held);
    for (uint32_t count = 1;; count++) {
        const sp_submission submission = {0};
        const sp_status status = try_submit(queue, &submission, last);
        if (status == SP_OK && count < 10000000) continue;
        CHECK_STATUS(status, SP_BUSY);
        CHECK_MESSAGE("wait for some of its work");
        let_go(&held);
        CHECK_OK(wait_point(*last));
        return count;
    }
}

TEST(a_full_queue_is_busy_loses_nothing_and_accepts_again)
{
    sp_dev *device = open_small(4 * 16384, 0);
    sp_queue *queue;
    CHECK_OK(
        device->vtable->queue_create(device, 0, &(sp_queue_options){.is_batching = true}, &queue));
    sp_point last;
    const uint32_t accepted = fill_queue(queue, &last);
    CHECK_EQ_U64(last.value, accepted);
    CHECK(accepted > 100);
    CHECK_OK(wait_point(submit(queue, NULL, 0)));
    device->vtable->close(device);
}

TEST(a_submission_that_does_not_fit_leaves_no_trace)
{
    sp_dev *device = open_small(2 * 16384, 0);
    sp_queue *queue;
    CHECK_OK(
        device->vtable->queue_create(device, 0, &(sp_queue_options){.is_batching = true}, &queue));
    enum { COUNT = 600 };
    uint32_t word = 0;
    const sp_memory memory = sp__memory_at_host(device, &word, sizeof word);
    const sp_binding binding = bind_words(&memory, 0, 1, SP_READ_WRITE);
    sp_command *commands = sp_calloc(COUNT, sizeof *commands);
    for (int i = 0; i < COUNT; i++) {
        commands[i] = command_dispatch(&kernel_add_one, 1, &binding, 1, NULL, 0);
    }
    sp_point point;
    const sp_submission large = {.commands = commands, .command_count = COUNT};
    for (int i = 0; i < 5; i++) {
        CHECK_STATUS(try_submit(queue, &large, &point), SP_BUSY);
        CHECK_OK(wait_point(submit(queue, commands, 20)));
    }
    CHECK_EQ_U64(word, 100);
    sp_free(commands);
    device->vtable->close(device);
}

TEST(the_limit_of_submissions_in_flight_holds)
{
    sp_dev *device = open_small(0, 10);
    sp_queue *queue;
    CHECK_OK(
        device->vtable->queue_create(device, 0, &(sp_queue_options){.is_batching = true}, &queue));
    sp_point last;
    CHECK_EQ_U64(fill_queue(queue, &last), 10);
    CHECK_EQ_U64(fill_queue(queue, &last), 10);
    device->vtable->close(device);
}

TEST(allocation_failures_of_a_submit_are_reported_and_change_nothing)
{
    fixture f = fixture_open();
    const sp_command command = {.type = SP_COMMAND_DISPATCH, .kernel = &kernel_add_one};
    sp_submission submission = {.commands = &command, .command_count = 1};
    uint32_t accepted = 0;
    uint32_t refused = 0;
    sp_point last = {0};
    enum { WAITS = 65 }; /* one more than a queue's initial capacity */
    sp_point waits[WAITS];
    for (uint32_t i = 0; i < 20000; i++) {
        /* Chains of waits and deep queues reach every allocation of a submit. */
        for (uint32_t k = 0; k < WAITS; k++) waits[k] = last;
        submission.waits = waits;
        submission.wait_count = i % 2 == 0 ? 0 : WAITS;
        sp_heap_fail_after(i % 3 == 0 ? 0 : UINT64_MAX);
        const sp_status status =
            try_submit(f.queues[(i / 100) % FIXTURE_QUEUES], &submission, &last);
        sp_heap_fail_after(UINT64_MAX);
        if (status == SP_OK) accepted++;
        if (status == SP_OUT_OF_MEMORY) refused++;
        if (i % 4000 == 3999) {
            for (int q = 0; q < FIXTURE_QUEUES; q++) {
                CHECK_OK(wait_point(submit(f.queues[q], NULL, 0)));
            }
        }
    }
    CHECK_EQ_U64(accepted + refused, 20000);
    CHECK(refused > 0);
    fixture_close(&f);
}

/* ---- faults of the null device ---- */

TEST(a_lost_device_fails_fast_with_the_first_cause_and_others_live_on)
{
    fixture null = fixture_open_kind("null");
    fixture cpu = fixture_open_kind("cpu");
    sp_memory word = fixture_words(&null, 1);
    const sp_binding binding = bind_words(&word, 0, 1, SP_READ_WRITE);
    const sp_command command = command_dispatch(&kernel_add_one, 1, &binding, 1, NULL, 0);
    sp__null_lose(null.device);
    const sp_point point = submit(null.queues[0], &command, 1);
    CHECK_STATUS(wait_point(point), SP_DEVICE_LOST);
    CHECK_MESSAGE("injected loss");
    sp_point more;
    const sp_submission submission = {0};
    CHECK_STATUS(try_submit(null.queues[1], &submission, &more), SP_DEVICE_LOST);
    CHECK_MESSAGE("injected loss");
    CHECK_EQ_U64(words_of(&word)[0], 0);
    CHECK_OK(wait_point(submit(cpu.queues[0], NULL, 0)));
    fixture_free(&word);
    fixture_close(&null);
    fixture_close(&cpu);
}

TEST(the_null_device_fails_the_command_and_the_allocation_that_was_asked)
{
    fixture f = fixture_open_kind("null");
    sp_memory word = fixture_words(&f, 1);
    const sp_binding binding = bind_words(&word, 0, 1, SP_READ_WRITE);
    const sp_command command = command_dispatch(&kernel_add_one, 1, &binding, 1, NULL, 0);
    sp__null_fail_command(f.device, 2);
    for (int i = 0; i < 5; i++) {
        CHECK_STATUS(wait_point(submit(f.queues[0], &command, 1)), i == 2 ? SP_FAILED : SP_OK);
    }
    CHECK_EQ_U64(words_of(&word)[0], 4);
    sp_memory memory;
    sp__null_fail_allocation(f.device, 0);
    CHECK_STATUS(f.device->vtable->memory_create(f.device, 64, &memory), SP_OUT_OF_MEMORY);
    CHECK_OK(f.device->vtable->memory_create(f.device, 64, &memory));
    CHECK_STATUS(f.device->vtable->memory_create(f.device, (uint64_t)2 << 30, &memory),
                 SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("free");
    fixture_free(&word);
    fixture_close(&f);
}

typedef struct quirk_watch {
    sp_atomic_u32 running;
    sp_atomic_u32 peak;
    sp_atomic_u32 total;
} quirk_watch;

typedef struct quirk_constants {
    quirk_watch *watch;
} quirk_constants;

static sp_status quirky(const sp_tile *tile)
{
    quirk_watch *watch = ((const quirk_constants *)tile->constants)->watch;
    const uint32_t running = sp_fetch_add_acq_rel(&watch->running, 1) + 1;
    uint32_t peak = sp_load_relaxed(&watch->peak);
    while (peak < running && !sp_cas_relaxed(&watch->peak, &peak, running)) {
    }
    const uint64_t deadline = sp_clock_deadline(30000000000);
    while (sp_load_relaxed(&watch->peak) < 2 && sp_clock_now() < deadline) sp_thread_yield();
    sp_clock_sleep(1000000); /* for more than the limit, if they may */
    sp_fetch_sub_acq_rel(&watch->running, 1);
    sp_fetch_add_relaxed(&watch->total, 1);
    return SP_OK;
}

TEST(a_quirk_limits_how_many_of_its_commands_run_at_once)
{
    static const sp_kernel kernel = {.name = "quirky", .run = quirky, .quirk = 1};
    fixture f = fixture_open_kind("null"); /* its limit is 2, its width 4 */
    quirk_watch watch = {0};
    const quirk_constants constants = {&watch};
    const sp_command command = command_dispatch(&kernel, 1, NULL, 0, &constants, sizeof constants);
    sp_point points[FIXTURE_QUEUES];
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < FIXTURE_QUEUES; i++) points[i] = submit(f.queues[i], &command, 1);
    }
    CHECK_OK(sp__point_wait_all(points, FIXTURE_QUEUES, sp_clock_deadline(20000000000)));
    CHECK_EQ_U64(sp_load_relaxed(&watch.total), 10 * FIXTURE_QUEUES);
    CHECK_EQ_U64(sp_load_relaxed(&watch.peak), 2);
    fixture_close(&f);
}

#if defined(__x86_64__)
static sp_status tiny_product(const sp_tile *tile)
{
    volatile float tiny = 1e-30f;
    volatile float third = 3.0f;
    float *out = tile->bindings[0];
    out[0] = tiny * 1e-12f; /* subnormal: 0 under flush to zero */
    out[1] = 1.0f / third;  /* differs in the last bit when rounded up */
    return SP_OK;
}

TEST(a_callers_floating_point_state_changes_no_result_and_is_given_back)
{
    if (strcmp(fixture_kind(), "cuda") == 0) SKIP("kernels of a GPU do not run on the caller");
    static const sp_kernel kernel = {.name = "tiny_product", .run = tiny_product};
    fixture f = fixture_open();
    sp_memory words = fixture_words(&f, 4);
    const sp_binding plain = bind_words(&words, 0, 2, SP_WRITE);
    const sp_binding odd = bind_words(&words, 2, 2, SP_WRITE);
    const sp_command plain_command = command_dispatch(&kernel, 1, &plain, 1, NULL, 0);
    const sp_command odd_command = command_dispatch(&kernel, 1, &odd, 1, NULL, 0);
    CHECK_OK(wait_point(submit(f.queues[0], &plain_command, 1)));
    const uint32_t before = __builtin_ia32_stmxcsr();
    const uint32_t strange = 0x1f80u | 0x8040u | 0x4000u; /* FTZ, DAZ, round up */
    __builtin_ia32_ldmxcsr(strange);
    const sp_status status = wait_point(submit(f.queues[1], &odd_command, 1));
    const uint32_t after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    CHECK_OK(status);
    CHECK_EQ_U64(after & ~0x3fu, strange);
    CHECK_EQ_MEM(words_of(&words), words_of(&words) + 2, 8);
    CHECK(words_of(&words)[0] != 0);
    fixture_free(&words);
    fixture_close(&f);
}
#endif

TEST_MAIN
