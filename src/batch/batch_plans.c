/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_plans.h"

#include "base/error.h"
#include "base/heap.h"
#include "batch/batch.h"

static sp_batch_plans *plans_of(sp_plan_extra *extra)
{
    return SP_CONTAINER_OF(extra, sp_batch_plans, extra);
}

static void extra_destroy(sp_plan_extra *extra)
{
    sp__batch_plans_destroy(plans_of(extra));
}

static sp_batch *idle_pop(sp_batch_bucket *bucket)
{
    sp_mutex_lock(&bucket->lock);
    sp_batch *batch = bucket->idle;
    if (batch != NULL) bucket->idle = batch->next;
    sp_mutex_unlock(&bucket->lock);
    return batch;
}

/* The largest bucket first, for as long as its batches are not in use. */
static bool extra_reclaim(sp_plan_extra *extra)
{
    sp_batch_plans *plans = plans_of(extra);
    for (uint32_t i = plans->bucket_count; i-- > 0;) {
        sp_batch *batch = idle_pop(&plans->buckets[i]);
        if (batch == NULL) continue;
        sp__batch_destroy(batch);
        return true;
    }
    return false;
}

sp_status sp__batch_plans_create(const sp_graph_plan *single, sp_batch_plans **out)
{
    sp_batch_plans *plans = sp_calloc(1, sizeof *plans);
    if (plans == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for plans of batches");
    plans->extra = (sp_plan_extra){.destroy = extra_destroy, .reclaim = extra_reclaim};
    plans->input_count = single->input_count;
    plans->output_count = single->output_count;
    plans->ports = sp_calloc(single->input_count + single->output_count, sizeof *plans->ports);
    plans->shared_bytes = sp_calloc(single->input_count, sizeof *plans->shared_bytes);
    if (plans->ports != NULL && plans->shared_bytes != NULL) {
        *out = plans;
        return SP_OK;
    }
    sp__batch_plans_destroy(plans);
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for plans of batches");
}

void sp__batch_plans_destroy(sp_batch_plans *plans)
{
    for (uint32_t i = 0; i < plans->bucket_count; i++) {
        sp__batch_bucket_deinit(&plans->buckets[i]);
    }
    if (plans->own_slots != NULL) sp__run_slots_deinit(plans->own_slots);
    sp_free(plans->own_slots);
    sp_free(plans->ports);
    sp_free(plans->shared_bytes);
    sp_free(plans);
}

sp_batch_bucket *sp__batch_plans_add(sp_batch_plans *plans, uint32_t rows,
                                     sp_executable *executable)
{
    sp_batch_bucket *bucket = &plans->buckets[plans->bucket_count++];
    bucket->rows = rows;
    bucket->executable = executable;
    sp_mutex_init(&bucket->lock, SP_LOCK_BATCHES);
    return bucket;
}

void sp__batch_bucket_deinit(sp_batch_bucket *bucket)
{
    for (sp_batch *batch; (batch = idle_pop(bucket)) != NULL;) sp__batch_destroy(batch);
    sp__executable_destroy(bucket->executable);
    sp_mutex_deinit(&bucket->lock);
}

sp_batch *sp__batch_acquire(sp_batch_plans *plans, uint32_t rows)
{
    for (uint32_t i = plans->bucket_count; i-- > 0;) {
        if (plans->buckets[i].rows > rows) continue;
        sp_batch *batch = idle_pop(&plans->buckets[i]);
        if (batch != NULL) return batch;
    }
    return NULL;
}

void sp__batch_release(sp_batch *batch)
{
    sp_batch_bucket *bucket = batch->bucket;
    sp_mutex_lock(&bucket->lock);
    batch->next = bucket->idle;
    bucket->idle = batch;
    sp_mutex_unlock(&bucket->lock);
}
