/* SPDX-License-Identifier: Apache-2.0 */
/* The uses of each storage since its last write, compared by vector clocks. A debugging aid: where
 * it has forgotten a use, or lacks memory, it treats uses as ordered, and counts that. */
#include "runtime/checker.h"

#include <stdio.h>
#include "base/callback.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/heap.h"
#include "base/lock_check.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "device/wait.h"
#include "runtime/checker_clock.h"

/* Most reads since the last write that are kept, one per stream. */
#define MAX_READS 64

typedef struct past_use {
    uint32_t clock; /* SP_NO_CLOCK: treated as ordered before everything */
    uint64_t value;
    sp_check_use use;
} past_use;

struct sp_check_history {
    sp_clock_vector met; /* what the threads that used the storage so far had seen: sp__check_met */
    bool has_write;
    past_use write;
    uint32_t read_count;
    past_use reads[MAX_READS];
};

sp_atomic_u32 sp__check_enabled; /* process-wide: an option */

static struct {
    sp_mutex lock;
    sp_check_clocks clocks SP_GUARDED_BY(lock);
    sp_check_function callback SP_GUARDED_BY(lock);
    void *ctx SP_GUARDED_BY(lock);
    sp_callback_calls calls SP_GUARDED_BY(lock);
    sp_cond call_ended; /* an entry left `calls` */
    sp_atomic_u64 report_count;
    sp_atomic_u64 missed_count;
    sp_atomic_u32 has_told_misses;
} checker = {.lock = SP_MUTEX_INIT(SP_LOCK_CHECKER)}; /* process-wide: hazards cross devices */

/* All accesses to the clocks go through this, for the lock analysis. */
static sp_check_clocks *clocks_locked(void) SP_REQUIRES(&checker.lock)
{
    return &checker.clocks;
}

/* Counts a use that was treated as ordered for lack of space. */
static void note_miss(void)
{
    sp_fetch_add_relaxed(&checker.missed_count, (uint64_t)1);
}

/* ---- threads ---- */

static void end_thread(void *value)
{
    sp_thread_clock *clock = value;
    if (sp_fork_is_child()) return; /* the lock may be held by a thread of the parent */
    sp_mutex_lock(&checker.lock);
    sp__clock_thread_end(clocks_locked(), clock);
    sp_mutex_unlock(&checker.lock);
    sp_free(clock);
}

static SP_NOINLINE sp_thread_clock *new_thread_clock(void)
{
    sp_thread_clock *clock = sp_calloc(1, sizeof *clock);
    if (clock == NULL) return NULL;
    if (!sp_tls_set(SP_TLS_CHECK, clock, end_thread)) {
        sp_free(clock);
        return NULL;
    }
    sp_mutex_lock(&checker.lock);
    sp__clock_thread_begin(clocks_locked(), clock);
    sp_mutex_unlock(&checker.lock);
    return clock;
}

/* The calling thread's clock; NULL without memory. */
static sp_thread_clock *own_clock(void)
{
    sp_thread_clock *clock = sp_tls_get(SP_TLS_CHECK);
    return SP_LIKELY(clock != NULL) ? clock : new_thread_clock();
}

/* ---- what orders uses ---- */

void sp__check_submitted(sp_point point, const sp_point *waits, uint32_t wait_count)
{
    const sp_thread_clock *own = own_clock();
    sp_mutex_lock(&checker.lock);
    sp__clock_submitted(clocks_locked(), own, point, waits, wait_count);
    sp_mutex_unlock(&checker.lock);
}

/* The thread has seen that the point has passed. */
static void point_observe(sp_point point)
{
    if (point.timeline == NULL) return;
    sp_thread_clock *own = own_clock();
    sp_clock_vector seen = {{0}};
    sp_mutex_lock(&checker.lock);
    sp__clock_join_point(clocks_locked(), &seen, point);
    sp__clock_see(clocks_locked(), own, &seen);
    sp_mutex_unlock(&checker.lock);
}

void sp__check_host_begins(sp_point point)
{
    sp_thread_clock *own = own_clock();
    sp_clock_vector seen = {{0}};
    sp_mutex_lock(&checker.lock);
    sp__clock_join_point(clocks_locked(), &seen, point);
    const uint32_t index = sp__clock_of(clocks_locked(), point.timeline);
    if (index != SP_NO_CLOCK) seen.values[index] = point.value - 1; /* it runs inside this one */
    sp__clock_see(clocks_locked(), own, &seen);
    sp_mutex_unlock(&checker.lock);
}

