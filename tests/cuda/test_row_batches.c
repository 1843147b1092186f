/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of large rows on a device with memory of its own: callers that wait copy their rows
 * themselves. On the fake CUDA driver, or on a null device, as STREAMPOOL_TEST_DEVICE says. Needs
 * STREAMPOOL_BATCHING=always. */
#include <string.h>

#include <streampool/device.h>

#include "base/thread.h"
#include "batch/batch_builder.h"
#include "batch/batch_plans.h"
#include "combining_fixture.h"
#include "partial_fixture.h"
#include "segment_fixture.h"
#include "support/own_memory.h"

enum { LONG = 4096, CALLERS = 12, THREADS = 31, MOST_ROWS = 256, MARK = 0x5a };

static sp_device begin(void)
{
    return segment_is_cuda() ? segment_begin() : open_own_memory(false);
}

static void end(sp_device device)
{
    if (segment_is_cuda()) segment_end();
    else CHECK_OK(sp_device_close(device));
}

/* ---- models of large rows ---- */

typedef enum model_kind {
    FLAT,   /* y = Neg(Tanh(x)) of x[n, LONG] */
    PIECES, /* of x[4, n, LONG / 4]: a row is 4 pieces */
    TABLE,  /* y = Neg(table[x]), of x[n, LONG]: fails with an index out of range */
    TWO,    /* y and t = Tanh(x) */
    TURNED, /* y = Transpose(Neg(Tanh(x))) of x[n, LONG], on the cpu: of one row it moves nothing */
    KINDS
} model_kind;

static sp_model model_open(model_kind kind, sp_device device, uint32_t max_waiting)
{
    static const int64_t flat[] = {-1, LONG}, pieces[] = {4, -1, LONG / 4};
    const sp_model_options options = {.device = device,
                                      .max_waiting = max_waiting,
                                      .cpu_ops = kind == TURNED ? "Transpose" : NULL};
    writer graph = {0};
    sp_model model = {0};
    if (kind == TABLE) partial_add_floats(&graph, "table", (const float[]){.5f, 1, 2, 3, 4}, 5);
    add_input(&graph, "x", kind == TABLE ? ONNX_INT64 : ONNX_FLOAT, kind == PIECES ? pieces : flat,
              kind == PIECES ? 3 : 2);
    if (kind == TABLE) add_node(&graph, make_node("Gather", "table x", "t"));
    else add_node(&graph, make_node("Tanh", "x", "t"));
    add_node(&graph, make_node("Neg", "t", kind == TURNED ? "n" : "y"));
    if (kind == TURNED) add_node(&graph, make_node("Transpose", "n", "y"));
    add_output(&graph, "y");
    if (kind == TWO) add_output(&graph, "t");
    CHECK_OK(partial_load(&graph, &options, &model));
    return model;
}

/* A caller's tensors. */
typedef struct row {
    model_kind kind;
    sp_model model;
    union {
        float numbers[LONG];
        int64_t indices[LONG];
    } x;
    float y[LONG];
    float alone[LONG];
    bool is_bad;
    sp_run_options options;
    sp_status expected;
    sp_future future;
} row;

static row rows[THREADS];

static void row_fill(row *r, uint32_t number, uint32_t salt)
{
    for (uint32_t i = 0; i < LONG; i++) {
        if (r->kind == TABLE) r->x.indices[i] = (int64_t)((number + i * 7 + salt) % 5);
        else r->x.numbers[i] = (float)((number * 31 + i * 7 + salt) % 2048) / 1024 - 1;
    }
    if (r->is_bad) r->x.indices[LONG / 2] = 5;
}

static sp_host_tensor row_input(const row *r)
{
    sp_host_tensor in = {.data = (void *)(uintptr_t)&r->x,
                         .bytes = sizeof r->x.numbers,
                         .dtype = SP_F32,
                         .rank = 2,
                         .shape = {1, LONG}};
    if (r->kind == TABLE) {
        in.bytes = sizeof r->x.indices;
        in.dtype = SP_I64;
    }
    if (r->kind == PIECES) {
        in.rank = 3;
        in.shape[0] = 4;
        in.shape[1] = 1;
        in.shape[2] = LONG / 4;
    }
    return in;
}

static sp_status row_run(row *r)
{
    const sp_host_tensor in = row_input(r);
    sp_host_tensor out = {.name = "y", .data = r->y, .capacity = sizeof r->y};
    memset(r->y, 0xff, sizeof r->y);
    return sp_model_run_with(r->model, &r->options, &in, 1, &out, 1);
}

static void row_check(const row *r)
{
    CHECK(memcmp((const void *)r->y, (const void *)r->alone, sizeof r->y) == 0);
}

