/* SPDX-License-Identifier: Apache-2.0 */
/* The search for wait cycles: the waits that can end, as the least fixed point of the rules. Its
 * state is in the timelines and in the waits, so it allocates nothing and has no bound. A timeline
 * is in the list to expand at most once, and its value only increases. A blocked wait is checked
 * again only when its blocker can end; a wait for any of several points is checked again whenever
 * any wait can end. */
#include "device/wait_graph.h"

#include "base/error.h"
#include "base/mutex.h"
#include "device/device.h"
#include "device/thread_record.h"

#define HOLDER_LISTS 64

static struct {
    sp_mutex lock;
    sp_graph_wait *waits SP_GUARDED_BY(lock); /* all waits in the graph */
    sp_graph_wait *of_holder[HOLDER_LISTS] SP_GUARDED_BY(lock);
    uint64_t searches SP_GUARDED_BY(lock);
} graph = {.lock = SP_MUTEX_INIT(SP_LOCK_WAIT_GRAPH)}; /* process-wide: waits cross devices */

/* Traversal of the dependencies of some points, up to the first wait that is not known to end. */
typedef struct search {
    uint64_t number;
    sp_graph_wait *blocker; /* that wait */
    sp_timeline *first;     /* timelines to expand */
} search;

static void search_add_point(void *ctx, sp_point point)
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

/* Whether the waiting thread is inside a host function of the queue's submissions (after, value].
 */
static bool wait_is_inside(const sp_graph_wait *wait, const sp_timeline *timeline, uint64_t after,
                           uint64_t value)
{
    const sp_point *point = wait->inside;
    return point != NULL && point->timeline == timeline && point->value > after &&
           point->value <= value;
}

static void search_expand_queue_locked(search *self, sp_timeline *timeline, uint64_t after,
                                       uint64_t value) SP_REQUIRES(&graph.lock)
{
    sp_queue *queue = timeline->owner;
    queue->device->vtable->each_wait(queue, after, value, search_add_point, self);
    for (sp_graph_wait *wait = graph.waits; wait != NULL; wait = wait->next) {
        if (!wait->can_end && wait_is_inside(wait, timeline, after, value)) self->blocker = wait;
    }
}

static void search_expand_host_locked(search *self, sp_timeline *timeline, uint64_t value)
    SP_REQUIRES(&graph.lock)
{
    if (timeline->source == NULL) return;
    const uint64_t holder = timeline->source->each_wait(timeline, value, search_add_point, self);
    if (holder == 0) return;
    sp_graph_wait *wait = graph.of_holder[holder % HOLDER_LISTS];
    for (; wait != NULL; wait = wait->next_of_holder) {
        if (!wait->can_end && wait->holder == holder) self->blocker = wait;
    }
}

/* Adds the dependencies of the first timeline of the list that were not added before. */
static void search_expand_locked(search *self) SP_REQUIRES(&graph.lock)
{
    sp_timeline *timeline = self->first;
    self->first = timeline->search.next;
    timeline->search.next = timeline;
    const uint64_t after = timeline->search.expanded;
    const uint64_t value = timeline->search.value;
    timeline->search.expanded = value;
    if (timeline->owner != NULL) {
        search_expand_queue_locked(self, timeline, after, value);
    } else if (!SP_PLANTED(search_stops_at_host)) {
        search_expand_host_locked(self, timeline, value);
    }
}

/* A wait that the points depend on and that is not known to end; NULL: none. */
static sp_graph_wait *search_find_blocker_locked(const sp_point *points, uint32_t count)
    SP_REQUIRES(&graph.lock)
{
    search self = {.number = ++graph.searches};
    for (uint32_t i = 0; i < count; i++) search_add_point(&self, points[i]);
    while (self.first != NULL && self.blocker == NULL) search_expand_locked(&self);
    return self.blocker;
}

/* The waits to check, newest first. */
typedef struct agenda {
    sp_graph_wait *first;
    bool has_any; /* a wait for any of several points has been checked */
} agenda;

static void agenda_put(agenda *todo, sp_graph_wait *wait)
{
    if (wait->is_todo) return;
    wait->is_todo = true;
    wait->next_todo = todo->first;
    todo->first = wait;
}

static void agenda_put_if_new(agenda *todo, sp_graph_wait *wait)
{
    if (wait->is_seen) return;
    wait->is_seen = true;
    agenda_put(todo, wait);
}

