/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of plans and the pools of contexts. The plans are of a graph without nodes, so without
 * kernels; keys, builds, places and contexts are real. */
#include "support.h"

#include <string.h>

#include "base/heap.h"
#include "exec/plan_cache.h"
#include "sched/subject.h"

typedef struct cache_world {
    sp_plan_cache cache;
    sp_rt_device *device;
    sp_plan_entry *found[3];
    sp_status status[3];
    sp_atomic_u32 next;
} cache_world;

static const sp_graph_body no_nodes;
static const sp_graph graph = {.main = &no_nodes};
static const sp_kernel kernels_a, kernels_b;

static void begin_cache(cache_world *w, uint32_t entries)
{
    memset(w, 0, sizeof *w);
    w->device = sp__subject_bare_device();
    SP_SCHED_ASSERT(sp__plan_cache_init(&w->cache, &graph, w->device, NULL, entries) == SP_OK);
}

static void end_cache(cache_world *w)
{
    sp__plan_cache_deinit(&w->cache);
    sp__subject_bare_device_free(w->device);
    sp__subject_end();
}

/* The plan for these kernels, which are its key; it must be of that key. */
static sp_plan_entry *find_plan(cache_world *w, const sp_kernel *kernels, bool may_wait,
                                sp_status *status)
{
    const sp_plan_request request = {.kernels = kernels};
    sp_plan_entry *entry;
    *status = sp__plan_cache_acquire(&w->cache, &request, may_wait, &entry);
    if (*status != SP_OK) return NULL;
    SP_SCHED_ASSERT(entry->executable->plan->kernels == kernels);
    return entry;
}

/* ---- one build for a key ---- */

static void find(cache_world *w, const sp_kernel *kernels)
{
    const uint32_t index = sp_fetch_add_relaxed(&w->next, 1);
    w->found[index] = find_plan(w, kernels, true, &w->status[index]);
}

static void find_a(void *arg)
{
    find(arg, &kernels_a);
}

static void find_b(void *arg)
{
    find(arg, &kernels_b);
}

static void drop_found(cache_world *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (w->found[i] != NULL) sp__plan_cache_release(&w->cache, w->found[i]);
    }
}

static void subject_plan_cache(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    cache_world w;
    begin_cache(&w, 2);
    sp__subject_run((const sp_thread_fn[]){find_a, find_a, find_a}, threads, &w);
    for (uint32_t i = 0; i < threads; i++) {
        SP_SCHED_ASSERT(w.status[i] == SP_OK && w.found[i] == w.found[0]);
    }
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.build_count) == 1);
    drop_found(&w, threads);
    end_cache(&w);
}

static void subject_plan_cache_keys(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w, 2);
    sp__subject_run((const sp_thread_fn[]){find_a, find_a, find_b}, 3, &w);
    for (uint32_t i = 0; i < 3; i++) SP_SCHED_ASSERT(w.status[i] == SP_OK);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.build_count) == 2);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.plan_count) == 2);
    drop_found(&w, 3);
    end_cache(&w);
}

/* The first build finds no memory: its caller gets the error, the next caller builds again. */
static void subject_plan_cache_retry(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w, 2);
    sp_heap_fail_after(0);
    sp__subject_run((const sp_thread_fn[]){find_a, find_a}, 2, &w);
    sp_heap_fail_after(UINT64_MAX);
    SP_SCHED_ASSERT((w.status[0] == SP_OK) != (w.status[1] == SP_OK));
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.build_count) == 2);
    drop_found(&w, 2);
    end_cache(&w);
}

/* ---- more keys than places ---- */

static void use_plan(cache_world *w, const sp_kernel *kernels, bool may_wait)
{
    sp_status status;
    sp_plan_entry *entry = find_plan(w, kernels, may_wait, &status);
    SP_SCHED_ASSERT(status == SP_OK);
    SP_SCHED_ASSERT(entry->executable->plan->kernels == kernels); /* it has not been freed */
    sp__plan_cache_release(&w->cache, entry);
}

