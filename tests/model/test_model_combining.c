/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that wait for a run slot are computed together: which ones, how many, and with the bits of a
 * run alone. Needs STREAMPOOL_BATCHING=always. */
#include <string.h>

#include <streampool/stream.h>

#include "base/heap.h"
#include "base/thread.h"
#include "combining_fixture.h"
#include "partial_fixture.h"

enum { CALLERS = 31 };

/* ---- callers of the small model, each with its own row ---- */

typedef struct crowd crowd;

typedef struct caller {
    crowd *all;
    uint32_t index;
    sp_thread thread;
    float x[SMALL_IN], b[SMALL_OUT];
    float y[SMALL_OUT], expected[SMALL_OUT];
} caller;

struct crowd {
    sp_model model;
    bool has_bias, has_factors; /* a second input: b, which the file has a value for, or k */
    sp_atomic_u32 done;
    caller callers[CALLERS];
};

static uint32_t caller_inputs(const caller *c, sp_host_tensor inputs[2])
{
    inputs[0] = (sp_host_tensor){.name = "x",
                                 .data = (void *)(uintptr_t)c->x,
                                 .bytes = sizeof c->x,
                                 .dtype = SP_F32,
                                 .rank = 2,
                                 .shape = {1, SMALL_IN}};
    inputs[1] = partial_floats(c->all->has_factors ? "k" : "b", c->b, SMALL_OUT);
    return c->all->has_bias || c->all->has_factors ? 2 : 1;
}

static sp_status caller_run(const caller *c, float *y)
{
    sp_host_tensor inputs[2];
    sp_host_tensor out = output_y(y, SMALL_OUT);
    const uint32_t count = caller_inputs(c, inputs);
    return sp_model_run(c->all->model, inputs, count, &out, 1);
}

static void caller_main(void *arg)
{
    caller *c = arg;
    CHECK_OK(caller_run(c, c->y));
    CHECK_EQ_MEM(c->y, c->expected, sizeof c->y);
    sp_fetch_add_acq_rel(&c->all->done, 1);
}

/* The callers' expected outputs, each of a run alone. `kinds` values of the second input. */
static void callers_init(crowd *all, uint32_t kinds)
{
    for (uint32_t i = 0; i < CALLERS; i++) {
        caller *c = &all->callers[i];
        *c = (caller){.all = all, .index = i};
        small_fill_rows(c->x, i, 1);
        for (uint32_t k = 0; k < SMALL_OUT; k++) {
            c->b[k] = (float)(i % kinds) - 0.125f * (float)k;
        }
        CHECK_OK(caller_run(c, c->expected));
        memset(c->y, 0xff, sizeof c->y);
    }
}

static uint32_t crowd_prepare(crowd *all)
{
    sp_host_tensor inputs[2];
    const uint32_t count = caller_inputs(&all->callers[0], inputs);
    return combining_prepare(all->model, inputs, count);
}

static void crowd_init(crowd *all)
{
    *all = (crowd){.model = small_model(NULL)};
    callers_init(all, 1);
    CHECK_EQ_U64(crowd_prepare(all), 11);
}

/* Callers from `first` on wait for a slot when this returns. */
static void callers_start(crowd *all, const held_slots *held, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        CHECK_OK(
            sp_thread_create(&all->callers[i].thread, "caller", caller_main, &all->callers[i]));
        slots_await(held, i + 1);
    }
}

static void callers_join(crowd *all, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) sp_thread_join(&all->callers[i].thread);
}

static void crowd_end(crowd *all)
{
    CHECK_OK(sp_model_release(all->model));
}

/* ---- how many ---- */

/* Where shares are equal, which is with many slots, leads may find the batches of that size in use
 * by each other, and take smaller ones. */
static void check_merged(const crowd *all, merged_runs before, merged_runs expected, uint32_t slots)
{
    const merged_runs merged = merged_since(all->model, before);
    if (slots <= 2) {
        CHECK_EQ_U64(merged.batches, expected.batches);
        CHECK_EQ_U64(merged.runs, expected.runs);
    } else {
        CHECK(2 * merged.runs >= expected.runs);
    }
}

