/* SPDX-License-Identifier: Apache-2.0 */
/* The wait-for graph: who waits for what, to refuse waits that would never end.
 *
 * Its nodes are points; its edges are found where they are kept, and only while a search runs:
 *     a queue's point waits for   what its submissions up to there still wait for (each_wait), and
 *                                 what a host function in one of them waits for now
 *     a host access waits for     the accesses and commands that it follows, and
 *                                 what the thread that began it waits for now
 *     a submitted run's future    the run's last point
 * Waits of host functions, and waits of threads with an open host access for another one, enter the
 * graph: the only ones that a point can depend on. Each is searched as it enters, under one lock,
 * so of the waits that form a cycle the last one is refused. Waits that a submission has are older
 * than its point and form no cycle by themselves. */
#ifndef SP_DEVICE_WAIT_GRAPH_H
#define SP_DEVICE_WAIT_GRAPH_H

#include <streampool/status.h>

#include "device/timeline.h"

typedef struct sp_host_frame sp_host_frame;

/* A wait of the calling thread for all of several points; on its stack. */
typedef struct sp_graph_wait {
    uint64_t thread;             /* its number */
    const sp_host_frame *frames; /* host functions around the wait, those inside of it excluded */
    const sp_point *points;
    uint32_t count;
    struct sp_graph_wait *next; /* of the graph */
} sp_graph_wait;

/* Enters the wait before the thread sleeps. SP_DEADLOCK, and not entered, if a point depends on a
 * host function that the thread is inside of, or on a host access that it began and nobody ended.
 */
sp_status sp__wait_graph_enter(sp_graph_wait *wait);

/* Takes it out; the points may have passed or not. */
void sp__wait_graph_leave(sp_graph_wait *wait);

#endif