static void use_a(void *arg)
{
    use_plan(arg, &kernels_a, true);
}

static void use_b(void *arg)
{
    use_plan(arg, &kernels_b, true);
}

static void use_b_at_once(void *arg)
{
    use_plan(arg, &kernels_b, false);
}

/* Two plans alternate in one cache entry; a caller that finds the other one in use waits for it. */
static void subject_plan_cache_bound(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w, 1);
    sp__subject_run((const sp_thread_fn[]){use_a, use_b}, 2, &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.build_count) == 2);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.plan_count) == 1);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.evictions) == 1);
    end_cache(&w);
}

/* A caller that must not wait gets a plan, whether there is a free entry or not. */
static void subject_plan_cache_private(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w, 1);
    sp__subject_run((const sp_thread_fn[]){use_a, use_b_at_once}, 2, &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.build_count) == 2);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.plan_count) == 1);
    end_cache(&w);
}

/* ---- visits ---- */

static void visit_plan(cache_world *w, const sp_kernel *kernels, uint32_t lane, bool keeps)
{
    const sp_plan_request request = {.kernels = kernels};
    sp_plan_entry *entry;
    SP_SCHED_ASSERT(sp__plan_cache_visit(&w->cache, &request, lane, &entry) == SP_OK);
    SP_SCHED_ASSERT(entry->executable->plan->kernels == kernels);
    if (keeps) {
        sp__plan_cache_keep(&w->cache, entry, lane);
        SP_SCHED_ASSERT(entry->executable->plan->kernels == kernels);
        sp__plan_cache_release(&w->cache, entry);
    } else {
        sp__plan_cache_leave(&w->cache, entry, lane);
    }
}

static void visit_a(void *arg)
{
    visit_plan(arg, &kernels_a, 0, false);
}

static void visit_a_and_keep(void *arg)
{
    visit_plan(arg, &kernels_a, 0, true);
}

static void visit_b(void *arg)
{
    visit_plan(arg, &kernels_b, 1, false);
}

/* As plan_cache_bound; the plan of the first key exists. */
static void visits_run(const sp_thread_fn *fns, uint32_t count)
{
    cache_world w;
    begin_cache(&w, 1);
    use_a(&w);
    sp__subject_run(fns, count, &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.plan_count) == 1);
    end_cache(&w);
}

static void subject_plan_visit_2(void *arg)
{
    (void)arg;
    visits_run((const sp_thread_fn[]){visit_a, visit_b}, 2);
}

static void subject_plan_visit_keep(void *arg)
{
    (void)arg;
    visits_run((const sp_thread_fn[]){visit_a_and_keep, use_b}, 2);
}

static void subject_plan_visit_3(void *arg)
{
    (void)arg;
    visits_run((const sp_thread_fn[]){visit_a, visit_b, use_a}, 3);
}

/* ---- contexts ---- */

/* Plain accesses: a context that two have is a race. */
static void use_context(sp_exec_context *context)
{
    SP_SCHED_ASSERT(context->next != context);
    context->next = context;
    context->next = NULL;
    sp__wait_entry_resume(sp__exec_context_release(context));
}

static void acquire_context(void *arg)
{
    cache_world *w = arg;
    sp_exec_context *context;
    SP_SCHED_ASSERT(sp__exec_context_acquire(w->found[0]->executable, 0, true, &context) == SP_OK);
    use_context(context);
}

static void acquire_context_twice(void *arg)
{
    acquire_context(arg);
    acquire_context(arg);
}

static void subject_contexts(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w, 1);
    find_a(&w);
    SP_SCHED_ASSERT(w.status[0] == SP_OK);
    sp__subject_run((const sp_thread_fn[]){acquire_context_twice, acquire_context}, 2, &w);
    SP_SCHED_ASSERT(sp__plan_cache_context_count(&w.cache) <= 2);
    drop_found(&w, 1);
    end_cache(&w);
}

