/* SPDX-License-Identifier: Apache-2.0 */
/* Frontiers and wait sets. */
#include "runtime/frontier.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/wait.h"

/* A thread that drops a point because it has passed counts as having seen it pass: the checker
 * relies on that. */
static bool is_past(sp_point point)
{
    if (!sp__point_has_passed(point)) return false;
    sp__point_observed(point);
    return true;
}

bool sp__wait_set_add(sp_wait_set *set, sp_point point, const sp_timeline *own)
{
    if (point.timeline == own || is_past(point)) return true;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->points[i].timeline != point.timeline) continue;
        if (set->points[i].value < point.value) set->points[i].value = point.value;
        return true;
    }
    if (set->count == set->capacity) return false;
    set->points[set->count++] = point;
    return true;
}

static sp_point *reads_of(sp_frontier *frontier)
{
    return frontier->more != NULL ? frontier->more : frontier->inline_reads;
}

static const sp_point *const_reads_of(const sp_frontier *frontier)
{
    return frontier->more != NULL ? frontier->more : frontier->inline_reads;
}

/* Point 0 is the write, the reads are those from 1 on. */
bool sp__frontier_collect(const sp_frontier *frontier, sp_access access, const sp_timeline *own,
                          uint32_t *next, sp_wait_set *set)
{
    const sp_point *reads = const_reads_of(frontier);
    uint32_t count = (access & SP_WRITE) != 0 ? 1 + frontier->count : 1;
    if (SP_PLANTED(only_inline_reads) && frontier->more != NULL) count = 1 + SP_FRONTIER_INLINE;
    for (; *next < count; ++*next) {
        const sp_point point = *next == 0 ? frontier->write : reads[*next - 1];
        if (!sp__wait_set_add(set, point, own)) return false;
    }
    return true;
}

bool sp__frontier_prune(sp_frontier *frontier)
{
    sp_point *reads = reads_of(frontier);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < frontier->count; i++) {
        if (!is_past(reads[i])) {
            reads[kept++] = reads[i];
        } else if (SP_PLANTED(prune_drops_another) && kept > 0) {
            kept--;
        }
    }
    frontier->count = kept;
    if (is_past(frontier->write)) frontier->write = (sp_point){0};
    return sp__frontier_is_empty(frontier);
}

static uint32_t room_of(const sp_frontier *frontier)
{
    return frontier->more != NULL ? frontier->capacity : SP_FRONTIER_INLINE;
}

sp_status sp__frontier_reserve(sp_frontier *frontier)
{
    if (SP_LIKELY(frontier->count < room_of(frontier))) return SP_OK;
    (void)sp__frontier_prune(frontier);
    const uint32_t room = room_of(frontier);
    if (frontier->count < room) return SP_OK;
    sp_point *grown = sp_malloc((size_t)2 * room * sizeof *grown);
    if (grown == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to track one more use");
    memcpy(grown, reads_of(frontier), frontier->count * sizeof *grown);
    sp_free(frontier->more);
    frontier->more = grown;
    frontier->capacity = 2 * room;
    return SP_OK;
}

void sp__frontier_publish_read(sp_frontier *frontier, sp_point point)
{
    sp_point *reads = reads_of(frontier);
    for (uint32_t i = 0; i < frontier->count; i++) {
        if (reads[i].timeline != point.timeline) continue;
        if (reads[i].value < point.value) reads[i].value = point.value;
        return;
    }
    SP_ASSERT(frontier->count < room_of(frontier));
    reads[frontier->count++] = point;
}

bool sp__frontier_restore(sp_frontier *frontier, sp_point write, const sp_point *reads,
                          uint32_t count)
{
    if (count > room_of(frontier)) return false;
    if (count > 0) memcpy(reads_of(frontier), reads, count * sizeof *reads);
    frontier->write = write;
    frontier->count = count;
    return true;
}

bool sp__frontier_is_empty(const sp_frontier *frontier)
{
    return frontier->write.timeline == NULL && frontier->count == 0;
}

sp_timeline *sp__frontier_only_timeline(const sp_frontier *frontier)
{
    const sp_point *reads = const_reads_of(frontier);
    sp_timeline *only = frontier->write.timeline;
    for (uint32_t i = 0; i < frontier->count; i++) {
        if (only != NULL && only != reads[i].timeline) return NULL;
        only = reads[i].timeline;
    }
    return only;
}

void sp__frontier_each(const sp_frontier *frontier, sp_point_fn fn, void *ctx)
{
    const sp_point *reads = const_reads_of(frontier);
    if (frontier->write.timeline != NULL) fn(ctx, frontier->write);
    for (uint32_t i = 0; i < frontier->count; i++) fn(ctx, reads[i]);
}

void sp__frontier_become_origin(sp_frontier *frontier)
{
    const sp_point *reads = const_reads_of(frontier);
    for (uint32_t i = 0; i < frontier->count; i++) {
        SP_ASSERT(frontier->write.timeline == NULL ||
                  frontier->write.timeline == reads[i].timeline);
        if (frontier->write.timeline == NULL || reads[i].value > frontier->write.value) {
            frontier->write = reads[i];
        }
    }
    frontier->count = 0;
}

void sp__frontier_clear(sp_frontier *frontier)
{
    sp_free(frontier->more);
    *frontier = (sp_frontier){0};
}
