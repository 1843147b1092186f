/* SPDX-License-Identifier: Apache-2.0 */
/* What the library knows of each thread that ever waited, submitted or ran a host function: a
 * parker, a number, and the host functions it is inside of. Records are pooled and never freed:
 * an unpark that comes late meets a record, perhaps another thread's, which shrugs it off. */
#ifndef SP_DEVICE_THREAD_RECORD_H
#define SP_DEVICE_THREAD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/wait.h"
#include "device/timeline.h"

typedef struct sp_thread_record {
    SP_CACHE_ALIGNED sp_parker parker;
    uint64_t number; /* differs for every thread that ever lived; never 0 */
    /* Owner only: NULL, or the point of the submission whose host function the thread is inside
     * of, on the thread's stack. Functions do not nest: a wait inside one runs no other. */
    const sp_point *inside;
    /* Owner only: who begins host accesses; differs like the number. A thread of the executor is
     * somebody else for each job, since no later job ends what an earlier one left open. */
    uint64_t holder;
    /* Host accesses that the thread began and nobody ended. Raised by the owner, lowered by whoever
     * ends one, perhaps when the record has another owner: a count that is too high costs that
     * owner searches, no more. Relaxed: a thread reads what it raised itself. */
    sp_atomic_u32 open_accesses;
    bool is_executor; /* owner only: this is a host-executor thread */
    /* Owner only: the thread waits in a call that holds nothing, so it may run host functions of
     * its own, which may end it; see sp__point_wait_bare. */
    bool runs_own_functions;
    struct sp_thread_record *next_free; /* guarded by the lock of the free records */
} sp_thread_record;

/* Is the calling thread inside a host function, or a callback of the library's? Others may be
 * waiting for its end, so what it waits for must not need them. */
static inline bool sp__thread_is_inside_callback(const sp_thread_record *record)
{
    return record->inside != NULL || record->is_executor;
}

/* The calling thread's record; NULL, with the error set, when out of memory. */
sp_thread_record *sp__thread_record(void);

/* What the calling thread has open is nobody's from now on: others end it, or nobody. */
void sp__thread_forget_accesses(sp_thread_record *record);

/* Frees the records of threads that have ended, and the caller's own: only when no unpark can be on
 * its way (tests and the controlled scheduler). */
void sp__thread_records_deinit(void);

#endif