/* With one slot given back, leads follow one another, and each finds those that are left. */
TEST(a_lead_takes_its_share_of_the_threads_that_wait)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static crowd all;
    crowd_init(&all);
    for (uint32_t count = 1; count <= CALLERS; count += 3) {
        const merged_runs before = merged_of(all.model);
        held_slots held = slots_hold(all.model);
        const uint32_t slots = held.slots->width;
        callers_start(&all, &held, 0, count);
        slots_give_one(&held);
        callers_join(&all, 0, count);
        slots_give(&held);
        check_merged(&all, before, merged_expected(count, slots), slots);
    }
    crowd_end(&all);
}

/* All slots are given back at once: leads share those that wait. */
TEST(the_mean_batch_is_near_the_share_of_a_lead)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static crowd all;
    crowd_init(&all);
    const merged_runs before = merged_of(all.model);
    double share = 0;
    uint64_t runs = 0;
    const uint32_t rounds = (uint32_t)test_count(200, 20);
    for (uint32_t round = 0; round < rounds; round++) {
        held_slots held = slots_hold(all.model);
        const merged_runs expected = merged_expected(CALLERS, held.slots->width);
        share += (double)expected.runs / (double)expected.batches;
        runs += expected.runs;
        callers_start(&all, &held, 0, CALLERS);
        slots_give(&held);
        callers_join(&all, 0, CALLERS);
    }
    const merged_runs merged = merged_since(all.model, before);
    const double mean = (double)merged.runs / (double)merged.batches;
    test_note("batches of %.1f runs, %.1f expected; %.2f of all runs are in batches", mean,
              share / rounds, (double)merged.runs / (rounds * (double)CALLERS));
    CHECK(mean >= 0.8 * share / rounds);
    CHECK((double)merged.runs >= 0.7 * (double)runs);
    crowd_end(&all);
}

/* ---- submitted runs ---- */

static void caller_submit(caller *c, sp_future *future)
{
    sp_host_tensor inputs[2];
    sp_host_tensor out = output_y(c->y, SMALL_OUT);
    const uint32_t count = caller_inputs(c, inputs);
    CHECK_OK(sp_model_submit(c->all->model, inputs, count, &out, 1, future));
}

static void submitted_await(caller *c, sp_future future)
{
    CHECK_OK(sp_future_wait(future));
    CHECK_EQ_MEM(c->y, c->expected, sizeof c->y);
    CHECK_OK(sp_future_release(future));
}

TEST(a_lead_takes_its_share_of_the_submitted_runs_that_wait)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static crowd all;
    sp_future futures[CALLERS];
    crowd_init(&all);
    for (uint32_t count = 1; count <= CALLERS; count += 3) {
        const merged_runs before = merged_of(all.model);
        held_slots held = slots_hold(all.model);
        const uint32_t slots = held.slots->width;
        for (uint32_t i = 0; i < count; i++) caller_submit(&all.callers[i], &futures[i]);
        slots_give_one(&held);
        for (uint32_t i = 0; i < count; i++) submitted_await(&all.callers[i], futures[i]);
        slots_give(&held);
        check_merged(&all, before, merged_expected(count, slots), slots);
    }
    crowd_end(&all);
}

/* Every second caller is a submitted run; polled, so that no wait helps them. */
TEST(threads_and_submitted_runs_are_in_one_batch)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static crowd all;
    sp_future futures[CALLERS];
    crowd_init(&all);
    const merged_runs before = merged_of(all.model);
    held_slots held = slots_hold(all.model);
    for (uint32_t i = 0; i < CALLERS; i++) {
        if (i % 2 == 0) callers_start(&all, &held, i, 1);
        else caller_submit(&all.callers[i], &futures[i]);
    }
    slots_give(&held);
    for (uint32_t i = 1; i < CALLERS; i += 2) {
        while (sp_future_query(futures[i]) == SP_NOT_READY) sp_thread_yield();
        submitted_await(&all.callers[i], futures[i]);
    }
    for (uint32_t i = 0; i < CALLERS; i += 2) callers_join(&all, i, 1);
    CHECK(merged_since(all.model, before).runs > CALLERS / 2);
    crowd_end(&all);
}

typedef struct called_back {
    sp_atomic_u32 count;
} called_back;

static void count_call(void *ctx, sp_status status)
{
    CHECK_OK(status);
    sp_fetch_add_acq_rel(&((called_back *)ctx)->count, 1);
}