void sp__check_host_ends(sp_point point)
{
    const sp_thread_clock *own = own_clock();
    sp_mutex_lock(&checker.lock);
    sp__clock_returned(clocks_locked(), own, point);
    sp_mutex_unlock(&checker.lock);
}

/* Created with the first use. */
static sp_check_history *history_at(sp_check_history **place)
{
    if (*place == NULL) *place = sp_calloc(1, sizeof **place);
    return *place;
}

void sp__check_met(sp_check_history **place)
{
    sp_check_history *history = history_at(place);
    if (history == NULL) return; /* without a history, nothing is found unordered either */
    sp_thread_clock *own = own_clock();
    sp_clock_vector seen;
    sp_mutex_lock(&checker.lock);
    sp__clock_see(clocks_locked(), own, &history->met);
    sp__clock_of_thread(clocks_locked(), own, &seen);
    sp__clock_join(&history->met, &seen);
    sp_mutex_unlock(&checker.lock);
}

void sp_check_happens_before(const void *token)
{
    if (!sp__check_is_on() || sp_fork_is_child()) return;
    const sp_thread_clock *own = own_clock();
    sp_clock_vector seen;
    sp_clock_vector *shared;
    sp_mutex_lock(&checker.lock);
    sp__clock_of_thread(clocks_locked(), own, &seen);
    if (!sp__clock_of_token(clocks_locked(), token, &shared)) note_miss();
    sp__clock_join(shared, &seen);
    sp_mutex_unlock(&checker.lock);
}

void sp__check_forget_token(const void *token)
{
    sp_mutex_lock(&checker.lock);
    sp__clock_forget_token(clocks_locked(), token);
    sp_mutex_unlock(&checker.lock);
}

void sp_check_happens_after(const void *token)
{
    if (!sp__check_is_on() || sp_fork_is_child()) return;
    sp_thread_clock *own = own_clock();
    sp_clock_vector *shared;
    sp_mutex_lock(&checker.lock);
    if (!sp__clock_of_token(clocks_locked(), token, &shared)) note_miss();
    sp__clock_see(clocks_locked(), own, shared);
    sp_mutex_unlock(&checker.lock);
}

/* ---- uses ---- */

/* A use under `clock` (SP_NO_CLOCK: of a timeline without one), which is ordered after `after`
 * (NULL: after everything). */
typedef struct new_use {
    uint32_t clock;
    const sp_clock_vector *after;
    sp_access access;
} new_use;

static bool is_ordered(const past_use *earlier, const new_use *use)
{
    if (use->after == NULL || earlier->clock == SP_NO_CLOCK || earlier->clock == use->clock) {
        return true;
    }
    return use->after->values[earlier->clock] >= earlier->value;
}

/* Conflicting uses that are not ordered before the new one. */
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

static void history_add(sp_check_history *history, const past_use *use)
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
    if (history->read_count < MAX_READS) {
        history->reads[history->read_count++] = *use;
    } else {
        note_miss();
    }
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
    sp_check_history *history = history_at(place);
    if (history == NULL) note_miss();
    if (history == NULL) return;
    sp_mutex_lock(&checker.lock);
    const uint32_t clock = sp__clock_of(clocks_locked(), point.timeline);
    const bool has_clock = clock != SP_NO_CLOCK;
    if (!has_clock) note_miss();
    const sp_clock_vector *after = has_clock ? &clocks_locked()->streams[clock].now : NULL;
    report_unordered(history, bytes, &(new_use){clock, after, use->access}, use, batch);
    history_add(history, &(past_use){clock, point.value, *use});
    sp_mutex_unlock(&checker.lock);
}

void sp__check_accessed(sp_check_history **place, uint64_t bytes, sp_point ticket,
                        const sp_wait_set *behind, const sp_check_use *use, sp_check_batch *batch)
{
    sp_check_history *history = history_at(place);
    const sp_thread_clock *own = own_clock();
    if (history == NULL) note_miss();
    if (history == NULL) return;
    sp_clock_vector after;
    sp_mutex_lock(&checker.lock);
    sp__clock_of_thread(clocks_locked(), own, &after);
    for (uint32_t i = 0; i < behind->count; i++) {
        sp__clock_join_point(clocks_locked(), &after, behind->points[i]);
    }
    const uint32_t clock = sp__clock_of_ticket(clocks_locked(), ticket, &after);
    if (ticket.timeline != NULL && clock == SP_NO_CLOCK) note_miss();
    report_unordered(history, bytes, &(new_use){clock, &after, use->access}, use, batch);
    history_add(history, &(past_use){clock, ticket.value, *use});
    sp_mutex_unlock(&checker.lock);
}

