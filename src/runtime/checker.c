/* SPDX-License-Identifier: Apache-2.0 */
/* Vector clocks over timelines, and the uses of each storage since its last write. A debugging aid:
 * without memory it forgets, and then reports less, never more. */
#include "runtime/checker.h"

#include <stdio.h>
#include <string.h>

#include "base/fork.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/option.h"
#include "device/wait.h"

/* Timelines that are told apart; more are not checked. */
#define MAX_CLOCKS 256
#define NO_CLOCK UINT32_MAX
/* Remembered changes of a stream's clock; a point older than these has itself as its clock. */
#define SNAPSHOTS 256
/* Reads since the last write that are remembered, one per stream. */
#define MAX_READS 64

typedef struct clock_vector {
    uint64_t values[MAX_CLOCKS];
} clock_vector;

/* What the submissions from `value` on come after, until the next snapshot. */
typedef struct clock_snapshot {
    uint64_t value;
    clock_vector vector;
} clock_snapshot;

typedef struct stream_clock {
    const sp_timeline *timeline;
    clock_vector now;
    clock_snapshot *snapshots; /* ring, oldest first; made with the first wait */
    uint32_t first, count;
} stream_clock;

typedef struct past_use {
    uint32_t clock; /* NO_CLOCK: the host, which has completed it */
    uint64_t value;
    sp_check_use use;
} past_use;

struct sp_check_history {
    bool has_write;
    past_use write;
    uint32_t read_count;
    past_use reads[MAX_READS];
};

sp_atomic_u32 sp__check_enabled; /* process-wide: an option */

static struct {
    sp_mutex lock;
    stream_clock clocks[MAX_CLOCKS] SP_GUARDED_BY(lock);
    uint32_t clock_count SP_GUARDED_BY(lock);
    clock_vector host SP_GUARDED_BY(lock); /* what has been seen to have passed */
    sp_check_function callback SP_GUARDED_BY(lock);
    void *ctx SP_GUARDED_BY(lock);
    sp_atomic_u64 report_count;
} checker; /* process-wide: hazards cross devices */

/* ---- clocks ---- */

static uint32_t clock_of_locked(const sp_timeline *timeline) SP_REQUIRES(&checker.lock)
{
    for (uint32_t i = 0; i < checker.clock_count; i++) {
        if (checker.clocks[i].timeline == timeline) return i;
    }
    if (checker.clock_count == MAX_CLOCKS) return NO_CLOCK;
    checker.clocks[checker.clock_count].timeline = timeline;
    return checker.clock_count++;
}

static bool join(clock_vector *into, const clock_vector *from)
{
    bool is_changed = false;
    for (uint32_t i = 0; i < MAX_CLOCKS; i++) {
        if (from->values[i] <= into->values[i]) continue;
        into->values[i] = from->values[i];
        is_changed = true;
    }
    return is_changed;
}

static bool join_value(clock_vector *into, uint32_t clock, uint64_t value)
{
    if (into->values[clock] >= value) return false;
    into->values[clock] = value;
    return true;
}

/* What the submission `value` of the stream came after. */
static const clock_vector *vector_at(const stream_clock *clock, uint64_t value)
{
    for (uint32_t i = clock->count; i-- > 0;) {
        const clock_snapshot *snapshot = &clock->snapshots[(clock->first + i) % SNAPSHOTS];
        if (snapshot->value <= value) return &snapshot->vector;
    }
    return NULL;
}

/* Everything that the point comes after, and itself. */
static bool join_point_locked(clock_vector *into, sp_point point) SP_REQUIRES(&checker.lock)
{
    if (point.timeline == NULL) return false;
    const uint32_t index = clock_of_locked(point.timeline);
    if (index == NO_CLOCK) return false;
    bool is_changed = join_value(into, index, point.value);
    const clock_vector *past = vector_at(&checker.clocks[index], point.value);
    if (past != NULL && join(into, past)) is_changed = true;
    return is_changed;
}

static void take_snapshot(stream_clock *clock, uint64_t value)
{
    if (clock->snapshots == NULL) {
        clock->snapshots = sp_calloc(SNAPSHOTS, sizeof *clock->snapshots);
        if (clock->snapshots == NULL) return;
    }
    if (clock->count == SNAPSHOTS) {
        clock->first = (clock->first + 1) % SNAPSHOTS;
        clock->count--;
    }
    clock_snapshot *snapshot = &clock->snapshots[(clock->first + clock->count) % SNAPSHOTS];
    clock->count++;
    snapshot->value = value;
    snapshot->vector = clock->now;
}

void sp__check_submitted(sp_point point, const sp_point *waits, uint32_t wait_count)
{
    sp_mutex_lock(&checker.lock);
    const uint32_t index = clock_of_locked(point.timeline);
    if (index != NO_CLOCK) {
        stream_clock *clock = &checker.clocks[index];
        bool is_changed = join(&clock->now, &checker.host);
        for (uint32_t i = 0; i < wait_count; i++) {
            if (join_point_locked(&clock->now, waits[i])) is_changed = true;
        }
        clock->now.values[index] = point.value;
        if (is_changed) take_snapshot(clock, point.value);
    }
    sp_mutex_unlock(&checker.lock);
}