/* Whether the wait can end. If not, its blockers are put on the agenda, each once. */
static bool wait_check_locked(agenda *todo, sp_graph_wait *wait) SP_REQUIRES(&graph.lock)
{
    if (!wait->is_any) {
        sp_graph_wait *blocker = search_find_blocker_locked(wait->points, wait->count);
        if (blocker == NULL) return true;
        wait->next_blocked = blocker->blocked;
        blocker->blocked = wait;
        agenda_put_if_new(todo, blocker);
        return false;
    }
    todo->has_any = true;
    for (uint32_t i = 0; i < wait->count; i++) {
        sp_graph_wait *blocker = search_find_blocker_locked(&wait->points[i], 1);
        if (blocker == NULL) return true;
        agenda_put_if_new(todo, blocker);
    }
    return false;
}

/* The wait can end: the waits that it blocked are checked again. */
static void wait_note_end_locked(agenda *todo, sp_graph_wait *wait) SP_REQUIRES(&graph.lock)
{
    wait->can_end = true;
    while (wait->blocked != NULL) {
        sp_graph_wait *blocked = wait->blocked;
        wait->blocked = blocked->next_blocked;
        agenda_put(todo, blocked);
    }
    if (!todo->has_any) return;
    for (sp_graph_wait *other = graph.waits; other != NULL; other = other->next) {
        if (other->is_any && other->is_seen && !other->can_end) agenda_put(todo, other);
    }
}

/* Begins without any wait known to end, except by a deadline. Usually the first check is enough,
 * since the points depend on no wait; otherwise their dependencies are checked until the entering
 * wait can end or none is left. */
static bool wait_is_cycle_locked(sp_graph_wait *entering) SP_REQUIRES(&graph.lock)
{
    for (sp_graph_wait *wait = graph.waits; wait != NULL; wait = wait->next) {
        wait->can_end = wait->has_deadline && wait != entering;
        wait->is_seen = wait->is_todo = false;
        wait->blocked = NULL;
    }
    agenda todo = {0};
    agenda_put_if_new(&todo, entering);
    while (todo.first != NULL) {
        sp_graph_wait *wait = todo.first;
        todo.first = wait->next_todo;
        wait->is_todo = false;
        if (wait->can_end || !wait_check_locked(&todo, wait)) continue;
        if (wait == entering) return false;
        wait_note_end_locked(&todo, wait);
    }
    return !SP_PLANTED(search_finds_nothing);
}

static void wait_insert_locked(sp_graph_wait *wait) SP_REQUIRES(&graph.lock)
{
    wait->next = graph.waits;
    wait->place = &graph.waits;
    if (wait->next != NULL) wait->next->place = &wait->next;
    graph.waits = wait;
    sp_graph_wait **list = &graph.of_holder[wait->holder % HOLDER_LISTS];
    wait->next_of_holder = *list;
    wait->entry_of_holder = list;
    if (*list != NULL) (*list)->entry_of_holder = &wait->next_of_holder;
    *list = wait;
}

static void wait_remove_locked(const sp_graph_wait *wait) SP_REQUIRES(&graph.lock)
{
    *wait->place = wait->next;
    if (wait->next != NULL) wait->next->place = wait->place;
    *wait->entry_of_holder = wait->next_of_holder;
    if (wait->next_of_holder != NULL) {
        wait->next_of_holder->entry_of_holder = wait->entry_of_holder;
    }
}

sp_status sp__wait_graph_enter(sp_graph_wait *wait)
{
    sp_mutex_lock(&graph.lock);
    wait_insert_locked(wait);
    const bool is_cycle = wait_is_cycle_locked(wait);
    if (is_cycle) wait_remove_locked(wait);
    sp_mutex_unlock(&graph.lock);
    if (!is_cycle) return SP_OK;
    if (wait->inside != NULL) {
        return sp__fail(SP_DEADLOCK,
                        "a host function waits for work that is ordered after itself or after "
                        "a host access that it has open, and would never return; wait outside "
                        "the function, or let the stream wait");
    }
    return sp__fail(SP_DEADLOCK, "the wait depends on an open host access of this thread, or on "
                                 "the host function that it is in: call sp_storage_host_end "
                                 "first, or wait outside the function");
}

void sp__wait_graph_leave(sp_graph_wait *wait)
{
    sp_mutex_lock(&graph.lock);
    wait_remove_locked(wait);
    sp_mutex_unlock(&graph.lock);
}
