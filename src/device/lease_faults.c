/* SPDX-License-Identifier: Apache-2.0 */
/* Failed leases of one queue: a list, since few leases of a stream have failed at the same time. */
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

static bool thread_has_failed(const sp_failed_thread *entry)
{
    return entry->first_fault != SP_NO_FAULT;
}

/* `root` is the root of the failure `value`; the entry keeps the newest root of its failures. */
static void thread_note_failure(sp_failed_thread *entry, uint64_t value, uint64_t root,
                                sp_fault fault)
{
    if (!thread_has_failed(entry)) {
        entry->first = value;
        entry->first_root = root;
        entry->first_fault = fault;
        entry->root = 0;
    }
    entry->last = value;
    entry->last_fault = fault;
    if (root > entry->root) entry->root = root;
}

/* The entry's failures up to `value` have been reported to its thread. */
static void thread_report(sp_failed_thread *entry, uint64_t value)
{
    if (thread_has_failed(entry) && entry->first <= value) {
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

/* The thread's entry, or NULL; `node` may be NULL. */
static sp_failed_thread *lease_find_thread(sp_failed_lease *node, uint64_t thread)
{
    for (uint32_t i = 0; node != NULL && i < SP_LEASE_THREADS; i++) {
        if (node->threads[i].thread == thread) return &node->threads[i];
    }
    return NULL;
}

/* The newest value of the entry's failures and reports. */
static uint64_t thread_newest_value(const sp_failed_thread *entry)
{
    const uint64_t mark = entry->met != 0 ? entry->met : entry->told;
    return thread_has_failed(entry) && entry->last > mark ? entry->last : mark;
}

/* An unused entry, or the one idle for longest. */
static sp_failed_thread *lease_choose_entry(sp_failed_lease *node)
{
    sp_failed_thread *oldest = &node->threads[0];
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        sp_failed_thread *entry = &node->threads[i];
        if (entry->thread == 0) return entry;
        if (thread_newest_value(entry) < thread_newest_value(oldest)) oldest = entry;
    }
    return oldest;
}

/* Frees the entry: its failures still count, reports to its thread are forgotten. */
static void lease_fold_entry(sp_failed_lease *node, const sp_failed_thread *place)
{
    node->folded++;
    if (!thread_has_failed(place)) return;
    thread_note_failure(&node->others, place->first, place->first_root, place->first_fault);
    thread_note_failure(&node->others, place->last, place->root, place->last_fault);
}

/* Ends all failures of the node. */
static void lease_forget_all(sp_failed_lease *node)
{
    memset(node->threads, 0, sizeof node->threads);
    node->others = (sp_failed_thread){0};
    node->folded = 0;
}

/* The thread's entry, created if needed; NULL: entries ran out too often, and all failures so far
 * have ended. */
static sp_failed_thread *lease_entry_of(sp_failed_lease *node, uint64_t thread)
{
    sp_failed_thread *place = lease_find_thread(node, thread);
    if (place != NULL) return place;
    place = lease_choose_entry(node);
    if (place->thread != 0) {
        if (node->folded == SP_LEASE_FOLDS) {
            lease_forget_all(node);
            return NULL;
        }
        lease_fold_entry(node, place);
    }
    *place = (sp_failed_thread){.thread = thread};
    return place;
}

/* The failures that a command meets: value and fault of the oldest one that counts for it, and the
 * newest root of all that count. */
typedef struct sp_lease_meeting {
    uint64_t value;
    uint64_t root;
    sp_fault fault;
} sp_lease_meeting;

static void meeting_add_entry(const sp_failed_thread *entry, bool is_own, uint64_t told,
                              sp_lease_meeting *meeting)
{
    if (!thread_has_failed(entry) || (!is_own && entry->root <= told)) return;
    if (entry->root > meeting->root) meeting->root = entry->root;
    const bool is_first = is_own || entry->first_root > told;
    const uint64_t at = is_first ? entry->first : entry->last;
    if (meeting->fault != SP_NO_FAULT && meeting->value <= at) return;
    meeting->value = at;
    meeting->fault = is_first ? entry->first_fault : entry->last_fault;
}

static void meeting_add_lease(sp_failed_lease *node, uint64_t thread, sp_lease_meeting *meeting)
{
    if (node == NULL) return;
    const sp_failed_thread *own = lease_find_thread(node, thread);
    const uint64_t told = own != NULL ? own->told : 0;
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        const sp_failed_thread *entry = &node->threads[i];
        meeting_add_entry(entry, entry == own, told, meeting);
    }
    meeting_add_entry(&node->others, false, told, meeting);
}

/* Whether there are failures of other threads that neither were reported to the thread nor will be
 * with its own failures. */
static bool lease_has_unmet(sp_failed_lease *node, uint64_t thread)
{
    if (node == NULL) return false;
    const sp_failed_thread *own = lease_find_thread(node, thread);
    const uint64_t told = own == NULL ? 0 : own->met != 0 ? own->met : own->told;
    sp_lease_meeting meeting = {0};
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        if (&node->threads[i] != own) meeting_add_entry(&node->threads[i], false, told, &meeting);
    }
    meeting_add_entry(&node->others, false, told, &meeting);
    return meeting.fault != SP_NO_FAULT;
}

/* Whether the node has no failures; reports to threads are then irrelevant. */
static bool lease_is_good(const sp_failed_lease *node)
{
    bool is_any = thread_has_failed(&node->others);
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++)
        is_any = is_any || thread_has_failed(&node->threads[i]);
    return !is_any;
}

