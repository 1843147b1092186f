/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/host_ticket.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "device/wait.h"

/* process-wide: points on tickets outlive storages and devices. */
static struct {
    sp_mutex lock;
    sp_host_ticket *free SP_GUARDED_BY(lock);
} tickets = {.lock = SP_MUTEX_INIT(SP_LOCK_TICKETS)};

/* The analysis accepts the parameter of a function as a lock, but not a member of a member. */
static sp_ticket_shown *shown_locked(sp_host_ticket *ticket) SP_REQUIRES(&ticket->timeline.lock)
{
    return &ticket->shown;
}

static uint64_t ticket_each_wait(sp_timeline *timeline, uint64_t value, sp_point_visitor visit,
                                 void *ctx)
{
    sp_host_ticket *ticket = SP_CONTAINER_OF(timeline, sp_host_ticket, timeline);
    uint64_t holder = 0;
    sp_mutex_lock(&ticket->timeline.lock);
    if (shown_locked(ticket)->value == value) {
        for (uint32_t i = 0; i < ticket->behind.count; i++) visit(ctx, ticket->behind.points[i]);
        holder = shown_locked(ticket)->holder;
    }
    sp_mutex_unlock(&ticket->timeline.lock);
    return holder;
}

static const sp_timeline_source ticket_source = {.each_wait = ticket_each_wait};

sp_host_ticket *sp__host_ticket_acquire(sp_access access)
{
    sp_mutex_lock(&tickets.lock);
    sp_host_ticket *ticket = tickets.free;
    if (ticket != NULL) tickets.free = ticket->next;
    sp_mutex_unlock(&tickets.lock);
    if (ticket == NULL) {
        ticket = sp_aligned_malloc(SP_CACHE_LINE, sizeof *ticket);
        if (ticket == NULL) return NULL;
        *ticket = (sp_host_ticket){0};
        sp__timeline_init(&ticket->timeline, NULL);
        ticket->timeline.source = &ticket_source;
    }
    ticket->value++;
    ticket->access = access;
    ticket->is_open = false;
    ticket->is_abandoned = false;
    ticket->is_whole = true;
    ticket->is_own = false;
    ticket->mirror = NULL;
    ticket->ready = (sp_point){0};
    ticket->behind = (sp_wait_set){.capacity = SP_MAX_WAITS, .points = ticket->inline_points};
    return ticket;
}

void sp__host_ticket_show(sp_host_ticket *ticket, uint64_t value, uint64_t holder)
{
    sp_mutex_lock(&ticket->timeline.lock);
    *shown_locked(ticket) = (sp_ticket_shown){.value = value, .holder = holder};
    sp_mutex_unlock(&ticket->timeline.lock);
}

/* Requires a ticket that searches do not see. */
static void ticket_release(sp_host_ticket *ticket)
{
    if (ticket->behind.points != ticket->inline_points) sp_free(ticket->behind.points);
    sp_mutex_lock(&tickets.lock);
    ticket->next = tickets.free;
    tickets.free = ticket;
    sp_mutex_unlock(&tickets.lock);
}

void sp__host_ticket_forget(sp_host_ticket *ticket)
{
    ticket->value--;
    ticket_release(ticket);
}

/* The write that was to overwrite the memory was refused, and `ready` has passed. Ordered: every
 * later use follows the ticket, which has not advanced yet. */
static void poison_unwritten(const sp_host_ticket *ticket)
{
    const sp_fault fault = sp__point_fault(ticket->ready);
    if (fault != SP_NO_FAULT) sp__poison_set(&ticket->storage->poison, ticket->epoch, fault);
}

static void record_forget(sp_host_ticket *ticket)
{
    if (ticket->record != NULL) sp_fetch_sub_relaxed(&ticket->record->open_accesses, 1);
    ticket->record = NULL;
}

void sp__host_ticket_close(sp_host_ticket *ticket)
{
    const sp_point point = {&ticket->timeline, ticket->value};
    sp__host_ticket_show(ticket, 0, 0);
    if (ticket->ready.timeline != NULL && !SP_PLANTED(refused_is_ready)) poison_unwritten(ticket);
    record_forget(ticket);
    sp__mirror_release(ticket->mirror);
    sp__timeline_advance(point.timeline, point.value);
    sp__point_observed(point); /* by the host, which ended it: later uses are ordered behind */
    ticket_release(ticket);
}

void sp__host_ticket_drop_points(sp_host_ticket *ticket, uint32_t count)
{
    sp_mutex_lock(&ticket->timeline.lock);
    ticket->behind.count -= count;
    sp_mutex_unlock(&ticket->timeline.lock);
}

