/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of large rows is reclaimed when none is in use, and comes back. */
#include "base/thread.h"
#include "batch/batch_builder.h"
#include "row_fixture.h"

static void reclaim_all(const slot_return *r)
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
    rows_world w;
    rows_world_open(&w, FLAT);
    slot_return r = {.w = &w, .free_rows = w.plans->rows->count - CALLERS, .before = reclaim_all};
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
    rows_world_close(&w);
}

/* Also where all batches are there: there was memory for these, but not for the rows. */
TEST(rows_alone_come_back)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    rows_world w;
    rows_world_open(&w, FLAT);
    CHECK(sp__batch_rows_reclaim(w.plans->rows));
    slot_return r = {.w = &w, .before = check_rows_in_use};
    for (uint32_t i = 0; i <= SP_BATCH_MISSES && rows_free(&w) == 0; i++) {
        callers_run(&r, CALLERS, 0);
        sp__batch_builder_drain();
    }
    rows_world_close(&w);
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
    rows_world w;
    rows_world_open(&w, FLAT);
    for (uint64_t i = test_count(2000, 100); i-- > 0;) {
        reclaimers r = {.rows = w.plans->rows};
        test_threads(RECLAIMERS, reclaimer_main, &r);
        CHECK_EQ_U64(sp_load_relaxed(&r.freed), 1);
        (void)sp__batch_rows_reclaim(w.plans->rows);
        CHECK(sp__batch_rows_refill(w.plans->rows));
    }
    rows_world_close(&w);
}

/* ---- many at once ---- */

typedef struct load {
    const rows_world *w;
    uint64_t rounds;
} load;

static void load_main(void *arg, uint32_t index)
{
    const load *l = arg;
    caller *r = &callers[index];
    for (uint64_t i = 0; i < l->rounds; i++) {
        r->options.timeout_ns = i % 8 == 3 ? 20000 : 0;
        const sp_status status = caller_run(r);
        if (status == SP_TIMEOUT && i % 8 == 3) continue;
        CHECK_OK(status);
        caller_check(r);
        if (index == 0 && i % 4 == 0) l->w->plans->extra.reclaim(&l->w->plans->extra);
        if (index == 0 && i % 16 == 0) {
            (void)sp__batch_builder_request(l->w->held, l->w->entry);
        }
    }
    r->options.timeout_ns = 0;
}

/* Which of their runs are merged is chance; afterwards all rows and batches are there again. */
TEST(many_callers_beside_reclaims_get_their_bits)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    rows_world w;
    rows_world_open(&w, FLAT);
    load l = {.w = &w, .rounds = test_count(400, 40)};
    test_threads(THREADS, load_main, &l);
    sp__batch_builder_drain();
    while (sp__batch_plans_refill(w.plans)) {
    }
    w.before = merged_of(w.model);
    slot_return r = {
        .w = &w, .free_rows = w.plans->rows->count - CALLERS, .before = check_rows_in_use};
    callers_run(&r, CALLERS, 0);
    CHECK(merged_since(w.model, w.before).runs > 0);
    rows_world_close(&w);
}

TEST_MAIN
