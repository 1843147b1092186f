/* SPDX-License-Identifier: Apache-2.0 */
/* The failed submissions of one timeline: value, fault, and whether the failure has been reported
 * to its submitter. Guarded by the timeline's lock.
 *
 * The newest SP_TIMELINE_FAILURES are kept in a ring, by value. A thread's unreported failures form
 * a list through the ring, oldest first; the first of each list is in a hash table by thread. So
 * finding a value takes logarithmic, and noting or taking a thread's failure constant time,
 * independent of the unreported failures of other threads. */
#ifndef SP_DEVICE_FAILURE_LOG_H
#define SP_DEVICE_FAILURE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "device/fault.h"

#define SP_TIMELINE_FAILURES 65536 /* failures remembered per timeline */

/* One failed submission. Indices are those of the ring, plus 1; 0: none. */
typedef struct sp_failure {
    uint64_t value;
    uint64_t thread; /* number of the thread that submitted it; 0: see sp_submission */
    sp_fault fault;
    bool is_reported;  /* a call of that thread has returned it, or will; or it was cancelled */
    uint32_t next;     /* the thread's next unreported failure */
    uint32_t last;     /* in the first of a list: the list's last */
    uint32_t in_chain; /* in the first of a list: the next list's first with the same hash */
} sp_failure;

/* All zero: empty. */
typedef struct sp_failure_log {
    sp_failure *ring;
    uint32_t *firsts;  /* by hash of the thread: the first of a list; in the ring's memory */
    uint32_t capacity; /* of both: a power of two, or 0 */
    uint32_t count;
    uint32_t oldest;    /* index in the ring */
    uint64_t forgotten; /* values up to this one may have failed without a record */
} sp_failure_log;

/* Notes a failure; values must be ascending. That of thread 0 is reported. Without memory, or when
 * the ring is full, the oldest failure is forgotten, or this one if there is none. *retired: memory
 * to free once the lock is released, or NULL. */
void sp__failure_log_add(sp_failure_log *log, uint64_t value, uint64_t thread, sp_fault fault,
                         void **retired);

/* The fault of the value; SP_NO_FAULT if it has no record. */
sp_fault sp__failure_log_find(const sp_failure_log *log, uint64_t value);

/* Number of values after `after` and up to `value` that have a record. */
uint32_t sp__failure_log_count(const sp_failure_log *log, uint64_t after, uint64_t value);

/* Takes the thread's oldest unreported failure if its value is at most `value`, and returns its
 * fault; SP_NO_FAULT if there is none. */
sp_fault sp__failure_log_take(sp_failure_log *log, uint64_t value, uint64_t thread);

/* Takes the thread's unreported failures with values after `after` and up to `value`; *is_first: it
 * has none before them. True if there were any. Takes as long as it has failures before them. */
bool sp__failure_log_take_between(sp_failure_log *log, uint64_t after, uint64_t value,
                                  uint64_t thread, bool *is_first);

/* Number of failures that no call has taken; *first is the fault of the oldest, or SP_NO_FAULT. */
uint32_t sp__failure_log_unreported(const sp_failure_log *log, sp_fault *first);

/* Empties the log and returns its memory, to be freed by the caller. */
void *sp__failure_log_clear(sp_failure_log *log);

#endif
