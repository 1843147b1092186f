/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of host accesses. That of the program's does not name the access, that of the library's own
 * does; an access that wrote to a mirror ends behind the copy. */
#include <streampool/storage.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/wait.h"
#include "runtime/checker.h"
#include "runtime/host_access.h"
#include "runtime/host_ticket.h"
#include "runtime/runtime_state.h"
#include "runtime/transfer.h"

/* An open ticket of the program of that kind, preferring one that the thread of `record` began. */
static sp_host_ticket *ticket_find_locked(sp_rt_storage *storage, sp_access access,
                                          const sp_thread_record *record)
    SP_REQUIRES(&storage->lock)
{
    sp_host_ticket *found = NULL;
    for (sp_host_ticket *ticket = storage->tickets; ticket != NULL; ticket = ticket->next) {
        if (!ticket->is_open || ticket->is_own || ticket->access != access) continue;
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
        if (ticket->is_open && !ticket->is_own && ticket->access == access)
            sp__host_ticket_show(ticket, ticket->value, 0);
    }
}

static sp_host_ticket *ticket_remove_locked(sp_rt_storage *storage, sp_access access)
    SP_REQUIRES(&storage->lock)
{
    const sp_thread_record *record = sp__thread_record(); /* NULL for lack of memory */
    sp_host_ticket *ticket = ticket_find_locked(storage, access, record);
    if (ticket == NULL) return NULL;
    if (ticket->record != record) holders_clear_locked(storage, access);
    sp__host_ticket_unlink_locked(storage, ticket);
    return ticket;
}

/* The copy is what later uses follow, rather than the ticket, for which a GPU's queue would wait on
 * the host; and what was written is a current mirror. `written`: the point of the ticket. */
static void write_back_publish(sp_rt_storage *storage, sp_storage handle,
                               const sp_host_ticket *ticket, sp_point copied)
{
    const sp_point written = sp__host_ticket_point(ticket);
    sp_mutex_lock(&storage->lock);
    sp_frontier *frontier = &storage->block.frontier;
    if (sp__handle_is_current(&storage->object, handle.bits) &&
        frontier->write.timeline == written.timeline && frontier->write.value == written.value) {
        if (!sp__check_is_on()) frontier->write = copied; /* it knows the access by its ticket */
        (void)sp__mirror_keep_locked(storage, ticket->mirror, frontier->writes);
    }
    sp_mutex_unlock(&storage->lock);
}

/* Ends a write to a mirror. */
static sp_status write_back(sp_rt_storage *storage, sp_storage handle, sp_host_ticket *ticket,
                            bool is_tracked)
{
    sp_point copied;
    const sp_status status = sp__host_ticket_write_back(ticket, &copied);
    if (status != SP_OK) {
        sp__host_ticket_close(ticket);
        return status;
    }
    if (SP_PLANTED(end_before_copy)) {
        sp__host_ticket_close(ticket);
        return SP_OK;
    }
    write_back_publish(storage, handle, ticket, copied);
    /* Commands on untracked storages do not follow the ticket. The checker asks who ended it. */
    sp_status waited = SP_OK;
    if (!is_tracked) waited = sp__transfer_wait(copied);
    else if (sp__check_is_on()) waited = sp__point_wait_passed(copied, SP_NO_DEADLINE);
    sp__host_ticket_close_behind(ticket);
    return waited;
}

/* What the caller does with an ended access, once it has released the lock. */
typedef struct access_rest {
    sp_host_ticket *ticket; /* NULL: there was none */
    sp_mirror *unused;
    bool is_written; /* to a mirror */
    bool is_tracked;
    bool is_frozen;
} access_rest;

static access_rest access_leave_locked(sp_rt_storage *storage, sp_host_ticket *ticket)
    SP_REQUIRES(&storage->lock)
{
    access_rest rest = {
        .ticket = ticket, .is_tracked = storage->is_tracked, .is_frozen = storage->is_frozen};
    const bool has_mirror = ticket != NULL && ticket->mirror != NULL;
    rest.is_written = has_mirror && (ticket->access & SP_WRITE) != 0;
    if (has_mirror && !rest.is_written) {
        sp__mirror_drop_locked(storage, ticket->mirror);
        ticket->mirror = NULL;
    }
    const bool has_mirrors = storage->mirror != NULL || storage->ended_mirrors != NULL;
    if (SP_UNLIKELY(has_mirrors)) rest.unused = sp__mirrors_detach_locked(storage);
    return rest;
}

/* Requires a ticket. */
static sp_status access_finish(sp_rt_storage *storage, sp_storage handle, const access_rest *rest)
{
    sp__mirrors_release(rest->unused);
    if (rest->is_written) return write_back(storage, handle, rest->ticket, rest->is_tracked);
    sp__host_ticket_close(rest->ticket);
    return SP_OK;
}

sp_status sp_storage_host_end(sp_storage handle, sp_access access)
{
    /* Allowed while the runtime goes down, and after: its shutdown waits for work that waits for
     * this. */
    if (sp__runtime_is_forked()) return sp__runtime_enter_slow(); /* with the message */
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    const access_rest rest = access_leave_locked(storage, ticket_remove_locked(storage, access));
    sp_mutex_unlock(&storage->lock);
    if (rest.ticket != NULL) return access_finish(storage, handle, &rest);
    sp__mirrors_release(rest.unused);
    if (rest.is_frozen && access == SP_READ) return SP_OK;
    return sp__fail(SP_INVALID, "no host access of this kind is open on the storage");
}

/* A read of the program may have it, too. */
static void frozen_mirror_drop(const sp_own_access *access)
{
    sp_mirror *unused = access->mirror;
    sp_rt_storage *storage = sp__storage_peek(access->storage);
    if (sp__storage_lock(storage, access->storage)) {
        sp__mirror_drop_locked(storage, access->mirror);
        unused = sp__mirrors_detach_locked(storage);
        sp_mutex_unlock(&storage->lock);
    }
    sp__mirrors_release(unused);
}

sp_status sp__host_end_own(const sp_own_access *access)
{
    if (access->ticket == NULL) {
        if (access->mirror != NULL) frozen_mirror_drop(access);
        return SP_OK;
    }
    sp_rt_storage *storage = sp__storage_peek(access->storage);
    if (!sp__storage_lock(storage, access->storage)) return SP_INVALID; /* has ended it */
    sp__host_ticket_unlink_locked(storage, access->ticket);
    const access_rest rest = access_leave_locked(storage, access->ticket);
    sp_mutex_unlock(&storage->lock);
    return access_finish(storage, access->storage, &rest);
}
