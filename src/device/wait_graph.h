/* SPDX-License-Identifier: Apache-2.0 */
/* The wait-for graph, which refuses waits that would never end (wait cycles).
 *
 * Its nodes are points. Its edges are not stored but read from their owners during a search:
 *     a queue's point depends on  the unmet waits of its submissions up to there (each_wait), and
 *                                 the wait of a host function in one of them
 *     a host access depends on    the accesses and commands that it follows, and
 *                                 the wait of the thread that began it
 *     a submitted run's future    the run's last point; or the wait of the thread that computes it
 * The graph contains the waits that a point can depend on: those of host functions, those of
 * threads with an open host access for another access or for memory, and those for memory of
 * threads that compute the run of a future. Of the waits that form a wait
 * cycle the last one to enter is refused. Waits of a submission are older than its point and form
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
    /* Holder of the host accesses and futures that the wait blocks: that of the thread's record,
     * for a begin of another access and for memory; 0 for any other wait, since another thread may
     * end them. */
    uint64_t holder;
    const sp_point *inside; /* of the host function around the wait, or NULL */
    const sp_point *points;
    uint32_t count;
    bool is_any;       /* waits for any of the points, not for all */
    bool has_deadline; /* ends by itself, so waits that depend on it are not stuck */
    /* Of the graph, and of the current search: */
    struct sp_graph_wait *next, **place;
    struct sp_graph_wait *next_of_holder, **entry_of_holder;
    bool can_end; /* result of the search so far */
    bool is_seen, is_todo;
    struct sp_graph_wait *next_todo;
    struct sp_graph_wait *blocked, *next_blocked; /* searched again when this one can end */
} sp_graph_wait;

/* Enters the wait before the thread sleeps. SP_DEADLOCK, without entering, if its points depend on
 * the host function that the thread is inside, or on an open host access that it began. */
sp_status sp__wait_graph_enter(sp_graph_wait *wait);

/* Removes the wait, whether its points have passed or not. */
void sp__wait_graph_leave(sp_graph_wait *wait);

#endif