static void row_main(void *arg, uint32_t index)
{
    row *r = (row *)arg + index;
    CHECK_STATUS(row_run(r), r->expected);
    if (r->expected == SP_OK) row_check(r);
}

/* ---- a model with larger plans ---- */

typedef struct world {
    sp_device device;
    sp_model model;
    sp_rt_model *held;
    sp_plan_entry *entry;
    sp_batch_plans *plans;
    merged_runs before;
} world;

/* The runs alone come before the larger plans. max_waiting: of the model's options. */
static void world_open_with(world *w, model_kind kind, uint32_t max_waiting)
{
    w->device = begin();
    w->model = model_open(kind, w->device, max_waiting);
    for (uint32_t i = 0; i < THREADS; i++) {
        rows[i] = (row){.kind = kind, .model = w->model};
        row_fill(&rows[i], i, 0);
        CHECK_OK(row_run(&rows[i]));
        memcpy(rows[i].alone, rows[i].y, sizeof rows[i].y);
    }
    CHECK(combining_build(w->model) > 0);
    w->held = sp__model_hold(w->model);
    w->entry = sp__plan_cache_acquire_newest(&w->held->plans);
    w->plans = sp__batch_plans_of(w->entry);
    w->before = merged_of(w->model);
}

static void world_open(world *w, model_kind kind)
{
    world_open_with(w, kind, 0);
}

static uint32_t rows_take(const world *w, void **taken, uint32_t most)
{
    uint32_t count = 0;
    while (count < most && (taken[count] = sp__batch_rows_acquire(w->plans->rows)) != NULL) count++;
    return count;
}

static void rows_give(const world *w, void **taken, uint32_t count)
{
    while (count > 0) sp__batch_rows_release(w->plans->rows, taken[--count]);
}

static uint32_t rows_free(const world *w)
{
    void *taken[MOST_ROWS];
    const uint32_t count = rows_take(w, taken, MOST_ROWS);
    rows_give(w, taken, count);
    return count;
}

static void world_close(world *w)
{
    CHECK_EQ_U64(rows_free(w), w->plans->rows->count);
    sp__plan_cache_release(&w->held->plans, w->entry);
    sp__model_drop(w->held);
    CHECK_OK(sp_model_release(w->model));
    end(w->device);
}

/* All slots of the plan are the test's until `waiting` callers wait. */
typedef struct release {
    const world *w;
    uint32_t waiting, free_rows;
    void (*before)(const struct release *release);
} release;

static void slots_take(const world *w)
{
    for (uint32_t i = 0; i < w->plans->own_slots->count; i++) {
        CHECK_OK(sp__run_slots_acquire(w->plans->own_slots, NULL));
    }
}

static void slots_return(void *arg)
{
    const release *r = arg;
    sp_run_slots *slots = r->w->plans->own_slots;
    while (sp__run_slots_waiting(slots) < r->waiting) sp_thread_yield();
    if (r->before != NULL) r->before(r);
    for (uint32_t i = 0; i < slots->count; i++) {
        sp__wait_entry_resume(sp__run_slots_release(slots, NULL));
    }
}

/* `threads` callers wait together, with `submitted` runs. */
static void callers_run(release *r, uint32_t threads, uint32_t submitted)
{
    sp_thread returner;
    slots_take(r->w);
    r->waiting = threads + submitted;
    for (uint32_t i = threads; i < r->waiting; i++) {
        const sp_host_tensor in = row_input(&rows[i]);
        sp_host_tensor out = {.name = "y", .data = rows[i].y, .capacity = sizeof rows[i].y};
        CHECK_OK(sp_model_submit(rows[i].model, &in, 1, &out, 1, &rows[i].future));
    }
    CHECK_OK(sp_thread_create(&returner, "returner", slots_return, r));
    test_threads(threads, row_main, rows);
    sp_thread_join(&returner);
    for (uint32_t i = threads; i < r->waiting; i++) {
        CHECK_STATUS(sp_future_wait(rows[i].future), rows[i].expected);
        if (rows[i].expected == SP_OK) row_check(&rows[i]);
        CHECK_OK(sp_future_release(rows[i].future));
    }
}

static void check_rows_in_use(const release *r)
{
    CHECK_EQ_U64(rows_free(r->w), r->free_rows);
}

/* ---- tests ---- */