/* One batch being reported; on the stack of the reporting thread. */
typedef struct emission {
    sp_check_batch *batch;
    sp_check_function callback;
    void *ctx;
    sp_callback_call entry;
} emission;

static void call_callback(void *arg)
{
    const emission *self = arg;
    for (uint32_t i = 0; i < self->batch->count; i++) {
        sp_lock_check_none("the checker's callback");
        self->callback(self->ctx, &self->batch->reports[i]);
    }
}

static void log_batch(void *arg)
{
    const emission *self = arg;
    for (uint32_t i = 0; i < self->batch->count; i++) log_report(&self->batch->reports[i]);
}

static void end_emission(const emission *self)
{
    sp_free(self->batch);
    if (self->callback == NULL) return;
    sp_mutex_lock(&checker.lock);
    sp_callback_leave(&checker.calls, &self->entry);
    sp_cond_broadcast(&checker.call_ended);
    sp_mutex_unlock(&checker.lock);
}

/* The callback has ended its thread: the remaining reports are dropped. */
static bool thread_ended(void *arg)
{
    end_emission(arg);
    sp__error_abandon_scopes();
    return false;
}

/* Frees the batch. */
static void batch_emit(sp_check_batch *batch)
{
    emission self = {.batch = batch};
    sp_mutex_lock(&checker.lock);
    self.callback = checker.callback;
    self.ctx = checker.ctx;
    if (self.callback != NULL) {
        sp_callback_enter(&checker.calls, &self.entry, sp_thread_number());
    }
    sp_mutex_unlock(&checker.lock);
    sp_error_scope scope; /* errors of the callback do not belong to this call */
    sp__error_set_aside(&scope);
    sp_thread_guard(self.callback != NULL ? call_callback : log_batch, thread_ended, &self);
    sp__error_put_back(&scope);
    end_emission(&self);
}

/* Once: later misses are only counted. */
static void log_misses(void)
{
    if (SP_LIKELY(sp_load_relaxed(&checker.missed_count) == 0)) return;
    if (sp_exchange_relaxed(&checker.has_told_misses, 1) != 0) return;
    SP_LOG(SP_LOG_WARN,
           "the hazard checker is beyond its limits (%u streams and host accesses, %u streams that "
           "read one storage, %u tokens, or memory): it treats what it cannot tell apart as "
           "ordered; sp_check_missed_count counts it",
           (unsigned)SP_CHECK_CLOCKS, (unsigned)MAX_READS, (unsigned)SP_CHECK_TOKENS);
}

void sp__check_emit(sp_check_batch *batch)
{
    log_misses();
    if (batch == NULL) return;
    if (batch->count > 0) {
        batch_emit(batch);
    } else {
        sp_free(batch);
    }
}

void sp__check_forget(sp_check_history **history)
{
    sp_free(*history);
    *history = NULL;
}

/* ---- start and reset ---- */

void sp__check_start(void)
{
    if (!sp_option_bool(SP_OPTION_CHECK)) return;
    sp__point_set_observer(point_observe);
    sp_store_relaxed(&sp__check_enabled, 1);
}

void sp__check_reset(void)
{
    const bool was_on = sp__check_is_on();
    sp_store_relaxed(&sp__check_enabled, 0);
    sp__point_set_observer(NULL);
    sp_mutex_lock(&checker.lock);
    if (was_on) sp__clocks_reset(clocks_locked()); /* otherwise it is all zero, and large */
    checker.callback = NULL;
    sp_mutex_unlock(&checker.lock);
    sp_store_relaxed(&checker.report_count, 0);
    sp_store_relaxed(&checker.missed_count, 0);
    sp_store_relaxed(&checker.has_told_misses, 0);
}

void sp_check_set_callback(sp_check_function fn, void *ctx)
{
    if (sp_fork_is_child()) return; /* the lock may be held by a thread of the parent */
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

uint64_t sp_check_missed_count(void)
{
    return sp_load_relaxed(&checker.missed_count);
}