/* With one context: it waits in the home of one thread while the other asks for it. */
static void acquire_context_elsewhere(void *arg)
{
    cache_world *w = arg;
    sp_exec_context *context;
    SP_SCHED_ASSERT(sp__exec_context_acquire(w->found[0]->executable, 1, true, &context) == SP_OK);
    use_context(context);
}

static void subject_contexts_homes(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    cache_world w;
    begin_cache(&w, 1);
    w.device->dev->limits.run_slots = 1;
    find_a(&w);
    SP_SCHED_ASSERT(w.status[0] == SP_OK);
    sp__subject_run((const sp_thread_fn[]){acquire_context_twice, acquire_context_elsewhere,
                                           acquire_context_elsewhere},
                    threads, &w);
    SP_SCHED_ASSERT(sp__plan_cache_context_count(&w.cache) == 1);
    drop_found(&w, 1);
    end_cache(&w);
}

/* ---- memory that others need ---- */

static void run_a(void *arg)
{
    cache_world *w = arg;
    sp_status status;
    sp_exec_context *context;
    sp_plan_entry *entry = find_plan(w, &kernels_a, true, &status);
    SP_SCHED_ASSERT(status == SP_OK);
    SP_SCHED_ASSERT(sp__exec_context_acquire(entry->executable, 0, true, &context) == SP_OK);
    use_context(context);
    sp__plan_cache_release(&w->cache, entry);
}

static void reclaim(void *arg)
{
    cache_world *w = arg;
    sp__plan_cache_reclaim_context(&w->cache);
    sp__plan_cache_reclaim_plan(&w->cache);
}

/* A run finds a context, and its plan again, whatever is given up beside it. */
static void subject_contexts_reclaim(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w, 1);
    w.device->dev->limits.run_slots = 2;
    run_a(&w);
    sp__subject_run((const sp_thread_fn[]){run_a, reclaim}, 2, &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.build_count) <= 2);
    end_cache(&w);
}

static void make_spare_in_vain(void *arg)
{
    cache_world *w = arg;
    sp_heap_fail_after(0);
    sp__executable_preallocate(w->found[0]->executable);
    sp_heap_fail_after(UINT64_MAX);
}

static void release_context(void *arg)
{
    cache_world *w = arg;
    sp__plan_cache_reclaim_context(&w->cache);
}

/* A context that is being made, and may not be made in the end, is none that can be relied on. */
static void subject_contexts_in_vain(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w, 1);
    find_a(&w);
    w.device->dev->limits.run_slots = 2; /* one more than there are contexts */
    sp__subject_run((const sp_thread_fn[]){make_spare_in_vain, release_context}, 2, &w);
    SP_SCHED_ASSERT(sp__plan_cache_context_count(&w.cache) == 1);
    /* What was given away may be made again. */
    for (int i = 0; i < 2; i++) {
        sp__executable_preallocate(w.found[0]->executable);
        SP_SCHED_ASSERT(sp__plan_cache_context_count(&w.cache) == 2);
        SP_SCHED_ASSERT(sp__plan_cache_reclaim_context(&w.cache));
    }
    drop_found(&w, 1);
    end_cache(&w);
}

/* ---- a queued run without a thread: the party that removes it from the queue owns it ---- */

typedef struct line_world {
    cache_world cache;
    sp_exec_context *context; /* the only one, in use until release_the_context */
    sp_run_request request;
    uint32_t input;  /* plain: of the queued run */
    uint32_t owners; /* plain */
} line_world;

static void own(line_world *w, sp_exec_context *context)
{
    SP_SCHED_ASSERT(w->input == 7);
    w->owners++;
    if (context != NULL) SP_SCHED_ASSERT(sp__exec_context_release(context) == NULL);
}

static void resume_in_line(sp_wait_entry *entry, sp_resume_list *ready)
{
    (void)ready;
    own(SP_CONTAINER_OF(entry, line_world, request.entry), entry->granted);
}

