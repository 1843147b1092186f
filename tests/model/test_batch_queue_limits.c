/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues: places in the queue, options that change under load, submits and waits inside
 * callbacks. Needs STREAMPOOL_BATCHING=always. */
#include "batch_queue_fixture.h"

#include <string.h>

#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/thread.h"
#include "batch/batch_queue.h"

#define LONG_NS INT64_C(3600000000000) /* longer than any test */

/* ---- places ---- */

TEST(a_full_queue_refuses_if_it_is_to)
{
    enum { MOST = 5 };
    queued_row rows[MOST + 1];
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.max_waiting = MOST, .refuse_when_full = true};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, MOST + 1);
    held_slots held = slots_hold(model);
    queued_rows_submit(queue, rows, MOST);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(queued_row_submit(queue, &rows[MOST]), SP_BUSY);
        CHECK_MESSAGE("5 requests wait in the batch queue");
        CHECK_EQ_U64(rows[MOST].future.bits, 0);
    }
    CHECK_EQ_U64(queue_statistics(queue).refused, 3);
    slots_give(&held);
    queued_rows_finish(rows, MOST);
    queued_rows_submit(queue, rows + MOST, 1);
    queued_rows_finish(rows + MOST, 1);
    queue_check_done(queue, MOST + 1);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* A submit that fails gives its place back. */
TEST(a_refused_request_takes_no_place)
{
    queued_row row;
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.max_waiting = 1, .refuse_when_full = true};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, &row, 0, 1);
    for (int i = 0; i < 4; i++) {
        const sp_host_tensor x = input_x(1);
        sp_host_tensor y = output_y(row.y, 1); /* too small */
        CHECK_STATUS(sp_batch_queue_submit(queue, NULL, &x, 1, &y, 1, &row.future), SP_MISMATCH);
        CHECK_EQ_U64(row.future.bits, 0);
    }
    CHECK_OK(queued_row_submit(queue, &row));
    queued_row_finish(&row);
    queue_check_done(queue, 1);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

typedef struct submitter {
    sp_batch_queue queue;
    queued_row row;
    sp_thread thread;
    sp_atomic_u32 *submitted;
} submitter;

static void submit_one(void *arg)
{
    submitter *s = arg;
    CHECK_OK(queued_row_submit(s->queue, &s->row));
    sp_fetch_add_acq_rel(s->submitted, 1);
    queued_row_finish(&s->row);
}

/* The device is busy, the queue full, and more submitters wait than it has places. */
TEST(a_submit_waits_until_the_queue_has_room)
{
    enum { MOST = 4, SUBMITTERS = 16 };
    static submitter all[SUBMITTERS];
    sp_atomic_u32 submitted = {0};
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.max_waiting = MOST};
    const sp_batch_queue queue = queue_open(model, &options);
    for (uint32_t i = 0; i < SUBMITTERS; i++) {
        all[i] = (submitter){.queue = queue, .submitted = &submitted};
        queued_rows_init(model, &all[i].row, i, 1);
    }
    for (uint64_t round = 0; round < test_count(200, 20); round++) {
        held_slots held = slots_hold(model);
        sp_store_relaxed(&submitted, 0);
        for (uint32_t i = 0; i < SUBMITTERS; i++) {
            CHECK_OK(sp_thread_create(&all[i].thread, "submitter", submit_one, &all[i]));
        }
        await_count(&submitted, MOST);
        queue_await_waiting(queue, MOST);
        CHECK_EQ_U64(queue_statistics(queue).waiting, MOST);
        CHECK_EQ_U64(sp_load_acquire(&submitted), MOST);
        slots_give(&held);
        for (uint32_t i = 0; i < SUBMITTERS; i++) sp_thread_join(&all[i].thread);
    }
    CHECK_EQ_U64(queue_statistics(queue).refused, 0);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(more_places_let_waiting_submitters_in)
{
    static submitter all[6];
    sp_atomic_u32 submitted = {0};
    const sp_model model = queue_model();
    sp_batch_queue_options options = {.max_waiting = 1};
    const sp_batch_queue queue = queue_open(model, &options);
    for (uint32_t i = 0; i < 6; i++) {
        all[i] = (submitter){.queue = queue, .submitted = &submitted};
        queued_rows_init(model, &all[i].row, i, 1);
    }
    held_slots held = slots_hold(model);
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_OK(sp_thread_create(&all[i].thread, "submitter", submit_one, &all[i]));
    }
    queue_await_waiting(queue, 1);
    options.max_waiting = 6;
    CHECK_OK(sp_batch_queue_configure(queue, &options));
    await_count(&submitted, 6);
    CHECK_EQ_U64(queue_statistics(queue).waiting, 6);
    slots_give(&held);
    for (uint32_t i = 0; i < 6; i++) sp_thread_join(&all[i].thread);
    queue_check_done(queue, 6);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* ---- threads with a check ---- */

