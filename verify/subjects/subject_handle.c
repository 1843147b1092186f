/* SPDX-License-Identifier: Apache-2.0 */
/* Handle tables: a look-up returns the live object or SP_INVALID, whatever other threads do; a
 * holder may read the object; the last drop destroys it, once; stale handles do not find a slot's
 * next object. */
#include "base/handle.h"

#include "base/error.h"
#include "base/thread.h"
#include "sched/explore.h"
#include "sched/subject.h"

typedef struct thing {
    SP_CACHE_ALIGNED sp_object object;
    uint32_t life; /* plain: written by creator and destroyer, read under a hold */
    sp_lane lanes[SP_LANES];
} thing;

typedef struct world {
    sp_handle_table table;
    uint64_t handle;
    sp_atomic_u64 told; /* relaxed: the table itself has to publish the object */
    sp_object *held;    /* once for each thread of handle_leave */
    sp_thread threads[3];
} world;

static sp_handle_table *the_table; /* destroy has no other way to it; set before threads start */

static void destroy(sp_object *object)
{
    thing *self = (thing *)object;
    SP_SCHED_ASSERT(self->life != 0);
    self->life = 0;
    sp__handle_recycle(the_table, object);
}

static thing *make(sp_handle_table *table, uint32_t life, uint64_t *handle)
{
    sp_object *object;
    SP_SCHED_ASSERT(sp__handle_acquire(table, &object) == SP_OK);
    thing *self = (thing *)object;
    SP_SCHED_ASSERT(self->life == 0);
    self->life = life;
    *handle = sp__handle_publish(table, object);
    return self;
}

static void begin(world *w)
{
    *w = (world){
        .table = {.kind = SP_KIND_STREAM, .object_bytes = sizeof(thing), .destroy = destroy}};
    sp_mutex_init(&w->table.lock, SP_LOCK_HANDLE_TABLE);
    the_table = &w->table;
}

static void start(world *w, uint32_t index, sp_thread_fn fn)
{
    SP_SCHED_ASSERT(sp_thread_create(&w->threads[index], "", fn, w) == SP_OK);
}

static void use_handle(world *w, uint64_t handle)
{
    sp_object *object = sp__handle_hold(&w->table, handle, "thing");
    if (object == NULL) return;
    SP_SCHED_ASSERT(((thing *)object)->life == 1);
    sp__object_drop(&w->table, object);
}

static void release_handle(world *w, uint64_t handle)
{
    SP_SCHED_ASSERT(sp__handle_release(&w->table, handle, "thing") == SP_OK);
}

static void use(void *arg)
{
    world *w = arg;
    use_handle(w, w->handle);
}

static void use_if_told(void *arg)
{
    world *w = arg;
    use_handle(w, sp_load_relaxed(&w->told));
}

static void release(void *arg)
{
    world *w = arg;
    release_handle(w, w->handle);
}

static void release_twice(void *arg)
{
    world *w = arg;
    release_handle(w, w->handle);
    SP_SCHED_ASSERT(sp__handle_release(&w->table, w->handle, "thing") == SP_INVALID);
}

static void retain_and_release(void *arg)
{
    world *w = arg;
    if (sp__handle_retain(&w->table, w->handle, "thing") != SP_OK) return;
    use_handle(w, w->handle);
    release_handle(w, w->handle);
}

/* A thread with a reference may read the object, also after publishing it. */
static void make_and_tell(void *arg)
{
    world *w = arg;
    uint64_t handle;
    const thing *self = make(&w->table, 1, &handle);
    sp_store_relaxed(&w->told, handle);
    SP_SCHED_ASSERT(self->life == 1);
    release_handle(w, handle);
}

static void make_another(void *arg)
{
    world *w = arg;
    uint64_t handle;
    make(&w->table, 2, &handle);
    SP_SCHED_ASSERT(handle != w->handle);
    release_handle(w, handle);
}

static void join_and_end(world *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) sp_thread_join(&w->threads[i]);
    SP_SCHED_ASSERT(sp__handle_hold(&w->table, w->handle, "thing") == NULL);
    sp__handle_table_reset(&w->table);
}

static void subject_handle_release(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    make(&w.table, 1, &w.handle);
    start(&w, 0, use);
    start(&w, 1, release_twice);
    join_and_end(&w, 2);
}

static void subject_handle_publish(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    start(&w, 0, make_and_tell);
    start(&w, 1, use_if_told);
    join_and_end(&w, 2);
}

