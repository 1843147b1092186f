/* SPDX-License-Identifier: Apache-2.0 */
/* Which sizes of batches have memory: where each has its own, those that leads have looked for. */
#include <streampool/storage.h>

#include "base/heap.h"
#include "batch/batch.h"
#include "batch/batch_builder.h"
#include "batch/batch_measure.h"
#include "combining_fixture.h"

/* A model with larger plans, which the test holds. */
typedef struct world {
    sp_model model;
    sp_rt_model *held;
    sp_plan_entry *entry;
    sp_batch_plans *plans;
    uint64_t lone_bytes; /* of the device's memory in use, without larger plans */
} world;

static sp_memory_stats memory_stats(void)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_get_memory_stats((sp_device){0}, &stats));
    return stats;
}

static uint64_t bytes_in_use(void)
{
    return memory_stats().in_use_bytes;
}

static void world_open(world *w)
{
    *w = (world){0};
    const float x[PRODUCTS_WIDTH] = {1, 2, 3, 4};
    sp_host_tensor output = {0};
    const sp_host_tensor input = {.data = (void *)(uintptr_t)x,
                                  .bytes = sizeof x,
                                  .dtype = SP_F32,
                                  .rank = 2,
                                  .shape = {1, PRODUCTS_WIDTH}};
    /* Again, if the machine was so busy while sizes were measured that some did not pay. */
    do {
        CHECK_OK(sp_model_release(w->model));
        w->model = products_model();
        CHECK_OK(sp_model_infer(w->model, &input, 1, &output, 1));
        w->lone_bytes = bytes_in_use();
    } while (combining_build(w->model) < 4);
    w->held = sp__model_hold(w->model);
    w->entry = sp__plan_cache_acquire_newest(&w->held->plans);
    w->plans = sp__batch_plans_of(w->entry);
}

static void world_close(world *w)
{
    sp__plan_cache_release(&w->held->plans, w->entry);
    sp__model_drop(w->held);
    CHECK_OK(sp_model_release(w->model));
}

/* A lead with so many rows found no batch. */
static void miss(const world *w, uint32_t rows)
{
    CHECK(sp__batch_acquire(w->plans, rows) == NULL);
}

static uint32_t idle_of(sp_batch_bucket *bucket)
{
    uint32_t count = 0;
    sp_mutex_lock(&bucket->lock);
    for (const sp_batch *batch = bucket->idle; batch != NULL; batch = batch->next) count++;
    sp_mutex_unlock(&bucket->lock);
    return count;
}

/* Batches of so many rows; 0 too where there is no such size. */
static uint32_t idle_of_rows(const world *w, uint32_t rows)
{
    for (uint32_t i = 0; i < sp__batch_plans_count(w->plans); i++) {
        if (w->plans->buckets[i].rows == rows) return idle_of(&w->plans->buckets[i]);
    }
    return 0;
}

static void refill_all(const world *w)
{
    while (sp__batch_plans_refill(w->plans)) {
    }
}

TEST(sizes_that_no_lead_wants_have_no_memory)
{
    world w;
    world_open(&w);
    CHECK_EQ_U64(combining_batches(w.model), 0);
    CHECK_EQ_U64(bytes_in_use(), w.lone_bytes);
    refill_all(&w);
    CHECK_EQ_U64(combining_batches(w.model), 0);
    world_close(&w);
}

/* Else the caches keep what each size has used while it was measured. */
TEST(what_measured_batches_have_used_is_returned_to_the_system)
{
    world w;
    world_open(&w);
    sp_batch_bucket *largest = &w.plans->buckets[sp__batch_plans_count(w.plans) - 1];
    CHECK_OK(sp_device_empty_cache((sp_device){0}));
    while (sp__batch_bucket_refill(w.plans, largest)) {
    }
    const uint64_t before = memory_stats().reserved_bytes;
    sp__batch_bucket_reclaim(largest);
    CHECK_EQ_U64(idle_of(largest), 0);
    CHECK(memory_stats().reserved_bytes < before);
    world_close(&w);
}

TEST(the_largest_size_that_fits_a_lead_gets_its_batches)
{
    world w;
    world_open(&w);
    const uint32_t rows = w.plans->buckets[1].rows;
    miss(&w, w.plans->buckets[2].rows - 1);
    refill_all(&w);
    CHECK(idle_of_rows(&w, rows) > 1); /* one for each slot */
    CHECK_EQ_U64(combining_batches(w.model), idle_of_rows(&w, rows));
    sp_batch *batch = sp__batch_acquire(w.plans, rows);
    REQUIRE(batch != NULL);
    sp__batch_release(batch);
    world_close(&w);
}

/* With all batches of a size in use the next smaller one is wanted. */
TEST(a_smaller_size_gets_batches_while_those_of_the_larger_are_in_use)
{
    enum { MOST = 8 };
    world w;
    sp_batch *taken[MOST];
    uint32_t count = 0;
    world_open(&w);
    const uint32_t rows = w.plans->buckets[1].rows;
    miss(&w, rows);
    refill_all(&w);
    while (count < MOST && (taken[count] = sp__batch_acquire(w.plans, rows)) != NULL) count++;
    refill_all(&w);
    CHECK(idle_of_rows(&w, w.plans->buckets[0].rows) > 1);
    while (count > 0) sp__batch_release(taken[--count]);
    world_close(&w);
}

