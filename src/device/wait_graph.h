/* SPDX-License-Identifier: Apache-2.0 */
/* The wait-for graph: who waits for what, to refuse waits that would never end.
 *
 * Its nodes are points; its edges are found where they are kept, and only while a search runs:
 *     a queue's point waits for   what its submissions up to there still wait for (each_wait), and
 *                                 what a host function in one of them is waiting for
 *     a host access waits for     the accesses and commands that it follows, and
 *                                 what the thread that began it is waiting for
 *     a submitted run's future    the run's last point
 * Waits of host functions, and waits of threads with an open host access for another one or for
 * memory, enter the graph: the only ones that a point can depend on. Of the waits that form a cycle
 * the last one to enter is refused. Waits that a submission has are older than its point and form
 * no cycle by themselves.
 *
 * A wait is for all of its points, or for any of them. It can end if all of these points, or any,
 * depend only on waits that can end; what remains is stuck:
 *     no wait in the graph is stuck */
#ifndef SP_DEVICE_WAIT_GRAPH_H
#define SP_DEVICE_WAIT_GRAPH_H

#include <streampool/status.h>

#include "device/timeline.h"

/* A wait of the calling thread; on its stack. */
typedef struct sp_graph_wait {
    /* Whose host accesses the wait holds up: the holder of the thread's record, for a begin of
     * another access and for memory; 0 for any other wait, since another thread may end them. */
    uint64_t holder;
    const sp_point *inside; /* of the host function around the wait, or NULL */
    const sp_point *points;
    uint32_t count;
    bool is_any;       /* for one of the points, not for all */
    bool has_deadline; /* ends by itself, so that none that depends on it is stuck */
    /* Of the graph, and of the search that runs: */
    struct sp_graph_wait *next, **place;
    struct sp_graph_wait *next_of_holder, **entry_of_holder;
    bool can_end; /* as far as the search has found out */
    bool is_seen, is_todo;
    struct sp_graph_wait *next_todo;
    struct sp_graph_wait *blocked, *next_blocked; /* looked at again when this one can end */
} sp_graph_wait;

/* Enters the wait before the thread sleeps. SP_DEADLOCK, and not entered, if its points depend on a
 * host function that the thread is inside of, or on a host access that it began and nobody ended.
 */
sp_status sp__wait_graph_enter(sp_graph_wait *wait);

/* Takes it out; the points may have passed or not. */
void sp__wait_graph_leave(sp_graph_wait *wait);

#endif
