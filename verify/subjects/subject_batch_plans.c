/* SPDX-License-Identifier: Apache-2.0 */
/* Larger plans: they are attached to a plan that may be evicted, end with it, and are requested
 * from a thread that the shutdown stops. */
#include "support.h"

#include <string.h>

#include <streampool/streampool.h>

#include "base/heap.h"
#include "batch/batch_builder.h"
#include "batch/batch.h"
#include "exec/plan_cache.h"
#include "sched/subject.h"

static const sp_graph_body no_nodes;
static const sp_graph graph = {.main = &no_nodes};
static const sp_kernel kernels;
static const sp_plan_request request = {.kernels = &kernels};

/* ---- attach and evict ---- */

typedef struct larger_plans {
    sp_plan_extra extra;
    uint32_t rows; /* plain: published by the attach */
} larger_plans;

typedef struct attach_world {
    sp_plan_cache cache;
    sp_rt_device *device;
} attach_world;

static void larger_destroy(sp_plan_extra *extra)
{
    sp_free(SP_CONTAINER_OF(extra, larger_plans, extra));
}

static bool larger_reclaim(sp_plan_extra *extra)
{
    SP_SCHED_ASSERT(SP_CONTAINER_OF(extra, larger_plans, extra)->rows == 2);
    return false;
}

/* As the builder: the plan is in use only while the result is attached. */
static void attach(void *arg)
{
    attach_world *w = arg;
    sp_plan_key key;
    larger_plans *plans = sp_malloc(sizeof *plans);
    SP_SCHED_ASSERT(plans != NULL && sp__plan_key_init(&key, &request) == SP_OK);
    *plans = (larger_plans){.extra = {larger_destroy, larger_reclaim}, .rows = 2};
    sp_plan_entry *entry = sp__plan_cache_find(&w->cache, &key);
    if (entry == NULL || !sp__plan_entry_attach(entry, &plans->extra)) sp_free(plans);
    if (entry != NULL) sp__plan_cache_release(&w->cache, entry);
    sp__plan_key_deinit(&key);
}

static void use(void *arg)
{
    attach_world *w = arg;
    sp_plan_entry *entry;
    SP_SCHED_ASSERT(sp__plan_cache_acquire(&w->cache, &request, true, &entry) == SP_OK);
    sp_plan_extra *extra = sp_load_acquire(&entry->extra);
    if (extra != NULL) {
        SP_SCHED_ASSERT(SP_CONTAINER_OF(extra, larger_plans, extra)->rows == 2);
    }
    sp__plan_cache_release(&w->cache, entry);
}

static void evict(void *arg)
{
    attach_world *w = arg;
    sp__plan_cache_reclaim_extra(&w->cache);
    sp__plan_cache_reclaim_plan(&w->cache);
}

static void attach_run(const sp_thread_fn *fns, uint32_t count)
{
    attach_world w;
    memset(&w, 0, sizeof w);
    w.device = sp__subject_bare_device();
    SP_SCHED_ASSERT(sp__plan_cache_init(&w.cache, &graph, w.device, NULL, 1) == SP_OK);
    use(&w);
    sp__subject_run(fns, count, &w);
    sp__plan_cache_deinit(&w.cache);
    sp__subject_bare_device_free(w.device);
    sp__subject_end();
}

static void subject_attach_use(void *arg)
{
    (void)arg;
    attach_run((const sp_thread_fn[]){attach, use}, 2);
}

static void subject_attach_evict(void *arg)
{
    (void)arg;
    attach_run((const sp_thread_fn[]){attach, evict}, 2);
}

static void subject_attach_twice(void *arg)
{
    (void)arg;
    attach_run((const sp_thread_fn[]){attach, attach, evict}, 3);
}

static void subject_attach_all(void *arg)
{
    (void)arg;
    attach_run((const sp_thread_fn[]){attach, use, evict}, 3);
}

/* ---- buckets, as they come ---- */

static void bucket_make(attach_world *w, sp_batch_plans *plans, uint32_t rows)
{
    sp_executable *executable;
    sp_batch *batch = sp_calloc(1, sizeof *batch);
    SP_SCHED_ASSERT(batch != NULL);
    SP_SCHED_ASSERT(sp__plan_cache_compile(&w->cache, &request, true, &executable) == SP_OK);
    batch->plans = plans;
    batch->bucket = sp__batch_bucket_add(plans, rows, 0, executable);
    sp__batch_release(batch);
    sp__batch_bucket_publish(plans);
}

