/* SPDX-License-Identifier: Apache-2.0 */
/* Wait queues: every waiter is resumed once, by the pop that grants it the resource or by its
 * canceller, in order of arrival, and gets what the releaser has written. The owner here is one
 * resource behind a lock. */
#include "support.h"

#include <string.h>

#include "base/mutex.h"
#include "exec/wait_queue.h"
#include "sched/subject.h"

typedef struct wait_world {
    sp_mutex lock;
    sp_wait_queue queue;
    uint32_t *idle;    /* guarded by the lock: the resource, or NULL */
    uint32_t resource; /* plain: its holder's */
    sp_atomic_u32 queued;
    uint32_t order[2];
    sp_wait_entry run; /* of a run without a thread */
    uint32_t input;    /* plain: the run's */
    uint32_t owners;   /* plain: of the run, resumed or cancelled */
} wait_world;

static void begin_wait(wait_world *w, bool is_idle)
{
    memset(w, 0, sizeof *w);
    sp_mutex_init(&w->lock, SP_LOCK_FOREIGN);
    sp__wait_queue_init(&w->queue);
    w->idle = is_idle ? &w->resource : NULL;
}

static void end_wait(wait_world *w)
{
    SP_SCHED_ASSERT(w->idle == &w->resource);
    SP_SCHED_ASSERT(w->queue.first == NULL && w->queue.end == &w->queue.first);
    sp_mutex_deinit(&w->lock);
    sp__subject_end();
}

/* NULL: the entry is queued. */
static uint32_t *take_or_queue(wait_world *w, sp_wait_entry *entry)
{
    sp_mutex_lock(&w->lock);
    uint32_t *resource = w->idle;
    if (resource == NULL) sp__wait_queue_push(&w->queue, entry);
    w->idle = NULL;
    sp_mutex_unlock(&w->lock);
    return resource;
}

static sp_wait_entry *pass_on(wait_world *w, uint32_t *resource)
{
    sp_mutex_lock(&w->lock);
    sp_wait_entry *entry = sp__wait_queue_pop(&w->queue);
    if (entry == NULL) w->idle = resource;
    sp_mutex_unlock(&w->lock);
    if (entry != NULL) entry->granted = resource;
    return entry;
}

/* ---- threads ---- */

static void use_resource(wait_world *w)
{
    sp_thread_waiter waiter;
    SP_SCHED_ASSERT(sp__thread_waiter_init(&waiter) == SP_OK);
    uint32_t *resource = take_or_queue(w, &waiter.entry);
    if (resource == NULL) {
        sp__thread_waiter_wait(&waiter);
        resource = waiter.entry.granted;
    }
    memset(&waiter, 0, sizeof waiter); /* its memory is the thread's again */
    ++*resource;
    sp__wait_entry_resume(pass_on(w, resource));
}

static void use_once(void *arg)
{
    use_resource(arg);
}

static void use_twice(void *arg)
{
    use_resource(arg);
    use_resource(arg);
}

static void subject_wait_queue_threads(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    wait_world w;
    begin_wait(&w, true);
    sp__subject_run((const sp_thread_fn[]){use_twice, use_once, use_once}, threads, &w);
    SP_SCHED_ASSERT(w.resource == threads + 1);
    end_wait(&w);
}

/* ---- order ---- */

static void wait_in_place(wait_world *w, uint32_t place)
{
    sp_thread_waiter waiter;
    SP_SCHED_ASSERT(sp__thread_waiter_init(&waiter) == SP_OK);
    while (sp_load_relaxed(&w->queued) < place) sp_spin_hint();
    SP_SCHED_ASSERT(take_or_queue(w, &waiter.entry) == NULL);
    sp_fetch_add_relaxed(&w->queued, 1);
    sp__thread_waiter_wait(&waiter);
    w->order[w->resource++] = place;
    sp__wait_entry_resume(pass_on(w, &w->resource));
}

static void wait_first(void *arg)
{
    wait_in_place(arg, 0);
}

static void wait_second(void *arg)
{
    wait_in_place(arg, 1);
}

static void release_last(void *arg)
{
    wait_world *w = arg;
    while (sp_load_relaxed(&w->queued) < 2) sp_spin_hint();
    sp__wait_entry_resume(pass_on(w, &w->resource));
}

