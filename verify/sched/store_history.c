/* SPDX-License-Identifier: Apache-2.0 */
/* Level weak: the modification order of each atomic, and which of its stores a load may return.
 *
 * A thread has seen a store if the store, or a load of it, happened before. Coherence: a load
 * returns the newest store its thread has seen or a later one. A store goes behind the newest one
 * seen, but not between a read-modify-write and the store it read. seq_cst operations take effect
 * in the order of steps: they return or follow the last store that a seq_cst operation touched. */
#include <string.h>

#include "atomics.h"

/* How often one thread may load the same store although a newer one exists: stores become visible
 * in finite time (C17 7.17.3 p16), and spinning loops would not end otherwise. */
#define STALE_READS_MAX 3

static bool has_seen(const sp_sched_thread *self, const sp_store *store)
{
    if (store->epoch <= self->clock.at[store->writer]) return true;
    for (uint32_t i = 0; i < sp__engine.thread_count; i++) {
        if (store->reads.at[i] != 0 && store->reads.at[i] <= self->clock.at[i]) return true;
    }
    return false;
}

/* The first store is what memory holds: written plainly, or before the run. */
static void begin(sp_sched_thread *self, sp_loc *loc, uint64_t value, bool is_known)
{
    const sp_cell *cell = sp__shadow_cell_of(loc);
    sp_store *store = &loc->history[0];
    memset(store, 0, sizeof *store);
    store->value = value;
    store->writer = is_known ? cell->writer : self->id;
    store->epoch = is_known ? cell->write_epoch : self->clock.at[self->id];
    loc->store_count = 1;
}

/* Notices plain stores since the last atomic operation, also those of code without hooks. */
static void refresh(sp_sched_thread *self, sp_loc *loc)
{
    const uint64_t value = sp__memory_read(loc->addr, loc->size);
    if (loc->store_count == 0) {
        begin(self, loc, value, true);
    } else if (loc->history[loc->store_count - 1].value != value) {
        begin(self, loc, value, false);
    }
}

/* Index of the oldest store that an operation of this order may return. */
static uint32_t floor_of(const sp_sched_thread *self, const sp_loc *loc, int order)
{
    uint32_t i = loc->store_count - 1;
    while (i > 0 && !has_seen(self, &loc->history[i]) &&
           !(order == __ATOMIC_SEQ_CST && loc->history[i].is_seq_cst)) {
        i--;
    }
    return i;
}

static const sp_store *read_store(sp_sched_thread *self, sp_store *store, int order)
{
    if (store->reads.at[self->id] == 0) store->reads.at[self->id] = self->clock.at[self->id];
    if (order == __ATOMIC_SEQ_CST) store->is_seq_cst = true;
    return store;
}

/* A stale value was returned: the thread may see something new without anybody's doing, so a spin
 * hint must not keep it waiting for a change. */
static void note_stale(sp_sched_thread *self, sp_store *store)
{
    store->stale_reads[self->id]++;
    self->seen[0].has_news = true;
}

const sp_store *sp__history_load(sp_sched_thread *self, sp_loc *loc, int order)
{
    refresh(self, loc);
    const uint32_t newest = loc->store_count - 1;
    uint32_t candidates[SP_HISTORY_STORES];
    uint32_t count = 0;
    candidates[count++] = newest; /* outcome 0 */
    const uint32_t floor = floor_of(self, loc, order);
    for (uint32_t i = newest; i-- > floor;) {
        if (loc->history[i].stale_reads[self->id] < STALE_READS_MAX) candidates[count++] = i;
    }
    const uint32_t chosen = count > 1 ? candidates[sp__engine_choose(count)] : newest;
    if (chosen != newest) note_stale(self, &loc->history[chosen]);
    return read_store(self, &loc->history[chosen], order);
}

const sp_store *sp__history_newest(sp_sched_thread *self, sp_loc *loc, int order)
{
    refresh(self, loc);
    return read_store(self, &loc->history[loc->store_count - 1], order);
}

const sp_store *sp__history_stale_failure(sp_sched_thread *self, sp_loc *loc, uint64_t expected,
                                          int order)
{
    refresh(self, loc);
    uint32_t candidates[SP_HISTORY_STORES];
    uint32_t count = 1; /* outcome 0: the newest */
    const uint32_t floor = floor_of(self, loc, order);
    for (uint32_t i = loc->store_count - 1; i-- > floor;) {
        const sp_store *store = &loc->history[i];
        if (store->value == expected) continue;
        if (store->stale_reads[self->id] < STALE_READS_MAX) candidates[count++] = i;
    }
    const uint32_t outcome = count > 1 ? sp__engine_choose(count) : 0;
    if (outcome == 0) return NULL;
    sp_store *stale = &loc->history[candidates[outcome]];
    note_stale(self, stale);
    return read_store(self, stale, order);
}

/* The positions at which a store may enter the modification order; [0] is the newest end. */
static uint32_t positions_for(const sp_sched_thread *self, const sp_loc *loc, int order,
                              uint32_t *positions)
{
    uint32_t count = 0;
    const uint32_t floor = floor_of(self, loc, order);
    for (uint32_t i = loc->store_count; i > floor; i--) {
        if (i < loc->store_count && loc->history[i].is_rmw) continue;
        positions[count++] = i;
    }
    return count;
}

/* Forgets the oldest store: no load returns it any more. */
static void forget_oldest(sp_loc *loc)
{
    loc->store_count--;
    memmove(&loc->history[0], &loc->history[1], loc->store_count * sizeof loc->history[0]);
}

bool sp__history_store(sp_sched_thread *self, sp_loc *loc, uint64_t value, int order, bool is_rmw,
                       const sp_vclock *sync)
{
    const sp_vclock published = *sync; /* may lie in the history that moves below */
    refresh(self, loc);
    if (loc->store_count == SP_HISTORY_STORES) forget_oldest(loc);
    uint32_t position = loc->store_count;
    if (!is_rmw) {
        uint32_t positions[SP_HISTORY_STORES];
        const uint32_t count = positions_for(self, loc, order, positions);
        if (count > 1) position = positions[sp__engine_choose(count)];
    }
    sp_store *store = &loc->history[position];
    memmove(store + 1, store, (loc->store_count - position) * sizeof *store);
    memset(store, 0, sizeof *store);
    store->value = value;
    store->writer = self->id;
    store->epoch = self->clock.at[self->id];
    store->is_rmw = is_rmw;
    store->is_seq_cst = order == __ATOMIC_SEQ_CST;
    store->sync = published;
    loc->store_count++;
    return position == loc->store_count - 1;
}
