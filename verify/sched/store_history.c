/* SPDX-License-Identifier: Apache-2.0 */
/* Level weak: the modification order of each atomic, and the stores that a load may return.
 *
 * A store is visible to a thread if the store, or a load of it, happened before. Coherence: a load
 * returns the newest visible store or a later one. A store is inserted after the newest visible
 * store, but not between a read-modify-write and the store it read. A read-modify-write reads any
 * store that a load may return and that no other read-modify-write has read, and is inserted
 * directly after it. seq_cst operations take effect in the order of steps: they return or follow
 * the last seq_cst store.
 *
 * DPOR chooses among these only if necessary. If the last executed store may as well have come
 * after this operation (they race), then that order is explored too: there the operation may read
 * all earlier stores, and may precede it in the modification order. So in this order the operation
 * follows that store. The remaining choices are values that are stale although the thread's past
 * depends on newer ones. */
#include <string.h>

#include "atomics.h"
#include "deps.h"

/* The maximum number of loads of one store by one thread although a newer one exists: stores become
 * visible in finite time (C17 7.17.3 p16), and spinning loops would not end otherwise. */
#define STALE_READS_MAX 3

static bool thread_has_seen(const sp_sched_thread *self, const sp_store *store)
{
    if (store->epoch <= self->clock.at[store->writer]) return true;
    for (uint32_t i = 0; i < sp__engine.thread_count; i++) {
        if (store->reads.at[i] != 0 && store->reads.at[i] <= self->clock.at[i]) return true;
    }
    return false;
}

/* Begins the history with the value in memory: written plainly, or before the run. */
static void history_begin(sp_sched_thread *self, sp_loc *loc, uint64_t value, bool is_known)
{
    const sp_cell *cell = sp__shadow_cell_of(loc);
    sp_store *store = &loc->history[0];
    memset(store, 0, sizeof *store);
    store->value = value;
    store->writer = is_known ? cell->writer : self->id;
    store->epoch = is_known ? cell->write_epoch : self->clock.at[self->id];
    store->serial = ++loc->last_serial;
    loc->store_count = 1;
}

/* Detects plain stores since the last atomic operation, including those of code without hooks. */
static void history_refresh(sp_sched_thread *self, sp_loc *loc)
{
    const uint64_t value = sp__memory_read(loc->addr, loc->size);
    if (loc->store_count == 0) {
        history_begin(self, loc, value, true);
    } else if (loc->history[loc->store_count - 1].value != value) {
        history_begin(self, loc, value, false);
    }
}

/* Index of the oldest store that an operation of this order may return. */
static uint32_t history_floor(const sp_sched_thread *self, const sp_loc *loc, int order)
{
    uint32_t i = loc->store_count - 1;
    while (i > 0 && !thread_has_seen(self, &loc->history[i]) &&
           !(order == __ATOMIC_SEQ_CST && loc->history[i].is_seq_cst)) {
        i--;
    }
    return i;
}

static void store_note_read(const sp_sched_thread *self, sp_store *store)
{
    if (store->reads.at[self->id] == 0) store->reads.at[self->id] = self->clock.at[self->id];
}

/* A stale value was returned: the thread may read a newer one without a change by another thread,
 * so a spin hint must not make it wait for a change. */
static void store_note_stale(sp_sched_thread *self, sp_store *store)
{
    store->stale_reads[self->id]++;
    self->seen[0].has_news = true;
}

#define NO_INDEX UINT32_MAX

/* The store that the operation must follow, see above; NO_INDEX: none. */
static uint32_t index_to_follow(const sp_sched_thread *self, const sp_loc *loc)
{
    if (!sp__engine.strategy->wants_every_step || sp__engine.options.keeps_equivalent_choices) {
        return NO_INDEX;
    }
    if (!sp__deps_races_with_write(self, loc->addr)) return NO_INDEX;
    for (uint32_t i = loc->store_count; i-- > 0;) {
        if (loc->history[i].serial == loc->last_serial) return i;
    }
    return NO_INDEX;
}

/* The stores that an operation may read, newest first: the newest is outcome 0. A search that
 * excludes some identifies an outcome by its place in the full list, as a replay does. */
typedef struct candidate_list {
    uint32_t index[SP_HISTORY_STORES];
    uint32_t count;
    uint32_t kept[SP_HISTORY_STORES]; /* places in `index` */
    uint32_t kept_count;
} candidate_list;

static void add_candidate(const sp_sched_thread *self, const sp_loc *loc, candidate_list *list,
                          uint32_t index, bool is_kept)
{
    const bool is_stale = index + 1 < loc->store_count;
    if (is_stale && loc->history[index].stale_reads[self->id] >= STALE_READS_MAX) return;
    if (is_kept) list->kept[list->kept_count++] = list->count;
    list->index[list->count++] = index;
}

/* Whether a read-modify-write has read this store. */
static bool store_is_taken(const sp_loc *loc, uint32_t index)
{
    return index + 1 < loc->store_count && loc->history[index + 1].is_rmw;
}

