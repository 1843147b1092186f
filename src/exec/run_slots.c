/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: the word, and how a slot is taken and released. */
#include "exec/run_slots.h"

#include <streampool/model.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "device/thread_record.h"
#include "exec/run_slots_build.h"
#include "exec/run_tenure.h"

/* Of the word: waiters that may not wait beside a free slot, and all of them. */
#define ANY_CLAIM ((SP_RUN_FIELD >> 2) * SP_RUN_ONE_CLAIMED)
#define ANY_CLAIM_OR_SUBMITTED (ANY_CLAIM + SP_RUN_FIELD * SP_RUN_ONE_SUBMITTED)
#define ANY_WAITER (ANY_CLAIM_OR_SUBMITTED + SP_RUN_FIELD * SP_RUN_ONE_THREAD)

void sp__run_slots_init(sp_run_slots *slots, uint32_t count, uint32_t width)
{
    SP_ASSERT(count > 0 && count <= SP_RUN_FIELD >> 2);
    *slots = (sp_run_slots){.count = count, .width = width};
    sp_store_relaxed(&slots->word, count * SP_RUN_ONE_FREE);
    sp_mutex_init(&slots->lock, SP_LOCK_RUN_SLOTS);
    sp_mutex_lock(&slots->lock);
    sp__wait_queue_init(&slots->claims);
    sp_mutex_unlock(&slots->lock);
}

void sp__run_slots_deinit(sp_run_slots *slots)
{
    sp_mutex_deinit(&slots->lock);
}

uint32_t sp__run_slots_waiting(const sp_run_slots *slots)
{
    const uint64_t word = sp_load_relaxed(&slots->word);
    return sp__run_word_threads(word) + sp__run_word_submitted(word);
}

/* ---- the word ---- */

static bool free_acquire(sp_run_slots *slots, uint64_t *word)
{
    *word = sp_load_relaxed(&slots->word);
    while (sp__run_word_free(*word) != 0) {
        if (SP_PLANTED(take_taken)) sp_store_relaxed(&slots->word, *word - SP_RUN_ONE_FREE);
        if (SP_PLANTED(take_taken) || sp_cas_acquire(&slots->word, word, *word - SP_RUN_ONE_FREE)) {
            return true;
        }
    }
    return false;
}

bool sp__run_word_acquire_locked(sp_run_slots *slots, bool may_take, uint64_t refused)
{
    uint64_t word = sp_load_relaxed(&slots->word);
    for (;;) {
        const bool is_free =
            may_take && !SP_PLANTED(line_up_blindly) && sp__run_word_free(word) != 0;
        const uint64_t next = is_free ? word - SP_RUN_ONE_FREE : word + refused;
        if (sp_cas_acquire(&slots->word, &word, next)) return is_free;
    }
}

/* True if nothing waits that the mask names, and the slot is free now. With SP_RUN_WATCHED in the
 * mask there must be a watcher. */
static bool free_release(sp_run_slots *slots, uint64_t mask)
{
    uint64_t word = sp_load_relaxed(&slots->word);
    while (((word ^ SP_RUN_WATCHED) & mask) == 0) {
        /* Release: the context that the run has released is there for the next taker. */
        if (sp_cas_release(&slots->word, &word, word + SP_RUN_ONE_FREE)) return true;
    }
    return false;
}

/* ---- acquire ---- */

/* A free slot, while others wait: by a thread that has returned, or by a newcomer. */
static SP_NOINLINE void note_return(void)
{
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) sp__run_tenure_return(&record->tenure);
}

static bool is_counted(const sp_run_terms *terms)
{
    return terms != NULL && terms->is_counted;
}

