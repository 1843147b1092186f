/* SPDX-License-Identifier: Apache-2.0 */
/* Host waits for points: flush the owner, help it, sleep. Any thread; no lock may be held. */
#ifndef SP_DEVICE_WAIT_H
#define SP_DEVICE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

#include "device/timeline.h"

typedef struct sp_thread_record sp_thread_record;

/* Waits for one point. SP_OK; the status and message of the point's fault; SP_TIMEOUT past
 * `deadline_ns`; SP_DEADLOCK inside a host function that the point depends on. */
sp_status sp__point_wait(sp_point point, uint64_t deadline_ns);

/* Like sp__point_wait, but ignores the point's fault. */
sp_status sp__point_wait_passed(sp_point point, uint64_t deadline_ns);

/* For a host access: waits until all points have passed, ignoring faults. SP_DEADLOCK also if one
 * depends on an open host access that the calling thread began. The status of the thread's check
 * (sp_thread_set_wait_check) if that ends the wait. */
sp_status sp__point_wait_for_access(const sp_point *points, uint32_t count);

/* Has the calling thread a check, or is it inside one? */
bool sp__thread_has_check(void);

/* Before a wait that cannot be given up, of a thread that has a check or is inside one: waits until
 * the point has passed, as for a host access. SP_OK at once if the wait would depend on a host
 * access that the thread has open outside of a check. */
sp_status sp__point_wait_if_checked(sp_point point);

/* Whether waits of the thread are to be cut into slices of SP_CHECK_INTERVAL_NS, after each of
 * which it asks; with what it waits for given up meanwhile, or such that others do without it. */
#define SP_CHECK_INTERVAL_NS 20000000
bool sp__wait_has_check(const sp_thread_record *record);
/* When a wait that begins now is to ask; SP_NO_DEADLINE: never, the thread has no check. */
uint64_t sp__wait_check_time(const sp_thread_record *record);
/* Calls the thread's check: SP_OK, the wait goes on. */
sp_status sp__wait_check_ask(sp_thread_record *record);

/* Like sp__point_wait_passed, for callers whose stack frames hold nothing of the library: host
 * functions that the thread itself has submitted may run inline, and may end the thread. In other
 * waits they run on the host executor. Inside a check, whose caller has such frames, it is an
 * ordinary wait, but for the accesses of the thread: SP_DEADLOCK if the point depends on one. */
sp_status sp__point_wait_bare(sp_point point, uint64_t deadline_ns);

/* For a host function of the library, and a point that depends on no host function and no host
 * access: waits until it has passed, without a failure. Other host functions start meanwhile if
 * the executor has or gets a thread for them. Requires the thread's record. */
void sp__point_wait_in_host_function(sp_point point);

/* Waits until all points have passed; returns the status of the first failed one. */
sp_status sp__point_wait_all(const sp_point *points, uint32_t count, uint64_t deadline_ns);

/* Waits until one of the points has passed; *which is its index, its fault the status. */
sp_status sp__point_wait_any(const sp_point *points, uint32_t count, uint64_t deadline_ns,
                             uint32_t *which);

/* For waits of the library itself: waits until one of the points has passed, ignoring faults.
 * SP_DEADLOCK also if all depend on open host accesses that the calling thread began. *is_ended:
 * the thread's check has ended the wait, and the status is the check's. */
sp_status sp__point_wait_any_passed(const sp_point *points, uint32_t count, bool *is_ended);

/* Sets a callback for every point that a thread has observed to have passed: the hazard checker.
 * NULL: none. */
typedef void (*sp_point_observer)(sp_point point);
void sp__point_set_observer(sp_point_observer observer);
/* Reports such a point, for callers that read it by other means. */
void sp__point_observed(sp_point point);

/* Flushes the queue that owns the point, if it has not passed. */
void sp__point_flush(sp_point point);

/* Whether the point has passed, without waiting. Flushes first: some devices detect completion only
 * then. */
bool sp__point_poll(sp_point point);

#endif