typedef struct place_check {
    sp_batch_queue queue;
    queued_row *row;  /* which each call submits, to be refused */
    held_slots *held; /* are given at the last call; NULL: the wait is given up */
    uint32_t last;
    sp_atomic_u32 calls; /* orders nothing */
} place_check;

static sp_status check_place(void *ctx)
{
    place_check *self = ctx;
    const sp_run_options at_once = {.timeout_ns = 1};
    CHECK_STATUS(queued_row_submit_with(self->queue, &at_once, self->row), SP_TIMEOUT);
    if (sp_fetch_add_relaxed(&self->calls, 1) + 1 != self->last) return SP_OK;
    if (self->held == NULL) return SP_CANCELLED;
    slots_give(self->held);
    return SP_OK;
}

static sp_status submit_checked(place_check *check, queued_row *row)
{
    CHECK_OK(sp_thread_set_wait_check(check_place, check));
    const sp_status status = queued_row_submit(check->queue, row);
    CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
    return status;
}

TEST(a_check_ends_the_wait_of_a_submit_for_a_place)
{
    enum { MOST = 2 };
    queued_row rows[MOST + 2];
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, &(sp_batch_queue_options){.max_waiting = MOST});
    queued_rows_init(model, rows, 0, MOST + 2);
    held_slots held = slots_hold(model);
    place_check gives_up = {.queue = queue, .row = &rows[MOST + 1], .last = 2};
    place_check gives = {.queue = queue, .row = &rows[MOST + 1], .held = &held, .last = 3};
    queued_rows_submit(queue, rows, MOST);
    CHECK_STATUS(submit_checked(&gives_up, &rows[MOST]), SP_CANCELLED);
    CHECK_EQ_U64(sp_load_relaxed(&gives_up.calls), 2);
    CHECK_EQ_U64(rows[MOST].future.bits, 0);
    CHECK_OK(submit_checked(&gives, &rows[MOST]));
    CHECK(sp_load_relaxed(&gives.calls) >= 3);
    queued_rows_finish(rows, MOST + 1);
    queue_check_done(queue, MOST + 1);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

typedef struct checked_submitter {
    submitter s;
    queued_row refused;
    place_check check;
} checked_submitter;

static void submit_one_checked(void *arg)
{
    checked_submitter *c = arg;
    CHECK_OK(submit_checked(&c->check, &c->s.row));
    queued_row_finish(&c->s.row);
}

/* Rows `first` and the next one. */
static void checked_submitter_init(checked_submitter *c, sp_model model, sp_batch_queue queue,
                                   sp_atomic_u32 *submitted, uint32_t first)
{
    *c = (checked_submitter){.s = {.queue = queue, .submitted = submitted},
                             .check = {.queue = queue, .row = &c->refused}};
    queued_rows_init(model, &c->s.row, first, 1);
    queued_rows_init(model, &c->refused, first + 1, 1);
}