/* There is memory for a batch as small as the smallest alone. */
TEST(a_smaller_size_gets_batches_where_the_wanted_one_has_no_memory)
{
    world w;
    world_open(&w);
    CHECK_OK(sp_device_empty_cache((sp_device){0}));
    while (sp__batch_bucket_refill(w.plans, &w.plans->buckets[0])) {
    }
    sp_plan_extra *extra = &w.plans->extra;
    while (extra->reclaim(extra)) { /* it stays in the allocator's caches */
    }
    CHECK_OK(sp_device_set_memory_limit((sp_device){0}, memory_stats().reserved_bytes));
    sp_batch_bucket *largest = &w.plans->buckets[sp__batch_plans_count(w.plans) - 1];
    miss(&w, largest->rows);
    refill_all(&w);
    CHECK(combining_batches(w.model) > 0);
    CHECK_EQ_U64(idle_of(largest), 0);
    CHECK_OK(sp_device_set_memory_limit((sp_device){0}, 0));
    world_close(&w);
}

/* A lead that finds no batch: true if it requests the missing ones. */
static bool miss_requests(const world *w, uint32_t rows)
{
    miss(w, rows);
    return sp__batch_plans_must_refill(w->plans);
}

static uint32_t misses_until_request(const world *w, uint32_t rows)
{
    uint32_t count = 1;
    while (count < 10000 && !miss_requests(w, rows)) count++;
    return count;
}

/* An attempt takes all unused memory of the device from others. */
TEST(attempts_without_memory_become_rare)
{
    world w;
    world_open(&w);
    const uint32_t rows = w.plans->buckets[0].rows;
    uint32_t expected = SP_BATCH_MISSES;
    for (int i = 0; i < 4; i++) {
        if (i > 1) expected *= 2;
        CHECK_EQ_U64(misses_until_request(&w, rows), expected);
        sp_heap_fail_after(0);
        CHECK(!sp__batch_plans_refill(w.plans));
        sp_heap_fail_after(UINT64_MAX);
        sp__batch_plans_refill_ended(w.plans);
    }
    CHECK_EQ_U64(misses_until_request(&w, rows), 2 * expected);
    refill_all(&w);
    sp__batch_plans_refill_ended(w.plans);
    sp_plan_extra *extra = &w.plans->extra;
    while (extra->reclaim(extra)) {
    }
    CHECK_EQ_U64(misses_until_request(&w, rows), SP_BATCH_MISSES);
    world_close(&w);
}

/* Whatever allocation fails: nothing is lost, and the size is still wanted. */
TEST(a_batch_that_cannot_be_made_is_missing_as_before)
{
    world w;
    world_open(&w);
    miss(&w, w.plans->buckets[0].rows);
    uint64_t skip = 0;
    for (bool is_made = false; !is_made && skip < 100; skip++) {
        sp_heap_fail_after(skip);
        is_made = sp__batch_plans_refill(w.plans);
        sp_heap_fail_after(UINT64_MAX);
        CHECK_EQ_U64(combining_batches(w.model), is_made ? 1 : 0);
        if (!is_made) CHECK_EQ_U64(bytes_in_use(), w.lone_bytes);
    }
    CHECK(skip > 3 && skip < 100);
    refill_all(&w);
    CHECK(idle_of(&w.plans->buckets[0]) > 1);
    world_close(&w);
}

/* What leads have wanted comes back without being wanted again. */
TEST(reclaimed_batches_come_back_if_they_were_wanted)
{
    world w;
    world_open(&w);
    miss(&w, w.plans->buckets[0].rows);
    refill_all(&w);
    const uint32_t before = combining_batches(w.model);
    CHECK(before > 1);
    sp_plan_extra *extra = &w.plans->extra;
    while (extra->reclaim(extra)) {
    }
    CHECK_EQ_U64(combining_batches(w.model), 0);
    CHECK_EQ_U64(bytes_in_use(), w.lone_bytes);
    refill_all(&w);
    CHECK_EQ_U64(combining_batches(w.model), before);
    world_close(&w);
}

/* Each lead that has looked for a batch asks whether the builder is to be told. */
TEST(batches_are_made_after_enough_leads_have_missed_them)
{
    world w;
    world_open(&w);
    const uint32_t rows = w.plans->buckets[0].rows;
    for (uint32_t i = 0; i < SP_BATCH_MISSES - 1; i++) {
        miss(&w, rows);
        sp__batch_builder_refill(w.held, w.entry);
    }
    sp__batch_builder_drain();
    CHECK_EQ_U64(combining_batches(w.model), 0);
    miss(&w, rows);
    sp__batch_builder_refill(w.held, w.entry);
    sp__batch_builder_drain();
    CHECK(idle_of_rows(&w, rows) > 1);
    world_close(&w);
}

/* As the builder's, but that a lead wants a size, and the plan is evicted then. */
static bool attach_evicted(const sp_batch_build *build, sp_batch_plans *plans)
{
    (void)build;
    if (sp__batch_plans_count(plans) < 2) return true;
    CHECK(sp__batch_acquire(plans, 2) == NULL);
    return false;
}

/* Its memory is free at once: nothing of the plans comes back. */
TEST(plans_that_were_evicted_while_they_are_made_get_no_batches)
{
    static const sp_atomic_u32 is_stopping = {0};
    world w;
    sp_batch_plans *plans;
    world_open(&w);
    const sp_batch_build build = {.model = w.held,
                                  .words = w.entry->words,
                                  .word_count = w.entry->word_count,
                                  .is_stopping = &is_stopping,
                                  .attach = attach_evicted};
    CHECK_OK(sp__batch_plans_make(&build, &plans));
    const uint32_t count = sp__batch_plans_count(plans);
    for (uint32_t i = 0; i < count; i++) CHECK_EQ_U64(idle_of(&plans->buckets[i]), 0);
    sp__batch_plans_drop(plans);
    world_close(&w);
    if (count < 2) SKIP("the machine was so busy that no two sizes paid");
}

TEST_MAIN
