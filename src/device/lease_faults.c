/* SPDX-License-Identifier: Apache-2.0 */
/* Failed leases of one queue: a list, since few leases of a stream are failed at the same time. */
#include "device/lease_faults.h"

#include <string.h>

#include "base/assert.h"
#include "base/heap.h"

void sp__lease_faults_init(sp_lease_faults *faults)
{
    memset(faults, 0, sizeof *faults);
    sp_mutex_init(&faults->lock, SP_LOCK_LEASE_FAULTS);
}

void sp__lease_faults_deinit(sp_lease_faults *faults)
{
    sp_mutex_lock(&faults->lock);
    sp_failed_lease *node = faults->first;
    faults->first = NULL;
    sp_mutex_unlock(&faults->lock);
    while (node != NULL) {
        sp_failed_lease *next = node->next;
        sp_free(node);
        node = next;
    }
    sp_mutex_deinit(&faults->lock);
}

/* ---- one thread on one lease ---- */

static bool has_failed(const sp_failed_thread *entry)
{
    return entry->first_fault != SP_NO_FAULT;
}

static void note_failure(sp_failed_thread *entry, uint64_t value, sp_fault fault)
{
    if (!has_failed(entry)) {
        entry->first = value;
        entry->first_fault = fault;
    }
    entry->last = value;
    entry->last_fault = fault;
}

/* Its failures up to `value` have been reported to it. */
static void tell(sp_failed_thread *entry, uint64_t value)
{
    if (has_failed(entry) && entry->first <= value) {
        const bool is_all = entry->last <= value;
        entry->first_fault = is_all ? SP_NO_FAULT : entry->last_fault;
        entry->first = entry->last;
    }
    if (entry->consumed != 0 && entry->consumed <= value) {
        entry->told = entry->consumed;
        entry->consumed = 0;
    }
}

/* ---- one lease ---- */

/* A NULL node has no threads. */
static sp_failed_thread *find_thread(sp_failed_lease *node, uint64_t thread)
{
    for (uint32_t i = 0; node != NULL && i < SP_LEASE_THREADS; i++) {
        if (node->threads[i].thread == thread) return &node->threads[i];
    }
    return NULL;
}

/* The place whose loss costs least: unused; of a thread without failures; of the oldest ones. */
static sp_failed_thread *choose_place(sp_failed_lease *node)
{
    sp_failed_thread *oldest = &node->threads[0];
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        sp_failed_thread *entry = &node->threads[i];
        if (entry->thread == 0) return entry;
        const bool is_less =
            has_failed(oldest) && (!has_failed(entry) || entry->last < oldest->last);
        if (is_less) oldest = entry;
    }
    return oldest;
}

static sp_failed_thread *place_of(sp_failed_lease *node, uint64_t thread)
{
    sp_failed_thread *place = find_thread(node, thread);
    if (place != NULL) return place;
    place = choose_place(node);
    if (has_failed(place)) {
        note_failure(&node->others, place->first, place->first_fault);
        note_failure(&node->others, place->last, place->last_fault);
    }
    *place = (sp_failed_thread){.thread = thread};
    return place;
}

/* The oldest failure that counts for a thread which was told of those before `told`. */
static void find_oldest(const sp_failed_thread *entry, bool is_own, uint64_t told, uint64_t *value,
                        sp_fault *fault)
{
    if (!has_failed(entry) || (!is_own && entry->last < told)) return;
    const bool is_first = is_own || entry->first >= told;
    const uint64_t at = is_first ? entry->first : entry->last;
    if (*fault != SP_NO_FAULT && *value <= at) return;
    *value = at;
    *fault = is_first ? entry->first_fault : entry->last_fault;
}

static void find_in(sp_failed_lease *node, uint64_t thread, uint64_t *value, sp_fault *fault)
{
    if (node == NULL) return;
    const sp_failed_thread *own = find_thread(node, thread);
    const uint64_t told = own != NULL ? own->told : 0;
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        const sp_failed_thread *entry = &node->threads[i];
        find_oldest(entry, entry == own, told, value, fault);
    }
    find_oldest(&node->others, false, told, value, fault);
}

/* Without failures nothing that threads were told matters. */
static bool is_good(const sp_failed_lease *node)
{
    bool is_any = has_failed(&node->others);
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++)
        is_any = is_any || has_failed(&node->threads[i]);
    return !is_any;
}

/* ---- all of them ---- */

