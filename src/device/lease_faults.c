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

/* `root`: of the failure with that value. What is kept is the newest root of all that it has. */
static void note_failure(sp_failed_thread *entry, uint64_t value, uint64_t root, sp_fault fault)
{
    if (!has_failed(entry)) {
        entry->first = value;
        entry->first_root = root;
        entry->first_fault = fault;
        entry->root = 0;
    }
    entry->last = value;
    entry->last_fault = fault;
    if (root > entry->root) entry->root = root;
}

/* Its failures up to `value` have been reported to it. */
static void tell(sp_failed_thread *entry, uint64_t value)
{
    if (has_failed(entry) && entry->first <= value) {
        const bool is_all = entry->last <= value;
        entry->first_fault = is_all ? SP_NO_FAULT : entry->last_fault;
        entry->first = entry->last;
        entry->first_root = entry->root;
    }
    if (entry->met != 0 && entry->met <= value) {
        entry->told = entry->met;
        entry->met = 0;
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

/* The newest value that the entry has to do with. */
static uint64_t newest_of(const sp_failed_thread *entry)
{
    const uint64_t mark = entry->met != 0 ? entry->met : entry->told;
    return has_failed(entry) && entry->last > mark ? entry->last : mark;
}

/* An unused place, or the one that is idle for longest. */
static sp_failed_thread *choose_place(sp_failed_lease *node)
{
    sp_failed_thread *oldest = &node->threads[0];
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        sp_failed_thread *entry = &node->threads[i];
        if (entry->thread == 0) return entry;
        if (newest_of(entry) < newest_of(oldest)) oldest = entry;
    }
    return oldest;
}

/* Gives the place up: the failures go on to count, what the thread was told is forgotten. */
static void fold(sp_failed_lease *node, const sp_failed_thread *place)
{
    node->folded++;
    if (!has_failed(place)) return;
    note_failure(&node->others, place->first, place->first_root, place->first_fault);
    note_failure(&node->others, place->last, place->root, place->last_fault);
}

/* Ends all failures of the node. */
static void forget_all(sp_failed_lease *node)
{
    memset(node->threads, 0, sizeof node->threads);
    node->others = (sp_failed_thread){0};
    node->folded = 0;
}

/* The thread's place; NULL: places ran out too often, and all failures so far have ended. */
static sp_failed_thread *place_of(sp_failed_lease *node, uint64_t thread)
{
    sp_failed_thread *place = find_thread(node, thread);
    if (place != NULL) return place;
    place = choose_place(node);
    if (place->thread != 0) {
        if (node->folded == SP_LEASE_FOLDS) {
            forget_all(node);
            return NULL;
        }
        fold(node, place);
    }
    *place = (sp_failed_thread){.thread = thread};
    return place;
}

/* What a command meets: the value and fault of the oldest failure that counts for it, and the
 * newest root of all that do. */
typedef struct sp_lease_meeting {
    uint64_t value;
    uint64_t root;
    sp_fault fault;
} sp_lease_meeting;

static void meet_entry(const sp_failed_thread *entry, bool is_own, uint64_t told,
                       sp_lease_meeting *meeting)
{
    if (!has_failed(entry) || (!is_own && entry->root <= told)) return;
    if (entry->root > meeting->root) meeting->root = entry->root;
    const bool is_first = is_own || entry->first_root > told;
    const uint64_t at = is_first ? entry->first : entry->last;
    if (meeting->fault != SP_NO_FAULT && meeting->value <= at) return;
    meeting->value = at;
    meeting->fault = is_first ? entry->first_fault : entry->last_fault;
}

static void meet(sp_failed_lease *node, uint64_t thread, sp_lease_meeting *meeting)
{
    if (node == NULL) return;
    const sp_failed_thread *own = find_thread(node, thread);
    const uint64_t told = own != NULL ? own->told : 0;
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        const sp_failed_thread *entry = &node->threads[i];
        meet_entry(entry, entry == own, told, meeting);
    }
    meet_entry(&node->others, false, told, meeting);
}

/* Whether there are failures of others that the thread neither was told of nor will be with those
 * that it has. */
static bool has_unmet(sp_failed_lease *node, uint64_t thread)
{
    if (node == NULL) return false;
    const sp_failed_thread *own = find_thread(node, thread);
    const uint64_t told = own == NULL ? 0 : own->met != 0 ? own->met : own->told;
    sp_lease_meeting meeting = {0};
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        if (&node->threads[i] != own) meet_entry(&node->threads[i], false, told, &meeting);
    }
    meet_entry(&node->others, false, told, &meeting);
    return meeting.fault != SP_NO_FAULT;
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

/* Drops the nodes without failures. */
static void drop_good_locked(sp_lease_faults *faults) SP_REQUIRES(&faults->lock)
{
    sp_failed_lease **place = &faults->first;
    while (*place != NULL) {
        if (is_good(*place)) {
            remove_locked(faults, place);
        } else {
            place = &(*place)->next;
        }
    }
    if (is_good(&faults->every)) forget_all(&faults->every);
}

void sp__lease_faults_add(sp_lease_faults *faults, uint64_t lease, uint64_t thread, uint64_t value,
                          sp_fault fault)
{
    if (lease == 0) return;
    SP_ASSERT(thread != 0);
    sp_mutex_lock(&faults->lock);
    sp_failed_lease *node = make_lease_locked(faults, lease);
    const bool is_unmet = has_unmet(node, thread) || has_unmet(&faults->every, thread);
    sp_failed_thread *entry = place_of(node, thread);
    if (entry == NULL) entry = place_of(node, thread); /* all are unused now */
    node->folded = 0;
    note_failure(entry, value, value, fault);
    if (!is_unmet) entry->met = value;
    count_locked(faults);
    sp_mutex_unlock(&faults->lock);
}

/* Notes the failure of a consumer. Without a place it has ended with those that it met. */
static void note_consumer_locked(sp_lease_faults *faults, uint64_t lease, uint64_t thread,
                                 uint64_t value, const sp_lease_meeting *meeting)
    SP_REQUIRES(&faults->lock)
{
    sp_failed_thread *entry = NULL;
    if (lease != 0) entry = place_of(make_lease_locked(faults, lease), thread);
    if (entry != NULL) {
        const uint64_t root = SP_PLANTED(consumer_is_root) ? value : meeting->root;
        note_failure(entry, value, root, meeting->fault);
        entry->met = value;
    }
    if (is_good(&faults->every)) return;
    /* What counts for every lease was met too. */
    entry = place_of(&faults->every, thread);
    if (entry != NULL) entry->met = value;
}

sp_fault sp__lease_faults_consume_slow(sp_lease_faults *faults, uint64_t lease, uint64_t thread,
                                       uint64_t value)
{
    sp_lease_meeting meeting = {0};
    sp_mutex_lock(&faults->lock);
    meet(find_lease_locked(faults, lease), thread, &meeting);
    meet(&faults->every, thread, &meeting);
    if (meeting.fault != SP_NO_FAULT) {
        note_consumer_locked(faults, lease, thread, value, &meeting);
        drop_good_locked(faults);
        count_locked(faults);
    }
    sp_mutex_unlock(&faults->lock);
    return meeting.fault;
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
    for (sp_failed_lease *node = faults->first; node != NULL; node = node->next) {
        tell_locked(node, thread, value);
    }
    tell_locked(&faults->every, thread, value);
    drop_good_locked(faults);
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