TEST(callers_copy_their_own_rows_and_get_their_bits)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static const model_kind kinds[] = {FLAT, PIECES, TWO, TABLE};
    for (uint32_t i = 0; i < SP_COUNT_OF(kinds); i++) {
        world w;
        world_open(&w, kinds[i]);
        REQUIRE(w.plans->rows != NULL);
        release r = {
            .w = &w, .free_rows = w.plans->rows->count - CALLERS, .before = check_rows_in_use};
        callers_run(&r, CALLERS, 0);
        CHECK(merged_since(w.model, w.before).runs > 0);
        world_close(&w);
    }
}

TEST(a_lead_copies_for_callers_that_found_no_row)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    world w;
    world_open(&w, FLAT);
    void *taken[MOST_ROWS];
    const uint32_t count = rows_take(&w, taken, w.plans->rows->count - CALLERS / 2);
    release r = {.w = &w, .before = check_rows_in_use};
    callers_run(&r, CALLERS, 0);
    CHECK(merged_since(w.model, w.before).runs > 0);
    rows_give(&w, taken, count);
    world_close(&w);
}

TEST(rows_of_submitted_runs_are_copied_by_the_lead)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static const model_kind kinds[] = {FLAT, PIECES};
    for (uint32_t i = 0; i < SP_COUNT_OF(kinds); i++) {
        world w;
        world_open(&w, kinds[i]);
        release r = {
            .w = &w, .free_rows = w.plans->rows->count - CALLERS / 2, .before = check_rows_in_use};
        callers_run(&r, CALLERS / 2, CALLERS / 2);
        CHECK(merged_since(w.model, w.before).runs > 0);
        world_close(&w);
    }
}

typedef struct canceller {
    const world *w;
    sp_cancel_token token;
} canceller;

static void cancel_all(void *arg)
{
    const canceller *c = arg;
    while (sp__run_slots_waiting(c->w->plans->own_slots) < CALLERS) sp_thread_yield();
    CHECK_EQ_U64(rows_free(c->w), c->w->plans->rows->count - CALLERS);
    CHECK_OK(sp_cancel_token_cancel(c->token));
}

TEST(callers_that_stop_waiting_return_their_rows)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    world w;
    sp_thread thread;
    world_open(&w, FLAT);
    canceller c = {.w = &w};
    CHECK_OK(sp_cancel_token_create(&c.token));
    slots_take(&w);
    for (uint32_t i = 0; i < CALLERS; i++) {
        rows[i].options.timeout_ns = 2000000;
        rows[i].expected = SP_TIMEOUT;
    }
    test_threads(CALLERS, row_main, rows);
    CHECK_EQ_U64(rows_free(&w), w.plans->rows->count);
    for (uint32_t i = 0; i < CALLERS; i++) {
        rows[i].options = (sp_run_options){.cancel_token = c.token};
        rows[i].expected = SP_CANCELLED;
    }
    CHECK_OK(sp_thread_create(&thread, "canceller", cancel_all, &c));
    test_threads(CALLERS, row_main, rows);
    sp_thread_join(&thread);
    CHECK_EQ_U64(rows_free(&w), w.plans->rows->count);
    release r = {.w = &w};
    slots_return(&r);
    world_close(&w);
    CHECK_OK(sp_cancel_token_release(c.token));
}

TEST(one_bad_row_fails_alone)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    world w;
    world_open(&w, TABLE);
    rows[3].is_bad = true;
    rows[3].expected = SP_INVALID;
    row_fill(&rows[3], 3, 0);
    release r = {.w = &w};
    callers_run(&r, CALLERS, 0);
    CHECK(merged_since(w.model, w.before).batches > 0);
    world_close(&w);
}

static void reclaim_all(const release *r)
{
    sp_plan_extra *extra = &r->w->plans->extra;
    while (extra->reclaim(extra)) {
    }
    check_rows_in_use(r);
}

/* Rows in use keep the memory; without any, they are freed with the batches, and come back. */
TEST(rows_are_reclaimed_when_none_is_in_use)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    world w;
    world_open(&w, FLAT);
    release r = {.w = &w, .free_rows = w.plans->rows->count - CALLERS, .before = reclaim_all};
    callers_run(&r, CALLERS, 0);
    r.free_rows = 0;
    reclaim_all(&r);
    r.before = check_rows_in_use;
    callers_run(&r, CALLERS, 0);
    while (sp__batch_plans_refill(w.plans)) {
    }
    w.before = merged_of(w.model);
    r.free_rows = w.plans->rows->count - CALLERS;
    callers_run(&r, CALLERS, 0);
    CHECK(merged_since(w.model, w.before).runs > 0);
    world_close(&w);
}