TEST(a_callback_of_a_run_in_a_batch_is_called_once)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static crowd all;
    called_back calls = {{0}};
    crowd_init(&all);
    held_slots held = slots_hold(all.model);
    for (uint32_t i = 0; i < CALLERS; i++) {
        sp_future future;
        caller_submit(&all.callers[i], &future);
        CHECK_OK(sp_future_on_complete(future, count_call, &calls));
        CHECK_OK(sp_future_release(future));
    }
    slots_give(&held);
    await_count(&calls.count, CALLERS);
    for (uint32_t i = 0; i < CALLERS; i++) {
        CHECK_EQ_MEM(all.callers[i].y, all.callers[i].expected, sizeof all.callers[i].y);
    }
    crowd_end(&all);
    CHECK_EQ_U64(sp_load_acquire(&calls.count), CALLERS);
}

/* ---- which ones ---- */

/* All callers wait, and one slot is given back. */
static merged_runs callers_merge(crowd *all, merged_runs *expected)
{
    const merged_runs before = merged_of(all->model);
    held_slots held = slots_hold(all->model);
    *expected = merged_expected(CALLERS, held.slots->width);
    callers_start(all, &held, 0, CALLERS);
    slots_give_one(&held);
    callers_join(all, 0, CALLERS);
    slots_give(&held);
    return merged_since(all->model, before);
}

TEST(only_runs_whose_shared_input_has_equal_bytes_are_merged)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static const uint32_t kinds[] = {1, 2, 3, CALLERS};
    static crowd all;
    merged_runs expected;
    for (uint32_t k = 0; k < SP_COUNT_OF(kinds); k++) {
        all = (crowd){.model = factors_model(), .has_factors = true};
        callers_init(&all, kinds[k]);
        CHECK_EQ_U64(crowd_prepare(&all), 11);
        const merged_runs merged = callers_merge(&all, &expected);
        if (kinds[k] == 1) CHECK(2 * merged.runs >= expected.runs);
        if (kinds[k] == 2 || kinds[k] == 3) CHECK(merged.runs >= CALLERS / 4);
        if (kinds[k] == CALLERS) CHECK_EQ_U64(merged.runs, 0);
        crowd_end(&all);
    }
}

TEST(runs_that_override_an_initializer_are_not_merged)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static crowd all;
    merged_runs expected;
    all = (crowd){.model = small_model(NULL), .has_bias = true};
    callers_init(&all, 3);
    CHECK_EQ_U64(crowd_prepare(&all), 0);
    CHECK_EQ_U64(callers_merge(&all, &expected).runs, 0);
    crowd_end(&all);
}

/* ---- the order of a stream ---- */

typedef struct late_input {
    crowd *all;
    sp_stream stream;
    sp_atomic_u32 is_open, is_done;
    float x[SMALL_IN], y[SMALL_OUT];
    sp_thread thread;
} late_input;

/* The last that writes the input, in the order of the stream. */
static void input_write(void *ctx, sp_status status)
{
    late_input *late = ctx;
    CHECK_OK(status);
    await_count(&late->is_open, 1);
    memcpy(late->x, late->all->callers[0].x, sizeof late->x);
}

static void late_main(void *arg)
{
    late_input *late = arg;
    const sp_host_tensor x = {.data = late->x,
                              .bytes = sizeof late->x,
                              .dtype = SP_F32,
                              .rank = 2,
                              .shape = {1, SMALL_IN}};
    sp_host_tensor y = output_y(late->y, SMALL_OUT);
    CHECK_OK(sp_stream_set_current(late->stream));
    CHECK_OK(sp_model_run(late->all->model, &x, 1, &y, 1));
    sp_store_release(&late->is_done, 1);
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
}

