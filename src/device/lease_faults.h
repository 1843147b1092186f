/* SPDX-License-Identifier: Apache-2.0 */
/* The failures of a queue's leases that count for later commands with untracked bindings.
 *
 * A submission of thread T on lease L that fails makes L failed. A command of thread X with
 * untracked bindings on L is a consumer: it fails with the oldest failure on L that counts for X.
 * Each failure has a root: for a submission that failed by itself its own value, for a consumer the
 * newest root of the failures that it met. A failure of T counts for X
 *     unless T has been told (by a synchronize) of its failures on L up to that one,
 *     and, if T is not X, unless X has been told of the root, or of a failure of its own on L that
 *     met all roots up to one that is not older.
 * A consumer adds no root, and X is told of all roots that its command met at once: so after each
 * root a thread fails until it has synchronized, and not again for the failures of other threads
 * that have this root. Telling one thread changes nothing for the others. Leases share nothing.
 *
 * State: one node per failed lease, in it at most SP_LEASE_THREADS threads; no failure, no node.
 * A thread that needs a place when all are used gets the one that is idle for longest. The failures
 * of that place go on to count, until the lease ends; what its thread was told is forgotten, so it
 * may fail once more. This ends: when SP_LEASE_FOLDS places have been given up since the newest
 * root, the next thread that needs one ends all failures of the lease (its own command still fails;
 * a new root counts). Without memory for a node failures count for every lease of the queue, with
 * the same rules. Nodes of leases that are over are dropped when their last command is done, by the
 * next taker of the stream.
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

#define SP_LEASE_THREADS 32
#define SP_LEASE_FOLDS 256

/* What is known of one thread on one lease. Two parts, each of which may be empty:
 *     first_fault != SP_NO_FAULT   it has failures with values first ... last that it was not
 *                                  told of
 *     told > 0                     it has been told of all roots up to `told` */
typedef struct sp_failed_thread {
    uint64_t thread; /* number; 0: no thread */
    uint64_t first, last;
    uint64_t first_root;
    uint64_t root; /* newest one of all its failures */
    sp_fault first_fault, last_fault;
    /* Value of its newest failure that met all roots up to this value; 0 once it was told. */
    uint64_t met;
    uint64_t told;
} sp_failed_thread;

typedef struct sp_failed_lease {
    uint64_t lease;
    uint64_t drop_at; /* 0, or: the lease is over, and no command beyond this value is its */
    sp_failed_thread threads[SP_LEASE_THREADS];
    sp_failed_thread others; /* of threads without a place: no synchronize of theirs ends it */
    uint32_t folded;         /* places given up since the newest root */
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

/* The submission `value` of `thread` on `lease` failed by itself: a root. Called by the claim's
 * holder before the value is done, in growing order of values. Lease 0 is no lease: its failures
 * concern no other command. */
void sp__lease_faults_add(sp_lease_faults *faults, uint64_t lease, uint64_t thread, uint64_t value,
                          sp_fault fault);

sp_fault sp__lease_faults_consume_slow(sp_lease_faults *faults, uint64_t lease, uint64_t thread,
                                       uint64_t value);

/* The fault that the submission `value` of `thread` with untracked bindings on `lease` fails with,
 * or SP_NO_FAULT. Its failure is noted in the same step: between a look-up and a later note another
 * thread could be told, and what it was told be dropped with the node. Called by the claim's
 * holder, in growing order of values. */
static inline sp_fault sp__lease_faults_consume(sp_lease_faults *faults, uint64_t lease,
                                                uint64_t thread, uint64_t value)
{
    /* Pairs with nothing: see `count`. */
    if (SP_LIKELY(sp_load_relaxed(&faults->count) == 0)) return SP_NO_FAULT;
    return sp__lease_faults_consume_slow(faults, lease, thread, value);
}

/* `thread` is told of its failures up to `value`, which is done. */
void sp__lease_faults_told(sp_lease_faults *faults, uint64_t thread, uint64_t value);

/* Before a lease of the queue is handed out: drops what is left of leases that are over. `last` is
 * the newest value accepted so far, `done` the newest completed one. */
void sp__lease_faults_sweep(sp_lease_faults *faults, bool (*is_over)(uint64_t lease), uint64_t last,
                            uint64_t done);

#endif