/* Each leaves the line to ask, and comes back, while others wait and come. */
TEST(submitters_that_ask_their_checks_get_their_places)
{
    enum { EACH = 4 };
    static checked_submitter asking[EACH];
    static submitter others[EACH];
    sp_atomic_u32 submitted = {0};
    queued_row first;
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, &(sp_batch_queue_options){.max_waiting = 1});
    queued_rows_init(model, &first, 0, 1);
    for (uint32_t i = 0; i < EACH; i++) {
        checked_submitter_init(&asking[i], model, queue, &submitted, 3 * i);
        others[i] = (submitter){.queue = queue, .submitted = &submitted};
        queued_rows_init(model, &others[i].row, 3 * i + 2, 1);
    }
    held_slots held = slots_hold(model);
    queued_rows_submit(queue, &first, 1);
    for (uint32_t i = 0; i < EACH; i++) {
        CHECK_OK(sp_thread_create(&asking[i].s.thread, "asking", submit_one_checked, &asking[i]));
        CHECK_OK(sp_thread_create(&others[i].thread, "submitter", submit_one, &others[i]));
    }
    for (uint32_t i = 0; i < EACH; i++) await_count(&asking[i].check.calls, 2);
    CHECK_EQ_U64(sp_load_acquire(&submitted), 0);
    slots_give(&held);
    queued_rows_finish(&first, 1);
    for (uint32_t i = 0; i < EACH; i++) {
        sp_thread_join(&asking[i].s.thread);
        sp_thread_join(&others[i].thread);
    }
    queue_check_done(queue, 1 + 2 * EACH);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

static void queue_await_room_wanted(sp_batch_queue handle)
{
    sp_rt_batch_queue *queue;
    REQUIRE_OK(sp__batch_queue_hold(handle, &queue));
    for (bool is_wanted = false; !is_wanted; sp_thread_yield()) {
        sp_mutex_lock(&queue->lock);
        is_wanted = queue->room.first != NULL;
        sp_mutex_unlock(&queue->lock);
    }
    sp__batch_queue_drop(queue);
}

TEST(a_submitter_that_asks_its_check_does_not_overtake)
{
    static submitter older;
    static checked_submitter asking;
    sp_atomic_u32 submitted = {0};
    queued_row first;
    const sp_model model = queue_model();
    sp_batch_queue_options options = {.max_waiting = 1};
    const sp_batch_queue queue = queue_open(model, &options);
    older = (submitter){.queue = queue, .submitted = &submitted};
    checked_submitter_init(&asking, model, queue, &submitted, 2);
    queued_rows_init(model, &first, 0, 1);
    queued_rows_init(model, &older.row, 1, 1);
    held_slots held = slots_hold(model);
    queued_rows_submit(queue, &first, 1);
    CHECK_OK(sp_thread_create(&older.thread, "older", submit_one, &older));
    queue_await_room_wanted(queue);
    CHECK_OK(sp_thread_create(&asking.s.thread, "asking", submit_one_checked, &asking));
    await_count(&asking.check.calls, 2);
    options.max_waiting = 2; /* a place for one of them */
    CHECK_OK(sp_batch_queue_configure(queue, &options));
    await_count(&submitted, 1); /* the older one counts itself, the other one does not */
    slots_give(&held);
    queued_rows_finish(&first, 1);
    sp_thread_join(&older.thread);
    sp_thread_join(&asking.s.thread);
    queue_check_done(queue, 3);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(a_full_queue_waits_for_no_others)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    queued_row rows[8];
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.max_delay_ns = LONG_NS, .max_waiting = 4};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, 8);
    queued_rows_submit(queue, rows, 3);
    CHECK_STATUS(sp_future_wait_for(rows[0].future, 1000000), SP_TIMEOUT);
    queued_rows_submit(queue, rows + 3, 5);
    CHECK_OK(sp_batch_queue_flush(queue));
    queued_rows_finish(rows, 8);
    queue_check_done(queue, 8);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* ---- configure ---- */

