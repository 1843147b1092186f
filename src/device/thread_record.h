/* SPDX-License-Identifier: Apache-2.0 */
/* Per-thread state of each thread that has waited, submitted or run a host function: a parker, a
 * number, and the host function that it is inside. Records are pooled and never freed: a late
 * unpark finds a record, perhaps of another thread by then, for which it is a spurious wake-up. */
#ifndef SP_DEVICE_THREAD_RECORD_H
#define SP_DEVICE_THREAD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/storage.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/wait.h"
#include "device/timeline.h"

/* The history of a thread as an owner of run slots (exec/run_slots.h). Hints. */
typedef struct sp_run_tenure {
    uint64_t since;    /* begin of its quantum; 0: none has begun */
    uint64_t observed; /* time of its last observed release */
    uint64_t released; /* the same, or 0: it has returned since */
    uint32_t stride;   /* releases that are not observed between two that are */
    uint32_t skipped;  /* since the last observed one */
    uint32_t runs;     /* since its first quantum in a row began */
    uint32_t quanta;   /* in a row that are over */
    bool returns_soon; /* it did the last time */
} sp_run_tenure;

typedef struct sp_thread_record {
    SP_CACHE_ALIGNED sp_parker parker;
    uint64_t number; /* unique among all threads of the process, also ended ones; never 0 */
    /* Owner only: NULL, or the point of the submission whose host function the thread is inside,
     * on the thread's stack. Functions do not nest: a wait inside one runs no other. */
    const sp_point *inside;
    /* Owner only: identifies the thread as the holder of host accesses; unique like the number. An
     * executor thread has a new one for each job, since no later job ends accesses that an earlier
     * one left open. */
    uint64_t holder;
    /* Open host accesses that the thread began. Incremented by the owner, decremented by the thread
     * that ends one, perhaps when the record has another owner: too high a count only costs that
     * owner searches. Relaxed: a thread reads its own increments. */
    sp_atomic_u32 open_accesses;
    bool is_executor; /* owner only: this is a host-executor thread */
    /* Owner only: a shutdown waits for this thread, which may call the log's callback. */
    bool ends_with_shutdown;
    /* Owner only: the thread waits in a call that holds nothing, so it may run host functions that
     * it submitted, which may end it; see sp__point_wait_bare. */
    bool runs_own_functions;
    /* Owner only: of the program, called while the thread waits. */
    sp_wait_check check;
    void *check_ctx;
    uint32_t check_depth; /* owner only: calls of a check that the thread is inside */
    /* Owner only: a call that finds its stream full waits (sp_thread_set_wait_for_room). */
    bool waits_for_room;
    /* Owner only: the thread helps until then at most; 0: for as long as there is work. */
    uint64_t help_until_ns;
    /* Owner only: runs of futures that the thread computes. While there are any, its waits for
     * memory are in the wait-for graph. */
    uint32_t computed_futures;
    /* Owner only: about how long other threads have run tiles of its dispatches, in nanoseconds. */
    uint64_t helped_ns;
    sp_run_tenure tenure; /* owner only */
    uint32_t run_queue;   /* owner only: the last one that it had (runtime/run_queue.h) */
    struct sp_thread_record *next_free; /* guarded by the lock of the free records */
} sp_thread_record;

/* Whether the calling thread is inside a host function or callback. Other work may depend on its
 * end, so its waits must not depend on that work. */
static inline bool sp__thread_is_inside_callback(const sp_thread_record *record)
{
    return record->inside != NULL || record->is_executor;
}

/* The calling thread's record; NULL, with the error set, when out of memory. */
sp_thread_record *sp__thread_record(void);

/* Adds to `helped_ns` of the calling thread, if it has a record. */
void sp__thread_add_helped(uint64_t ns);

/* That of the calling thread; 0 without a record. */
uint64_t sp__thread_helped_ns(void);

/* The open host accesses of the calling thread have no holder from now on; any thread may end them.
 */
void sp__thread_forget_accesses(sp_thread_record *record);

/* Frees the records of threads that have ended, and the caller's own; no unpark may be pending
 * (tests and the controlled scheduler). */
void sp__thread_records_deinit(void);

#endif
