/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: two submissions over one are never executed at the same time, and none has memory
 * that is taken away, or less than it needs. */
#include "support.h"

#include <string.h>

#include "runtime/submit.h"
#include "sched/subject.h"

#define UNIT ((uint64_t)1 << 20)

typedef struct world world;

/* A thread that submits, on a queue of its own. */
typedef struct submitter {
    world *world;
    uint32_t queue;
    sp_workspace_need need;
} submitter;

struct world {
    sp_rt_device *device;
    sp_command_queue *queues[2];
    sp_device_vtable vtable;
    submitter submitters[2];
    sp_subject_log logs[SP_WORKSPACES_MOST]; /* the memory of each workspace: plain fields */
};

/* The address of a range is that of nothing: the subject's commands write to the logs. */
static sp_status range_create(sp_dev *device, uint64_t bytes, sp_memory *out)
{
    static char addresses;
    *out = (sp_memory){.device = device, .bytes = bytes, .address = &addresses};
    return SP_OK;
}

static void range_destroy(sp_memory *range)
{
    *range = (sp_memory){0};
}

static sp_status range_map(const sp_memory *range, uint64_t offset, uint64_t bytes)
{
    SP_SCHED_ASSERT(offset + bytes <= range->bytes);
    return SP_OK;
}

static world *the_world; /* of the run: range_unmap has no other way to it */

/* The log of a workspace whose memory is taken away is written to: a race with those who use it. */
static void range_unmap(const sp_memory *range, uint64_t offset, uint64_t bytes)
{
    const sp_workspace *workspace = SP_CONTAINER_OF(range, sp_workspace, range);
    (void)bytes;
    if (offset == 0) the_world->logs[workspace - the_world->device->workspaces.list].count = 0;
}

static bool is_issued(sp_queue *queue, uint64_t value)
{
    (void)queue, (void)value;
    return true;
}

static void begin(world *w, uint64_t limit_bytes)
{
    memset(w, 0, sizeof *w);
    the_world = w;
    w->device = sp__subject_bare_device();
    sp_dev *dev = w->device->dev;
    w->vtable = *dev->vtable;
    w->vtable.range_create = range_create;
    w->vtable.range_destroy = range_destroy;
    w->vtable.range_map = range_map;
    w->vtable.range_unmap = range_unmap;
    w->vtable.is_issued = is_issued;
    dev->vtable = &w->vtable;
    dev->limits.range_unit = UNIT;
    dev->limits.memory_bytes = 64 * UNIT;
    sp__allocator_init(&w->device->allocator, w->device, dev);
    sp__allocator_set_limit(&w->device->allocator, limit_bytes);
    sp__workspaces_init(&w->device->workspaces, &w->device->allocator);
    for (uint32_t i = 0; i < 2; i++) {
        w->queues[i] = sp__subject_queue(sp__queue_device(dev), i, true);
        w->submitters[i] = (submitter){.world = w, .queue = i};
    }
}

static void end(world *w)
{
    sp_memory_stats stats;
    sp__allocator_stats(&w->device->allocator, &stats);
    SP_SCHED_ASSERT(stats.in_use_bytes == 0 && stats.reserved_bytes == 0);
    sp__workspaces_deinit(&w->device->workspaces);
    sp__allocator_deinit(&w->device->allocator);
    sp__subject_bare_device_free(w->device);
    sp__subject_end();
}

static void hold(submitter *s, uint64_t bytes)
{
    SP_SCHED_ASSERT(sp__workspaces_hold(&s->world->device->workspaces, &s->need, bytes, false) ==
                    SP_OK);
}

/* The log's count is what a run leaves in the workspace, and needs no more after its end. */
static void submit(submitter *s)
{
    world *w = s->world;
    sp_workspaces *workspaces = &w->device->workspaces;
    sp_point after, point = {0};
    sp_workspace *it =
        sp__workspace_acquire(workspaces, &s->need, &w->queues[s->queue]->base, NULL, &after);
    SP_SCHED_ASSERT(sp__subject_append(w->queues[s->queue], &w->logs[it - workspaces->list],
                                       s->queue, &after, after.timeline != NULL ? 1 : 0,
                                       &point) == SP_OK);
    sp__workspace_release(workspaces, it, point);
    sp__subject_poll(sp__queue_device(w->device->dev), 2, point);
}

static void submit_on_0(void *arg)
{
    world *w = arg;
    hold(&w->submitters[0], UNIT);
    submit(&w->submitters[0]);
    sp__workspaces_drop(&w->device->workspaces, &w->submitters[0].need);
}

static void submit_on_1(void *arg)
{
    world *w = arg;
    hold(&w->submitters[1], UNIT);
    submit(&w->submitters[1]);
    sp__workspaces_drop(&w->device->workspaces, &w->submitters[1].need);
}

static void submit_larger_on_1(void *arg)
{
    world *w = arg;
    hold(&w->submitters[1], 2 * UNIT);
    submit(&w->submitters[1]);
    sp__workspaces_drop(&w->device->workspaces, &w->submitters[1].need);
}

static void trim(void *arg)
{
    world *w = arg;
    (void)sp__workspaces_trim(&w->device->workspaces);
}

/* There is memory for one workspace. */
static void subject_workspace_only(void *arg)
{
    (void)arg;
    world w;
    begin(&w, UNIT);
    sp__subject_run((const sp_thread_fn[]){submit_on_0, submit_on_1}, 2, &w);
    end(&w);
}

/* One grows while the other one submits over it, or over a spare one that has the memory. */
static void subject_workspace_grow(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 2 * UNIT);
    sp__subject_run((const sp_thread_fn[]){submit_on_0, submit_larger_on_1}, 2, &w);
    end(&w);
}

static void subject_workspace_trim(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 4 * UNIT);
    sp__subject_run((const sp_thread_fn[]){submit_on_0, submit_on_1, trim}, 3, &w);
    end(&w);
}

const sp_subject sp__subjects_workspace[] = {
    {.name = "workspace_only",
     .test = subject_workspace_only,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .options = SP_SPINNERS,
     .planted = "workspace_early workspace_shared",
     .seconds = 0.4},
    {.name = "workspace_grow",
     .test = subject_workspace_grow,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .options = SP_SPINNERS,
     .planted = "workspace_early",
     .seconds = 0.4},
    {.name = "workspace_trim",
     .test = subject_workspace_trim,
     .thread_count = 3,
     .planted = "workspace_busy_trimmed",
     .seconds = 0.4},
    {0},
};
