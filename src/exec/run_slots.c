/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: one word, three queues, and the rule when a sleeping thread is called. */
#include "exec/run_slots.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/thread.h"
#include "base/tsan.h"
#include "device/thread_record.h"

#define ONE_FREE ((uint64_t)1)
#define ONE_CLAIMED ((uint64_t)1 << 16)
#define ONE_SUBMITTED ((uint64_t)1 << 32)
#define ONE_THREAD ((uint64_t)1 << 48)
#define FIELD_MASK 0xffffu
/* Of the word: who may not wait beside a free slot, and all that wait. */
#define ANY_CLAIM (FIELD_MASK * ONE_CLAIMED)
#define ANY_CLAIM_OR_SUBMITTED (ANY_CLAIM + FIELD_MASK * ONE_SUBMITTED)
#define ANY_WAITER (ANY_CLAIM_OR_SUBMITTED + FIELD_MASK * ONE_THREAD)

/* To return soon is to return sooner than another thread could be woken. */
#define SOON_NS 10000u
/* How often the clock is read for a thread that keeps its slot, in time and at least in runs. */
#define OBSERVE_NS (SP_RUN_QUANTUM_NS / 8)
#define OBSERVE_RUNS 16u
/* How long a thread that has claimed stays awake, and yields, before it sleeps. */
#define CLAIM_NS SP_SPIN_TURNS(50000u)

static uint32_t free_of(uint64_t word)
{
    return (uint32_t)word & FIELD_MASK;
}

static uint32_t submitted_of(uint64_t word)
{
    return (uint32_t)(word / ONE_SUBMITTED) & FIELD_MASK;
}

static uint32_t threads_of(uint64_t word)
{
    return (uint32_t)(word / ONE_THREAD);
}

void sp__run_slots_init(sp_run_slots *slots, uint32_t count)
{
    SP_ASSERT(count > 0 && count <= FIELD_MASK);
    sp_store_relaxed(&slots->word, count * ONE_FREE);
    slots->count = count;
    sp_store_relaxed(&slots->submitted_count, 0);
    sp_mutex_init(&slots->lock, SP_LOCK_RUN_SLOTS);
    sp_mutex_lock(&slots->lock);
    sp__wait_queue_init(&slots->threads);
    sp__wait_queue_init(&slots->claims);
    sp__wait_queue_init(&slots->submitted);
    slots->newest = 0;
    slots->called = 0;
    sp_mutex_unlock(&slots->lock);
}

void sp__run_slots_deinit(sp_run_slots *slots)
{
    sp_mutex_deinit(&slots->lock);
}

uint32_t sp__run_slots_waiting(const sp_run_slots *slots)
{
    const uint64_t word = sp_load_relaxed(&slots->word);
    return threads_of(word) + submitted_of(word);
}

/* ---- the word ---- */

static bool free_acquire(sp_run_slots *slots, uint64_t *word)
{
    *word = sp_load_relaxed(&slots->word);
    while (free_of(*word) != 0) {
        if (SP_PLANTED(take_taken)) sp_store_relaxed(&slots->word, *word - ONE_FREE);
        if (SP_PLANTED(take_taken) || sp_cas_acquire(&slots->word, word, *word - ONE_FREE)) {
            return true;
        }
    }
    return false;
}

/* Takes a free slot, or else adds `refused`. */
static bool word_acquire_locked(sp_run_slots *slots, uint64_t refused) SP_REQUIRES(&slots->lock)
{
    uint64_t word = sp_load_relaxed(&slots->word);
    for (;;) {
        const bool is_free = !SP_PLANTED(line_up_blindly) && free_of(word) != 0;
        const uint64_t next = is_free ? word - ONE_FREE : word + refused;
        if (sp_cas_acquire(&slots->word, &word, next)) return is_free;
    }
}

/* ---- tenure: what is expected of a thread ---- */

/* The thread asks for a slot while others wait for one. */
static void tenure_return(sp_run_tenure *tenure)
{
    if (tenure->released == 0) return;
    tenure->returns_soon = sp_clock_now() - tenure->released < SOON_NS;
    tenure->released = 0;
}

static void tenure_begin(sp_run_tenure *tenure, uint64_t now)
{
    tenure->since = tenure->observed = now;
    tenure->stride = tenure->skipped = 0;
}

/* Sets how many releases are not observed from now on: a clock costs as much as a short run's other
 * work. */
static void tenure_observe(sp_run_tenure *tenure, uint64_t now)
{
    const uint64_t cycle = (now - tenure->observed) / (tenure->stride + 1);
    const uint64_t stride = cycle > 0 ? OBSERVE_NS / cycle : 0; /* 0: nothing is known yet */
    tenure->observed = now;
    tenure->stride = stride < OBSERVE_RUNS ? (uint32_t)stride : OBSERVE_RUNS;
    tenure->skipped = 0;
}

typedef enum release_action {
    RELEASE_LEAVE,        /* the thread takes the slot again, soon */
    RELEASE_CALL,         /* it does not */
    RELEASE_CALL_AND_STAY /* it does, but its quantum is over */
} release_action;