/* As the builder: attaches the plans with the first bucket, and adds another one. */
static void buckets_attach(void *arg)
{
    static const sp_graph_plan single;
    attach_world *w = arg;
    sp_batch_plans *plans;
    sp_plan_key key;
    SP_SCHED_ASSERT(sp__batch_plans_create(&single, &plans) == SP_OK);
    SP_SCHED_ASSERT(sp__plan_key_init(&key, &request) == SP_OK);
    for (uint32_t rows = 2; rows <= 3; rows++) {
        bucket_make(w, plans, rows);
        sp_plan_entry *entry = sp__plan_cache_find(&w->cache, &key);
        if (entry == NULL) break;
        SP_SCHED_ASSERT(sp__batch_plans_attach(plans, entry));
        sp__plan_cache_release(&w->cache, entry);
    }
    sp__batch_plans_drop(plans);
    sp__plan_key_deinit(&key);
}

static void buckets_use(void *arg)
{
    attach_world *w = arg;
    sp_plan_entry *entry;
    SP_SCHED_ASSERT(sp__plan_cache_acquire(&w->cache, &request, true, &entry) == SP_OK);
    sp_batch_plans *plans = sp__batch_plans_of(entry);
    sp_batch *batch = plans != NULL ? sp__batch_acquire(plans, 3) : NULL;
    if (batch != NULL) {
        SP_SCHED_ASSERT(batch->bucket->rows == 2 || batch->bucket->rows == 3);
        sp__batch_release(batch);
    }
    sp__plan_cache_release(&w->cache, entry);
}

static void subject_buckets_use(void *arg)
{
    (void)arg;
    attach_run((const sp_thread_fn[]){buckets_attach, buckets_use}, 2);
}

static void subject_buckets_evict(void *arg)
{
    (void)arg;
    attach_run((const sp_thread_fn[]){buckets_attach, evict}, 2);
}

static void subject_buckets_all(void *arg)
{
    (void)arg;
    attach_run((const sp_thread_fn[]){buckets_attach, buckets_use, evict}, 3);
}

/* ---- missing batches ---- */

typedef struct missing_world {
    sp_batch_plans plans;
    sp_atomic_u32 requests;
} missing_world;

static void lead_without_batch(void *arg)
{
    missing_world *w = arg;
    SP_SCHED_ASSERT(sp__batch_acquire(&w->plans, 2) == NULL);
    if (sp__batch_plans_must_refill(&w->plans)) sp_fetch_add_relaxed(&w->requests, 1);
}

static void reclaim_none(void *arg)
{
    missing_world *w = arg;
    SP_SCHED_ASSERT(!w->plans.extra.reclaim(&w->plans.extra));
}

/* One lead requests the missing batches, however many find none. */
static void subject_batch_missing(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    static const sp_graph_plan single;
    missing_world w = {.requests = {0}};
    sp_batch_plans *plans;
    SP_SCHED_ASSERT(sp__batch_plans_create(&single, &plans) == SP_OK);
    w.plans = *plans;
    sp__batch_bucket_add(&w.plans, 2, 1, NULL);
    sp__batch_bucket_publish(&w.plans);
    sp_store_relaxed(&w.plans.misses, SP_BATCH_MISSES - 1);
    sp__subject_run((const sp_thread_fn[]){lead_without_batch, lead_without_batch, reclaim_none},
                    threads, &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.requests) == 1);
    sp_mutex_deinit(&w.plans.buckets[0].lock);
    sp__batch_plans_drop(plans);
    sp__subject_end();
}

/* ---- the builder ---- */

/* The key of a plan that has no larger ones: so a job ends when its key has been decoded. */
static uint64_t words[] = {0, 1u << 1};

typedef struct builder_world {
    sp_rt_model model;
    sp_plan_entry entry;
    uint64_t holds; /* the model's word without jobs */
} builder_world;

static void builder_begin(builder_world *w)
{
    memset(w, 0, sizeof *w);
    w->model.graph = &graph;
    sp_mutex_init(&w->model.plans.lock, SP_LOCK_PLAN_CACHE);
    w->entry.words = words;
    w->entry.word_count = SP_COUNT_OF(words);
    w->holds = 1;
    sp_store_relaxed(&w->model.object.word, w->holds);
    sp_store_release(&sp__runtime_phase, SP_RUNTIME_UP);
}

