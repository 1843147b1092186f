/* SPDX-License-Identifier: Apache-2.0 */
/* Host waits for points: flush the owner, help it, sleep. Any thread; no lock may be held. */
#ifndef SP_DEVICE_WAIT_H
#define SP_DEVICE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

#include "device/timeline.h"

/* Waits for one point. SP_OK; the status and message of the point's fault; SP_TIMEOUT past
 * `deadline_ns`; SP_DEADLOCK inside a host function that the point depends on. */
sp_status sp__point_wait(sp_point point, uint64_t deadline_ns);

/* Like sp__point_wait, but only that the point has passed counts, not how it went. */
sp_status sp__point_wait_passed(sp_point point, uint64_t deadline_ns);

/* For a host access: waits until all points have passed, however they went. SP_DEADLOCK also if one
 * depends on a host access that the calling thread began and nobody ended. */
sp_status sp__point_wait_for_access(const sp_point *points, uint32_t count);

/* Like sp__point_wait_passed, for callers that hold nothing of the library's, no more than their
 * stack: host functions that the thread itself has submitted may run here, and may end it. In other
 * waits they run on the host executor. */
sp_status sp__point_wait_bare(sp_point point, uint64_t deadline_ns);

/* Waits until all points have passed; the status is that of the first failed one. */
sp_status sp__point_wait_all(const sp_point *points, uint32_t count, uint64_t deadline_ns);

/* Waits until one of the points has passed and tells which; its fault is the status. */
sp_status sp__point_wait_any(const sp_point *points, uint32_t count, uint64_t deadline_ns,
                             uint32_t *which);

/* For the library's own needs: waits until one of the points has passed, however it went.
 * SP_DEADLOCK also if all depend on host accesses that the calling thread began and nobody ended.
 */
sp_status sp__point_wait_any_passed(const sp_point *points, uint32_t count);

/* Is told of every point that a thread has seen to have passed: the hazard checker. NULL: nobody.
 */
typedef void (*sp_point_observer)(sp_point point);
void sp__point_set_observer(sp_point_observer observer);
/* For callers that look by themselves. */
void sp__point_observed(sp_point point);

/* Flushes the queue that owns the point, if it has not passed. */
void sp__point_flush(sp_point point);

/* Whether the point has passed, seen without waiting: a device may learn it only by the flush. */
bool sp__point_poll(sp_point point);

#endif
