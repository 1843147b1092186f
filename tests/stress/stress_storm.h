/* SPDX-License-Identifier: Apache-2.0 */
/* The storm test: the state shared by its threads, and the actions of a thread (storm_moves.c). */
#ifndef SP_TESTS_STRESS_STORM_H
#define SP_TESTS_STRESS_STORM_H

#include "stress.h"

#define THREADS 31u
#define SHARED_STREAMS 4u
#define LOCKS 4u
#define STORAGES 3u
#define BYTES 512u
#define EVENTS 3u

/* Counts of accepted and of completed operations. */
typedef struct balance {
    sp_atomic_u64 accepted;
    sp_atomic_u64 ended;
} balance;

typedef struct storm {
    uint64_t deadline_ns;
    sp_stream shared[SHARED_STREAMS];
    /* Two numbers that are equal whenever no write is in progress; accessed by host accesses,
     * nested ones too, and by commands. */
    sp_storage locks[LOCKS];
    sp_storage common;   /* each thread owns BYTES of it */
    sp_atomic_u64 guest; /* handle of a null device that is opened and closed; 0: none */
    balance host_functions, callbacks, adopted;
    sp_atomic_u32 arrived; /* threads that are initialised: memory may run out after that */
    sp_atomic_u32 left;    /* threads that have ended */
    sp_atomic_u64 moves;   /* of all threads */
    sp_atomic_u64 deadlocks, shortages, closed; /* refusals that occurred */
    overlap calls;
} storm;

typedef struct worker {
    storm *all;
    uint32_t index;
    uint64_t random;
    sp_storage storages[STORAGES];
    unsigned char shadow[STORAGES][BYTES];
    unsigned char slice[BYTES];
    sp_event events[EVENTS]; /* the last one has timing */
} worker;

void storm_worker_begin(worker *self, storm *all, uint32_t index);
/* One or a few calls, chosen at random. */
void storm_move(worker *self);
/* Checks all that the thread wrote, and releases everything. */
void storm_worker_end(worker *self);

static inline void balance_accept(balance *self)
{
    sp_fetch_add_relaxed(&self->accepted, (uint64_t)1);
}

static inline void balance_end(balance *self)
{
    sp_fetch_add_relaxed(&self->ended, (uint64_t)1);
}

#endif
