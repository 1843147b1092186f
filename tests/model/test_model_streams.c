/* SPDX-License-Identifier: Apache-2.0 */
/* Models with scarce streams and run slots: 2 streams besides the default one, 1 run slot, and
 * threads that wait for a stream without a time limit. */
#include <string.h>

#include <streampool/event.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/thread.h"
#include "run_fixture.h"

#define COLUMNS 4
#define RESULTS 3

/* The bits of one row's results. */
typedef struct row_bits {
    uint32_t bits[RESULTS];
} row_bits;

static row_bits run_row(sp_model model)
{
    float in[COLUMNS] = {1, 2, 3, 4};
    float out[RESULTS] = {0};
    row_bits row;
    sp_host_tensor input = {
        .data = in, .bytes = sizeof in, .dtype = SP_F32, .rank = 2, .shape = {1, COLUMNS}};
    sp_host_tensor output = {.data = out, .capacity = sizeof out};
    CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
    memcpy(&row, out, sizeof row);
    return row;
}

static void check_row(sp_model model, const row_bits *expected)
{
    const row_bits row = run_row(model);
    CHECK_EQ_MEM(&row, expected, sizeof row);
}

typedef struct crowd {
    sp_model model;
    const row_bits *expected; /* NULL: not run yet */
    uint32_t rounds;
} crowd;

static void run_rows(void *arg, uint32_t index)
{
    const crowd *c = arg;
    (void)index;
    for (uint32_t i = 0; i < c->rounds; i++) {
        if (c->expected != NULL) {
            check_row(c->model, c->expected);
        } else {
            run_row(c->model);
        }
    }
    CHECK_OK(sp_thread_release_stream()); /* for threads that wait for it */
}

TEST(more_threads_than_streams_run_a_model_and_wait_for_streams)
{
    crowd c = {.model = small_model(NULL), .rounds = (uint32_t)test_count(100000, 5000)};
    const row_bits expected = run_row(c.model);
    c.expected = &expected;
    test_threads(8, run_rows, &c);
    CHECK_OK(sp_model_release(c.model));
}

TEST(more_threads_than_streams_build_the_plan_and_wait_for_streams)
{
    for (uint32_t round = 0; round < test_count(500, 20); round++) {
        crowd c = {.model = small_model(NULL), .rounds = 2};
        test_threads(8, run_rows, &c);
        CHECK_OK(sp_model_release(c.model));
    }
}

/* ---- callbacks ---- */

typedef struct encounter {
    sp_model model;
    row_bits expected;
    sp_stream stream;
    sp_atomic_u32 is_called;  /* the callback has begun */
    sp_atomic_u32 has_run;    /* its run has ended */
    sp_atomic_u32 is_through; /* the host function has run */
} encounter;

static void run_in_callback(void *ctx, sp_status status)
{
    encounter *e = ctx;
    CHECK_STATUS(status, SP_OK);
    sp_store_release(&e->is_called, 1);
    check_row(e->model, &e->expected);
    sp_store_release(&e->has_run, 1);
}

static void note_through(void *ctx, sp_status status)
{
    encounter *e = ctx;
    CHECK_STATUS(status, SP_OK);
    sp_store_release(&e->is_through, 1);
}

/* Acquires the only slot, and waits behind the host function. */
static void run_behind_function(void *arg)
{
    encounter *e = arg;
    CHECK_OK(sp_stream_set_current(e->stream));
    check_row(e->model, &e->expected);
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
}

static void await(sp_atomic_u32 *word)
{
    while (!sp_load_acquire(word)) sp_thread_yield();
}

TEST(a_run_inside_a_callback_does_not_keep_host_functions_from_running)
{
    encounter e = {.model = small_model(NULL)};
    e.expected = run_row(e.model);
    sp_stream other;
    sp_event event;
    sp_storage key;
    void *bytes;
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &e.stream));
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &other));
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_storage_create((sp_device){0}, 1, NULL, &key));
    CHECK_OK(sp_storage_host_begin(key, SP_WRITE, &bytes));
    const uint8_t zero = 0;
    const sp_storage_range all = {.storage = key, .bytes = 1};
    CHECK_OK(sp_storage_fill_async(e.stream, all, &zero, 1)); /* the gate */
    CHECK_OK(sp_stream_host_function(e.stream, note_through, &e));
    sp_thread runner;
    CHECK_OK(sp_thread_create(&runner, "runner", run_behind_function, &e));
    await_in_flight(e.model, 1);
    CHECK_OK(sp_event_record(event, other));
    CHECK_OK(sp_event_on_complete(event, run_in_callback, &e));
    await(&e.is_called);
    CHECK_OK(sp_storage_host_end(key, SP_WRITE));
    await(&e.is_through);
    await(&e.has_run);
    sp_thread_join(&runner);
    CHECK_OK(sp_storage_release(key));
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_release(other));
    CHECK_OK(sp_stream_release(e.stream));
    CHECK_OK(sp_model_release(e.model));
}

TEST_MAIN
