/* SPDX-License-Identifier: Apache-2.0 */
/* Begins of host accesses to storages; their ends are in host_end.c. An access is a point like any
 * other, on a timeline that the host itself advances: a ticket (host_ticket.h). begin publishes the
 * ticket's next value in the storage's frontier, so later device work waits for it, and then waits
 * for the earlier work; end advances the ticket. A refused write is removed from the frontier again
 * if nothing has come after it.
 *
 * Where the memory has no host pointer, the host gets a mirror between the two (mirror.h). */
#include <streampool/storage.h>

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/wait.h"
#include "runtime/checker.h"
#include "runtime/host_access.h"
#include "runtime/host_ticket.h"
#include "runtime/runtime_state.h"
#include "runtime/submit.h"

typedef struct access_step {
    sp_storage_range range;
    sp_access access;
    bool is_whole; /* the range is all of the storage */
    bool is_bare;  /* for the order alone: the bytes are not accessed */
    bool is_own;   /* the library's (sp_own_access) */
    sp_thread_record *record;
    sp_host_ticket *ticket; /* NULL for a frozen storage, which excludes no use */
    void *data;
    sp_mirror_request wanted; /* with a device: the host needs a mirror */
    sp_mirror *mirror;        /* a reference to it */
    const void *call_site;
    sp_check_batch *reports; /* of the checker */
} access_step;

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