/* A caller that is refused has copied nothing. */
TEST(callers_that_do_not_wait_take_no_row)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    enum { BYTES = sizeof rows[0].x.numbers };
    static char expected[BYTES];
    world w;
    void *top;
    world_open(&w, FLAT);
    memset(expected, MARK, BYTES);
    REQUIRE(rows_take(&w, &top, 1) == 1); /* the next that is taken, too */
    memcpy(top, expected, BYTES);
    rows_give(&w, &top, 1);
    slots_take(&w);
    rows[0].options.no_wait = true;
    CHECK_STATUS(row_run(&rows[0]), SP_BUSY);
    CHECK(memcmp(top, expected, BYTES) == 0);
    release r = {.w = &w};
    slots_return(&r);
    world_close(&w);
}

enum { LINE = 2 }; /* callers that may wait */

static sp_atomic_u32 refused; /* process-wide: callers in the next test */

static void run_or_be_refused(void *arg, uint32_t index)
{
    (void)arg;
    const sp_status status = row_run(&rows[index]);
    if (status == SP_BUSY) {
        CHECK_MESSAGE("2 runs of the model wait for a run slot, as many as max_waiting");
        sp_fetch_add_release(&refused, 1);
        return;
    }
    CHECK_OK(status);
    row_check(&rows[index]);
}

/* Whether no caller has written to a row that is free. */
static bool rows_are_marked(const world *w, void *const *taken, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *bytes = taken[i];
        for (uint64_t k = 0; k < w->plans->rows->row_bytes; k++) {
            if (bytes[k] != MARK) return false;
        }
    }
    return true;
}

static void check_marked_rows(const release *r)
{
    static void *taken[MOST_ROWS];
    while (sp_load_acquire(&refused) < THREADS - LINE) sp_thread_yield();
    const uint32_t count = rows_take(r->w, taken, MOST_ROWS);
    CHECK_EQ_U64(count, r->w->plans->rows->count - LINE);
    CHECK(rows_are_marked(r->w, taken, count));
    rows_give(r->w, taken, count);
}

/* Nor has one for which the line is full, also if many come at once. */
TEST(callers_beyond_max_waiting_take_no_row)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static void *taken[MOST_ROWS];
    world w;
    sp_thread returner;
    world_open_with(&w, FLAT, LINE);
    release r = {.w = &w, .waiting = LINE, .before = check_marked_rows};
    for (uint64_t i = test_count(100, 10); i-- > 0;) {
        const uint32_t count = rows_take(&w, taken, MOST_ROWS);
        for (uint32_t k = 0; k < count; k++) memset(taken[k], MARK, w.plans->rows->row_bytes);
        rows_give(&w, taken, count);
        sp_store_relaxed(&refused, 0);
        slots_take(&w);
        CHECK_OK(sp_thread_create(&returner, "returner", slots_return, &r));
        test_threads(THREADS, run_or_be_refused, NULL);
        sp_thread_join(&returner);
    }
    world_close(&w);
}

typedef struct cancelled_call {
    sp_cancel_token token;
    uint32_t spins;
} cancelled_call;

static void call_or_cancel(void *arg, uint32_t index)
{
    const cancelled_call *c = arg;
    if (index == 0) {
        CHECK_STATUS(row_run(&rows[0]), SP_CANCELLED);
        return;
    }
    for (uint32_t i = 0; i < c->spins; i++) sp_spin_hint();
    CHECK_OK(sp_cancel_token_cancel(c->token));
}

static uint32_t places_reserved(const world *w)
{
    sp_run_slots *slots = w->plans->own_slots;
    sp_mutex_lock(&slots->lock);
    const uint32_t reserved = slots->own.reserved;
    sp_mutex_unlock(&slots->lock);
    return reserved;
}

/* Also before it waits. */
TEST(a_caller_that_is_cancelled_returns_its_place_in_the_line)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    world w;
    world_open_with(&w, FLAT, LINE);
    slots_take(&w);
    for (uint32_t i = 0; i < test_count(5000, 3000); i++) {
        cancelled_call c = {.spins = i % 512};
        CHECK_OK(sp_cancel_token_create(&c.token));
        rows[0].options.cancel_token = c.token;
        test_threads(2, call_or_cancel, &c);
        CHECK_OK(sp_cancel_token_release(c.token));
    }
    CHECK_EQ_U64(places_reserved(&w), 0);
    CHECK_EQ_U64(rows_free(&w), w.plans->rows->count);
    release r = {.w = &w};
    slots_return(&r);
    world_close(&w);
}