static SP_NOINLINE bool counted_acquire(sp_run_slots *slots, const sp_run_terms *terms)
{
    sp_mutex_lock(&slots->lock);
    const bool has_slot =
        sp__run_word_acquire_locked(slots, sp__run_line_has_room_locked(slots, terms), 0);
    if (has_slot) sp__run_line_count_locked(slots, terms);
    sp_mutex_unlock(&slots->lock);
    if (has_slot && sp__run_word_threads(sp_load_relaxed(&slots->word)) != 0) note_return();
    return has_slot;
}

bool sp__run_slots_try_acquire(sp_run_slots *slots, const sp_run_terms *terms)
{
    uint64_t word;
    if (SP_UNLIKELY(is_counted(terms))) return counted_acquire(slots, terms);
    if (SP_UNLIKELY(!free_acquire(slots, &word))) return false;
    if (SP_UNLIKELY(sp__run_word_threads(word) != 0)) note_return();
    return true;
}

sp_status sp__run_slots_acquire(sp_run_slots *slots, const sp_run_terms *terms)
{
    if (SP_LIKELY(sp__run_slots_try_acquire(slots, terms))) return SP_OK;
    sp_run_request request = {0};
    if (terms != NULL) request.terms = *terms;
    bool is_done; /* false: no group */
    return sp__run_slots_wait(slots, &request, &is_done);
}

/* ---- release ---- */

/* Lets the called thread wake up. It takes a while, which does not count as an absence. */
static void stay(void)
{
    sp_thread_yield();
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) record->tenure.released = sp_clock_now();
}

/* What becomes of a slot, decided under the lock and done without it. */
typedef struct slot_heirs {
    sp_wait_entry *entry;   /* has the slot now, and those after it have others; or NULL */
    sp_run_request *called; /* or NULL */
    sp_parker *watcher;     /* or NULL */
} slot_heirs;

static void slot_grant_claim_locked(sp_run_slots *slots, slot_heirs *heirs)
    SP_REQUIRES(&slots->lock)
{
    sp_fetch_sub_relaxed(&slots->word, SP_RUN_ONE_CLAIMED);
    if (sp__run_line_pass_over_locked(slots, sp__run_request_of(heirs->entry))) {
        heirs->called = sp__run_thread_call_locked(slots);
    }
}

static void slot_grant_locked(sp_run_slots *slots, bool calls, slot_heirs *heirs)
    SP_REQUIRES(&slots->lock)
{
    if (calls) heirs->called = sp__run_thread_call_locked(slots);
    sp_run_request *submitted = sp__run_line_pop_locked(slots, false);
    if (submitted == NULL) {
        sp_fetch_add_release(&slots->word, SP_RUN_ONE_FREE);
        return;
    }
    submitted->granted_ns = sp_clock_now();
    heirs->entry = &submitted->entry;
    /* The end of a counted run lets one more begin that its successor does not count with: of its
     * model, of its priority. */
    if (!SP_PLANTED(one_heir)) heirs->entry->next = sp__run_line_start_locked(slots);
}

/* The slot goes to a claim, a submitted run, or is free; and a thread is called, unless the slot's
 * owner takes it again. Returns the entry that has the slot now. */
static sp_wait_entry *pass_on(sp_run_slots *slots, const sp_run_terms *terms,
                              sp_release_action action, uint64_t held_ns)
{
    slot_heirs heirs = {0};
    sp_mutex_lock(&slots->lock);
    if (held_ns != 0) sp__run_line_charge_locked(slots, terms, held_ns);
    sp__run_line_uncount_locked(slots, terms);
    if (!SP_PLANTED(forget_claim)) heirs.entry = sp__wait_queue_pop(&slots->claims);
    if (heirs.entry != NULL) slot_grant_claim_locked(slots, &heirs);
    else slot_grant_locked(slots, action != SP_RELEASE_LEAVE, &heirs);
    heirs.watcher = sp__run_line_find_watcher_locked(slots);
    sp_mutex_unlock(&slots->lock);
    if (heirs.watcher != NULL) sp_parker_unpark(heirs.watcher);
    if (heirs.called != NULL && !SP_PLANTED(lost_call)) {
        sp__run_thread_set(heirs.called, SP_RUN_CALLED);
    }
    if (heirs.called != NULL && action == SP_RELEASE_CALL_AND_STAY) stay();
    return heirs.entry;
}