static void builder_end(builder_world *w)
{
    SP_SCHED_ASSERT(sp_shutdown() == SP_OK);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->model.object.word) == w->holds);
    sp_mutex_deinit(&w->model.plans.lock);
    sp__subject_runtime_down();
    sp__subject_end();
}

static void request_plans(void *arg)
{
    builder_world *w = arg;
    sp__batch_builder_request(&w->model, &w->entry);
}

static void stop(void *arg)
{
    (void)arg;
    SP_SCHED_ASSERT(sp_shutdown() == SP_OK);
}

/* The second request may find the builder asleep. */
static void request_twice(void *arg)
{
    for (uint32_t i = 0; i < 2; i++) {
        request_plans(arg);
        sp__batch_builder_drain();
    }
}

static void request_alone(void *arg)
{
    const builder_world *w = arg;
    request_twice(arg);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->model.object.word) == w->holds);
}

static void builder_run(const sp_thread_fn *fns, uint32_t count)
{
    static builder_world w;
    builder_begin(&w);
    sp__subject_run(fns, count, &w);
    builder_end(&w);
}

static void subject_builder_request(void *arg)
{
    (void)arg;
    builder_run((const sp_thread_fn[]){request_alone}, 1);
}

static void subject_builder_requests(void *arg)
{
    (void)arg;
    builder_run((const sp_thread_fn[]){request_twice, request_twice}, 2);
}

static void subject_builder_stop(void *arg)
{
    (void)arg;
    builder_run((const sp_thread_fn[]){request_twice, stop}, 2);
}

/* As the shutdown beside an exit: each returns after the thread has ended. */
static void stop_alone(void *arg)
{
    const builder_world *w = arg;
    sp__batch_builder_stop();
    SP_SCHED_ASSERT(sp_load_relaxed(&w->model.object.word) == w->holds);
}

static void subject_builder_stops(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    static builder_world w;
    builder_begin(&w);
    request_plans(&w);
    sp__subject_run((const sp_thread_fn[]){stop_alone, stop_alone, stop_alone}, threads, &w);
    builder_end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_batch_plans[] = {
    {.name = "attach_use",
     .test = subject_attach_use,
     .thread_count = 2,
     .planted = "relaxed_attach",
     .seconds = 0.5},
    {.name = "attach_evict",
     .test = subject_attach_evict,
     .thread_count = 2,
     .planted = "relaxed_attach extra_stays",
     .seconds = 0.5},
    {.name = "attach_twice",
     .test = subject_attach_twice,
     .thread_count = 3,
     .planted = "extra_stays",
     .seconds = 0.5},
    {.name = "attach_all",
     .test = subject_attach_all,
     .thread_count = 3,
     .planted = "relaxed_attach extra_stays",
     .seconds = 0.5},
    {.name = "buckets_use",
     .test = subject_buckets_use,
     .thread_count = 2,
     .planted = "relaxed_bucket plans_unheld",
     .seconds = 0.5},
    {.name = "buckets_evict",
     .test = subject_buckets_evict,
     .thread_count = 2,
     .planted = "plans_unheld",
     .seconds = 0.5},
    {.name = "buckets_all",
     .test = subject_buckets_all,
     .thread_count = 3,
     .planted = "relaxed_bucket plans_unheld",
     .seconds = 0.5},
    {.name = "batch_missing_2",
     .test = subject_batch_missing,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "refill_by_all",
     .seconds = 0.5},
    {.name = "batch_missing_3",
     .test = subject_batch_missing,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "refill_by_all",
     .seconds = 0.5},
    {.name = "builder_request",
     .test = subject_builder_request,
     .thread_count = 2,
     .planted = "quiet_request",
     .seconds = 0.5},
    {.name = "builder_requests",
     .test = subject_builder_requests,
     .thread_count = 3,
     .planted = "quiet_request",
     .seconds = 0.5},
    {.name = "builder_stop",
     .test = subject_builder_stop,
     .thread_count = 3,
     .planted = "late_stop_fn",
     .seconds = 0.5},
    {.name = "builder_stops_2",
     .test = subject_builder_stops,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 3,
     .planted = "second_stop",
     .seconds = 0.5},
    {.name = "builder_stops_3",
     .test = subject_builder_stops,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 4,
     .planted = "second_stop",
     .seconds = 0.5},
    {0},
};