static void line_up(void *arg)
{
    line_world *w = arg;
    sp_exec_context *context;
    w->input = 7;
    w->request.entry.resume = resume_in_line;
    sp_executable *executable = w->cache.found[0]->executable;
    sp_resume_list ready = {0};
    SP_SCHED_ASSERT(sp__exec_context_acquire_or_queue(executable, &w->request.entry, &context,
                                                      &ready) == SP_OK);
    if (context != NULL) own(w, context);
    sp__resume_list_run(&ready);
}

static void release_the_context(void *arg)
{
    line_world *w = arg;
    sp__wait_entry_resume(sp__exec_context_release(w->context));
}

/* What a thread does that cannot wait for the run's turn. */
static void run_without(void *arg)
{
    line_world *w = arg;
    if (!sp__wait_entry_claim(&w->request.entry)) return;
    own(w, NULL);
    sp__exec_context_dequeue(w->cache.found[0]->executable, &w->request.entry);
}

static void subject_contexts_line(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    line_world w;
    memset(&w, 0, sizeof w);
    begin_cache(&w.cache, 1);
    find_a(&w.cache);
    sp_executable *executable = w.cache.found[0]->executable;
    SP_SCHED_ASSERT(sp__exec_context_acquire(executable, 0, true, &w.context) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){line_up, run_without, release_the_context}, threads, &w);
    if (threads == 2) release_the_context(&w);
    SP_SCHED_ASSERT(w.owners == 1);
    drop_found(&w.cache, 1);
    end_cache(&w.cache);
}

/* ---- the table ---- */

const sp_subject sp__subjects_plan_cache[] = {
    {.name = "plan_visit_2",
     .test = subject_plan_visit_2,
     .thread_count = 2,
     .planted = "visitors_evicted quiet_drop"},
    {.name = "plan_visit_keep",
     .test = subject_plan_visit_keep,
     .thread_count = 2,
     .planted = "visitors_evicted kept_evicted"},
    {.name = "plan_visit_3",
     .test = subject_plan_visit_3,
     .thread_count = 3,
     .planted = "visitors_evicted"},
    {.name = "plan_cache_2",
     .test = subject_plan_cache,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "build_twice",
     .seconds = 0.5},
    {.name = "plan_cache_3",
     .test = subject_plan_cache,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "build_twice",
     .seconds = 0.5},
    {.name = "plan_cache_keys",
     .test = subject_plan_cache_keys,
     .thread_count = 3,
     .planted = "build_twice",
     .seconds = 0.5},
    {.name = "plan_cache_retry",
     .test = subject_plan_cache_retry,
     .thread_count = 2,
     .planted = "quiet_failure",
     .seconds = 0.5},
    {.name = "plan_cache_bound",
     .test = subject_plan_cache_bound,
     .thread_count = 2,
     .planted = "quiet_drop",
     .seconds = 0.5},
    {.name = "plan_cache_private",
     .test = subject_plan_cache_private,
     .thread_count = 2,
     .planted = "evict_in_use",
     .seconds = 0.5},
    {.name = "contexts", .test = subject_contexts, .thread_count = 2, .planted = "shared_context"},
    {.name = "contexts_homes_2",
     .test = subject_contexts_homes,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "waiting_unseen homes_unseen"},
    {.name = "contexts_homes_3",
     .test = subject_contexts_homes,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "waiting_unseen homes_unseen"},
    {.name = "contexts_reclaim",
     .test = subject_contexts_reclaim,
     .thread_count = 2,
     .planted = "evict_in_use"},
    {.name = "contexts_line_2",
     .test = subject_contexts_line,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_line"},
    {.name = "contexts_line_3",
     .test = subject_contexts_line,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "relaxed_line"},
    {.name = "contexts_in_vain",
     .test = subject_contexts_in_vain,
     .thread_count = 2,
     .planted = "unmade_context_counts"},
    {0},
};
