/* SPDX-License-Identifier: Apache-2.0 */
/* The search for wait cycles: which waits can end, as the least set that follows from the rules.
 * What a search knows is in the timelines, so that it needs no memory and has no bound: each
 * timeline is at most once in the list of those to expand, its value only rises, and each wait is
 * followed once.
 */
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

/* What some points depend on, until a wait that is not known to end is among it. */
typedef struct search {
    uint64_t number;
    bool is_stuck;
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
        if (!wait->can_end && is_inside(wait, timeline, after, value)) self->is_stuck = true;
    }
}

static void expand_host_locked(search *self, sp_timeline *timeline, uint64_t value)
    SP_REQUIRES(&graph.lock)
{
    if (timeline->source == NULL) return;
    const uint64_t holder = timeline->source->each_wait(timeline, value, add_point, self);
    if (holder == 0) return;
    for (const sp_graph_wait *wait = graph.waits; wait != NULL; wait = wait->next) {
        if (!wait->can_end && wait->holder == holder) self->is_stuck = true;
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

/* Do the points depend on a wait that is not known to end? */
static bool are_stuck_locked(const sp_point *points, uint32_t count) SP_REQUIRES(&graph.lock)
{
    search self = {.number = ++graph.searches};
    for (uint32_t i = 0; i < count; i++) add_point(&self, points[i]);
    while (self.first != NULL && !self.is_stuck) expand_locked(&self);
    return self.is_stuck;
}

static bool can_end_locked(const sp_graph_wait *wait) SP_REQUIRES(&graph.lock)
{
    if (!wait->is_any) return !are_stuck_locked(wait->points, wait->count);
    for (uint32_t i = 0; i < wait->count; i++) {
        if (!are_stuck_locked(&wait->points[i], 1)) return true;
    }
    return false;
}

/* Tries every wait that is not known to end; true if some is now. */
static bool find_more_ends_locked(void) SP_REQUIRES(&graph.lock)
{
    bool is_any = false;
    for (sp_graph_wait *wait = graph.waits; wait != NULL; wait = wait->next) {
        if (wait->can_end || !can_end_locked(wait)) continue;
        wait->can_end = true;
        is_any = true;
    }
    return is_any;
}

/* Without knowing of any wait that it ends: mostly the first look tells, since the points depend on
 * none; else what can end is found from there on, until that is all. */
static bool is_cycle_locked(const sp_graph_wait *entering) SP_REQUIRES(&graph.lock)
{
    for (sp_graph_wait *wait = graph.waits; wait != NULL; wait = wait->next) {
        wait->can_end = wait->has_deadline && wait != entering;
    }
    if (can_end_locked(entering)) return false;
    while (find_more_ends_locked()) {
        if (entering->can_end) return false;
    }
    return !SP_PLANTED(search_finds_nothing);
}

static void take_out_locked(const sp_graph_wait *wait) SP_REQUIRES(&graph.lock)
{
    sp_graph_wait **place = &graph.waits;
    while (*place != wait) place = &(*place)->next;
    *place = wait->next;
}

sp_status sp__wait_graph_enter(sp_graph_wait *wait)
{
    sp_mutex_lock(&graph.lock);
    wait->next = graph.waits;
    graph.waits = wait;
    const bool is_cycle = is_cycle_locked(wait);
    if (is_cycle) take_out_locked(wait);
    sp_mutex_unlock(&graph.lock);
    if (!is_cycle) return SP_OK;
    if (wait->frames != NULL) {
        return sp__fail(SP_DEADLOCK,
                        "a host function waits for what comes after itself, or after a "
                        "host access that it has open: it would never return; wait "
                        "outside, or let the stream wait");
    }
    return sp__fail(SP_DEADLOCK, "the wait depends on a host access that this thread began and did "
                                 "not end, or on the host function that it is in: call "
                                 "sp_storage_host_end first, or wait outside");
}

void sp__wait_graph_leave(sp_graph_wait *wait)
{
    sp_mutex_lock(&graph.lock);
    take_out_locked(wait);
    sp_mutex_unlock(&graph.lock);
}