/* The thread has a slot that others wait for, and releases it. */
static release_action tenure_release(sp_run_tenure *tenure)
{
    if (tenure->returns_soon && tenure->skipped < tenure->stride) {
        tenure->skipped++;
        return RELEASE_LEAVE;
    }
    const uint64_t now = sp_clock_now();
    tenure->released = now;
    if (tenure->since == 0) tenure_begin(tenure, now);
    if (!tenure->returns_soon) return RELEASE_CALL;
    if (now - tenure->since < SP_RUN_QUANTUM_NS || SP_PLANTED(no_quantum)) {
        tenure_observe(tenure, now);
        return RELEASE_LEAVE;
    }
    tenure->since = 0;
    return RELEASE_CALL_AND_STAY;
}

/* ---- waiting threads ---- */

enum { QUEUED, CALLED, GRANTED };

typedef struct slot_waiter {
    sp_wait_entry entry;
    sp_parker *parker; /* type-stable: outlives the waiter */
    uint64_t number;
    /* Release by the thread that calls or grants, its last access to the waiter; pairs with the
     * acquire of the waiting thread. */
    sp_atomic_u32 state;
} slot_waiter;

static void waiter_set(slot_waiter *waiter, uint32_t state)
{
    sp_parker *parker = waiter->parker;
    sp_tsan_release(&waiter->state);
    if (SP_PLANTED(relaxed_grant)) {
        sp_store_relaxed(&waiter->state, state);
    } else {
        sp_store_release(&waiter->state, state);
    }
    sp_parker_unpark(parker);
}

static void waiter_grant(sp_wait_entry *entry, sp_resume_list *ready)
{
    (void)ready;
    waiter_set(SP_CONTAINER_OF(entry, slot_waiter, entry), GRANTED);
}

/* The thread is to be woken by waiter_set, without the lock. NULL: no thread waits, or enough are
 * called. */
static slot_waiter *thread_call_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock)
{
    if (slots->called >= slots->count) return NULL;
    sp_wait_entry *entry = sp__wait_queue_pop(&slots->threads);
    if (entry == NULL) return NULL;
    slots->called++;
    sp_fetch_sub_relaxed(&slots->word, ONE_THREAD);
    return SP_CONTAINER_OF(entry, slot_waiter, entry);
}

/* The called thread's answer: true if it has a slot, else it gets one of the next. */
static bool claim(sp_run_slots *slots, slot_waiter *waiter)
{
    sp_mutex_lock(&slots->lock);
    slots->called--;
    const bool is_free = word_acquire_locked(slots, ONE_CLAIMED);
    if (!is_free) {
        sp_store_relaxed(&waiter->state, QUEUED);
        sp__wait_queue_push(&slots->claims, &waiter->entry);
    }
    sp_mutex_unlock(&slots->lock);
    return is_free;
}

/* A time-out of a waiting thread: is it still the newest? Then it is the one that finds a slot that
 * was left free. */
static bool watch(sp_run_slots *slots, const slot_waiter *waiter)
{
    slot_waiter *called = NULL;
    sp_mutex_lock(&slots->lock);
    const bool is_newest = slots->newest == waiter->number;
    const uint64_t word = sp_load_relaxed(&slots->word);
    if (is_newest && free_of(word) > slots->called) called = thread_call_locked(slots);
    sp_mutex_unlock(&slots->lock);
    if (called != NULL) waiter_set(called, CALLED);
    return is_newest && !SP_PLANTED(watch_once);
}

/* Until the slot is the thread's, from the queue of threads. */
static void waiter_wait(sp_run_slots *slots, slot_waiter *waiter)
{
    bool is_newest = !SP_PLANTED(no_watch);
    uint64_t awake_until = 0;
    for (;;) {
        const uint32_t state = sp_load_acquire(&waiter->state);
        if (state == GRANTED) break;
        if (state == CALLED) {
            if (claim(slots, waiter)) break;
            is_newest = false;
            awake_until = sp_clock_now() + CLAIM_NS;
        } else if (awake_until != 0 && sp_clock_now() < awake_until) {
            sp_thread_yield();
        } else {
            const uint64_t deadline =
                is_newest ? sp_clock_deadline((int64_t)2 * SP_RUN_QUANTUM_NS) : SP_NO_DEADLINE;
            if (!sp_parker_park(waiter->parker, deadline)) is_newest = watch(slots, waiter);
        }
    }
    sp_tsan_acquire(&waiter->state);
}

static SP_NOINLINE sp_status thread_wait(sp_run_slots *slots)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    slot_waiter waiter = {.entry = {.resume = waiter_grant}, .parker = &record->parker};
    tenure_return(&record->tenure);
    sp_mutex_lock(&slots->lock);
    const bool is_free = word_acquire_locked(slots, ONE_THREAD);
    if (!is_free) {
        waiter.number = ++slots->newest;
        sp__wait_queue_push(&slots->threads, &waiter.entry);
    }
    sp_mutex_unlock(&slots->lock);
    if (is_free) return SP_OK;
    sp_delay_point();
    waiter_wait(slots, &waiter);
    tenure_begin(&record->tenure, sp_clock_now());
    return SP_OK;
}