/* Nothing that was in the storage is read or kept. */
static bool overwrites_all(const access_step *step)
{
    return step->access == SP_WRITE && step->is_whole;
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

static sp_status ticket_publish_locked(sp_rt_storage *storage, access_step *step)
    SP_REQUIRES(&storage->lock)
{
    SP_TRY(sp__frontier_reserve(&storage->block.frontier));
    sp_host_ticket *ticket = sp__host_ticket_acquire(step->access);
    if (ticket == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a host access");
    const sp_status status = collect_waits_locked(storage, ticket);
    if (status != SP_OK) {
        sp__host_ticket_forget(ticket);
        return status;
    }
    /* The checker has refused accesses in its history, so then they stay what later ones follow. */
    const bool takes_over = !sp__check_is_on();
    for (uint32_t i = ticket->behind.count; i > 0 && takes_over; i--) {
        sp__host_ticket_take_over(&ticket->behind, i - 1);
    }
    ticket->former_write = storage->block.frontier.write;
    ticket->is_whole = step->is_whole;
    ticket->is_own = step->is_own;
    if (overwrites_all(step) && !SP_PLANTED(ready_outlives_write)) {
        ready_take_locked(storage, ticket);
    }
    ticket->next = storage->tickets;
    storage->tickets = ticket;
    sp__host_ticket_show(ticket, ticket->value, step->record->holder);
    sp__frontier_publish(&storage->block.frontier, step->access, sp__host_ticket_point(ticket));
    step->ticket = ticket;
    return SP_OK;
}

/* Reports the access to the checker. */
static void check_access_locked(sp_rt_storage *storage, access_step *step)
    SP_REQUIRES(&storage->lock)
{
    static const sp_wait_set nothing = {0};
    sp_check_use use = {.op = "host access",
                        .access = step->access,
                        .device = "host",
                        .stream = UINT32_MAX,
                        .call_site = step->call_site};
    use.thread = step->record->number;
    sp_host_ticket *ticket = step->ticket;
    const sp_point point = ticket != NULL ? sp__host_ticket_point(ticket) : (sp_point){0};
    step->reports = sp_calloc(1, sizeof *step->reports);
    sp__check_accessed(&storage->history, storage->bytes, point,
                       ticket != NULL ? &ticket->behind : &nothing, &use, step->reports);
}

/* The memory itself, or the place that the host needs a mirror of. */
static void place_find_locked(sp_rt_storage *storage, access_step *step) SP_REQUIRES(&storage->lock)
{
    const sp_memory *memory = storage->memory;
    if (!sp__memory_needs_mirror(memory)) {
        step->data = sp__memory_host_or_null(memory, storage->offset + step->range.offset);
        return;
    }
    /* For the program of a frozen storage always all, for all later accesses too. */
    const bool is_all = storage->is_frozen && !step->is_own;
    const sp_storage_range range = {.offset = is_all ? 0 : step->range.offset,
                                    .bytes = is_all ? storage->bytes : step->range.bytes};
    if (step->is_bare || range.bytes == 0) return;
    step->wanted =
        (sp_mirror_request){.storage = step->range.storage,
                            .access = step->access,
                            .version = storage->block.frontier.writes,
                            .place = {.device = storage->device,
                                      .offset = range.offset,
                                      .binding = {.memory = memory,
                                                  .offset = storage->offset + range.offset,
                                                  .bytes = range.bytes,
                                                  .poison = &storage->poison,
                                                  .epoch = storage->epoch,
                                                  .is_overwritten = step->is_whole}}};
}

static sp_status access_enter_locked(sp_rt_storage *storage, access_step *step)
    SP_REQUIRES(&storage->lock)
{
    if (storage->is_frozen && (step->access & SP_WRITE) != 0) {
        return sp__fail(SP_INVALID, "a frozen storage cannot be written");
    }
    if (step->is_whole) step->range.bytes = storage->bytes;
    SP_TRY(sp__use_check_range(step->range.offset, step->range.bytes, storage->bytes));
    step->is_whole = step->range.bytes == storage->bytes;
    place_find_locked(storage, step);
    const sp_status status = storage->is_frozen ? SP_OK : ticket_publish_locked(storage, step);
    if (SP_LIKELY(!sp__check_is_on())) return status;
    if (storage->is_tracked || storage->is_frozen) sp__check_met(&storage->history);
    if (status == SP_OK) check_access_locked(storage, step);
    return status;
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

static void mirror_open_locked(sp_rt_storage *storage, const access_step *step)
    SP_REQUIRES(&storage->lock)
{
    sp_host_ticket *ticket = step->ticket;
    ticket->mirror = step->mirror;
    if (!step->is_own) ticket->mirror->is_shown = true;
    ticket->place = step->wanted.place;
    ticket->storage = storage;
    ticket->epoch = storage->epoch;
    if (step->access == SP_READ) {
        (void)sp__mirror_keep_locked(storage, step->mirror, step->wanted.version);
    }
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
        if (overwrites_all(step)) fault_clear_locked(storage);
        ticket->ready = (sp_point){0};
        if (step->mirror != NULL) mirror_open_locked(storage, step);
    } else {
        sp__host_ticket_unlink_locked(storage, ticket);
        is_withdrawn = !sp__check_is_on() && sp__handle_is_current(&storage->object, handle.bits) &&
                       ticket_withdraw_locked(storage, ticket);
        if (is_withdrawn) ready_restore_locked(storage, ticket);
    }
    sp_mutex_unlock(&storage->lock);
    if (is_open) return SP_OK;
    sp__mirror_release(step->mirror);
    if (is_withdrawn) {
        sp__host_ticket_drop_points(ticket, ticket->behind.count);
        sp__host_ticket_close(ticket);
    } else {
        sp__host_ticket_abandon(ticket);
    }
    if (status != SP_OK) return status;
    return sp__fail(SP_INVALID, "storage handle %#llx was released during the call",
                    (unsigned long long)handle.bits);
}

/* What the program reads stays as long as the storage; an access of the library's own has a
 * reference, and leaves the mirror to later ones if it is small. */
static void frozen_mirror_use(sp_rt_storage *storage, access_step *step, sp_mirror *mirror)
{
    const uint32_t version = step->wanted.version;
    const sp_mirror *used = mirror;
    sp_mutex_lock(&storage->lock);
    if (!step->is_own) {
        used = sp__mirror_keep_locked(storage, mirror, version);
    } else if (mirror->bytes == storage->bytes && mirror->bytes <= SP_MIRROR_KEPT_BYTES) {
        (void)sp__mirror_keep_locked(storage, mirror, version);
    }
    step->data = sp__mirror_at(used, step->range.offset);
    sp_mutex_unlock(&storage->lock);
    if (step->is_own) step->mirror = mirror;
    else sp__mirror_release(mirror);
}

/* A frozen storage has no tickets: a reference keeps its memory while it is copied. */
static sp_status frozen_mirror(sp_rt_storage *storage, access_step *step)
{
    SP_TRY(sp_storage_retain(step->range.storage));
    sp_mirror *mirror = NULL;
    const sp_status status = sp__mirror_acquire(storage, &step->wanted, &mirror);
    if (status == SP_OK) frozen_mirror_use(storage, step, mirror);
    (void)sp_storage_release(step->range.storage);
    return status;
}

/* The bytes for the host, once all that the access is behind has passed. */
static sp_status access_find_data(sp_rt_storage *storage, access_step *step)
{
    if (SP_LIKELY(step->wanted.place.device == NULL)) return SP_OK;
    if (step->ticket == NULL) return frozen_mirror(storage, step);
    SP_TRY(sp__mirror_acquire(storage, &step->wanted, &step->mirror));
    step->data = sp__mirror_at(step->mirror, step->range.offset);
    return SP_OK;
}

static sp_status access_begin(access_step *step)
{
    const sp_storage handle = step->range.storage;
    step->record = sp__thread_record();
    if (step->record == NULL) return SP_OUT_OF_MEMORY;
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    sp_status status = access_enter_locked(storage, step);
    const uint32_t epoch = storage->epoch;
    const sp_point ready = storage->ready;
    sp_mutex_unlock(&storage->lock);
    SP_TRY(status);

    if (step->ticket != NULL && !SP_PLANTED(begin_at_once)) {
        status = sp__point_wait_for_access(step->ticket->behind.points, step->ticket->behind.count);
    }
    if (status == SP_OK && !overwrites_all(step)) {
        status = storage_report_fault(storage, epoch, ready);
    }
    if (status == SP_OK) status = access_find_data(storage, step);
    if (step->ticket != NULL) status = access_leave_begin(storage, handle, step, status);
    /* Last: the program's callback may end the thread, and then the access is open. */
    if (SP_UNLIKELY(step->reports != NULL)) sp__check_emit(step->reports);
    return status;
}

static sp_status own_begin(access_step *step, sp_own_access *out)
{
    *out = (sp_own_access){.storage = step->range.storage};
    step->is_own = true;
    SP_TRY(access_begin(step));
    out->ticket = step->ticket;
    out->mirror = step->ticket == NULL ? step->mirror : NULL;
    out->data = step->data;
    return SP_OK;
}

sp_status sp__host_begin_own(sp_storage_range range, sp_access access, const void *call_site,
                             sp_own_access *out)
{
    SP_TRY(sp__runtime_enter());
    access_step step = {.range = range, .access = access, .call_site = call_site};
    return own_begin(&step, out);
}

sp_status sp__host_begin_bare(sp_storage handle, sp_access access, const void *call_site,
                              sp_own_access *out)
{
    access_step step = {.range = {.storage = handle},
                        .access = access,
                        .is_whole = true,
                        .is_bare = true,
                        .call_site = call_site};
    return own_begin(&step, out);
}

static sp_status begin_checked(access_step *step, const char *call, void **data)
{
    SP_TRY(sp__runtime_enter());
    if (data == NULL || step->access < SP_READ || step->access > SP_READ_WRITE) {
        return sp__fail(SP_INVALID,
                        "%s: access must be SP_READ, SP_WRITE or SP_READ_WRITE, and data not NULL",
                        call);
    }
    *data = NULL;
    const sp_status status = access_begin(step);
    if (status == SP_OK) *data = step->data;
    return status;
}

sp_status sp_thread_set_wait_check(sp_wait_check check, void *ctx)
{
    if (check != NULL) SP_TRY(sp__runtime_enter());
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    record->check = check;
    record->check_ctx = ctx;
    return SP_OK;
}

sp_status sp_thread_set_wait_for_room(bool waits)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    record->waits_for_room = waits;
    return SP_OK;
}

sp_status sp_storage_host_begin(sp_storage handle, sp_access access, void **data)
{
    access_step step = {.range = {.storage = handle},
                        .access = access,
                        .is_whole = true,
                        .call_site = SP_CALL_SITE};
    return begin_checked(&step, "sp_storage_host_begin", data);
}

sp_status sp_storage_host_begin_range(sp_storage_range range, sp_access access, void **data)
{
    access_step step = {.range = range, .access = access, .call_site = SP_CALL_SITE};
    return begin_checked(&step, "sp_storage_host_begin_range", data);
}
