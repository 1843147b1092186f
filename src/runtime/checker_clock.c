/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checker_clock.h"

#include <string.h>

#include "base/heap.h"

/* Kept changes of a stream's clock; a point older than these has the oldest as its clock. */
#define SNAPSHOTS 256

/* What the submissions from `value` on are ordered after, until the next snapshot. */
struct sp_clock_snapshot {
    uint64_t value;
    sp_clock_vector vector;
};

/* ---- vectors ---- */

bool sp__clock_join(sp_clock_vector *into, const sp_clock_vector *from)
{
    bool is_changed = false;
    for (uint32_t i = 0; i < SP_CHECK_CLOCKS; i++) {
        if (from->values[i] <= into->values[i]) continue;
        into->values[i] = from->values[i];
        is_changed = true;
    }
    return is_changed;
}

static bool join_value(sp_clock_vector *into, uint32_t clock, uint64_t value)
{
    if (into->values[clock] >= value) return false;
    into->values[clock] = value;
    return true;
}

/* ---- streams ---- */

uint32_t sp__clock_of(sp_check_clocks *clocks, const sp_timeline *timeline)
{
    for (uint32_t i = 0; i < clocks->count; i++) {
        if (clocks->streams[i].timeline == timeline) return i;
    }
    if (clocks->count == SP_CHECK_CLOCKS) return SP_NO_CLOCK;
    clocks->streams[clocks->count].timeline = timeline;
    return clocks->count++;
}

static sp_clock_snapshot *snapshot_at(const sp_stream_clock *clock, uint32_t index)
{
    return &clock->snapshots[(clock->first + index) % SNAPSHOTS];
}

/* Number of snapshots that are not newer than `value`. */
static uint32_t snapshots_up_to(const sp_stream_clock *clock, uint64_t value)
{
    uint32_t count = clock->count;
    while (count > 0 && snapshot_at(clock, count - 1)->value > value) count--;
    return count;
}

/* What the submission `value` of the stream is ordered after; NULL: itself only. */
static const sp_clock_vector *vector_at(const sp_stream_clock *clock, uint64_t value)
{
    const uint32_t known = snapshots_up_to(clock, value);
    if (known > 0) return &snapshot_at(clock, known - 1)->vector;
    if (!clock->has_lost) return NULL;
    /* Clocks only grow: the oldest kept one includes the missing one. */
    return clock->count > 0 ? &snapshot_at(clock, 0)->vector : &clock->now;
}

/* For a timeline without a clock: everything so far. */
static bool join_everything(const sp_check_clocks *clocks, sp_clock_vector *into)
{
    bool is_changed = false;
    for (uint32_t i = 0; i < clocks->count; i++) {
        if (join_value(into, i, clocks->streams[i].now.values[i])) is_changed = true;
    }
    return is_changed;
}

bool sp__clock_join_point(sp_check_clocks *clocks, sp_clock_vector *into, sp_point point)
{
    if (point.timeline == NULL) return false;
    const uint32_t index = sp__clock_of(clocks, point.timeline);
    if (index == SP_NO_CLOCK) return join_everything(clocks, into);
    bool is_changed = join_value(into, index, point.value);
    const sp_clock_vector *past = vector_at(&clocks->streams[index], point.value);
    if (past != NULL && sp__clock_join(into, past)) is_changed = true;
    return is_changed;
}

static bool make_snapshots(sp_stream_clock *clock)
{
    if (clock->snapshots == NULL) {
        clock->snapshots = sp_calloc(SNAPSHOTS, sizeof *clock->snapshots);
    }
    if (clock->snapshots == NULL) clock->has_lost = true;
    return clock->snapshots != NULL;
}

static void take_snapshot(sp_stream_clock *clock, uint64_t value)
{
    if (!make_snapshots(clock)) return;
    if (clock->count == SNAPSHOTS) {
        clock->has_lost = true;
        clock->first = (clock->first + 1) % SNAPSHOTS;
        clock->count--;
    }
    sp_clock_snapshot *snapshot = snapshot_at(clock, clock->count);
    clock->count++;
    snapshot->value = value;
    snapshot->vector = clock->now;
}

/* Before all others; if there is no room, the older past counts as missing. */
static void take_first_snapshot(sp_stream_clock *clock, uint32_t index, uint64_t value,
                                const sp_clock_vector *vector)
{
    if (!make_snapshots(clock)) return;
    if (clock->count == SNAPSHOTS) {
        clock->has_lost = true;
        return;
    }
    clock->first = (clock->first + SNAPSHOTS - 1) % SNAPSHOTS;
    clock->count++;
    sp_clock_snapshot *snapshot = snapshot_at(clock, 0);
    snapshot->value = value;
    snapshot->vector = *vector;
    snapshot->vector.values[index] = value;
}