static void subject_handle_reuse(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    make(&w.table, 1, &w.handle);
    start(&w, 0, use);
    start(&w, 1, release);
    start(&w, 2, make_another);
    join_and_end(&w, 3);
}

static void subject_handle_retain(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    make(&w.table, 1, &w.handle);
    start(&w, 0, retain_and_release);
    start(&w, 1, release);
    start(&w, 2, use);
    join_and_end(&w, 3);
}

/* ---- all but the last drop only decrement; the last one destroys ---- */

static void read_and_leave(void *arg)
{
    world *w = arg;
    sp_object *object = w->held;
    SP_SCHED_ASSERT(((thing *)object)->life == 1);
    if (!sp__object_drop_unless_last(object)) sp__object_drop(&w->table, object);
}

static void subject_handle_leave(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    make(&w.table, 1, &w.handle);
    for (int i = 0; i < 2; i++) w.held = sp__handle_hold(&w.table, w.handle, "thing");
    release_handle(&w, w.handle);
    start(&w, 0, read_and_leave);
    start(&w, 1, read_and_leave);
    join_and_end(&w, 2);
}

/* ---- visits ---- */

static void visit(world *w, uint32_t lane)
{
    sp_object *object = sp__handle_visit(&w->table, w->handle, "thing", lane);
    if (object == NULL) return;
    SP_SCHED_ASSERT(((thing *)object)->life == 1);
    sp__handle_leave(&w->table, object, lane);
}

static void visit_first(void *arg)
{
    visit(arg, 0);
}

static void visit_second(void *arg)
{
    visit(arg, 1);
}

/* A visitor may ask for a hold, and gets none once the last one has been dropped. */
static void visit_and_hold(void *arg)
{
    world *w = arg;
    sp_object *object = sp__handle_visit(&w->table, w->handle, "thing", 0);
    if (object == NULL) return;
    const bool is_held = sp__object_hold_visited(object);
    SP_SCHED_ASSERT(((thing *)object)->life == 1);
    sp__handle_leave(&w->table, object, 0);
    if (!is_held) return;
    SP_SCHED_ASSERT(((thing *)object)->life == 1);
    sp__object_drop(&w->table, object);
}

static void visits_run(sp_thread_fn first, sp_thread_fn second)
{
    world w;
    begin(&w);
    w.table.lanes_at = offsetof(thing, lanes);
    const thing *self = make(&w.table, 1, &w.handle);
    start(&w, 0, first);
    start(&w, 1, release);
    if (second != NULL) start(&w, 2, second);
    for (uint32_t i = 0; i < (second != NULL ? 3u : 2u); i++) sp_thread_join(&w.threads[i]);
    SP_SCHED_ASSERT(self->life == 0); /* destroyed */
    join_and_end(&w, 0);
}

static void subject_handle_visit_2(void *arg)
{
    (void)arg;
    visits_run(visit_first, NULL);
}

static void subject_handle_visit_3(void *arg)
{
    (void)arg;
    visits_run(visit_first, visit_second);
}

static void subject_handle_visit_hold(void *arg)
{
    (void)arg;
    visits_run(visit_and_hold, NULL);
}

/* ---- the table ---- */

const sp_subject sp__subjects_handle[] = {
    {.name = "handle_release",
     .test = subject_handle_release,
     .thread_count = 2,
     .planted = "relaxed_drop"},
    {.name = "handle_publish",
     .test = subject_handle_publish,
     .thread_count = 2,
     .planted = "handle_early_publish"},
    {.name = "handle_retain",
     .test = subject_handle_retain,
     .thread_count = 3,
     .planted = "relaxed_drop"},
    {.name = "handle_reuse",
     .test = subject_handle_reuse,
     .thread_count = 3,
     .planted = "generation_stays relaxed_push"},
    {.name = "handle_leave",
     .test = subject_handle_leave,
     .thread_count = 2,
     .planted = "relaxed_leave"},
    {.name = "handle_visit_2",
     .test = subject_handle_visit_2,
     .thread_count = 2,
     .planted = "visitors_unseen last_visitor_leaves"},
    {.name = "handle_visit_3",
     .test = subject_handle_visit_3,
     .thread_count = 3,
     .planted = "visitors_unseen last_visitor_leaves retired_twice"},
    {.name = "handle_visit_hold",
     .test = subject_handle_visit_hold,
     .thread_count = 2,
     .planted = "visitors_unseen last_visitor_leaves"},
    {0},
};