/* The search's choice of one candidate. */
static uint32_t choose_candidate(sp_sched_thread *self, sp_loc *loc, candidate_list *list)
{
    /* Empty: the store to follow is known to be older than a visible one. The other order explores
     * it. */
    if (list->kept_count == 0) list->kept[list->kept_count++] = 0;
    const uint32_t index = list->count > 1
                               ? list->index[sp__engine_choose_of(list->kept, list->kept_count)]
                               : loc->store_count - 1;
    if (index + 1 < loc->store_count) store_note_stale(self, &loc->history[index]);
    return index;
}

const sp_store *sp__history_load(sp_sched_thread *self, sp_loc *loc, int order)
{
    history_refresh(self, loc);
    candidate_list list = {.count = 0};
    const uint32_t floor = history_floor(self, loc, order);
    const uint32_t followed = index_to_follow(self, loc);
    for (uint32_t i = loc->store_count; i-- > floor;) {
        add_candidate(self, loc, &list, i, followed == NO_INDEX || followed == i);
    }
    sp_store *store = &loc->history[choose_candidate(self, loc, &list)];
    store_note_read(self, store);
    return store;
}

/* Removes the oldest store: no load returns it any more. */
static void history_drop_oldest(sp_loc *loc)
{
    loc->store_count--;
    memmove(&loc->history[0], &loc->history[1], loc->store_count * sizeof loc->history[0]);
}

/* Makes room for one store. Indices stay valid from here to its insertion. */
static void history_make_room(sp_loc *loc)
{
    if (loc->store_count == SP_HISTORY_STORES) history_drop_oldest(loc);
}

uint32_t sp__history_rmw(sp_sched_thread *self, sp_loc *loc, int order)
{
    history_refresh(self, loc);
    history_make_room(loc);
    candidate_list list = {.count = 0};
    const uint32_t floor = history_floor(self, loc, order);
    const uint32_t followed = index_to_follow(self, loc);
    for (uint32_t i = loc->store_count; i-- > floor;) {
        if (store_is_taken(loc, i)) continue;
        add_candidate(self, loc, &list, i, followed == NO_INDEX || i >= followed);
    }
    const uint32_t index = choose_candidate(self, loc, &list);
    store_note_read(self, &loc->history[index]);
    return index;
}

uint32_t sp__history_cas(sp_sched_thread *self, sp_loc *loc, uint64_t expected, int order,
                         int failure_order)
{
    history_refresh(self, loc);
    history_make_room(loc);
    candidate_list list = {.count = 0};
    const uint32_t success_floor = history_floor(self, loc, order);
    const uint32_t failure_floor = history_floor(self, loc, failure_order);
    const uint32_t followed = index_to_follow(self, loc);
    for (uint32_t i = loc->store_count; i-- > 0;) {
        const bool succeeds = loc->history[i].value == expected;
        if (i < (succeeds ? success_floor : failure_floor)) continue;
        if (succeeds && store_is_taken(loc, i)) continue;
        const bool is_kept = followed == NO_INDEX || (succeeds ? i >= followed : i == followed);
        add_candidate(self, loc, &list, i, is_kept);
    }
    const uint32_t index = choose_candidate(self, loc, &list);
    store_note_read(self, &loc->history[index]);
    return index;
}

/* The positions at which a store may enter the modification order; the newest end is outcome 0. */
static uint32_t choose_position(const sp_sched_thread *self, const sp_loc *loc, int order)
{
    candidate_list list = {.count = 0};
    const uint32_t floor = history_floor(self, loc, order);
    const uint32_t followed = index_to_follow(self, loc);
    for (uint32_t i = loc->store_count; i > floor; i--) {
        if (i < loc->store_count && loc->history[i].is_rmw) continue;
        if (followed == NO_INDEX || i > followed) list.kept[list.kept_count++] = list.count;
        list.index[list.count++] = i;
    }
    return list.count > 1 ? list.index[sp__engine_choose_of(list.kept, list.kept_count)]
                          : loc->store_count;
}

static bool history_insert(sp_sched_thread *self, sp_loc *loc, uint32_t position,
                           const sp_store *added)
{
    sp_store *store = &loc->history[position];
    memmove(store + 1, store, (loc->store_count - position) * sizeof *store);
    *store = *added;
    store->writer = self->id;
    store->epoch = self->clock.at[self->id];
    store->serial = ++loc->last_serial;
    loc->store_count++;
    return position == loc->store_count - 1;
}

bool sp__history_store(sp_sched_thread *self, sp_loc *loc, uint64_t value, int order,
                       const sp_vclock *sync)
{
    history_refresh(self, loc);
    history_make_room(loc);
    const uint32_t position = choose_position(self, loc, order);
    const sp_store added = {.value = value, .is_seq_cst = order == __ATOMIC_SEQ_CST, .sync = *sync};
    return history_insert(self, loc, position, &added);
}

bool sp__history_store_rmw(sp_sched_thread *self, sp_loc *loc, uint32_t read, uint64_t value,
                           int order, const sp_vclock *sync)
{
    sp_store added = {
        .value = value, .is_rmw = true, .is_seq_cst = order == __ATOMIC_SEQ_CST, .sync = *sync};
    /* A thread that spins on exchanges reads its own stores: they share the count of the store that
     * their chain began with. */
    memcpy(added.stale_reads, loc->history[read].stale_reads, sizeof added.stale_reads);
    return history_insert(self, loc, read + 1, &added);
}
