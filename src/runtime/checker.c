/* SPDX-License-Identifier: Apache-2.0 */
/* Vector clocks over timelines, and the uses of each storage since its last write. A debugging aid:
 * where it forgets, or has no memory, it takes uses as ordered: it reports less, never more. */
#include "runtime/checker.h"

#include <stdio.h>
#include <string.h>

#include "base/callback.h"
#include "base/fork.h"
#include "base/heap.h"
#include "base/lock_check.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "device/wait.h"

/* Timelines that are told apart; what others do counts as ordered. */
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
    bool has_lost; /* a snapshot older than those that are there, or than all */
} stream_clock;

typedef struct past_use {
    uint32_t clock; /* NO_CLOCK: ordered before everything, as far as we know */
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
    sp_callback_calls calls SP_GUARDED_BY(lock);
    sp_cond call_ended; /* an entry left `calls` */
    sp_atomic_u64 report_count;
} checker = {.lock = SP_MUTEX_INIT(SP_LOCK_CHECKER)}; /* process-wide: hazards cross devices */

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
    if (!clock->has_lost) return NULL;
    /* Clocks only grow: the next one that is known holds all that the lost one did. */
    return clock->count > 0 ? &clock->snapshots[clock->first].vector : &clock->now;
}

/* Of a timeline without a clock: everything so far. */
static bool join_all_locked(clock_vector *into) SP_REQUIRES(&checker.lock)
{
    bool is_changed = false;
    for (uint32_t i = 0; i < checker.clock_count; i++) {
        if (join_value(into, i, checker.clocks[i].now.values[i])) is_changed = true;
    }
    return is_changed;
}

/* Everything that the point comes after, and itself. */
static bool join_point_locked(clock_vector *into, sp_point point) SP_REQUIRES(&checker.lock)
{
    if (point.timeline == NULL) return false;
    const uint32_t index = clock_of_locked(point.timeline);
    if (index == NO_CLOCK) return join_all_locked(into);
    bool is_changed = join_value(into, index, point.value);
    const clock_vector *past = vector_at(&checker.clocks[index], point.value);
    if (past != NULL && join(into, past)) is_changed = true;
    return is_changed;
}

static void take_snapshot(stream_clock *clock, uint64_t value)
{
    if (clock->snapshots == NULL) {
        clock->snapshots = sp_calloc(SNAPSHOTS, sizeof *clock->snapshots);
        if (clock->snapshots == NULL) {
            clock->has_lost = true;
            return;
        }
    }
    if (clock->count == SNAPSHOTS) {
        clock->has_lost = true;
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

/* A use under `clock` (NO_CLOCK: of a timeline that has none), which comes after `after` (NULL:
 * after everything). */
typedef struct new_use {
    uint32_t clock;
    const clock_vector *after;
    sp_access access;
} new_use;

static bool is_ordered(const past_use *earlier, const new_use *use)
{
    if (use->after == NULL || earlier->clock == NO_CLOCK || earlier->clock == use->clock) {
        return true;
    }
    return use->after->values[earlier->clock] >= earlier->value;
}

/* Conflicting uses that nothing orders before the new one. */
static uint32_t find_unordered(const sp_check_history *history, const new_use *use,
                               const past_use **out)
{
    uint32_t count = 0;
    if (history->has_write && !is_ordered(&history->write, use)) out[count++] = &history->write;
    for (uint32_t i = 0; i < history->read_count && (use->access & SP_WRITE) != 0; i++) {
        if (!is_ordered(&history->reads[i], use)) out[count++] = &history->reads[i];
    }
    return count;
}

/* Adds a report per conflicting use; without a batch they are only counted. */
static void report_unordered(const sp_check_history *history, uint64_t bytes, const new_use *use,
                             const sp_check_use *told, sp_check_batch *batch)
{
    const past_use *unordered[MAX_READS + 1];
    const uint32_t count = find_unordered(history, use, unordered);
    for (uint32_t i = 0; i < count && batch != NULL && batch->count < SP_CHECK_BATCH; i++) {
        batch->reports[batch->count++] = (sp_check_report){bytes, unordered[i]->use, *told};
    }
    sp_fetch_add_relaxed(&checker.report_count, (uint64_t)count);
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

/* Made with the first use. */
static sp_check_history *history_at(sp_check_history **place)
{
    if (*place == NULL) *place = sp_calloc(1, sizeof **place);
    return *place;
}

void sp__check_used(sp_check_history **place, uint64_t bytes, sp_point point,
                    const sp_check_use *use, sp_check_batch *batch)
{
    sp_check_history *history = history_at(place);
    if (history == NULL) return;
    sp_mutex_lock(&checker.lock);
    const uint32_t clock = clock_of_locked(point.timeline);
    const clock_vector *after = clock != NO_CLOCK ? &checker.clocks[clock].now : NULL;
    report_unordered(history, bytes, &(new_use){clock, after, use->access}, use, batch);
    remember(history, &(past_use){clock, point.value, *use});
    sp_mutex_unlock(&checker.lock);
}

/* The clock of an access's ticket, which comes after `after`; of older ones it is not known any
 * more what they came after. */
static uint32_t ticket_clock_locked(sp_point ticket, const clock_vector *after)
    SP_REQUIRES(&checker.lock)
{
    const uint32_t index = ticket.timeline != NULL ? clock_of_locked(ticket.timeline) : NO_CLOCK;
    if (index == NO_CLOCK) return NO_CLOCK;
    stream_clock *clock = &checker.clocks[index];
    clock->now = *after;
    clock->now.values[index] = ticket.value;
    clock->has_lost = true;
    return index;
}

void sp__check_accessed(sp_check_history **place, uint64_t bytes, sp_point ticket,
                        const sp_wait_set *behind, const sp_check_use *use, sp_check_batch *batch)
{
    sp_check_history *history = history_at(place);
    if (history == NULL) return;
    sp_mutex_lock(&checker.lock);
    clock_vector after = checker.host;
    for (uint32_t i = 0; i < behind->count; i++) join_point_locked(&after, behind->points[i]);
    const uint32_t clock = ticket_clock_locked(ticket, &after);
    report_unordered(history, bytes, &(new_use){clock, &after, use->access}, use, batch);
    remember(history, &(past_use){clock, ticket.value, *use});
    sp_mutex_unlock(&checker.lock);
}

static void emit(const sp_check_batch *batch)
{
    sp_callback_call call;
    sp_mutex_lock(&checker.lock);
    const sp_check_function callback = checker.callback;
    void *ctx = checker.ctx;
    if (callback != NULL) sp_callback_enter(&checker.calls, &call, sp_thread_number());
    sp_mutex_unlock(&checker.lock);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (callback != NULL) {
            sp_lock_check_none("the checker's callback");
            callback(ctx, &batch->reports[i]);
        } else {
            log_report(&batch->reports[i]);
        }
    }
    if (callback == NULL) return;
    sp_mutex_lock(&checker.lock);
    sp_callback_leave(&checker.calls, &call);
    sp_cond_broadcast(&checker.call_ended);
    sp_mutex_unlock(&checker.lock);
}

void sp__check_emit(sp_check_batch *batch)
{
    if (batch == NULL) return;
    if (batch->count > 0) emit(batch);
    sp_free(batch);
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
    const uint64_t generation = ++checker.calls.generation;
    const uint64_t thread = sp_thread_number();
    while (sp_callback_must_wait(&checker.calls, generation, thread)) {
        sp_cond_wait(&checker.call_ended, &checker.lock);
    }
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
