/* SPDX-License-Identifier: Apache-2.0 */
/* Callers of large rows that stop waiting, or that are refused: these have copied nothing. */
#include <string.h>

#include "base/thread.h"
#include "row_fixture.h"

enum { MARK = 0x5a };

/* ---- callers that stop waiting ---- */

typedef struct canceller {
    const rows_world *w;
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
    rows_world w;
    sp_thread thread;
    rows_world_open(&w, FLAT);
    canceller c = {.w = &w};
    CHECK_OK(sp_cancel_token_create(&c.token));
    slots_take(&w);
    for (uint32_t i = 0; i < CALLERS; i++) {
        callers[i].options.timeout_ns = 2000000;
        callers[i].expected = SP_TIMEOUT;
    }
    test_threads(CALLERS, caller_main, callers);
    CHECK_EQ_U64(rows_free(&w), w.plans->rows->count);
    for (uint32_t i = 0; i < CALLERS; i++) {
        callers[i].options = (sp_run_options){.cancel_token = c.token};
        callers[i].expected = SP_CANCELLED;
    }
    CHECK_OK(sp_thread_create(&thread, "canceller", cancel_all, &c));
    test_threads(CALLERS, caller_main, callers);
    sp_thread_join(&thread);
    CHECK_EQ_U64(rows_free(&w), w.plans->rows->count);
    slot_return r = {.w = &w};
    slots_return(&r);
    rows_world_close(&w);
    CHECK_OK(sp_cancel_token_release(c.token));
}

/* ---- callers that wait ---- */

static void check_all_are_counted(const slot_return *r)
{
    sp_model_statistics statistics;
    CHECK_OK(sp_model_get_statistics(r->w->model, &statistics));
    CHECK_EQ_U64(statistics.waiting, CALLERS);
}

/* Also those that wait for a slot of their plan. */
TEST(callers_that_wait_are_in_the_statistics)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    rows_world w;
    sp_model_statistics statistics;
    rows_world_open(&w, FLAT);
    slot_return r = {.w = &w, .before = check_all_are_counted};
    callers_run(&r, CALLERS, 0);
    CHECK_OK(sp_model_get_statistics(w.model, &statistics));
    CHECK_EQ_U64(statistics.waiting, 0);
    rows_world_close(&w);
}

/* ---- callers that are refused ---- */

/* A caller that is refused has copied nothing. */
TEST(callers_that_do_not_wait_take_no_row)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    enum { BYTES = sizeof callers[0].x.numbers };
    static char expected[BYTES];
    rows_world w;
    void *top;
    rows_world_open(&w, FLAT);
    memset(expected, MARK, BYTES);
    REQUIRE(rows_take(&w, &top, 1) == 1); /* the next that is taken, too */
    memcpy(top, expected, BYTES);
    rows_give(&w, &top, 1);
    slots_take(&w);
    callers[0].options.no_wait = true;
    CHECK_STATUS(caller_run(&callers[0]), SP_BUSY);
    CHECK(memcmp(top, expected, BYTES) == 0);
    slot_return r = {.w = &w};
    slots_return(&r);
    rows_world_close(&w);
}

enum { LINE = 2 }; /* callers that may wait */

static sp_atomic_u32 refused; /* process-wide: callers in the next test */

static void run_or_be_refused(void *arg, uint32_t index)
{
    (void)arg;
    const sp_status status = caller_run(&callers[index]);
    if (status == SP_BUSY) {
        CHECK_MESSAGE("2 runs of the model wait for a run slot, as many as max_waiting");
        sp_fetch_add_release(&refused, 1);
        return;
    }
    CHECK_OK(status);
    caller_check(&callers[index]);
}

/* Whether no caller has written to a row that is free. */
static bool rows_are_marked(const rows_world *w, void *const *taken, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *bytes = taken[i];
        for (uint64_t k = 0; k < w->plans->rows->row_bytes; k++) {
            if (bytes[k] != MARK) return false;
        }
    }
    return true;
}

static void check_marked_rows(const slot_return *r)
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
    rows_world w;
    sp_thread returner;
    rows_world_open_with(&w, FLAT, LINE);
    slot_return r = {.w = &w, .waiting = LINE, .before = check_marked_rows};
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
    rows_world_close(&w);
}

typedef struct cancelled_call {
    sp_cancel_token token;
    uint32_t spins;
} cancelled_call;

static void call_or_cancel(void *arg, uint32_t index)
{
    const cancelled_call *c = arg;
    if (index == 0) {
        CHECK_STATUS(caller_run(&callers[0]), SP_CANCELLED);
        return;
    }
    for (uint32_t i = 0; i < c->spins; i++) sp_spin_hint();
    CHECK_OK(sp_cancel_token_cancel(c->token));
}

static uint32_t places_reserved(const rows_world *w)
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
    rows_world w;
    rows_world_open_with(&w, FLAT, LINE);
    slots_take(&w);
    for (uint32_t i = 0; i < test_count(5000, 3000); i++) {
        cancelled_call c = {.spins = i % 512};
        CHECK_OK(sp_cancel_token_create(&c.token));
        callers[0].options.cancel_token = c.token;
        test_threads(2, call_or_cancel, &c);
        CHECK_OK(sp_cancel_token_release(c.token));
    }
    CHECK_EQ_U64(places_reserved(&w), 0);
    CHECK_EQ_U64(rows_free(&w), w.plans->rows->count);
    slot_return r = {.w = &w};
    slots_return(&r);
    rows_world_close(&w);
}

TEST_MAIN
