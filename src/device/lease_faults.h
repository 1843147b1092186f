/* SPDX-License-Identifier: Apache-2.0 */
/* The failures of a queue's leases that count for later commands with untracked bindings.
 *
 * A failed submission of thread T on lease L makes L failed. A command of thread X with untracked
 * bindings on L fails with it
 *     unless T has been told (by a synchronize) of its failures on L up to that one,
 *     and unless X has been told of a command of its own that failed for that reason later.
 * So each thread learns of a failure before its commands on the lease run again, and telling one
 * thread changes nothing for the others. Leases share nothing.
 *
 * State: one node per failed lease, in it at most SP_LEASE_THREADS threads; no failure, no node.
 * What does not fit is kept coarser, never dropped: without a place for a thread its failures count
 * until the lease ends, without memory for a node they count for every lease of the queue. Then
 * a command too many fails, once per thread. Nodes of leases that are over are dropped when their
 * last command is done, by the next taker of the stream.
 *
 * Internally synchronised. A queue without failed leases costs one relaxed load per command. */
#ifndef SP_DEVICE_LEASE_FAULTS_H
#define SP_DEVICE_LEASE_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/macros.h"
#include "base/mutex.h"
#include "device/fault.h"

#define SP_LEASE_THREADS 8

/* What is known of one thread on one lease. Two parts, each of which may be empty:
 *     first_fault != SP_NO_FAULT   it has failures with values first ... last that it was not
 *                                  told of
 *     told > 0                     it has been told of all failures of the lease before `told` */
typedef struct sp_failed_thread {
    uint64_t thread; /* number; 0: no thread */
    uint64_t first, last;
    sp_fault first_fault, last_fault;
    /* Value of its newest submission that failed because the lease had; 0 once it was told. */
    uint64_t consumed;
    uint64_t told;
} sp_failed_thread;

typedef struct sp_failed_lease {
    uint64_t lease;
    uint64_t drop_at; /* 0, or: the lease is over, and no command beyond this value is its */
    sp_failed_thread threads[SP_LEASE_THREADS];
    sp_failed_thread others; /* of threads without a place: no synchronize of theirs ends it */
    struct sp_failed_lease *next;
} sp_failed_lease;

typedef struct sp_lease_faults {
    /* Failed leases, `every` included. Written under the lock, read by the claim's holder, which
     * sees its predecessors' additions by the hand-over of the claim; a removal may be seen late.
     */
    sp_atomic_u32 count;
    sp_mutex lock;
    sp_failed_lease *first SP_GUARDED_BY(lock);
    sp_failed_lease every SP_GUARDED_BY(lock); /* what there was no memory for: of every lease */
} sp_lease_faults;

void sp__lease_faults_init(sp_lease_faults *faults);
void sp__lease_faults_deinit(sp_lease_faults *faults);

/* The submission `value` of `thread` on `lease` failed; `is_consumer`: because
 * sp__lease_faults_find had a fault for it. Called by the claim's holder before the value is done,
 * in growing order of values. Lease 0 is no lease: its failures concern no other command. */
void sp__lease_faults_add(sp_lease_faults *faults, uint64_t lease, uint64_t thread, uint64_t value,
                          sp_fault fault, bool is_consumer);

sp_fault sp__lease_faults_find_slow(sp_lease_faults *faults, uint64_t lease, uint64_t thread);

/* The fault that a submission of `thread` with untracked bindings on `lease` fails with, or
 * SP_NO_FAULT. Called by the claim's holder. */
static inline sp_fault sp__lease_faults_find(sp_lease_faults *faults, uint64_t lease,
                                             uint64_t thread)
{
    /* Pairs with nothing: see `count`. */
    if (SP_LIKELY(sp_load_relaxed(&faults->count) == 0)) return SP_NO_FAULT;
    return sp__lease_faults_find_slow(faults, lease, thread);
}

/* `thread` is told of its failures up to `value`, which is done. */
void sp__lease_faults_told(sp_lease_faults *faults, uint64_t thread, uint64_t value);

/* Before a lease of the queue is handed out: drops what is left of leases that are over. `last` is
 * the newest value accepted so far, `done` the newest completed one. */
void sp__lease_faults_sweep(sp_lease_faults *faults, bool (*is_over)(uint64_t lease), uint64_t last,
                            uint64_t done);

#endif