/* The plan of one row has all its steps on the device: those of more rows have not. */
TEST(nothing_is_merged_where_only_larger_plans_have_steps_on_the_cpu)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_device device = begin();
    row *r = &rows[0];
    *r = (row){.kind = TURNED, .model = model_open(TURNED, device, 0)};
    row_fill(r, 0, 0);
    CHECK_OK(row_run(r));
    CHECK_EQ_U64(combining_build(r->model), 0);
    CHECK_OK(sp_model_release(r->model));
    end(device);
}

/* Also where all batches are there: there was memory for these, but not for the rows. */
TEST(rows_alone_come_back)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    world w;
    world_open(&w, FLAT);
    CHECK(sp__batch_rows_reclaim(w.plans->rows));
    release r = {.w = &w, .before = check_rows_in_use};
    for (uint32_t i = 0; i <= SP_BATCH_MISSES && rows_free(&w) == 0; i++) {
        callers_run(&r, CALLERS, 0);
        sp__batch_builder_drain();
    }
    world_close(&w);
}

enum { RECLAIMERS = 2 };

typedef struct reclaimers {
    sp_batch_rows *rows;
    sp_atomic_u32 ready, freed;
} reclaimers;

static void reclaimer_main(void *arg, uint32_t index)
{
    (void)index;
    reclaimers *r = arg;
    sp_fetch_add_relaxed(&r->ready, 1);
    while (sp_load_relaxed(&r->ready) < RECLAIMERS) sp_spin_hint();
    if (sp__batch_rows_reclaim(r->rows)) sp_fetch_add_relaxed(&r->freed, 1);
}

/* Each would find the rows that the other has taken in use, and no memory would be there. */
TEST(one_of_two_that_reclaim_at_once_frees_the_rows)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    world w;
    world_open(&w, FLAT);
    for (uint64_t i = test_count(2000, 100); i-- > 0;) {
        reclaimers r = {.rows = w.plans->rows};
        test_threads(RECLAIMERS, reclaimer_main, &r);
        CHECK_EQ_U64(sp_load_relaxed(&r.freed), 1);
        (void)sp__batch_rows_reclaim(w.plans->rows);
        CHECK(sp__batch_rows_refill(w.plans->rows));
    }
    world_close(&w);
}

TEST(small_rows_and_very_large_ones_are_copied_by_the_lead)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_device device = begin();
    const sp_model_options options = {.device = device};
    const sp_model model = plain_model(&options);
    const sp_host_tensor x = input_x(1);
    CHECK(combining_prepare(model, &x, 1) > 0);
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    CHECK(sp__batch_plans_of(entry)->rows == NULL);
    sp__plan_cache_release(&held->plans, entry);
    sp_batch_rows *made;
    const sp_batch_port ports[2] = {
        {.is_batched = true, .is_by_rows = true, .outer = 1, .chunk = UINT64_C(1) << 20},
        {.is_batched = true, .is_by_rows = true, .outer = 1, .chunk = UINT64_C(2) << 20}};
    CHECK_OK(sp__batch_rows_create(&held->device->staging, ports, 1, 1, &made));
    CHECK(made == NULL);
    CHECK_OK(sp__batch_rows_create(&held->device->staging, ports, 1, 0, &made));
    REQUIRE(made != NULL);
    CHECK_EQ_U64(made->count, 32);
    CHECK(sp__batch_rows_acquire(made) == NULL);
    CHECK(sp__batch_rows_refill(made));
    CHECK(!sp__batch_rows_refill(made));
    sp__batch_rows_destroy(made);
    sp__model_drop(held);
    CHECK_OK(sp_model_release(model));
    end(device);
}

/* ---- many at once ---- */

typedef struct load {
    const world *w;
    uint64_t rounds;
} load;

static void load_main(void *arg, uint32_t index)
{
    const load *l = arg;
    row *r = &rows[index];
    for (uint64_t i = 0; i < l->rounds; i++) {
        r->options.timeout_ns = i % 8 == 3 ? 20000 : 0;
        const sp_status status = row_run(r);
        if (status == SP_TIMEOUT && i % 8 == 3) continue;
        CHECK_OK(status);
        row_check(r);
        if (index == 0 && i % 4 == 0) l->w->plans->extra.reclaim(&l->w->plans->extra);
        if (index == 0 && i % 16 == 0) {
            (void)sp__batch_builder_request(l->w->held, l->w->entry);
        }
    }
}

TEST(many_callers_beside_reclaims_get_their_bits)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    world w;
    world_open(&w, FLAT);
    load l = {.w = &w, .rounds = test_count(400, 40)};
    test_threads(THREADS, load_main, &l);
    sp__batch_builder_drain();
    while (sp__batch_plans_refill(w.plans)) {
    }
    CHECK(merged_since(w.model, w.before).runs > 0);
    world_close(&w);
}

TEST_MAIN
