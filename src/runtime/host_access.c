/* SPDX-License-Identifier: Apache-2.0 */
/* Host access to storages. An access is a point like any other, on a timeline that the host itself
 * advances: a ticket. begin publishes the ticket's next value in the storage's frontier, so device
 * work that comes later waits for it, and then waits for what came before; end advances.
 *
 * Tickets are pooled and never freed, since points on them may be looked at for ever after:
 *     a ticket is in the pool  <=>  its timeline's done equals its value */
#include <streampool/storage.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "runtime/checker.h"
#include "runtime/runtime_state.h"
#include "runtime/storage.h"

struct sp_host_ticket {
    sp_timeline timeline;
    uint64_t value; /* of the access that is open, or of the last one */
    sp_access access;
    sp_host_ticket *next; /* in the pool, or in the storage */
};

static struct {
    sp_mutex lock;
    sp_host_ticket *free SP_GUARDED_BY(lock);
} tickets; /* process-wide: points on tickets outlive storages and devices */

static sp_host_ticket *ticket_take(sp_access access)
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
    }
    ticket->value++;
    ticket->access = access;
    return ticket;
}

static void ticket_give(sp_host_ticket *ticket)
{
    sp_mutex_lock(&tickets.lock);
    ticket->next = tickets.free;
    tickets.free = ticket;
    sp_mutex_unlock(&tickets.lock);
}

/* The access is over: device work behind it goes on. */
static void ticket_close(sp_host_ticket *ticket)
{
    sp__timeline_advance(&ticket->timeline, ticket->value);
    ticket_give(ticket);
}

void sp__host_tickets_close_locked(sp_rt_storage *storage)
{
    while (storage->tickets != NULL) {
        sp_host_ticket *ticket = storage->tickets;
        storage->tickets = ticket->next;
        ticket_close(ticket);
    }
}

void sp__host_tickets_free(void)
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
    sp_host_ticket *ticket;
    sp_point *points; /* to wait for; inline_points or memory of its own */
    sp_point inline_points[SP_MAX_WAITS];
    sp_wait_set waits;
    void *data;
} access_step;

/* What must have completed before the host may touch the storage. */
static sp_status collect_waits_locked(sp_rt_storage *storage, sp_access access, access_step *step)
    SP_REQUIRES(&storage->lock)
{
    step->waits = (sp_wait_set){.capacity = SP_MAX_WAITS, .points = step->inline_points};
    if (sp__frontier_collect(&storage->block.frontier, access, NULL, &step->waits)) return SP_OK;
    const uint32_t most = storage->block.frontier.count + 1;
    step->points = sp_malloc(most * sizeof *step->points);
    if (step->points == NULL)
        return sp__fail(SP_OUT_OF_MEMORY, "no memory to wait for %u uses", most);
    step->waits = (sp_wait_set){.capacity = most, .points = step->points};
    sp__frontier_collect(&storage->block.frontier, access, NULL, &step->waits);
    return SP_OK;
}

static sp_status enter_locked(sp_rt_storage *storage, sp_access access, access_step *step)
    SP_REQUIRES(&storage->lock)
{
    const bool is_frozen = sp_load_relaxed(&storage->is_frozen) != 0;
    if (is_frozen && (access & SP_WRITE) != 0) {
        return sp__fail(SP_INVALID, "a frozen storage cannot be written");
    }
    if (storage->memory->host == NULL) {
        return sp__fail(SP_UNSUPPORTED, "memory of %s is not visible to the host: copy it",
                        storage->device->dev->limits.name);
    }
    step->data = (char *)storage->memory->host + storage->offset;
    SP_TRY(sp__frontier_reserve(&storage->block.frontier));
    SP_TRY(collect_waits_locked(storage, access, step));
    if (is_frozen) return SP_OK; /* nothing to keep out */
    step->ticket = ticket_take(access);
    if (step->ticket == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a host access");
    step->ticket->next = storage->tickets;
    storage->tickets = step->ticket;
    const sp_point point = {&step->ticket->timeline, step->ticket->value};
    sp__frontier_publish(&storage->block.frontier, access, point);
    return SP_OK;
}

/* Tells the checker of the access: after the waits, which order it. */
static void check_access(sp_rt_storage *storage, sp_storage handle, sp_access access,
                         const void *call_site)
{
    sp_check_use use = {.op = "host access",
                        .access = access,
                        .device = "host",
                        .stream = UINT32_MAX,
                        .call_site = call_site};
    const sp_thread_record *record = sp__thread_record();
    if (record != NULL) use.thread = record->number;
    sp_check_batch *reports = sp_calloc(1, sizeof *reports);
    if (reports == NULL || !sp__storage_lock(storage, handle)) {
        sp_free(reports);
        return;
    }
    sp__check_used(&storage->history, storage->bytes, (sp_point){0}, &use, reports);
    sp_mutex_unlock(&storage->lock);
    sp__check_emit(reports);
    sp_free(reports);
}

sp_status sp_storage_host_begin(sp_storage handle, sp_access access, void **data)
{
    SP_TRY(sp__runtime_enter());
    if (data == NULL || access < SP_READ || access > SP_READ_WRITE) {
        return sp__fail(SP_INVALID, "host access needs SP_READ, SP_WRITE or SP_READ_WRITE, and a "
                                    "place for the address");
    }
    *data = NULL;
    access_step step;
    step.ticket = NULL;
    step.points = step.inline_points;
    step.waits.count = 0;
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    sp_status status = enter_locked(storage, access, &step);
    const uint32_t epoch = storage->epoch;
    sp_mutex_unlock(&storage->lock);

    for (uint32_t i = 0; i < step.waits.count && status == SP_OK; i++) {
        status = sp__point_wait_passed(step.points[i], SP_NO_DEADLINE);
    }
    if (step.points != step.inline_points) sp_free(step.points);
    if (sp__check_is_on() && status == SP_OK) check_access(storage, handle, access, SP_CALL_SITE);
    if (status == SP_OK && access == SP_WRITE) sp__cell_clear(&storage->cell, epoch);
    if (status == SP_OK) status = sp__fault_report(sp__cell_fault(&storage->cell, epoch));
    if (status == SP_OK) {
        *data = step.data;
    } else if (step.ticket != NULL) {
        sp_storage_host_end(handle, access);
    }
    return status;
}

/* ---- end ---- */

static sp_host_ticket *ticket_remove_locked(sp_rt_storage *storage, sp_access access)
    SP_REQUIRES(&storage->lock)
{
    sp_host_ticket **place = &storage->tickets;
    while (*place != NULL && (*place)->access != access) place = &(*place)->next;
    sp_host_ticket *ticket = *place;
    if (ticket != NULL) *place = ticket->next;
    return ticket;
}

sp_status sp_storage_host_end(sp_storage handle, sp_access access)
{
    SP_TRY(sp__runtime_enter());
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    sp_host_ticket *ticket = ticket_remove_locked(storage, access);
    const bool is_frozen = sp_load_relaxed(&storage->is_frozen) != 0;
    sp_mutex_unlock(&storage->lock);
    if (ticket != NULL) {
        ticket_close(ticket);
        return SP_OK;
    }
    if (is_frozen && access == SP_READ) return SP_OK;
    return sp__fail(SP_INVALID, "no host access of this kind is open on the storage");
}
