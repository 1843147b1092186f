/* SPDX-License-Identifier: Apache-2.0 */
/* Host access to storages. An access is a point like any other, on a timeline that the host itself
 * advances: a ticket. begin publishes the ticket's next value in the storage's frontier, so later
 * device work waits for it, and then waits for the earlier work; end advances the ticket.
 *
 * A write in the frontier replaces everything before it, so its ticket never advances before that
 * has passed, even if begin fails or the storage is released in between:
 *     a ticket advances  =>  everything it is behind has passed, or no other use follows it
 * A refused write is removed from the frontier again if nothing has come after it. Tickets are
 * pooled and never freed, since points on them may be read at any later time:
 *     a ticket is in the pool  <=>  its timeline's done equals its value
 *
 * A ticket is a node of the wait-for graph: it waits for what it is behind and, until the access is
 * ended or abandoned, for the thread that began it. */
#include <streampool/storage.h>

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "runtime/checker.h"
#include "runtime/runtime_state.h"
#include "runtime/storage.h"

/* What searches of the wait-for graph read of a ticket. */
typedef struct ticket_shown {
    uint64_t value;  /* the access that `behind` belongs to; 0: none */
    uint64_t holder; /* of the record of the thread that began it, or 0 */
} ticket_shown;

struct sp_host_ticket {
    sp_timeline timeline;
    uint64_t value; /* of the open access, or of the last one */
    sp_access access;
    /* begin has returned and end may come; under the storage's lock. Otherwise the ticket belongs
     * to the thread in begin, also if the storage is destroyed. */
    bool is_open;
    sp_host_ticket *next; /* in the pool, or in the storage */
    /* What the access must follow: inline_points, or an allocation. Written by the ticket's owner,
     * under the timeline's lock once others can reach the ticket; read by searches under that
     * lock. */
    sp_wait_set behind;
    sp_point inline_points[SP_MAX_WAITS];
    ticket_shown shown;    /* see shown_locked */
    bool is_abandoned;     /* guarded by timeline.lock; refused: later accesses take `behind` over
                            * instead of waiting for the ticket */
    sp_point former_write; /* of the frontier before a write, to restore it */
    sp_thread_record *record; /* of that thread, while the access is open */
    sp_waiter waiter;         /* of a ticket that closes itself */
    /* Of a write of all of adopted memory until begin returns: `ready` of the storage, moved here.
     * Uses that follow the ticket follow that too, and get its fault only if the write is refused:
     * then it becomes poison before the ticket closes. Constant while is_abandoned. */
    sp_point ready;
    sp_rt_storage *storage; /* if `ready` is set: its storage, and in which life */
    uint32_t epoch;
};

/* process-wide: points on tickets outlive storages and devices. */
static struct {
    sp_mutex lock;
    sp_host_ticket *free SP_GUARDED_BY(lock);
} tickets = {.lock = SP_MUTEX_INIT(SP_LOCK_TICKETS)};

/* The analysis accepts the parameter of a function as a lock, but not a member of a member. */
static ticket_shown *shown_locked(sp_host_ticket *ticket) SP_REQUIRES(&ticket->timeline.lock)
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

static sp_host_ticket *ticket_acquire(sp_access access)
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
    ticket->ready = (sp_point){0};
    ticket->behind = (sp_wait_set){.capacity = SP_MAX_WAITS, .points = ticket->inline_points};
    return ticket;
}

/* Publishes what searches read of the ticket from now on. */
static void ticket_show(sp_host_ticket *ticket, uint64_t value, uint64_t holder)
{
    sp_mutex_lock(&ticket->timeline.lock);
    *shown_locked(ticket) = (ticket_shown){.value = value, .holder = holder};
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

/* The write that was to overwrite the memory was refused, and `ready` has passed. Ordered: every
 * later use follows the ticket, which has not advanced yet. */
static void poison_unwritten(const sp_host_ticket *ticket)
{
    const sp_fault fault = sp__point_fault(ticket->ready);
    if (fault != SP_NO_FAULT) sp__poison_set(&ticket->storage->poison, ticket->epoch, fault);
}

/* Ends the access: device work behind it may run. */
static void ticket_close(sp_host_ticket *ticket)
{
    const sp_point point = {&ticket->timeline, ticket->value};
    ticket_show(ticket, 0, 0);
    if (ticket->ready.timeline != NULL && !SP_PLANTED(refused_is_ready)) poison_unwritten(ticket);
    if (ticket->record != NULL) sp_fetch_sub_relaxed(&ticket->record->open_accesses, 1);
    ticket->record = NULL;
    sp__timeline_advance(point.timeline, point.value);
    sp__point_observed(point); /* by the host, which ended it: later uses are ordered behind */
    ticket_release(ticket);
}

static void ticket_drop_points(sp_host_ticket *ticket, uint32_t count)
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
        ticket_drop_points(ticket, 1);
    }
    ticket_close(ticket);
}

