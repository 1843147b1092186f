/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of a queue's leases that make later commands with untracked bindings fail.
 *
 * A failed submission of thread T on lease L makes L failed. A command of thread X with untracked
 * bindings on L is a consumer: it fails with the oldest failure on L that counts for X. A failure
 * is reported to its thread by a synchronize. Each failure has a root: its own value for a
 * submission that failed by itself; for a consumer the newest root of the failures that it met. A
 * failure of T counts for X
 *     unless the failures of T on L up to that one were reported to T,
 *     and, if T is not X, unless the root was reported to X, or a failure of X on L was that met
 *     all roots up to one that is not older.
 * A consumer adds no root, and its report to X covers all roots that it met: so after each root a
 * thread fails until it has synchronized, and then no more for failures of other threads with this
 * root. A report to one thread changes nothing for others. Leases are independent.
 *
 * State: one node per failed lease, with at most SP_LEASE_THREADS threads; no node without a
 * failure. A thread that needs an entry when all are used gets the one that was idle longest. The
 * failures of that entry still count, until the lease ends; reports to its thread are forgotten, so
 * it may fail once more. This is bounded: when SP_LEASE_FOLDS entries have been reused since the
 * newest root, the next thread that needs one ends all failures of the lease (its own command still
 * fails; a new root counts). Without memory for a node, failures count for every lease of the
 * queue, with the same rules. Nodes of ended leases are dropped once their last command is done,
 * when the stream is next leased.
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

/* State of one thread on one lease. Two parts, each of which may be empty:
 *     first_fault != SP_NO_FAULT   it has unreported failures with values first ... last
 *     told > 0                     all roots up to `told` were reported to it */
typedef struct sp_failed_thread {
    uint64_t thread; /* number; 0: no thread */
    uint64_t first, last;
    uint64_t first_root;
    uint64_t root; /* newest root of all its failures */
    sp_fault first_fault, last_fault;
    /* Value of its newest failure that met all roots up to this value; 0 once it was reported. */
    uint64_t met;
    uint64_t told;
} sp_failed_thread;

typedef struct sp_failed_lease {
    uint64_t lease;
    uint64_t drop_at; /* 0, or: the lease has ended, and this is its last value at most */
    sp_failed_thread threads[SP_LEASE_THREADS];
    sp_failed_thread others; /* of threads without an entry: no synchronize ends these failures */
    uint32_t folded;         /* entries reused since the newest root */
    struct sp_failed_lease *next;
} sp_failed_lease;

typedef struct sp_lease_faults {
    /* Number of failed leases, including `every`. Written under the lock, read by the claim's
     * holder, which sees its predecessors' additions through the claim; a removal may be seen late.
     */
    sp_atomic_u32 count;
    sp_mutex lock;
    sp_failed_lease *first SP_GUARDED_BY(lock);
    sp_failed_lease every SP_GUARDED_BY(lock); /* failures without a node: count for every lease */
} sp_lease_faults;

void sp__lease_faults_init(sp_lease_faults *faults);
void sp__lease_faults_deinit(sp_lease_faults *faults);

/* Notes that the submission `value` of `thread` on `lease` failed by itself: a root. Called by the
 * claim's holder before the value is done, in ascending order of values. Lease 0 means no lease:
 * the failure affects no other command. */
void sp__lease_faults_add(sp_lease_faults *faults, uint64_t lease, uint64_t thread, uint64_t value,
                          sp_fault fault);

sp_fault sp__lease_faults_consume_slow(sp_lease_faults *faults, uint64_t lease, uint64_t thread,
                                       uint64_t value);

/* The fault that the submission `value` of `thread` with untracked bindings on `lease` fails with,
 * or SP_NO_FAULT. Its failure is noted in the same step: between a look-up and a later note a
 * report to another thread could drop the node. Called by the claim's holder, in ascending order of
 * values.
 */
static inline sp_fault sp__lease_faults_consume(sp_lease_faults *faults, uint64_t lease,
                                                uint64_t thread, uint64_t value)
{
    /* Pairs with nothing: see `count`. */
    if (SP_LIKELY(sp_load_relaxed(&faults->count) == 0)) return SP_NO_FAULT;
    return sp__lease_faults_consume_slow(faults, lease, thread, value);
}

/* The failures of `thread` up to `value`, which is done, are reported to it. */
void sp__lease_faults_told(sp_lease_faults *faults, uint64_t thread, uint64_t value);

/* Before the queue is leased: drops nodes of ended leases. `last` is the newest accepted value,
 * `done` the newest completed one. */
void sp__lease_faults_sweep(sp_lease_faults *faults, bool (*is_over)(uint64_t lease), uint64_t last,
                            uint64_t done);

#endif