static sp_failed_lease *find_lease_locked(sp_lease_faults *faults, uint64_t lease)
    SP_REQUIRES(&faults->lock)
{
    sp_failed_lease *node = faults->first;
    while (node != NULL && node->lease != lease) node = node->next;
    return node;
}

static void count_locked(sp_lease_faults *faults) SP_REQUIRES(&faults->lock)
{
    uint32_t count = is_good(&faults->every) ? 0 : 1;
    for (const sp_failed_lease *node = faults->first; node != NULL; node = node->next) count++;
    sp_store_relaxed(&faults->count, count);
}

static void remove_locked(sp_lease_faults *faults, sp_failed_lease **place)
    SP_REQUIRES(&faults->lock)
{
    (void)faults;
    sp_failed_lease *node = *place;
    *place = node->next;
    sp_free(node);
}

/* The lease's node, or the one for all without memory for it. */
static sp_failed_lease *make_lease_locked(sp_lease_faults *faults, uint64_t lease)
    SP_REQUIRES(&faults->lock)
{
    sp_failed_lease *node = find_lease_locked(faults, lease);
    if (node != NULL) return node;
    node = sp_calloc(1, sizeof *node);
    if (node == NULL) return &faults->every;
    while (SP_PLANTED(one_lease_fault) && faults->first != NULL) {
        remove_locked(faults, &faults->first);
    }
    node->lease = lease;
    node->next = faults->first;
    faults->first = node;
    return node;
}

void sp__lease_faults_add(sp_lease_faults *faults, uint64_t lease, uint64_t thread, uint64_t value,
                          sp_fault fault, bool is_consumer)
{
    if (lease == 0) return;
    SP_ASSERT(thread != 0);
    sp_mutex_lock(&faults->lock);
    sp_failed_lease *node = make_lease_locked(faults, lease);
    sp_failed_thread *entry = place_of(node, thread);
    note_failure(entry, value, fault);
    if (is_consumer) entry->consumed = value;
    /* What counts for every lease was met too. */
    if (is_consumer && !is_good(&faults->every)) place_of(&faults->every, thread)->consumed = value;
    count_locked(faults);
    sp_mutex_unlock(&faults->lock);
}

sp_fault sp__lease_faults_find_slow(sp_lease_faults *faults, uint64_t lease, uint64_t thread)
{
    uint64_t value = 0;
    sp_fault fault = SP_NO_FAULT;
    sp_mutex_lock(&faults->lock);
    find_in(find_lease_locked(faults, lease), thread, &value, &fault);
    find_in(&faults->every, thread, &value, &fault);
    sp_mutex_unlock(&faults->lock);
    return fault;
}

static void tell_locked(sp_failed_lease *node, uint64_t thread, uint64_t value)
{
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        sp_failed_thread *entry = &node->threads[i];
        if (entry->thread == thread || (SP_PLANTED(told_for_all) && entry->thread != 0)) {
            tell(entry, value);
        }
    }
}

void sp__lease_faults_told(sp_lease_faults *faults, uint64_t thread, uint64_t value)
{
    if (sp_load_relaxed(&faults->count) == 0) return; /* what failed was of no lease */
    sp_mutex_lock(&faults->lock);
    sp_failed_lease **place = &faults->first;
    while (*place != NULL) {
        tell_locked(*place, thread, value);
        if (is_good(*place)) {
            remove_locked(faults, place);
        } else {
            place = &(*place)->next;
        }
    }
    tell_locked(&faults->every, thread, value);
    if (is_good(&faults->every)) memset(&faults->every, 0, sizeof faults->every);
    count_locked(faults);
    sp_mutex_unlock(&faults->lock);
}

void sp__lease_faults_sweep(sp_lease_faults *faults, bool (*is_over)(uint64_t lease), uint64_t last,
                            uint64_t done)
{
    if (SP_LIKELY(sp_load_relaxed(&faults->count) == 0)) return;
    sp_mutex_lock(&faults->lock);
    sp_failed_lease **place = &faults->first;
    while (*place != NULL) {
        sp_failed_lease *node = *place;
        if (node->drop_at == 0 && is_over(node->lease)) node->drop_at = last;
        if (node->drop_at != 0 && done >= node->drop_at) {
            remove_locked(faults, place);
        } else {
            place = &node->next;
        }
    }
    count_locked(faults);
    sp_mutex_unlock(&faults->lock);
}
