/* SPDX-License-Identifier: Apache-2.0 */
/* A frontier: which points the next use of a storage must follow. It holds the last write and all
 * reads since, at most one point per timeline, the newest. A read follows the write, a write
 * follows everything; points of one's own stream are ordered by the stream itself.
 *
 *     write.timeline == NULL       nothing to follow
 *     reads[i].timeline differ     for i < count
 *
 * Guarded by the lock of the storage it belongs to. */
#ifndef SP_RUNTIME_FRONTIER_H
#define SP_RUNTIME_FRONTIER_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/storage.h>

#include "device/timeline.h"

#define SP_FRONTIER_INLINE 4

typedef struct sp_frontier {
    sp_point write;
    uint32_t writes; /* that were published */
    uint32_t count;
    uint32_t capacity; /* of `more`; 0 while the inline points do */
    sp_point inline_reads[SP_FRONTIER_INLINE];
    sp_point *more; /* replaces the inline points */
} sp_frontier;

/* Points to wait for, at most one per timeline. */
typedef struct sp_wait_set {
    uint32_t count;
    uint32_t capacity;
    sp_point *points; /* the caller's array */
} sp_wait_set;

/* Adds a point unless it has passed or belongs to `own`; false if the set is full. */
bool sp__wait_set_add(sp_wait_set *set, sp_point point, const sp_timeline *own);

/* Adds what a use of kind `access` on timeline `own` must follow, from the frontier's point number
 * `*next` on; false if the set is full before all is in it: `*next` is then the first point that it
 * lacks. */
bool sp__frontier_collect(const sp_frontier *frontier, sp_access access, const sp_timeline *own,
                          uint32_t *next, sp_wait_set *set);

/* The last use was a write on `own`: nothing to wait for there, and room for one more publish. */
static inline bool sp__frontier_is_own(const sp_frontier *frontier, const sp_timeline *own)
{
    return frontier->write.timeline == own && frontier->count == 0;
}

/* Ensures that one more publish needs no memory. */
sp_status sp__frontier_reserve(sp_frontier *frontier);

/* A read at `point` has been submitted, perhaps before one on its timeline that is published
 * already: then that one stays. Requires a preceding reserve. */
void sp__frontier_publish_read(sp_frontier *frontier, sp_point point);

/* The use `access` at `point` has been submitted. Requires a preceding reserve, for a read. */
static inline void sp__frontier_publish(sp_frontier *frontier, sp_access access, sp_point point)
{
    if ((access & SP_WRITE) == 0) {
        sp__frontier_publish_read(frontier, point);
        return;
    }
    frontier->write = point;
    frontier->writes++;
    frontier->count = 0;
}

/* Undoes a write, after which nothing was published: the write before it, and `reads`, at most one
 * per timeline, become the frontier again. False, and nothing changed, if there is no room. */
bool sp__frontier_restore(sp_frontier *frontier, sp_point write, const sp_point *reads,
                          uint32_t count);

/* Drops points that have passed; true if none is left. */
bool sp__frontier_prune(sp_frontier *frontier);
bool sp__frontier_is_empty(const sp_frontier *frontier);

/* After a prune: the only timeline that still has points, or NULL if there is none or several. */
sp_timeline *sp__frontier_only_timeline(const sp_frontier *frontier);

/* Calls for every point. */
typedef void (*sp_point_fn)(void *ctx, sp_point point);
void sp__frontier_each(const sp_frontier *frontier, sp_point_fn fn, void *ctx);

/* The remaining points become what the memory's next life must follow: one write on one timeline.
 * Requires sp__frontier_only_timeline or an empty frontier. */
void sp__frontier_become_origin(sp_frontier *frontier);

/* Frees the additional points. */
void sp__frontier_clear(sp_frontier *frontier);

#endif
