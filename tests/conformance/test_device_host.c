/* SPDX-License-Identifier: Apache-2.0 */
/* Device conformance: host functions, and waits inside them. */
#include "base/thread.h"
#include "device/thread_record.h"
#include "device_fixture.h"

typedef struct host_record {
    uint32_t order[8];
    uint32_t count;
} host_record;

typedef struct host_step {
    host_record *record;
    uint32_t number;
} host_step;

static sp_status note_step(void *ctx, sp_fault fault)
{
    const host_step *step = ctx;
    (void)fault;
    step->record->order[step->record->count++] = step->number;
    return SP_OK;
}

TEST(host_functions_run_in_stream_order)
{
    fixture f = fixture_open();
    host_record record = {{0}, 0};
    host_step steps[6];
    sp_point point = {0};
    for (uint32_t i = 0; i < 6; i++) {
        steps[i] = (host_step){&record, i};
        const sp_command command = command_host(note_step, &steps[i]);
        point = submit(f.queues[0], &command, 1);
    }
    CHECK_OK(wait_point(point));
    CHECK_EQ_U64(record.count, 6);
    for (uint32_t i = 0; i < 6; i++) CHECK_EQ_U64(record.order[i], i);
    fixture_close(&f);
}

typedef struct resubmit {
    sp_queue *queue;
    sp_binding binding;
    sp_point inner;
} resubmit;

static sp_status submit_more(void *ctx, sp_fault fault)
{
    resubmit *again = ctx;
    (void)fault;
    const sp_command command = command_dispatch(&kernel_add_one, 1, &again->binding, 1, NULL, 0);
    again->inner = submit(again->queue, &command, 1);
    return SP_OK;
}

TEST(a_host_function_may_submit_to_its_own_stream)
{
    fixture f = fixture_open();
    sp_memory word = fixture_words(&f, 1);
    resubmit again = {.queue = f.queues[0], .binding = bind_words(&word, 0, 1, SP_READ_WRITE)};
    const sp_command command = command_host(submit_more, &again);
    CHECK_OK(wait_point(submit(f.queues[0], &command, 1)));
    CHECK_OK(wait_point(again.inner));
    CHECK_EQ_U64(words_of(&word)[0], 1);
    fixture_free(&word);
    fixture_close(&f);
}

typedef struct waiting {
    sp_queue *submit_to; /* or NULL */
    sp_point point;
    sp_status status;
    sp_atomic_u32 *gate; /* if not NULL: waits until it is raised */
} waiting;

static sp_status wait_inside(void *ctx, sp_fault fault)
{
    waiting *wait = ctx;
    (void)fault;
    while (wait->gate != NULL && sp_load_acquire(wait->gate) == 0) sp_thread_yield();
    if (wait->submit_to != NULL) wait->point = submit(wait->submit_to, NULL, 0);
    wait->status = sp__point_wait(wait->point, SP_NO_DEADLINE);
    return SP_OK;
}

TEST(a_wait_for_ones_own_stream_is_a_deadlock)
{
    fixture f = fixture_open();
    waiting wait = {.submit_to = f.queues[0]};
    const sp_command command = command_host(wait_inside, &wait);
    /* Once run by the waiting thread itself, once by the host executor. */
    CHECK_OK(wait_point(submit(f.queues[0], &command, 1)));
    CHECK_STATUS(wait.status, SP_DEADLOCK);
    wait.status = SP_OK;
    const sp_point point = submit(f.queues[0], &command, 1);
    f.device->vtable->flush(f.queues[0]);
    while (!sp__point_has_passed(point)) sp__point_flush(point);
    CHECK_STATUS(wait.status, SP_DEADLOCK);
    CHECK_OK(wait_point(wait.point));
    fixture_close(&f);
}

TEST(a_deadlock_through_another_stream_is_found)
{
    fixture f = fixture_open();
    sp_atomic_u32 gate = {0};
    waiting wait = {.gate = &gate};
    const sp_command command = command_host(wait_inside, &wait);
    const sp_point host = submit(f.queues[0], &command, 1);
    const sp_point middle = submit_after(f.queues[1], &host, 1, NULL, 0);
    wait.point = submit_after(f.queues[2], &middle, 1, NULL, 0);
    sp_store_release(&gate, 1);
    CHECK_OK(wait_point(wait.point));
    CHECK_STATUS(wait.status, SP_DEADLOCK);
    fixture_close(&f);
}