/* Some thread has seen that the point has passed. */
static void observe(sp_point point)
{
    if (point.timeline == NULL) return;
    sp_mutex_lock(&checker.lock);
    join_point_locked(&checker.host, point);
    sp_mutex_unlock(&checker.lock);
}

/* ---- uses ---- */

static bool is_ordered_locked(const past_use *earlier, uint32_t clock) SP_REQUIRES(&checker.lock)
{
    if (earlier->clock == NO_CLOCK || earlier->clock == clock) return true;
    const clock_vector *now = clock == NO_CLOCK ? &checker.host : &checker.clocks[clock].now;
    return now->values[earlier->clock] >= earlier->value;
}

/* Conflicting uses that nothing orders before the new one. */
static uint32_t find_unordered_locked(const sp_check_history *history, uint32_t clock,
                                      sp_access access, const past_use **out)
    SP_REQUIRES(&checker.lock)
{
    uint32_t count = 0;
    if (history->has_write && !is_ordered_locked(&history->write, clock)) {
        out[count++] = &history->write;
    }
    for (uint32_t i = 0; i < history->read_count && (access & SP_WRITE) != 0; i++) {
        if (!is_ordered_locked(&history->reads[i], clock)) out[count++] = &history->reads[i];
    }
    return count;
}

static void remember(sp_check_history *history, const past_use *use)
{
    if ((use->use.access & SP_WRITE) != 0) {
        history->has_write = true;
        history->write = *use;
        history->read_count = 0;
        return;
    }
    for (uint32_t i = 0; i < history->read_count; i++) {
        if (history->reads[i].clock != use->clock) continue;
        history->reads[i] = *use;
        return;
    }
    if (history->read_count < MAX_READS) history->reads[history->read_count++] = *use;
}

static void log_report(const sp_check_report *report)
{
    const sp_check_use *a = &report->earlier;
    const sp_check_use *b = &report->later;
    SP_LOG(SP_LOG_ERROR,
           "unordered uses of a storage of %llu bytes: %s (%s, stream %d of %s, thread %llu, "
           "called from %p) and %s (%s, stream %d of %s, thread %llu, called from %p)",
           (unsigned long long)report->storage_bytes, a->op,
           (a->access & SP_WRITE) != 0 ? "write" : "read", (int)a->stream, a->device,
           (unsigned long long)a->thread, a->call_site, b->op,
           (b->access & SP_WRITE) != 0 ? "write" : "read", (int)b->stream, b->device,
           (unsigned long long)b->thread, b->call_site);
}

void sp__check_used(sp_check_history **place, uint64_t bytes, sp_point point,
                    const sp_check_use *use, sp_check_batch *batch)
{
    if (*place == NULL) *place = sp_calloc(1, sizeof **place);
    sp_check_history *history = *place;
    if (history == NULL) return;
    const past_use *unordered[MAX_READS + 1];
    sp_mutex_lock(&checker.lock);
    const uint32_t clock = point.timeline != NULL ? clock_of_locked(point.timeline) : NO_CLOCK;
    const uint32_t count = find_unordered_locked(history, clock, use->access, unordered);
    for (uint32_t i = 0; i < count && batch->count < SP_CHECK_BATCH; i++) {
        batch->reports[batch->count++] = (sp_check_report){bytes, unordered[i]->use, *use};
    }
    remember(history, &(past_use){clock, point.value, *use});
    sp_mutex_unlock(&checker.lock);
    sp_fetch_add_relaxed(&checker.report_count, (uint64_t)count);
}

void sp__check_emit(const sp_check_batch *batch)
{
    sp_mutex_lock(&checker.lock);
    const sp_check_function callback = checker.callback;
    void *ctx = checker.ctx;
    sp_mutex_unlock(&checker.lock);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (callback != NULL) {
            callback(ctx, &batch->reports[i]);
        } else {
            log_report(&batch->reports[i]);
        }
    }
}

void sp__check_forget(sp_check_history **history)
{
    sp_free(*history);
    *history = NULL;
}

/* ---- life ---- */

void sp__check_start(void)
{
    if (!sp_option_bool(SP_OPTION_CHECK)) return;
    sp__point_set_observer(observe);
    sp_store_relaxed(&sp__check_enabled, 1);
}

void sp__check_reset(void)
{
    sp_store_relaxed(&sp__check_enabled, 0);
    sp__point_set_observer(NULL);
    sp_mutex_lock(&checker.lock);
    for (uint32_t i = 0; i < checker.clock_count; i++) {
        sp_free(checker.clocks[i].snapshots);
        checker.clocks[i] = (stream_clock){0};
    }
    checker.clock_count = 0;
    checker.host = (clock_vector){{0}};
    checker.callback = NULL;
    sp_mutex_unlock(&checker.lock);
    sp_store_relaxed(&checker.report_count, 0);
}

void sp_check_set_callback(sp_check_function fn, void *ctx)
{
    if (sp_fork_is_child()) return; /* the lock may be held by a thread that is not there */
    sp_mutex_lock(&checker.lock);
    checker.callback = fn;
    checker.ctx = ctx;
    sp_mutex_unlock(&checker.lock);
}

bool sp_check_is_on(void)
{
    return sp__check_is_on();
}

uint64_t sp_check_report_count(void)
{
    return sp_load_relaxed(&checker.report_count);
}