/* The late run is the first or the last in the queue: it is neither taken nor does it lead. */
static void check_late(crowd *all, bool is_first)
{
    late_input late = {.all = all};
    const merged_runs before = merged_of(all->model);
    held_slots held = slots_hold(all->model);
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &late.stream));
    CHECK_OK(sp_stream_host_function(late.stream, input_write, &late));
    if (is_first) {
        CHECK_OK(sp_thread_create(&late.thread, "late", late_main, &late));
        slots_await(&held, 1);
    }
    for (uint32_t i = 0; i < 12; i++) {
        CHECK_OK(
            sp_thread_create(&all->callers[i].thread, "caller", caller_main, &all->callers[i]));
        slots_await(&held, i + 1 + is_first);
    }
    if (!is_first) {
        CHECK_OK(sp_thread_create(&late.thread, "late", late_main, &late));
        slots_await(&held, 13);
    }
    slots_give(&held);
    callers_join(all, 0, 12); /* they do not wait for the late run */
    CHECK_EQ_U64(sp_load_acquire(&late.is_done), 0);
    CHECK(merged_since(all->model, before).runs >= 4);
    sp_store_release(&late.is_open, 1);
    sp_thread_join(&late.thread);
    CHECK_EQ_MEM(late.y, all->callers[0].expected, sizeof late.y);
    CHECK_OK(sp_stream_release(late.stream));
}

TEST(a_run_follows_its_stream_and_is_not_in_a_batch_ahead_of_it)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static crowd all;
    crowd_init(&all);
    held_slots held = slots_hold(all.model);
    const uint32_t slots = held.slots->count;
    slots_give(&held);
    for (uint64_t i = 0; i < test_count(100, 10); i++) {
        check_late(&all, false);
        if (slots > 1) check_late(&all, true);
    }
    crowd_end(&all);
}

/* ---- callbacks ---- */

typedef struct inside_run {
    crowd *all;
    sp_atomic_u32 count;
} inside_run;

static void run_inside(void *ctx, sp_status status)
{
    inside_run *inside = ctx;
    float y[SMALL_OUT];
    const caller *c = &inside->all->callers[3];
    CHECK_OK(status);
    CHECK_OK(caller_run(c, y));
    CHECK_EQ_MEM(y, c->expected, sizeof y);
    sp_future future;
    sp_host_tensor inputs[2];
    sp_host_tensor out = output_y(y, SMALL_OUT);
    memset(y, 0xff, sizeof y);
    CHECK_OK(
        sp_model_submit(inside->all->model, inputs, caller_inputs(c, inputs), &out, 1, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_EQ_MEM(y, c->expected, sizeof y);
    CHECK_OK(sp_future_release(future));
    sp_fetch_add_acq_rel(&inside->count, 1);
}

/* All slots are taken, and others wait for them: a run inside a host function is done at once. */
TEST(a_run_inside_a_host_function_takes_neither_slot_nor_batch)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static crowd all;
    sp_stream stream;
    crowd_init(&all);
    inside_run inside = {.all = &all};
    const merged_runs before = merged_of(all.model);
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &stream));
    held_slots held = slots_hold(all.model);
    callers_start(&all, &held, 0, 12);
    for (int i = 0; i < 20; i++) CHECK_OK(sp_stream_host_function(stream, run_inside, &inside));
    await_count(&inside.count, 20);
    CHECK_EQ_U64(merged_since(all.model, before).runs, 0);
    CHECK_EQ_U64(sp__run_slots_waiting(held.slots), 12);
    slots_give(&held);
    callers_join(&all, 0, 12);
    CHECK(merged_since(all.model, before).runs > 0);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_stream_release(stream));
    crowd_end(&all);
}

/* Functions that wait for runs beside callers that wait for slots. */
TEST(runs_inside_host_functions_and_batches_go_on_beside_each_other)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static crowd all;
    sp_stream streams[4];
    crowd_init(&all);
    inside_run inside = {.all = &all};
    const uint32_t rounds = (uint32_t)test_count(100, 10);
    for (int i = 0; i < 4; i++) CHECK_OK(sp_stream_from_pool((sp_device){0}, &streams[i]));
    for (uint32_t round = 0; round < rounds; round++) {
        held_slots held = slots_hold(all.model);
        callers_start(&all, &held, 0, CALLERS);
        for (int i = 0; i < 4; i++) {
            CHECK_OK(sp_stream_host_function(streams[i], run_inside, &inside));
        }
        slots_give(&held);
        callers_join(&all, 0, CALLERS);
    }
    await_count(&inside.count, 4 * rounds);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(sp_stream_synchronize(streams[i]));
        CHECK_OK(sp_stream_release(streams[i]));
    }
    crowd_end(&all);
}

TEST_MAIN