TEST(of_two_host_functions_that_wait_for_each_other_one_is_refused)
{
    fixture f = fixture_open();
    sp_atomic_u32 gate = {0};
    waiting waits[2] = {{.gate = &gate}, {.gate = &gate}};
    sp_point points[2];
    for (int i = 0; i < 2; i++) {
        const sp_command command = command_host(wait_inside, &waits[i]);
        points[i] = submit(f.queues[i], &command, 1);
    }
    waits[0].point = points[1];
    waits[1].point = points[0];
    sp_store_release(&gate, 1);
    CHECK_OK(sp__point_wait_all(points, 2, sp_clock_deadline(10000000000)));
    CHECK((waits[0].status == SP_DEADLOCK) != (waits[1].status == SP_DEADLOCK));
    fixture_close(&f);
}

TEST(a_host_function_may_wait_for_others_that_run_after_it_was_queued)
{
    fixture f = fixture_open();
    enum { CHAIN = 6 };
    sp_atomic_u32 gate = {0};
    waiting waits[CHAIN];
    sp_point points[CHAIN];
    for (int i = 0; i < CHAIN; i++) {
        waits[i] = (waiting){.gate = &gate};
        const sp_command command = command_host(wait_inside, &waits[i]);
        points[i] = submit(f.queues[i], &command, 1);
        f.device->vtable->flush(f.queues[i]);
    }
    /* Each waits for the next function in the executor's list, the last for nothing. */
    for (int i = 0; i + 1 < CHAIN; i++) waits[i].point = points[i + 1];
    sp_store_release(&gate, 1);
    CHECK_OK(sp__point_wait_all(points, CHAIN, sp_clock_deadline(10000000000)));
    for (int i = 0; i < CHAIN; i++) CHECK_STATUS(waits[i].status, SP_OK);
    fixture_close(&f);
}

static sp_status see_fault(void *ctx, sp_fault fault)
{
    *(sp_fault *)ctx = fault;
    return SP_OK;
}

TEST(a_host_function_runs_even_after_a_failure_and_hears_of_it)
{
    fixture f = fixture_open();
    sp_fault seen = SP_NO_FAULT;
    const sp_command commands[2] = {command_dispatch(&kernel_fail, 1, NULL, 0, NULL, 0),
                                    command_host(see_fault, &seen)};
    CHECK_STATUS(wait_point(submit(f.queues[0], commands, 2)), SP_FAILED);
    CHECK_STATUS(sp__fault_status(seen), SP_FAILED);
    fixture_close(&f);
}

static sp_status fail_on_host(void *ctx, sp_fault fault)
{
    (void)ctx;
    (void)fault;
    return sp__fail(SP_CANCELLED, "the host said no");
}

TEST(a_host_function_that_fails_fails_its_submission)
{
    fixture f = fixture_open();
    const sp_command command = command_host(fail_on_host, NULL);
    CHECK_STATUS(wait_point(submit(f.queues[0], &command, 1)), SP_CANCELLED);
    CHECK_MESSAGE("the host said no");
    CHECK_OK(wait_point(submit(f.queues[0], NULL, 0)));
    fixture_close(&f);
}

typedef struct host_storm {
    fixture f;
    sp_atomic_u64 ran;
    uint32_t rounds;
} host_storm;

static sp_status count_run(void *ctx, sp_fault fault)
{
    (void)fault;
    sp_fetch_add_relaxed((sp_atomic_u64 *)ctx, (uint64_t)1);
    return SP_OK;
}

static void host_storm_thread(void *arg, uint32_t index)
{
    host_storm *storm = arg;
    for (uint32_t i = 0; i < storm->rounds; i++) {
        const sp_command command = command_host(count_run, &storm->ran);
        const sp_point point = submit(storm->f.queues[(index + i) % FIXTURE_QUEUES], &command, 1);
        if (i % 3 == 0) CHECK_OK(wait_point(point));
    }
}

TEST(host_functions_of_many_threads_all_run_once)
{
    host_storm storm = {.f = fixture_open(), .rounds = (uint32_t)test_count(10000, 300)};
    test_threads(8, host_storm_thread, &storm);
    fixture_close(&storm.f);
    CHECK_EQ_U64(sp_load_relaxed(&storm.ran), 8 * storm.rounds);
}

TEST_MAIN
