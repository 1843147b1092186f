/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_plans.h"

#include "base/error.h"
#include "base/heap.h"
#include "batch/batch.h"

static sp_batch_plans *plans_of(sp_plan_extra *extra)
{
    return SP_CONTAINER_OF(extra, sp_batch_plans, extra);
}

static sp_batch *idle_pop_locked(sp_batch_bucket *bucket) SP_REQUIRES(&bucket->lock)
{
    sp_batch *batch = bucket->idle;
    if (batch != NULL) bucket->idle = batch->next;
    return batch;
}

/* *misses_some: besides those in use there are batches to be created. */
static sp_batch *idle_pop(sp_batch_bucket *bucket, bool *misses_some)
{
    sp_mutex_lock(&bucket->lock);
    sp_batch *batch = idle_pop_locked(bucket);
    *misses_some = bucket->missing != 0;
    sp_mutex_unlock(&bucket->lock);
    return batch;
}

/* ---- missing batches ---- */

/* Most leads only read the word. */
static void bucket_want(sp_batch_bucket *bucket)
{
    if (SP_PLANTED(unwanted_size)) return;
    if (sp_load_relaxed(&bucket->is_wanted) == 0) sp_store_relaxed(&bucket->is_wanted, 1);
}

static void miss_count(sp_batch_plans *plans)
{
    uint32_t misses = sp_load_relaxed(&plans->misses);
    while (misses < SP_BATCH_MISSES && !sp_cas_relaxed(&plans->misses, &misses, misses + 1)) {
    }
}

/* Memory is short: it is left alone for a while, unless the builder has been asked already. */
static void misses_restart(sp_batch_plans *plans)
{
    uint32_t misses = sp_load_relaxed(&plans->misses);
    while (misses != SP_BATCH_MISSES_ASKED && !sp_cas_relaxed(&plans->misses, &misses, 0)) {
    }
}

bool sp__batch_plans_must_refill(sp_batch_plans *plans)
{
    uint32_t misses = SP_BATCH_MISSES;
    if (SP_PLANTED(refill_by_all)) return sp_load_relaxed(&plans->misses) >= misses;
    if (SP_LIKELY(sp_load_relaxed(&plans->misses) != misses)) return false;
    if (!sp_cas_relaxed(&plans->misses, &misses, SP_BATCH_MISSES_ASKED)) return false;
    const uint32_t left = sp_load_relaxed(&plans->rounds_left);
    if (left == 0) return true;
    sp_store_relaxed(&plans->rounds_left, left - 1);
    sp__batch_plans_forget_misses(plans);
    return false;
}

void sp__batch_plans_forget_misses(sp_batch_plans *plans)
{
    sp_store_relaxed(&plans->misses, 0);
}

static sp_batch *idle_reclaim(sp_batch_bucket *bucket)
{
    sp_mutex_lock(&bucket->lock);
    sp_batch *batch = idle_pop_locked(bucket);
    if (batch != NULL) bucket->missing++;
    sp_mutex_unlock(&bucket->lock);
    return batch;
}

static bool is_short(sp_batch_bucket *bucket)
{
    sp_mutex_lock(&bucket->lock);
    const bool misses_some = bucket->missing != 0;
    sp_mutex_unlock(&bucket->lock);
    return misses_some;
}

static void idle_push(sp_batch *batch, bool was_missing)
{
    sp_batch_bucket *bucket = batch->bucket;
    sp_mutex_lock(&bucket->lock);
    batch->next = bucket->idle;
    bucket->idle = batch;
    bucket->missing -= was_missing;
    sp_mutex_unlock(&bucket->lock);
}

bool sp__batch_bucket_refill(sp_batch_plans *plans, sp_batch_bucket *bucket)
{
    sp_batch *batch;
    if (!is_short(bucket) || sp__batch_create(plans, bucket, &batch) != SP_OK) return false;
    idle_push(batch, true);
    return true;
}

/* Where a wanted bucket has no memory, the next smaller one is wanted that is of use to the same
 * leads: they look for it, too, but want the larger one. */
static bool bucket_or_smaller_refill(sp_batch_plans *plans, uint32_t index)
{
    sp_batch_bucket *bucket = &plans->buckets[index];
    const uint32_t pays = sp_load_relaxed(&bucket->pays_for_threads);
    if (sp__batch_bucket_refill(plans, bucket)) return true;
    while (index-- > 0 && !SP_PLANTED(larger_only)) {
        sp_batch_bucket *smaller = &plans->buckets[index];
        if (sp_load_relaxed(&smaller->pays_for_threads) < pays) continue;
        if (!is_short(smaller)) return false;
        bucket_want(smaller);
        if (sp__batch_bucket_refill(plans, smaller)) return true;
    }
    return false;
}

