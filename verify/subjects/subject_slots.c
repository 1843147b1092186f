/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots, and what runs take from a model: never more inside than there are slots, in order of
 * arrival; one build of a plan per key; a session is one run's alone. */
#include "support.h"

#include <string.h>

#include "base/heap.h"
#include "model/plan_cache.h"
#include "model/run_slots.h"

void sp__subject_slots_one(void *arg);
void sp__subject_slots_two(void *arg);
void sp__subject_slots_order(void *arg);
void sp__subject_plan_cache(void *arg);
void sp__subject_plan_cache_keys(void *arg);
void sp__subject_plan_cache_retry(void *arg);
void sp__subject_sessions(void *arg);

/* ---- slots ---- */

typedef struct slots_world {
    sp_run_slots slots;
    uint32_t inside; /* plain: with one slot, the slot orders it */
    uint32_t order[3];
    uint32_t count;
    sp_atomic_u32 now;
} slots_world;

static void enter_and_leave(void *arg)
{
    slots_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_take(&w->slots) == SP_OK);
    SP_SCHED_ASSERT(w->inside == 0);
    w->inside = 1;
    w->count++;
    w->inside = 0;
    sp__run_slots_give(&w->slots);
}

static void enter_and_leave_twice(void *arg)
{
    enter_and_leave(arg);
    enter_and_leave(arg);
}

static void begin_slots(slots_world *w, uint32_t count)
{
    memset(w, 0, sizeof *w);
    sp__run_slots_init(&w->slots, count);
}

static void end_slots(slots_world *w, uint32_t count)
{
    SP_SCHED_ASSERT(sp_load_relaxed(&w->slots.word) == count);
    sp__run_slots_deinit(&w->slots);
    sp__subject_end();
}

void sp__subject_slots_one(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    slots_world w;
    begin_slots(&w, 1);
    sp__subject_run((const sp_thread_fn[]){enter_and_leave_twice, enter_and_leave, enter_and_leave},
                    threads, &w);
    SP_SCHED_ASSERT(w.count == threads + 1);
    end_slots(&w, 1);
}

static void enter_one_of_two(void *arg)
{
    slots_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_take(&w->slots) == SP_OK);
    SP_SCHED_ASSERT(sp_fetch_add_relaxed(&w->now, 1) < 2);
    sp_fetch_sub_relaxed(&w->now, 1);
    sp__run_slots_give(&w->slots);
}

void sp__subject_slots_two(void *arg)
{
    (void)arg;
    slots_world w;
    begin_slots(&w, 2);
    sp__subject_run((const sp_thread_fn[]){enter_one_of_two, enter_one_of_two, enter_one_of_two}, 3,
                    &w);
    end_slots(&w, 2);
}

static void wait_until_in_line(slots_world *w, uint32_t count)
{
    while (sp_load_relaxed(&w->slots.word) >> 16 < count) sp_spin_hint();
}

static void come_first(void *arg)
{
    slots_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_take(&w->slots) == SP_OK);
    w->order[w->count++] = 1;
    sp__run_slots_give(&w->slots);
}

static void come_second(void *arg)
{
    slots_world *w = arg;
    wait_until_in_line(w, 1);
    SP_SCHED_ASSERT(sp__run_slots_take(&w->slots) == SP_OK);
    w->order[w->count++] = 2;
    sp__run_slots_give(&w->slots);
}

static void leave_last(void *arg)
{
    slots_world *w = arg;
    wait_until_in_line(w, 2);
    sp__run_slots_give(&w->slots);
}

void sp__subject_slots_order(void *arg)
{
    (void)arg;
    slots_world w;
    begin_slots(&w, 1);
    SP_SCHED_ASSERT(sp__run_slots_take(&w.slots) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){come_first, come_second, leave_last}, 3, &w);
    SP_SCHED_ASSERT(w.count == 2 && w.order[0] == 1 && w.order[1] == 2);
    end_slots(&w, 1);
}

/* ---- plans of a graph without nodes, so without kernels; keys, builds and sessions are real ----
 */

typedef struct cache_world {
    sp_plan_cache cache;
    sp_rt_device *device;
    sp_compiled *found[3];
    sp_status status[3];
    sp_atomic_u32 next;
} cache_world;

static const sp_graph graph;
static const sp_kernel other_kernels;

static void begin_cache(cache_world *w)
{
    memset(w, 0, sizeof *w);
    w->device = sp__subject_bare_device();
    sp__plan_cache_init(&w->cache, &graph, w->device, NULL);
}

static void end_cache(cache_world *w)
{
    sp__plan_cache_deinit(&w->cache);
    sp__subject_bare_device_free(w->device);
    sp__subject_end();
}

static void find_plan(cache_world *w, const sp_kernel *kernels)
{
    const sp_plan_request request = {.kernels = kernels};
    const uint32_t index = sp_fetch_add_relaxed(&w->next, 1);
    w->status[index] = sp__plan_cache_find(&w->cache, &request, &w->found[index]);
    if (w->status[index] == SP_OK) SP_SCHED_ASSERT(w->found[index]->plan->step_count == 0);
}

static void find(void *arg)
{
    find_plan(arg, NULL);
}

static void find_other(void *arg)
{
    find_plan(arg, &other_kernels);
}

void sp__subject_plan_cache(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    cache_world w;
    begin_cache(&w);
    sp__subject_run((const sp_thread_fn[]){find, find, find}, threads, &w);
    for (uint32_t i = 0; i < threads; i++) {
        SP_SCHED_ASSERT(w.status[i] == SP_OK && w.found[i] == w.found[0]);
    }
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.build_count) == 1);
    end_cache(&w);
}

void sp__subject_plan_cache_keys(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w);
    sp__subject_run((const sp_thread_fn[]){find, find, find_other}, 3, &w);
    for (uint32_t i = 0; i < 3; i++) SP_SCHED_ASSERT(w.status[i] == SP_OK);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.build_count) == 2);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.plan_count) == 2);
    end_cache(&w);
}

/* The first build finds no memory: its caller is told, the next who asks builds again. */
void sp__subject_plan_cache_retry(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w);
    sp_heap_fail_after(0);
    sp__subject_run((const sp_thread_fn[]){find, find}, 2, &w);
    sp_heap_fail_after(UINT64_MAX);
    SP_SCHED_ASSERT((w.status[0] == SP_OK) != (w.status[1] == SP_OK));
    SP_SCHED_ASSERT(sp_load_relaxed(&w.cache.build_count) == 2);
    end_cache(&w);
}

static void take_session(void *arg)
{
    cache_world *w = arg;
    sp_session *session;
    SP_SCHED_ASSERT(sp__session_take(w->found[0], true, &session) == SP_OK);
    SP_SCHED_ASSERT(session->next != session);
    session->next = session; /* plain: mine */
    sp__session_give(session);
}

static void take_session_twice(void *arg)
{
    take_session(arg);
    take_session(arg);
}

void sp__subject_sessions(void *arg)
{
    (void)arg;
    cache_world w;
    begin_cache(&w);
    find(&w);
    SP_SCHED_ASSERT(w.status[0] == SP_OK);
    sp__subject_run((const sp_thread_fn[]){take_session_twice, take_session}, 2, &w);
    SP_SCHED_ASSERT(sp__plan_cache_sessions(&w.cache) <= 2);
    end_cache(&w);
}