TEST(options_apply_to_requests_that_wait)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    queued_row rows[12];
    const sp_model model = queue_model();
    sp_batch_queue_options options = {.max_delay_ns = LONG_NS};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, 12);
    queued_rows_submit(queue, rows, 4);
    CHECK_EQ_U64(queue_statistics(queue).waiting, 4);
    CHECK_OK(sp_batch_queue_configure(queue, NULL)); /* no delay */
    queued_rows_finish(rows, 4);
    CHECK_OK(sp_batch_queue_configure(queue, &options));
    queued_rows_submit(queue, rows + 4, 4);
    CHECK_EQ_U64(queue_statistics(queue).waiting, 4);
    options.max_batch = 4; /* full */
    CHECK_OK(sp_batch_queue_configure(queue, &options));
    queued_rows_finish(rows + 4, 4);
    options.max_batch = 0;
    CHECK_OK(sp_batch_queue_configure(queue, &options));
    queued_rows_submit(queue, rows + 8, 4);
    CHECK_STATUS(sp_future_wait_for(rows[8].future, 1000000), SP_TIMEOUT);
    options.max_delay_ns = 1000000; /* earlier than the timer was set to */
    CHECK_OK(sp_batch_queue_configure(queue, &options));
    queued_rows_finish(rows + 8, 4);
    queue_check_done(queue, 12);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

enum { CALLERS = 8, BURST = 20 };

typedef struct changing_load {
    sp_model model;
    sp_batch_queue queue;
    uint64_t rounds;
    sp_atomic_u32 ended;
} changing_load;

static void change_options(const changing_load *l)
{
    uint32_t i = 0;
    while (sp_load_acquire(&l->ended) < CALLERS) {
        const sp_batch_queue_options options = {.max_batch = 1 + i % 64,
                                                .max_delay_ns = i % 3 == 0 ? 200000 : 0,
                                                .workers = 1 + i % 5,
                                                .max_waiting = 1 + i % 40};
        CHECK_OK(sp_batch_queue_configure(l->queue, i % 16 == 15 ? NULL : &options));
        if (i++ % 4 == 0) CHECK_OK(sp_batch_queue_flush(l->queue));
        sp_thread_yield();
    }
}

static void submit_or_change(void *arg, uint32_t index)
{
    changing_load *l = arg;
    if (index == CALLERS) {
        change_options(l);
        return;
    }
    queued_row rows[BURST];
    queued_rows_init(l->model, rows, index * BURST, BURST);
    for (uint64_t i = 0; i < l->rounds; i++) {
        queued_rows_submit(l->queue, rows, BURST);
        queued_rows_finish(rows, BURST);
    }
    sp_fetch_add_acq_rel(&l->ended, 1);
}

TEST(options_change_under_load)
{
    changing_load l = {.model = queue_model(), .rounds = test_count(2000, 40)};
    l.queue = queue_open(l.model, NULL);
    test_threads(CALLERS + 1, submit_or_change, &l);
    queue_check_done(l.queue, CALLERS * BURST * l.rounds);
    CHECK_OK(sp_batch_queue_release(l.queue));
    CHECK_OK(sp_model_release(l.model));
}

TEST(fewer_workers_take_effect_as_batches_end)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    queued_row rows[6];
    const sp_model model = queue_model();
    sp_batch_queue_options options = {.max_batch = 1, .workers = 4};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, 6);
    for (uint64_t round = 0; round < test_count(100, 10); round++) {
        options.workers = 4;
        CHECK_OK(sp_batch_queue_configure(queue, &options));
        held_slots held = slots_hold(model);
        queued_rows_submit(queue, rows, 6);
        CHECK_EQ_U64(sp__run_slots_waiting(held.slots), 4);
        options.workers = 1;
        CHECK_OK(sp_batch_queue_configure(queue, &options));
        CHECK_EQ_U64(sp__run_slots_waiting(held.slots), 4);
        slots_give(&held);
        queued_rows_finish(rows, 6);
    }
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* ---- callbacks ---- */

enum { CHAIN = 40 };