bool sp__batch_plans_refill(sp_batch_plans *plans)
{
    const uint32_t count = sp__batch_plans_count(plans);
    for (uint32_t i = 0; i < count; i++) {
        sp_batch_bucket *bucket = &plans->buckets[i];
        if (sp_load_relaxed(&bucket->is_wanted) == 0 || !is_short(bucket)) continue;
        return bucket_or_smaller_refill(plans, i);
    }
    return sp__batch_rows_refill(plans->rows);
}

static bool any_is_wanted_and_short(sp_batch_plans *plans)
{
    for (uint32_t i = sp__batch_plans_count(plans); i-- > 0;) {
        sp_batch_bucket *bucket = &plans->buckets[i];
        if (sp_load_relaxed(&bucket->is_wanted) != 0 && is_short(bucket)) return true;
    }
    return false;
}

void sp__batch_plans_refill_ended(sp_batch_plans *plans)
{
    const uint32_t before = plans->failures;
    const bool has_failed = any_is_wanted_and_short(plans);
    const uint32_t doublings = before < SP_BATCH_DOUBLINGS ? before : SP_BATCH_DOUBLINGS;
    plans->failures = has_failed ? doublings + 1 : 0;
    sp_store_relaxed(&plans->rounds_left, has_failed ? (UINT32_C(1) << doublings) - 1 : 0);
    sp__batch_plans_forget_misses(plans);
}

void sp__batch_bucket_reclaim(sp_batch_bucket *bucket)
{
    uint64_t bytes = 0;
    for (sp_batch *batch; (batch = idle_reclaim(bucket)) != NULL;) {
        bytes += sp__batch_bytes(batch);
        sp__batch_destroy(batch);
    }
    sp__allocator_trim(&sp__executable_device(bucket->executable)->allocator, bytes, true);
}

/* The largest bucket first, for as long as its batches are not in use; then the callers' rows. */
static bool extra_reclaim(sp_plan_extra *extra)
{
    sp_batch_plans *plans = plans_of(extra);
    for (uint32_t i = sp__batch_plans_count(plans); i-- > 0;) {
        sp_batch *batch = idle_reclaim(&plans->buckets[i]);
        if (batch == NULL) continue;
        misses_restart(plans);
        sp__batch_destroy(batch);
        return true;
    }
    if (!sp__batch_rows_reclaim(plans->rows)) return false;
    misses_restart(plans);
    return true;
}

/* The memory is free at once, also if the builder holds the plans for a little longer. */
static void extra_destroy(sp_plan_extra *extra)
{
    while (extra_reclaim(extra)) {
    }
    sp__batch_plans_drop(plans_of(extra));
}

/* ---- life ---- */

static void bucket_deinit(sp_batch_bucket *bucket)
{
    bool misses_some;
    for (sp_batch *batch; (batch = idle_pop(bucket, &misses_some)) != NULL;) {
        sp__batch_destroy(batch);
    }
    sp__executable_destroy(bucket->executable);
    sp_mutex_deinit(&bucket->lock);
}

static void plans_destroy(sp_batch_plans *plans)
{
    const uint32_t count = sp_load_relaxed(&plans->bucket_count);
    for (uint32_t i = 0; i < count; i++) bucket_deinit(&plans->buckets[i]);
    if (plans->own_slots != NULL) sp__run_slots_deinit(plans->own_slots);
    sp_free(plans->own_slots);
    sp__batch_rows_destroy(plans->rows);
    sp_free(plans->pieces);
    sp_free(plans->ports);
    sp_free(plans->shared_bytes);
    sp_free(plans);
}