void sp__clock_submitted(sp_check_clocks *clocks, const sp_thread_clock *thread, sp_point point,
                         const sp_point *waits, uint32_t wait_count)
{
    const uint32_t index = sp__clock_of(clocks, point.timeline);
    if (index == SP_NO_CLOCK) return;
    sp_stream_clock *clock = &clocks->streams[index];
    sp_clock_vector seen;
    sp__clock_of_thread(clocks, thread, &seen);
    bool is_changed = sp__clock_join(&clock->now, &seen);
    for (uint32_t i = 0; i < wait_count; i++) {
        if (sp__clock_join_point(clocks, &clock->now, waits[i])) is_changed = true;
    }
    clock->now.values[index] = point.value;
    if (is_changed) take_snapshot(clock, point.value);
}

void sp__clock_returned(sp_check_clocks *clocks, const sp_thread_clock *thread, sp_point point)
{
    const uint32_t index = sp__clock_of(clocks, point.timeline);
    if (index == SP_NO_CLOCK) return;
    sp_stream_clock *clock = &clocks->streams[index];
    sp_clock_vector seen;
    sp__clock_of_thread(clocks, thread, &seen);
    const uint32_t known = snapshots_up_to(clock, point.value);
    /* Earlier points may share the snapshot: they then count as ordered after slightly more. */
    for (uint32_t i = known > 0 ? known - 1 : 0; i < clock->count; i++) {
        sp__clock_join(&snapshot_at(clock, i)->vector, &seen);
    }
    sp__clock_join(&clock->now, &seen);
    if (known == 0 && !clock->has_lost) take_first_snapshot(clock, index, point.value, &seen);
}

uint32_t sp__clock_of_ticket(sp_check_clocks *clocks, sp_point ticket, const sp_clock_vector *after)
{
    const uint32_t index =
        ticket.timeline != NULL ? sp__clock_of(clocks, ticket.timeline) : SP_NO_CLOCK;
    if (index == SP_NO_CLOCK) return SP_NO_CLOCK;
    sp_stream_clock *clock = &clocks->streams[index];
    clock->now = *after;
    clock->now.values[index] = ticket.value;
    clock->has_lost = true; /* what older accesses were ordered after is no longer known */
    return index;
}

/* ---- threads ---- */

void sp__clock_thread_begin(sp_check_clocks *clocks, sp_thread_clock *thread)
{
    thread->seen = clocks->all;
    thread->next = clocks->threads;
    clocks->threads = thread;
}

void sp__clock_thread_end(sp_check_clocks *clocks, sp_thread_clock *thread)
{
    sp_thread_clock **place = &clocks->threads;
    while (*place != thread) place = &(*place)->next;
    *place = thread->next;
    sp__clock_join(&clocks->ended, &thread->seen);
}

void sp__clock_of_thread(const sp_check_clocks *clocks, const sp_thread_clock *thread,
                         sp_clock_vector *out)
{
    *out = thread != NULL ? thread->seen : clocks->rest.seen;
    sp__clock_join(out, &clocks->ended);
    if (SP_PLANTED(one_host_clock)) sp__clock_join(out, &clocks->all);
}

void sp__clock_see(sp_check_clocks *clocks, sp_thread_clock *thread, const sp_clock_vector *seen)
{
    sp__clock_join(thread != NULL ? &thread->seen : &clocks->rest.seen, seen);
    sp__clock_join(&clocks->all, seen);
}

/* ---- tokens ---- */

static sp_check_token **list_of(sp_check_clocks *clocks, const void *address)
{
    return &clocks->tokens[(uintptr_t)address / SP_CACHE_LINE % SP_CHECK_TOKEN_LISTS];
}

void sp__clock_forget_token(sp_check_clocks *clocks, const void *address)
{
    sp_check_token **place = list_of(clocks, address);
    while (*place != NULL && (*place)->address != address) place = &(*place)->next;
    if (*place == NULL) return;
    sp_check_token *token = *place;
    *place = token->next;
    clocks->token_count--;
    sp_free(token);
}

bool sp__clock_of_token(sp_check_clocks *clocks, const void *address, sp_clock_vector **out)
{
    sp_check_token **list = list_of(clocks, address);
    sp_check_token *token = *list;
    while (token != NULL && token->address != address) token = token->next;
    if (token == NULL && clocks->token_count < SP_CHECK_TOKENS) {
        token = sp_calloc(1, sizeof *token);
        if (token != NULL) {
            token->address = address;
            token->next = *list;
            *list = token;
            clocks->token_count++;
        }
    }
    *out = token != NULL ? &token->seen : &clocks->other_tokens;
    return token != NULL;
}

/* ---- reset ---- */

void sp__clocks_reset(sp_check_clocks *clocks)
{
    sp_thread_clock *threads = clocks->threads;
    for (uint32_t i = 0; i < clocks->count; i++) sp_free(clocks->streams[i].snapshots);
    for (uint32_t i = 0; i < SP_CHECK_TOKEN_LISTS; i++) {
        while (clocks->tokens[i] != NULL) {
            sp_check_token *token = clocks->tokens[i];
            clocks->tokens[i] = token->next;
            sp_free(token);
        }
    }
    memset(clocks, 0, sizeof *clocks);
    clocks->threads = threads;
    for (; threads != NULL; threads = threads->next) threads->seen = (sp_clock_vector){{0}};
}