typedef struct chain {
    sp_batch_queue queue;
    queued_row rows[CHAIN];
    sp_atomic_u32 count;
} chain;

/* Each callback submits the next request. */
static void submit_next(void *ctx, sp_status status)
{
    chain *c = ctx;
    const uint32_t index = sp_load_relaxed(&c->count);
    CHECK_OK(status);
    CHECK_EQ_MEM(c->rows[index].y, c->rows[index].expected, sizeof c->rows[index].y);
    if (index + 1 < CHAIN) {
        CHECK_OK(queued_row_submit(c->queue, &c->rows[index + 1]));
        sp_store_relaxed(&c->count, index + 1);
        CHECK_OK(sp_future_on_complete(c->rows[index + 1].future, submit_next, c));
    } else {
        sp_store_release(&c->count, CHAIN);
    }
}

TEST(a_callback_submits_the_next_request)
{
    static chain c;
    const sp_model model = queue_model();
    c = (chain){.queue = queue_open(model, NULL)};
    queued_rows_init(model, c.rows, 0, CHAIN);
    CHECK_OK(queued_row_submit(c.queue, &c.rows[0]));
    CHECK_OK(sp_future_on_complete(c.rows[0].future, submit_next, &c));
    await_count(&c.count, CHAIN);
    for (int i = 0; i < CHAIN; i++) CHECK_OK(sp_future_release(c.rows[i].future));
    queue_check_done(c.queue, CHAIN);
    CHECK_OK(sp_batch_queue_release(c.queue));
    CHECK_OK(sp_model_release(model));
}

typedef struct inside {
    sp_batch_queue queue;
    queued_row rows[8];
    sp_atomic_u32 has_run;
} inside;

/* All slots of the device are taken for as long as this runs, and the queue has a delay. */
static void wait_inside(void *ctx, sp_status status)
{
    inside *in = ctx;
    uint32_t which;
    sp_future futures[3];
    CHECK_OK(status);
    queued_rows_finish(in->rows, 2); /* submitted outside: one leads, one is queued */
    queued_rows_submit(in->queue, in->rows + 3, 5);
    CHECK_STATUS(queued_row_submit(in->queue, &in->rows[0]), SP_BUSY); /* never waits */
    CHECK_STATUS(sp_future_wait_for(in->rows[3].future, 1000000), SP_TIMEOUT);
    queued_rows_finish(in->rows + 4, 2);
    for (int i = 0; i < 3; i++) futures[i] = in->rows[i == 0 ? 3 : 5 + i].future;
    CHECK_OK(sp_future_wait_any(futures, 3, -1, &which));
    CHECK_OK(sp_future_wait_all(futures, 3, -1));
    sp_store_release(&in->has_run, 1);
}

static void check_inside(int64_t max_delay_ns)
{
    static inside in;
    sp_stream stream;
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.max_waiting = 6, .max_delay_ns = max_delay_ns};
    in = (inside){.queue = queue_open(model, &options)};
    queued_rows_init(model, in.rows, 0, 8);
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &stream));
    held_slots held = slots_hold(model);
    queued_rows_submit(in.queue, in.rows, 3);
    CHECK_OK(sp_stream_host_function(stream, wait_inside, &in));
    await_count(&in.has_run, 1);
    slots_give(&held);
    if (max_delay_ns != 0) CHECK_OK(sp_batch_queue_flush(in.queue));
    queued_rows_finish(in.rows + 2, 2);
    queued_rows_finish(in.rows + 6, 2);
    CHECK_OK(sp_stream_release(stream));
    queue_check_done(in.queue, 8);
    CHECK_OK(sp_batch_queue_release(in.queue));
    CHECK_OK(sp_model_release(model));
}

TEST(a_callback_waits_for_requests_behind_a_busy_device)
{
    check_inside(0);
}

TEST(a_callback_waits_for_requests_behind_a_closed_gate)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    check_inside(LONG_NS);
}

TEST_MAIN