/* A free slot, while others wait: by a thread that has returned, or by a newcomer. */
static SP_NOINLINE void note_return(void)
{
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) tenure_return(&record->tenure);
}

sp_status sp__run_slots_acquire(sp_run_slots *slots)
{
    uint64_t word;
    if (SP_UNLIKELY(!free_acquire(slots, &word))) return thread_wait(slots);
    if (SP_UNLIKELY(threads_of(word) != 0)) note_return();
    return SP_OK;
}

/* ---- release ---- */

/* Lets the called thread wake up. That takes a while, which does not count as an absence. */
static void stay(void)
{
    sp_thread_yield();
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) record->tenure.released = sp_clock_now();
}

/* The slot goes to a claim, a submitted run, or is free; and a thread is called, unless the slot's
 * owner takes it again. Returns the entry that has the slot now. */
static sp_wait_entry *pass_on(sp_run_slots *slots, release_action action)
{
    slot_waiter *called = NULL;
    sp_mutex_lock(&slots->lock);
    sp_wait_entry *entry = SP_PLANTED(forget_claim) ? NULL : sp__wait_queue_pop(&slots->claims);
    if (entry != NULL) {
        sp_fetch_sub_relaxed(&slots->word, ONE_CLAIMED);
    } else {
        if (action != RELEASE_LEAVE) called = thread_call_locked(slots);
        entry = sp__wait_queue_pop(&slots->submitted);
        if (entry == NULL) sp_fetch_add_release(&slots->word, ONE_FREE);
        else if (!SP_PLANTED(stays_counted)) sp_fetch_sub_relaxed(&slots->word, ONE_SUBMITTED);
    }
    sp_mutex_unlock(&slots->lock);
    if (called != NULL) waiter_set(called, CALLED);
    if (called != NULL && action == RELEASE_CALL_AND_STAY) stay();
    return entry;
}

/* True if nothing waits that the mask names, and the slot is free now. */
static bool free_release(sp_run_slots *slots, uint64_t mask)
{
    uint64_t word = sp_load_relaxed(&slots->word);
    while ((word & mask) == 0) {
        /* Release: the context that the run has released is there for the next taker. */
        if (sp_cas_release(&slots->word, &word, word + ONE_FREE)) return true;
    }
    return false;
}

static SP_NOINLINE sp_wait_entry *contended_release(sp_run_slots *slots)
{
    sp_thread_record *record = sp__thread_record();
    const release_action action = record != NULL ? tenure_release(&record->tenure) : RELEASE_CALL;
    const uint64_t mask = SP_PLANTED(submitted_left) ? ANY_CLAIM : ANY_CLAIM_OR_SUBMITTED;
    if (action == RELEASE_LEAVE && free_release(slots, mask)) return NULL;
    return pass_on(slots, action);
}

sp_wait_entry *sp__run_slots_release(sp_run_slots *slots)
{
    return SP_LIKELY(free_release(slots, ANY_WAITER)) ? NULL : contended_release(slots);
}

/* ---- submitted runs ---- */

sp_status sp__run_slots_admit(sp_run_slots *slots)
{
    if (sp_fetch_add_relaxed(&slots->submitted_count, 1) < SP_RUN_SLOTS_SUBMITTED) return SP_OK;
    sp__run_slots_retire(slots);
    return sp__fail(SP_BUSY, "%d submitted runs of the device are not done; wait for some first",
                    SP_RUN_SLOTS_SUBMITTED);
}

void sp__run_slots_retire(sp_run_slots *slots)
{
    sp_fetch_sub_relaxed(&slots->submitted_count, 1);
}

bool sp__run_slots_acquire_or_queue(sp_run_slots *slots, sp_wait_entry *entry)
{
    uint64_t word;
    if (SP_LIKELY(free_acquire(slots, &word))) return true;
    sp_mutex_lock(&slots->lock);
    const bool is_free = word_acquire_locked(slots, ONE_SUBMITTED);
    if (!is_free) sp__wait_queue_push(&slots->submitted, entry);
    sp_mutex_unlock(&slots->lock);
    return is_free;
}

sp_wait_entry *sp__run_slots_release_submitted(sp_run_slots *slots)
{
    return SP_LIKELY(free_release(slots, ANY_WAITER)) ? NULL : pass_on(slots, RELEASE_CALL);
}

void sp__run_slots_dequeue(sp_run_slots *slots, sp_wait_entry *entry)
{
    sp_mutex_lock(&slots->lock);
    sp__wait_queue_remove(&slots->submitted, entry);
    sp_fetch_sub_relaxed(&slots->word, ONE_SUBMITTED);
    sp_mutex_unlock(&slots->lock);
}
