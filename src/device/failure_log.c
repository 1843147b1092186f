/* SPDX-License-Identifier: Apache-2.0 */
/* The ring, and the lists of unreported failures through it. */
#include "device/failure_log.h"

#include <stddef.h>

#include "base/heap.h"

#define FIRST_CAPACITY 16

static uint32_t ring_index(const sp_failure_log *log, uint32_t rank)
{
    return (log->oldest + rank) & (log->capacity - 1);
}

static uint32_t *chain_of(const sp_failure_log *log, uint64_t thread)
{
    /* Numbers of threads are consecutive: a multiplication spreads them (Knuth, TAOCP 3, 6.4). */
    const uint64_t hash = thread * UINT64_C(0x9E3779B97F4A7C15);
    return &log->firsts[(hash >> 32) & (log->capacity - 1)];
}

/* The link with the index of the thread's first unreported failure; the end of the chain if none.
 */
static uint32_t *list_first(const sp_failure_log *log, uint64_t thread)
{
    uint32_t *place = chain_of(log, thread);
    while (*place != 0 && log->ring[*place - 1].thread != thread) {
        place = &log->ring[*place - 1].in_chain;
    }
    return place;
}

static void list_append(sp_failure_log *log, uint32_t index)
{
    sp_failure *failure = &log->ring[index - 1];
    uint32_t *first = list_first(log, failure->thread);
    failure->next = failure->in_chain = 0;
    if (*first == 0) {
        failure->last = index;
        *first = index;
        return;
    }
    sp_failure *head = &log->ring[*first - 1];
    log->ring[head->last - 1].next = index;
    head->last = index;
}

/* Removes the first failure of the thread's list. */
static void list_pop(sp_failure_log *log, uint32_t *first)
{
    const sp_failure *head = &log->ring[*first - 1];
    if (head->next == 0) {
        *first = head->in_chain;
        return;
    }
    sp_failure *heir = &log->ring[head->next - 1];
    heir->last = head->last;
    heir->in_chain = head->in_chain;
    *first = head->next;
}

static void log_append(sp_failure_log *log, const sp_failure *failure)
{
    const uint32_t place = ring_index(log, log->count++);
    log->ring[place] = *failure;
    if (!failure->is_reported) list_append(log, place + 1);
}

static void log_forget_oldest(sp_failure_log *log)
{
    const sp_failure *oldest = &log->ring[log->oldest];
    log->forgotten = oldest->value;
    /* The oldest failure of all is the first of its thread. */
    if (!oldest->is_reported) list_pop(log, list_first(log, oldest->thread));
    log->oldest = ring_index(log, 1);
    log->count--;
}

/* Doubles the capacity; false without memory or at the limit. */
static bool log_grow(sp_failure_log *log, void **retired)
{
    const uint32_t capacity = log->capacity == 0 ? FIRST_CAPACITY : log->capacity * 2;
    if (capacity > SP_TIMELINE_FAILURES) return false;
    sp_failure *ring = sp_calloc(capacity, sizeof *ring + sizeof(uint32_t));
    if (ring == NULL) return false;
    const sp_failure_log former = *log;
    *log = (sp_failure_log){.ring = ring,
                            .firsts = (uint32_t *)(void *)(ring + capacity),
                            .capacity = capacity,
                            .forgotten = former.forgotten};
    for (uint32_t i = 0; i < former.count; i++)
        log_append(log, &former.ring[ring_index(&former, i)]);
    *retired = former.ring;
    return true;
}

void sp__failure_log_add(sp_failure_log *log, uint64_t value, uint64_t thread, sp_fault fault,
                         void **retired)
{
    *retired = NULL;
    if (log->count == log->capacity && !log_grow(log, retired)) {
        if (log->capacity == 0) {
            log->forgotten = value;
            return;
        }
        log_forget_oldest(log);
    }
    log_append(log, &(sp_failure){.value = value,
                                  .thread = thread,
                                  .fault = fault,
                                  .is_reported = thread == 0 || fault == SP_FAULT_CANCELLED});
}

/* Number of records with a value below `value`. */
static uint32_t log_rank(const sp_failure_log *log, uint64_t value)
{
    uint32_t low = 0;
    uint32_t high = log->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (log->ring[ring_index(log, middle)].value < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

sp_fault sp__failure_log_find(const sp_failure_log *log, uint64_t value)
{
    const uint32_t rank = log_rank(log, value);
    if (rank == log->count) return SP_NO_FAULT;
    const sp_failure *found = &log->ring[ring_index(log, rank)];
    return found->value == value ? found->fault : SP_NO_FAULT;
}

uint32_t sp__failure_log_count(const sp_failure_log *log, uint64_t after, uint64_t value)
{
    return log_rank(log, value + 1) - log_rank(log, after + 1);
}

sp_fault sp__failure_log_take(sp_failure_log *log, uint64_t value, uint64_t thread)
{
    if (log->count == 0) return SP_NO_FAULT;
    uint32_t *first = list_first(log, thread);
    if (*first == 0 || log->ring[*first - 1].value > value) return SP_NO_FAULT;
    sp_failure *failure = &log->ring[*first - 1];
    list_pop(log, first);
    failure->is_reported = true;
    return failure->fault;
}

bool sp__failure_log_take_between(sp_failure_log *log, uint64_t after, uint64_t value,
                                  uint64_t thread, bool *is_first)
{
    *is_first = true;
    if (log->count == 0) return false;
    uint32_t before = 0;
    const uint32_t first = *list_first(log, thread);
    uint32_t next = first;
    for (; next != 0 && log->ring[next - 1].value <= after; next = log->ring[next - 1].next) {
        before = next;
    }
    *is_first = before == 0;
    if (next == 0 || log->ring[next - 1].value > value) return false;
    if (*is_first) {
        while (sp__failure_log_take(log, value, thread) != SP_NO_FAULT) {
        }
        return true;
    }
    for (; next != 0 && log->ring[next - 1].value <= value; next = log->ring[next - 1].next) {
        log->ring[next - 1].is_reported = true;
    }
    log->ring[before - 1].next = next;
    if (next == 0) log->ring[first - 1].last = before;
    return true;
}

uint32_t sp__failure_log_unreported(const sp_failure_log *log, sp_fault *first)
{
    uint32_t count = 0;
    *first = SP_NO_FAULT;
    for (uint32_t i = 0; i < log->count; i++) {
        const sp_failure *failure = &log->ring[ring_index(log, i)];
        if (failure->is_reported) continue;
        if (count++ == 0) *first = failure->fault;
    }
    return count;
}

void *sp__failure_log_clear(sp_failure_log *log)
{
    void *memory = log->ring;
    *log = (sp_failure_log){0};
    return memory;
}