/* What the owner does with a slot for which others wait. */
static sp_release_action action_choose(const sp_run_terms *terms, uint64_t word, uint64_t *held_ns)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_RELEASE_CALL;
    const sp_release_action action = sp__run_tenure_release(&record->tenure, held_ns);
    const bool is_high = terms != NULL && terms->priority == SP_PRIORITY_HIGH;
    const bool is_overdue = (word & SP_RUN_URGENT) != 0 && !is_high && !SP_PLANTED(not_urgent);
    return action == SP_RELEASE_LEAVE && is_overdue ? SP_RELEASE_CALL_AND_STAY : action;
}

static SP_NOINLINE sp_wait_entry *contended_release(sp_run_slots *slots, const sp_run_terms *terms)
{
    uint64_t held_ns = 0;
    const uint64_t word = sp_load_relaxed(&slots->word);
    const uint64_t waiters = SP_PLANTED(submitted_left) ? ANY_CLAIM : ANY_CLAIM_OR_SUBMITTED;
    const uint64_t mask = waiters + (SP_PLANTED(left_unwatched) ? 0 : SP_RUN_WATCHED);
    const sp_release_action action =
        (word & ANY_WAITER) != 0 ? action_choose(terms, word, &held_ns) : SP_RELEASE_CALL;
    if (action == SP_RELEASE_LEAVE && !is_counted(terms) && free_release(slots, mask)) return NULL;
    return pass_on(slots, terms, action, held_ns);
}

sp_wait_entry *sp__run_slots_release(sp_run_slots *slots, const sp_run_terms *terms)
{
    if (SP_LIKELY(!is_counted(terms) && free_release(slots, ANY_WAITER))) return NULL;
    return contended_release(slots, terms);
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

/* *has_slot, or it is queued. */
static sp_status acquire_or_queue(sp_run_slots *slots, sp_run_request *request, bool *has_slot)
{
    const sp_run_terms *terms = &request->terms;
    sp_mutex_lock(&slots->lock);
    uint32_t queued;
    const bool may_wait = sp__run_line_may_wait_locked(slots, terms, &queued);
    *has_slot = sp__run_word_acquire_locked(slots, sp__run_line_has_room_locked(slots, terms),
                                            may_wait ? SP_RUN_ONE_SUBMITTED : 0);
    if (*has_slot) sp__run_line_count_locked(slots, terms);
    else if (may_wait) sp__run_line_push_locked(slots, request, false);
    sp__run_request_uncount(request);
    sp_mutex_unlock(&slots->lock);
    return *has_slot || may_wait ? SP_OK : sp__run_terms_refuse(terms, queued);
}

sp_status sp__run_slots_submit(sp_run_slots *slots, sp_run_request *request)
{
    bool has_slot;
    SP_TRY(acquire_or_queue(slots, request, &has_slot));
    if (has_slot) sp__wait_entry_resume(&request->entry);
    return SP_OK;
}

sp_wait_entry *sp__run_slots_release_submitted(sp_run_slots *slots, const sp_run_request *request)
{
    const sp_run_terms *terms = &request->terms;
    const uint64_t granted = request->granted_ns;
    return pass_on(slots, terms, SP_RELEASE_CALL, granted != 0 ? sp_clock_now() - granted : 0);
}

bool sp__run_request_claim(sp_run_request *request)
{
    (void)sp_exchange_acq_rel(&request->is_awaited, 1);
    return sp__wait_entry_claim(&request->entry);
}

void sp__run_slots_dequeue(sp_run_slots *slots, sp_run_request *request)
{
    sp_mutex_lock(&slots->lock);
    sp__run_line_remove_locked(slots, request);
    sp_mutex_unlock(&slots->lock);
}