/* ---- all leases ---- */

static sp_failed_lease *lease_find_locked(sp_lease_faults *faults, uint64_t lease)
    SP_REQUIRES(&faults->lock)
{
    sp_failed_lease *node = faults->first;
    while (node != NULL && node->lease != lease) node = node->next;
    return node;
}

static void leases_count_locked(sp_lease_faults *faults) SP_REQUIRES(&faults->lock)
{
    uint32_t count = lease_is_good(&faults->every) ? 0 : 1;
    for (const sp_failed_lease *node = faults->first; node != NULL; node = node->next) count++;
    sp_store_relaxed(&faults->count, count);
}

static void lease_remove_locked(sp_lease_faults *faults, sp_failed_lease **place)
    SP_REQUIRES(&faults->lock)
{
    (void)faults;
    sp_failed_lease *node = *place;
    *place = node->next;
    sp_free(node);
}

/* The lease's node, created if needed, or the node of every lease if there is no memory. */
static sp_failed_lease *lease_acquire_locked(sp_lease_faults *faults, uint64_t lease)
    SP_REQUIRES(&faults->lock)
{
    sp_failed_lease *node = lease_find_locked(faults, lease);
    if (node != NULL) return node;
    node = sp_calloc(1, sizeof *node);
    if (node == NULL) return &faults->every;
    while (SP_PLANTED(one_lease_fault) && faults->first != NULL) {
        lease_remove_locked(faults, &faults->first);
    }
    node->lease = lease;
    node->next = faults->first;
    faults->first = node;
    return node;
}

/* Drops the nodes without failures. */
static void leases_drop_good_locked(sp_lease_faults *faults) SP_REQUIRES(&faults->lock)
{
    sp_failed_lease **place = &faults->first;
    while (*place != NULL) {
        if (lease_is_good(*place)) {
            lease_remove_locked(faults, place);
        } else {
            place = &(*place)->next;
        }
    }
    if (lease_is_good(&faults->every)) lease_forget_all(&faults->every);
}

void sp__lease_faults_add(sp_lease_faults *faults, uint64_t lease, uint64_t thread, uint64_t value,
                          sp_fault fault)
{
    if (lease == 0) return;
    SP_ASSERT(thread != 0);
    sp_mutex_lock(&faults->lock);
    sp_failed_lease *node = lease_acquire_locked(faults, lease);
    const bool is_unmet = lease_has_unmet(node, thread) || lease_has_unmet(&faults->every, thread);
    sp_failed_thread *entry = lease_entry_of(node, thread);
    if (entry == NULL) entry = lease_entry_of(node, thread); /* all are unused now */
    node->folded = 0;
    thread_note_failure(entry, value, value, fault);
    if (!is_unmet) entry->met = value;
    leases_count_locked(faults);
    sp_mutex_unlock(&faults->lock);
}

/* Notes the failure of a consumer. Without an entry it has ended with the failures that it met. */
static void consumer_note_locked(sp_lease_faults *faults, uint64_t lease, uint64_t thread,
                                 uint64_t value, const sp_lease_meeting *meeting)
    SP_REQUIRES(&faults->lock)
{
    sp_failed_thread *entry = NULL;
    if (lease != 0) entry = lease_entry_of(lease_acquire_locked(faults, lease), thread);
    if (entry != NULL) {
        const uint64_t root = SP_PLANTED(consumer_is_root) ? value : meeting->root;
        thread_note_failure(entry, value, root, meeting->fault);
        entry->met = value;
    }
    if (lease_is_good(&faults->every)) return;
    /* The failures that count for every lease were met too. */
    entry = lease_entry_of(&faults->every, thread);
    if (entry != NULL) entry->met = value;
}

sp_fault sp__lease_faults_consume_slow(sp_lease_faults *faults, uint64_t lease, uint64_t thread,
                                       uint64_t value)
{
    sp_lease_meeting meeting = {0};
    sp_mutex_lock(&faults->lock);
    meeting_add_lease(lease_find_locked(faults, lease), thread, &meeting);
    meeting_add_lease(&faults->every, thread, &meeting);
    if (meeting.fault != SP_NO_FAULT) {
        consumer_note_locked(faults, lease, thread, value, &meeting);
        leases_drop_good_locked(faults);
        leases_count_locked(faults);
    }
    sp_mutex_unlock(&faults->lock);
    return meeting.fault;
}

static void lease_report_locked(sp_failed_lease *node, uint64_t thread, uint64_t value)
{
    for (uint32_t i = 0; i < SP_LEASE_THREADS; i++) {
        sp_failed_thread *entry = &node->threads[i];
        if (entry->thread == thread || (SP_PLANTED(told_for_all) && entry->thread != 0)) {
            thread_report(entry, value);
        }
    }
}

void sp__lease_faults_told(sp_lease_faults *faults, uint64_t thread, uint64_t value)
{
    if (sp_load_relaxed(&faults->count) == 0) return; /* the failures are of no lease */
    sp_mutex_lock(&faults->lock);
    for (sp_failed_lease *node = faults->first; node != NULL; node = node->next) {
        lease_report_locked(node, thread, value);
    }
    lease_report_locked(&faults->every, thread, value);
    leases_drop_good_locked(faults);
    leases_count_locked(faults);
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
            lease_remove_locked(faults, place);
        } else {
            place = &node->next;
        }
    }
    leases_count_locked(faults);
    sp_mutex_unlock(&faults->lock);
}