/* Ends an access that was refused. A read in a frontier represents only itself. */
static void ticket_abandon(sp_host_ticket *ticket)
{
    sp_mutex_lock(&ticket->timeline.lock);
    shown_locked(ticket)->holder = 0;
    ticket->is_abandoned = true;
    sp_mutex_unlock(&ticket->timeline.lock);
    if ((ticket->access & SP_WRITE) == 0 || SP_PLANTED(close_abandoned_early)) {
        ticket_drop_points(ticket, ticket->behind.count);
    }
    ticket_close_after_points(&ticket->waiter);
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
        ticket_close(ticket);
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

/* ---- begin ---- */

typedef struct access_step {
    sp_thread_record *record;
    sp_host_ticket *ticket; /* NULL for a frozen storage, which excludes no use */
    void *data;
    const void *call_site;
    sp_check_batch *reports; /* of the checker */
} access_step;

/* Replaces the point of a refused access by what that access is behind, so that refused accesses do
 * not form chains, unless it has yet to poison the storage. Those points are of other timelines or
 * older; without room the point stays. */
static void wait_set_take_over(sp_wait_set *set, uint32_t index)
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

/* What must have completed before the host may access the storage. */
static sp_status collect_waits_locked(sp_rt_storage *storage, sp_host_ticket *ticket)
    SP_REQUIRES(&storage->lock)
{
    const sp_frontier *frontier = &storage->block.frontier;
    uint32_t next = 0;
    if (!sp__adopted_is_ready_locked(storage)) {
        sp__wait_set_add(&ticket->behind, storage->ready, NULL);
    }
    if (sp__frontier_collect(frontier, ticket->access, NULL, &next, &ticket->behind)) return SP_OK;
    const uint32_t most = ticket->behind.count + frontier->count + 1;
    sp_point *points = sp_malloc(most * sizeof *points);
    if (points == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to wait for %u uses", most);
    memcpy(points, ticket->inline_points, ticket->behind.count * sizeof *points);
    ticket->behind.capacity = most;
    ticket->behind.points = points;
    sp__frontier_collect(frontier, ticket->access, NULL, &next, &ticket->behind);
    return SP_OK;
}

/* Commands on untracked storages do not follow the ticket, so there `ready` stays. */
static void ready_take_locked(sp_rt_storage *storage, sp_host_ticket *ticket)
    SP_REQUIRES(&storage->lock)
{
    if (!storage->is_tracked) return;
    ticket->ready = storage->ready;
    ticket->storage = storage;
    ticket->epoch = storage->epoch;
    storage->ready = (sp_point){0};
}

static sp_status ticket_publish_locked(sp_rt_storage *storage, sp_access access, access_step *step)
    SP_REQUIRES(&storage->lock)
{
    SP_TRY(sp__frontier_reserve(&storage->block.frontier));
    sp_host_ticket *ticket = ticket_acquire(access);
    if (ticket == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a host access");
    const sp_status status = collect_waits_locked(storage, ticket);
    if (status != SP_OK) {
        ticket->value--; /* the value was never published */
        ticket_release(ticket);
        return status;
    }
    /* The checker has refused accesses in its history, so then they stay what later ones follow. */
    const bool takes_over = !sp__check_is_on();
    for (uint32_t i = ticket->behind.count; i > 0 && takes_over; i--) {
        wait_set_take_over(&ticket->behind, i - 1);
    }
    ticket->former_write = storage->block.frontier.write;
    if (access == SP_WRITE && !SP_PLANTED(ready_outlives_write)) ready_take_locked(storage, ticket);
    ticket->next = storage->tickets;
    storage->tickets = ticket;
    ticket_show(ticket, ticket->value, step->record->holder);
    const sp_point point = {&ticket->timeline, ticket->value};
    sp__frontier_publish(&storage->block.frontier, access, point);
    step->ticket = ticket;
    return SP_OK;
}

/* Reports the access to the checker. */
static void check_access_locked(sp_rt_storage *storage, sp_access access, access_step *step)
    SP_REQUIRES(&storage->lock)
{
    static const sp_wait_set nothing = {0};
    sp_check_use use = {.op = "host access",
                        .access = access,
                        .device = "host",
                        .stream = UINT32_MAX,
                        .call_site = step->call_site};
    use.thread = step->record->number;
    sp_host_ticket *ticket = step->ticket;
    const sp_point point =
        ticket != NULL ? (sp_point){&ticket->timeline, ticket->value} : (sp_point){0};
    step->reports = sp_calloc(1, sizeof *step->reports);
    sp__check_accessed(&storage->history, storage->bytes, point,
                       ticket != NULL ? &ticket->behind : &nothing, &use, step->reports);
}

static sp_status access_enter_locked(sp_rt_storage *storage, sp_access access, access_step *step)
    SP_REQUIRES(&storage->lock)
{
    if (storage->is_frozen && (access & SP_WRITE) != 0) {
        return sp__fail(SP_INVALID, "a frozen storage cannot be written");
    }
    SP_TRY(sp__memory_host(storage->memory, storage->offset, &step->data));
    const sp_status status =
        storage->is_frozen ? SP_OK : ticket_publish_locked(storage, access, step);
    if (SP_LIKELY(!sp__check_is_on())) return status;
    if (storage->is_tracked || storage->is_frozen) sp__check_met(&storage->history);
    if (status == SP_OK) check_access_locked(storage, access, step);
    return status;
}

/* No effect if the storage's destroyer has detached it. */
static void ticket_unlink_locked(sp_rt_storage *storage, const sp_host_ticket *ticket)
    SP_REQUIRES(&storage->lock)
{
    sp_host_ticket **place = &storage->tickets;
    while (*place != NULL && *place != ticket) place = &(*place)->next;
    if (*place != NULL) *place = ticket->next;
}

/* The host overwrites all of it. */
static void fault_clear_locked(sp_rt_storage *storage) SP_REQUIRES(&storage->lock)
{
    storage->ready = (sp_point){0};
    sp__poison_clear(&storage->poison, storage->epoch);
}

/* The fault, if any, because of which the host cannot read the storage at `epoch` behind
 * `ready`. */
static sp_status storage_report_fault(const sp_rt_storage *storage, uint32_t epoch, sp_point ready)
{
    const sp_fault fault = sp__poison_fault(&storage->poison, epoch);
    return sp__fault_report(fault != SP_NO_FAULT ? fault : sp__point_fault(ready));
}

/* Removes a refused write access from the frontier without a trace, if nothing has come after it.
 * True: no use follows the ticket. */
static bool ticket_withdraw_locked(sp_rt_storage *storage, const sp_host_ticket *ticket)
    SP_REQUIRES(&storage->lock)
{
    sp_frontier *frontier = &storage->block.frontier;
    const bool is_newest = frontier->write.timeline == &ticket->timeline &&
                           frontier->write.value == ticket->value && frontier->count == 0;
    return (is_newest || SP_PLANTED(withdraw_blindly)) &&
           sp__frontier_restore(frontier, ticket->former_write, ticket->behind.points,
                                ticket->behind.count);
}

/* Nothing has come after the ticket, so nothing has cleared or replaced `ready`. */
static void ready_restore_locked(sp_rt_storage *storage, sp_host_ticket *ticket)
    SP_REQUIRES(&storage->lock)
{
    if (ticket->ready.timeline != NULL) storage->ready = ticket->ready;
    ticket->ready = (sp_point){0};
}

/* The end of begin: opens the ticket if begin succeeded and the storage is still current; otherwise
 * takes it off the storage, unless the storage's destroyer has, and abandons it. */
static sp_status access_leave_begin(sp_rt_storage *storage, sp_storage handle,
                                    const access_step *step, sp_status status)
{
    sp_host_ticket *ticket = step->ticket;
    bool is_withdrawn = false;
    sp_mutex_lock(&storage->lock);
    const bool is_open = status == SP_OK && sp__handle_is_current(&storage->object, handle.bits);
    if (is_open) {
        ticket->is_open = true;
        ticket->record = step->record;
        sp_fetch_add_relaxed(&step->record->open_accesses, 1);
        if (ticket->access == SP_WRITE) fault_clear_locked(storage);
        ticket->ready = (sp_point){0};
    } else {
        ticket_unlink_locked(storage, ticket);
        is_withdrawn = !sp__check_is_on() && sp__handle_is_current(&storage->object, handle.bits) &&
                       ticket_withdraw_locked(storage, ticket);
        if (is_withdrawn) ready_restore_locked(storage, ticket);
    }
    sp_mutex_unlock(&storage->lock);
    if (is_open) return SP_OK;
    if (is_withdrawn) {
        ticket_drop_points(ticket, ticket->behind.count);
        ticket_close(ticket);
    } else {
        ticket_abandon(ticket);
    }
    if (status != SP_OK) return status;
    return sp__fail(SP_INVALID, "storage handle %#llx was released during the call",
                    (unsigned long long)handle.bits);
}

sp_status sp_storage_host_begin(sp_storage handle, sp_access access, void **data)
{
    SP_TRY(sp__runtime_enter());
    if (data == NULL || access < SP_READ || access > SP_READ_WRITE) {
        return sp__fail(SP_INVALID, "sp_storage_host_begin: access must be SP_READ, SP_WRITE or "
                                    "SP_READ_WRITE, and data not NULL");
    }
    *data = NULL;
    access_step step = {.record = sp__thread_record(), .call_site = SP_CALL_SITE};
    if (step.record == NULL) return SP_OUT_OF_MEMORY;
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    sp_status status = access_enter_locked(storage, access, &step);
    const uint32_t epoch = storage->epoch;
    const sp_point ready = storage->ready;
    sp_mutex_unlock(&storage->lock);
    SP_TRY(status);

    if (step.ticket != NULL && !SP_PLANTED(begin_at_once)) {
        status = sp__point_wait_for_access(step.ticket->behind.points, step.ticket->behind.count);
    }
    if (status == SP_OK && access != SP_WRITE) status = storage_report_fault(storage, epoch, ready);
    if (step.ticket != NULL) status = access_leave_begin(storage, handle, &step, status);
    if (status == SP_OK) *data = step.data;
    /* Last: the program's callback may end the thread, and then the access is open. */
    if (SP_UNLIKELY(step.reports != NULL)) sp__check_emit(step.reports);
    return status;
}

/* ---- end ---- */

/* An open ticket of the kind, preferring one that the thread of `record` began. */
static sp_host_ticket *ticket_find_locked(sp_rt_storage *storage, sp_access access,
                                          const sp_thread_record *record)
    SP_REQUIRES(&storage->lock)
{
    sp_host_ticket *found = NULL;
    for (sp_host_ticket *ticket = storage->tickets; ticket != NULL; ticket = ticket->next) {
        if (!ticket->is_open || ticket->access != access) continue;
        if (ticket->record == record) return ticket;
        if (found == NULL) found = ticket;
    }
    return found;
}

/* A thread ends an access that another thread began. Which of several is unknown, and makes no
 * difference to later uses: all are behind the same points. So none of them has a holder any
 * more. */
static void holders_clear_locked(sp_rt_storage *storage, sp_access access)
    SP_REQUIRES(&storage->lock)
{
    for (sp_host_ticket *ticket = storage->tickets; ticket != NULL; ticket = ticket->next) {
        if (ticket->is_open && ticket->access == access) ticket_show(ticket, ticket->value, 0);
    }
}

static sp_host_ticket *ticket_remove_locked(sp_rt_storage *storage, sp_access access)
    SP_REQUIRES(&storage->lock)
{
    const sp_thread_record *record = sp__thread_record(); /* NULL for lack of memory */
    sp_host_ticket *ticket = ticket_find_locked(storage, access, record);
    if (ticket == NULL) return NULL;
    if (ticket->record != record) holders_clear_locked(storage, access);
    ticket_unlink_locked(storage, ticket);
    return ticket;
}

sp_status sp_storage_host_end(sp_storage handle, sp_access access)
{
    /* Allowed while the runtime goes down, and after: its shutdown waits for work that waits for
     * this. */
    if (sp__runtime_is_forked()) return sp__runtime_enter_slow(); /* with the message */
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    sp_host_ticket *ticket = ticket_remove_locked(storage, access);
    const bool is_frozen = storage->is_frozen;
    sp_mutex_unlock(&storage->lock);
    if (ticket != NULL) {
        ticket_close(ticket);
        return SP_OK;
    }
    if (is_frozen && access == SP_READ) return SP_OK;
    return sp__fail(SP_INVALID, "no host access of this kind is open on the storage");
}