static void subject_wait_queue_order(void *arg)
{
    (void)arg;
    wait_world w;
    begin_wait(&w, false);
    sp__subject_run((const sp_thread_fn[]){wait_first, wait_second, release_last}, 3, &w);
    SP_SCHED_ASSERT(w.resource == 2 && w.order[0] == 0 && w.order[1] == 1);
    end_wait(&w);
}

/* ---- a run without a thread ---- */

static void own_run(wait_world *w)
{
    SP_SCHED_ASSERT(w->input == 7);
    w->owners++;
}

static void resume_run(sp_wait_entry *entry, sp_resume_list *ready)
{
    wait_world *w = SP_CONTAINER_OF(entry, wait_world, run);
    own_run(w);
    uint32_t *resource = entry->granted;
    ++*resource;
    sp__resume_list_add(ready, pass_on(w, resource));
}

static void queue_run(void *arg)
{
    wait_world *w = arg;
    w->input = 7;
    w->run.resume = resume_run;
    uint32_t *resource = take_or_queue(w, &w->run);
    if (resource == NULL) return;
    w->run.granted = resource;
    sp__wait_entry_resume(&w->run);
}

static void cancel_run(void *arg)
{
    wait_world *w = arg;
    if (!sp__wait_entry_claim(&w->run)) return;
    own_run(w);
    sp_mutex_lock(&w->lock);
    sp__wait_queue_remove(&w->queue, &w->run);
    sp_mutex_unlock(&w->lock);
}

static void release_resource(void *arg)
{
    wait_world *w = arg;
    sp__wait_entry_resume(pass_on(w, &w->resource));
}

/* The run is queued while others wait to cancel it; the release of the resource comes last. */
static void subject_wait_queue_push(void *arg)
{
    (void)arg;
    wait_world w;
    begin_wait(&w, false);
    sp__subject_run((const sp_thread_fn[]){queue_run, cancel_run}, 2, &w);
    release_resource(&w);
    SP_SCHED_ASSERT(w.owners == 1);
    end_wait(&w);
}

static void subject_wait_queue_claim(void *arg)
{
    (void)arg;
    wait_world w;
    begin_wait(&w, false);
    queue_run(&w);
    sp__subject_run((const sp_thread_fn[]){release_resource, cancel_run}, 2, &w);
    SP_SCHED_ASSERT(w.owners == 1);
    end_wait(&w);
}

static void subject_wait_queue_run(void *arg)
{
    (void)arg;
    wait_world w;
    begin_wait(&w, false);
    sp__subject_run((const sp_thread_fn[]){queue_run, cancel_run, release_resource}, 3, &w);
    SP_SCHED_ASSERT(w.owners == 1);
    end_wait(&w);
}

/* A thread behind a run that may be cancelled. */
static void subject_wait_queue_mixed(void *arg)
{
    (void)arg;
    wait_world w;
    begin_wait(&w, false);
    queue_run(&w);
    sp__subject_run((const sp_thread_fn[]){release_resource, cancel_run, use_once}, 3, &w);
    SP_SCHED_ASSERT(w.owners == 1);
    end_wait(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_wait_queue[] = {
    {.name = "wait_queue_threads_2",
     .test = subject_wait_queue_threads,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_resume touch_resumed"},
    {.name = "wait_queue_threads_3",
     .test = subject_wait_queue_threads,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "relaxed_resume touch_resumed"},
    {.name = "wait_queue_order",
     .test = subject_wait_queue_order,
     .thread_count = 3,
     .planted = "newest_first"},
    {.name = "wait_queue_push",
     .test = subject_wait_queue_push,
     .thread_count = 2,
     .planted = "relaxed_line"},
    {.name = "wait_queue_claim",
     .test = subject_wait_queue_claim,
     .thread_count = 2,
     .planted = "leave_promised"},
    {.name = "wait_queue_run",
     .test = subject_wait_queue_run,
     .thread_count = 3,
     .planted = "leave_promised relaxed_line"},
    {.name = "wait_queue_mixed",
     .test = subject_wait_queue_mixed,
     .thread_count = 3,
     .planted = "leave_promised touch_resumed"},
    {0},
};