sp_status sp__batch_plans_create(const sp_graph_plan *single, sp_batch_plans **out)
{
    sp_batch_plans *plans = sp_calloc(1, sizeof *plans);
    if (plans == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for plans of batches");
    plans->extra = (sp_plan_extra){.destroy = extra_destroy, .reclaim = extra_reclaim};
    sp_store_relaxed(&plans->holders, 1);
    plans->input_count = single->input_count;
    plans->output_count = single->output_count;
    plans->ports = sp_calloc(single->input_count + single->output_count, sizeof *plans->ports);
    plans->pieces = sp_calloc(single->input_count + single->output_count, sizeof *plans->pieces);
    plans->shared_bytes = sp_calloc(single->input_count, sizeof *plans->shared_bytes);
    if (plans->ports != NULL && plans->pieces != NULL && plans->shared_bytes != NULL) {
        *out = plans;
        return SP_OK;
    }
    plans_destroy(plans);
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for plans of batches");
}

void sp__batch_plans_drop(sp_batch_plans *plans)
{
    if (sp_fetch_sub_acq_rel(&plans->holders, 1) == 1) plans_destroy(plans);
}

bool sp__batch_plans_attach(sp_batch_plans *plans, sp_plan_entry *entry)
{
    if (sp__batch_plans_of(entry) == plans) return true;
    if (!SP_PLANTED(plans_unheld)) sp_fetch_add_relaxed(&plans->holders, 1);
    const bool is_attached = sp__plan_entry_attach(entry, &plans->extra);
    if (!is_attached) sp__batch_plans_drop(plans);
    return is_attached;
}

static uint32_t waiting_for(sp_run_slots *slots)
{
    sp_mutex_lock(&slots->lock);
    const uint32_t waiting = slots->own.queued + slots->own.reserved;
    sp_mutex_unlock(&slots->lock);
    return waiting;
}

uint32_t sp__batch_plans_waiting(sp_plan_cache *cache)
{
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        sp_plan_entry *entry = sp__plan_cache_acquire_at(cache, i);
        if (entry == NULL) continue;
        const sp_batch_plans *plans = sp__batch_plans_of(entry);
        if (plans != NULL && plans->own_slots != NULL) waiting += waiting_for(plans->own_slots);
        sp__plan_cache_release(cache, entry);
    }
    return waiting;
}

/* ---- buckets ---- */

static sp_batch_bucket *bucket_next(sp_batch_plans *plans)
{
    return &plans->buckets[sp_load_relaxed(&plans->bucket_count)];
}

sp_batch_bucket *sp__batch_bucket_add(sp_batch_plans *plans, uint32_t rows, uint32_t missing,
                                      sp_executable *executable)
{
    sp_batch_bucket *bucket = bucket_next(plans);
    bucket->rows = rows;
    bucket->run_ns = bucket->lone_ns = 0;
    sp_store_relaxed(&bucket->pays_for_threads, 0);
    sp_store_relaxed(&bucket->is_wanted, 0);
    bucket->executable = executable;
    sp_mutex_init(&bucket->lock, SP_LOCK_BATCHES);
    sp_mutex_lock(&bucket->lock);
    bucket->idle = NULL;
    bucket->missing = missing;
    sp_mutex_unlock(&bucket->lock);
    return bucket;
}

void sp__batch_bucket_publish(sp_batch_plans *plans)
{
    const uint32_t count = sp_load_relaxed(&plans->bucket_count) + 1;
    if (SP_PLANTED(relaxed_bucket)) sp_store_relaxed(&plans->bucket_count, count);
    else sp_store_release(&plans->bucket_count, count);
}

void sp__batch_bucket_pays(sp_batch_plans *plans, uint32_t index)
{
    sp_store_relaxed(&plans->buckets[index].pays_for_threads, 1);
    sp_store_relaxed(&plans->pays_for_threads, 1);
}

void sp__batch_bucket_remove(sp_batch_plans *plans)
{
    bucket_deinit(bucket_next(plans));
}

/* ---- use ---- */

/* A lead wants the largest bucket that fits, or the next one that misses some where all batches of
 * that are in use. */
static sp_batch *batch_acquire(sp_batch_plans *plans, uint32_t rows, bool has_threads)
{
    sp_batch_bucket *wanted = NULL;
    sp_batch *batch = NULL;
    for (uint32_t i = sp__batch_plans_count(plans); i-- > 0 && batch == NULL;) {
        sp_batch_bucket *bucket = &plans->buckets[i];
        bool misses_some;
        if (bucket->rows > rows) continue;
        if (has_threads && sp_load_relaxed(&bucket->pays_for_threads) == 0) continue;
        batch = idle_pop(bucket, &misses_some);
        if (batch == NULL && misses_some && wanted == NULL) wanted = bucket;
    }
    if (SP_UNLIKELY(wanted != NULL)) bucket_want(wanted);
    const bool lacks_row = has_threads && sp__batch_rows_are_missing(plans->rows);
    if (SP_UNLIKELY(wanted != NULL || lacks_row)) miss_count(plans);
    return batch;
}

sp_batch *sp__batch_acquire(sp_batch_plans *plans, uint32_t rows)
{
    return batch_acquire(plans, rows, false);
}

sp_batch *sp__batch_acquire_for_threads(sp_batch_plans *plans, uint32_t rows)
{
    return batch_acquire(plans, rows, true);
}

void sp__batch_release(sp_batch *batch)
{
    idle_push(batch, false);
}