/* Closes the ticket when all that it is behind has passed, one point after the other. */
static void ticket_close_after_points(sp_waiter *waiter)
{
    sp_host_ticket *ticket = SP_CONTAINER_OF(waiter, sp_host_ticket, waiter);
    while (ticket->behind.count > 0) {
        const sp_point point = ticket->behind.points[ticket->behind.count - 1];
        if (!sp__point_has_passed(point)) {
            sp__point_flush(point);
            ticket->waiter = (sp_waiter){.value = point.value, .fire = ticket_close_after_points};
            /* Once registered, the ticket belongs to the thread that fires it. */
            if (sp__timeline_register(point.timeline, &ticket->waiter)) return;
        }
        sp__host_ticket_drop_points(ticket, 1);
    }
    sp__host_ticket_close(ticket);
}

void sp__host_ticket_close_behind(sp_host_ticket *ticket)
{
    ticket_close_after_points(&ticket->waiter);
}

/* A read in a frontier represents only itself. */
void sp__host_ticket_abandon(sp_host_ticket *ticket)
{
    sp_mutex_lock(&ticket->timeline.lock);
    shown_locked(ticket)->holder = 0;
    ticket->is_abandoned = true;
    sp_mutex_unlock(&ticket->timeline.lock);
    if ((ticket->access & SP_WRITE) == 0 || SP_PLANTED(close_abandoned_early)) {
        sp__host_ticket_drop_points(ticket, ticket->behind.count);
    }
    sp__host_ticket_close_behind(ticket);
}

sp_status sp__host_ticket_write_back(sp_host_ticket *ticket, sp_point *copied)
{
    *copied = (sp_point){0};
    if (ticket->mirror == NULL || (ticket->access & SP_WRITE) == 0) return SP_OK;
    record_forget(ticket);
    const sp_status status = sp__mirror_write(ticket->mirror, &ticket->place, copied);
    if (status != SP_OK) {
        sp__poison_set(&ticket->storage->poison, ticket->epoch, sp__fault_create(status));
    }
    sp_mutex_lock(&ticket->timeline.lock);
    shown_locked(ticket)->holder = 0;
    ticket->behind.count = 1;
    ticket->behind.points[0] = *copied;
    sp_mutex_unlock(&ticket->timeline.lock);
    return status;
}

void sp__host_ticket_take_over(sp_wait_set *set, uint32_t index)
{
    const sp_point point = set->points[index];
    if (point.timeline->source != &ticket_source) return;
    sp_host_ticket *former = SP_CONTAINER_OF(point.timeline, sp_host_ticket, timeline);
    sp_point behind[SP_MAX_WAITS];
    sp_mutex_lock(&former->timeline.lock);
    const bool is_replaced = shown_locked(former)->value == point.value && former->is_abandoned &&
                             former->ready.timeline == NULL;
    const uint32_t count = is_replaced ? former->behind.count : UINT32_MAX;
    const bool fits = count <= SP_MAX_WAITS && set->count - 1 + count <= set->capacity;
    if (fits && count > 0) memcpy(behind, former->behind.points, count * sizeof *behind);
    sp_mutex_unlock(&former->timeline.lock);
    if (!fits) return;
    set->points[index] = set->points[--set->count];
    for (uint32_t i = 0; i < count; i++) sp__wait_set_add(set, behind[i], NULL);
}

void sp__host_ticket_unlink_locked(sp_rt_storage *storage, const sp_host_ticket *ticket)
{
    sp_host_ticket **place = &storage->tickets;
    while (*place != NULL && *place != ticket) place = &(*place)->next;
    if (*place != NULL) *place = ticket->next;
}

sp_host_ticket *sp__host_tickets_detach_locked(sp_rt_storage *storage)
{
    sp_host_ticket *open = NULL;
    while (storage->tickets != NULL) {
        sp_host_ticket *ticket = storage->tickets;
        storage->tickets = ticket->next;
        if (!ticket->is_open) continue; /* its thread finds it detached */
        ticket->next = open;
        open = ticket;
    }
    return open;
}

void sp__host_tickets_close(sp_host_ticket *open)
{
    while (open != NULL) {
        sp_host_ticket *ticket = open;
        open = ticket->next;
        sp_point copied;
        sp_error_scope scope;
        sp__error_set_aside(&scope);
        (void)sp__host_ticket_write_back(ticket, &copied); /* commands behind it may read */
        sp__error_put_back(&scope);
        if (copied.timeline != NULL) sp__host_ticket_close_behind(ticket);
        else sp__host_ticket_close(ticket);
    }
}

void sp__host_tickets_deinit(void)
{
    sp_mutex_lock(&tickets.lock);
    sp_host_ticket *ticket = tickets.free;
    tickets.free = NULL;
    sp_mutex_unlock(&tickets.lock);
    while (ticket != NULL) {
        sp_host_ticket *next = ticket->next;
        sp__timeline_deinit(&ticket->timeline);
        sp_free(ticket);
        ticket = next;
    }
}
