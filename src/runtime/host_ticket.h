/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: the points of host accesses. A ticket is a small timeline that the host itself advances:
 * host_access.c publishes its next value in the storage's frontier, and whoever ends the access
 * advances it.
 *
 * A write in the frontier replaces everything before it, so its ticket never advances before that
 * has passed, even if begin fails or the storage is released in between:
 *     a ticket advances  =>  everything it is behind has passed, or no other use follows it
 * Tickets are pooled and never freed, since points on them may be read at any later time:
 *     a ticket is in the pool  <=>  its timeline's done equals its value
 *
 * A ticket is a node of the wait-for graph: it waits for what it is behind and, until the access is
 * ended or abandoned, for the thread that began it. */
#ifndef SP_RUNTIME_HOST_TICKET_H
#define SP_RUNTIME_HOST_TICKET_H

#include <streampool/storage.h>

#include "device/thread_record.h"
#include "runtime/frontier.h"
#include "runtime/mirror.h"
#include "runtime/storage.h"

/* What searches of the wait-for graph read of a ticket. */
typedef struct sp_ticket_shown {
    uint64_t value;  /* the access that `behind` belongs to; 0: none */
    uint64_t holder; /* of the record of the thread that began it, or 0 */
} sp_ticket_shown;

struct sp_host_ticket {
    sp_timeline timeline;
    uint64_t value; /* of the open access, or of the last one */
    sp_access access;
    bool is_whole; /* the access is to all bytes of the storage */
    bool is_own;   /* of a call of the library (sp_own_access); constant while it is published */
    /* begin has returned and end may come; under the storage's lock. Otherwise the ticket belongs
     * to the thread in begin, also if the storage is destroyed. */
    bool is_open;
    sp_host_ticket *next; /* in the pool, or in the storage */
    /* What the access must follow: inline_points, or an allocation; once a write has ended, the
     * copy of what was written. Changed by the ticket's owner, under the timeline's lock once
     * others can reach the ticket; read by searches under that lock. */
    sp_wait_set behind;
    sp_point inline_points[SP_MAX_WAITS];
    sp_ticket_shown shown; /* guarded by timeline.lock */
    bool is_abandoned;     /* guarded by timeline.lock; refused: later accesses take `behind` over
                            * instead of waiting for the ticket */
    sp_point former_write; /* of the frontier before a write, to restore it */
    sp_thread_record *record; /* of that thread, while the access is open */
    sp_waiter waiter;         /* of a ticket that closes itself */
    sp_mirror *mirror;        /* a reference to what the host accesses; NULL: the memory itself */
    sp_mirror_place place;    /* what the access is to; only for mirrors */
    /* Of a write of all of adopted memory until begin returns: `ready` of the storage, moved here.
     * Uses that follow the ticket follow that too, and get its fault only if the write is refused:
     * then it becomes poison before the ticket closes. Constant while is_abandoned. */
    sp_point ready;
    sp_rt_storage *storage; /* if `ready` or `mirror` is set: its storage, and in which life */
    uint32_t epoch;
};

/* A ticket for an access to all of a storage, with its next value; NULL: no memory. */
sp_host_ticket *sp__host_ticket_acquire(sp_access access);
/* The value was never published. */
void sp__host_ticket_forget(sp_host_ticket *ticket);

static inline sp_point sp__host_ticket_point(const sp_host_ticket *ticket)
{
    return (sp_point){(sp_timeline *)(uintptr_t)&ticket->timeline, ticket->value};
}

/* Publishes what searches read of the ticket from now on. */
void sp__host_ticket_show(sp_host_ticket *ticket, uint64_t value, uint64_t holder);
/* Drops the last points that it is behind. */
void sp__host_ticket_drop_points(sp_host_ticket *ticket, uint32_t count);

/* Takes the ticket off the storage; no effect if the storage's destroyer has. */
void sp__host_ticket_unlink_locked(sp_rt_storage *storage, const sp_host_ticket *ticket)
    SP_REQUIRES(&storage->lock);

/* Ends the access: device work behind it may run. */
void sp__host_ticket_close(sp_host_ticket *ticket);
/* Ends an access that was refused, once all that it is behind has passed. */
void sp__host_ticket_abandon(sp_host_ticket *ticket);
/* Submits the copy of what the host wrote to its mirror; the ticket is behind the copy then, and
 * nobody holds it. *copied is the copy's point, or the zero point if there is none. On failure the
 * storage is poisoned. No lock may be held. */
sp_status sp__host_ticket_write_back(sp_host_ticket *ticket, sp_point *copied);
/* Closes the ticket when all that it is behind has passed. */
void sp__host_ticket_close_behind(sp_host_ticket *ticket);

/* Replaces the point of a refused access by what that access is behind, so that refused accesses do
 * not form chains, unless it has yet to poison the storage. Those points are of other timelines or
 * older; without room the point stays. */
void sp__host_ticket_take_over(sp_wait_set *set, uint32_t index);

#endif
