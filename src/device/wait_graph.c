/* SPDX-License-Identifier: Apache-2.0 */
/* The search for wait cycles. Its state is in the timelines, so that it needs no memory and has no
 * bound: each timeline is at most once in the list of those to expand, its value only rises, and
 * each wait is followed once. */
#include "device/wait_graph.h"

#include "base/error.h"
#include "base/mutex.h"
#include "device/device.h"
#include "device/thread_record.h"

static struct {
    sp_mutex lock;
    sp_graph_wait *waits SP_GUARDED_BY(lock); /* all that entered */
    uint64_t searches SP_GUARDED_BY(lock);
} graph = {.lock = SP_MUTEX_INIT(SP_LOCK_WAIT_GRAPH)}; /* process-wide: waits cross devices */

typedef struct search {
    uint64_t number;
    uint64_t thread;    /* that asks */
    bool is_own_access; /* an access of that thread was reached */
    sp_timeline *first; /* timelines whose waits are still to be followed */
} search;

static void add_point(void *ctx, sp_point point)
{
    search *self = ctx;
    if (sp__point_has_passed(point)) return;
    sp_timeline *timeline = point.timeline;
    if (timeline->search.number != self->number) {
        timeline->search.number = self->number;
        timeline->search.value = 0;
        timeline->search.expanded = 0;
        timeline->search.next = timeline;
    }
    if (timeline->search.value >= point.value) return;
    timeline->search.value = point.value;
    if (timeline->search.next != timeline) return;
    timeline->search.next = self->first;
    self->first = timeline;
}

static void add_points(search *self, const sp_graph_wait *wait)
{
    for (uint32_t i = 0; i < wait->count; i++) add_point(self, wait->points[i]);
}

/* Is the thread of the wait inside a host function of the queue's submissions (after, value]? */
static bool is_inside(const sp_graph_wait *wait, const sp_timeline *timeline, uint64_t after,
                      uint64_t value)
{
    for (const sp_host_frame *frame = wait->frames; frame != NULL; frame = frame->outer) {
        if (frame->point.timeline == timeline && frame->point.value > after &&
            frame->point.value <= value) {
            return true;
        }
    }
    return false;
}

static void expand_queue_locked(search *self, sp_timeline *timeline, uint64_t after, uint64_t value)
    SP_REQUIRES(&graph.lock)
{
    sp_queue *queue = timeline->owner;
    queue->device->vtable->each_wait(queue, after, value, add_point, self);
    for (const sp_graph_wait *wait = graph.waits; wait != NULL; wait = wait->next) {
        if (is_inside(wait, timeline, after, value)) add_points(self, wait);
    }
}

static void expand_host_locked(search *self, sp_timeline *timeline, uint64_t value)
    SP_REQUIRES(&graph.lock)
{
    if (timeline->source == NULL) return;
    const uint64_t thread = timeline->source->each_wait(timeline, value, add_point, self);
    if (thread == 0) return;
    if (thread == self->thread) self->is_own_access = true;
    for (const sp_graph_wait *wait = graph.waits; wait != NULL; wait = wait->next) {
        if (wait->thread == thread) add_points(self, wait);
    }
}

/* Adds what the first timeline of the list waits for, as far as that was not done before. */
static void expand_locked(search *self) SP_REQUIRES(&graph.lock)
{
    sp_timeline *timeline = self->first;
    self->first = timeline->search.next;
    timeline->search.next = timeline;
    const uint64_t after = timeline->search.expanded;
    const uint64_t value = timeline->search.value;
    timeline->search.expanded = value;
    if (timeline->owner != NULL) {
        expand_queue_locked(self, timeline, after, value);
    } else if (!SP_PLANTED(search_stops_at_host)) {
        expand_host_locked(self, timeline, value);
    }
}

static bool depends_on_frames(const search *self, const sp_host_frame *frame)
{
    for (; frame != NULL; frame = frame->outer) {
        const sp_timeline *timeline = frame->point.timeline;
        if (timeline->search.number == self->number &&
            timeline->search.value >= frame->point.value) {
            return true;
        }
    }
    return false;
}

sp_status sp__wait_graph_enter(sp_graph_wait *wait)
{
    sp_mutex_lock(&graph.lock);
    search self = {.number = ++graph.searches, .thread = wait->thread};
    add_points(&self, wait);
    while (self.first != NULL) expand_locked(&self);
    const bool is_behind_itself = depends_on_frames(&self, wait->frames);
    const bool is_cycle =
        (is_behind_itself || self.is_own_access) && !SP_PLANTED(search_finds_nothing);
    if (!is_cycle) {
        wait->next = graph.waits;
        graph.waits = wait;
    }
    sp_mutex_unlock(&graph.lock);
    if (!is_cycle) return SP_OK;
    if (is_behind_itself) {
        return sp__fail(SP_DEADLOCK, "a host function waits for a point that comes after itself: "
                                     "it would never return; wait outside, or let the stream wait");
    }
    return sp__fail(SP_DEADLOCK, "the wait depends on a host access that this thread began and did "
                                 "not end: call sp_storage_host_end first");
}

void sp__wait_graph_leave(sp_graph_wait *wait)
{
    sp_mutex_lock(&graph.lock);
    sp_graph_wait **place = &graph.waits;
    while (*place != wait) place = &(*place)->next;
    *place = wait->next;
    sp_mutex_unlock(&graph.lock);
}
