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
    sp_store_relaxed(&slots->free.word, count * SP_RUN_ONE_FREE);
    sp__run_yields_init(&slots->yields, width);
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
    const uint64_t word = sp_load_relaxed(&slots->free.word);
    return sp__run_word_threads(word) + sp__run_word_submitted(word);
}

/* ---- kept slots ---- */

static sp_kept_slot *kept_of(sp_run_slots *slots, const sp_run_terms *terms)
{
    return &slots->free.kept[terms->lane % SP_KEPT_SLOTS];
}

/* What the lane has kept, which is the caller's slot now, or SP_KEPT_NONE. */
static uint32_t kept_take(sp_kept_slot *kept)
{
    const uint32_t state = sp_load_relaxed(&kept->state);
    if (state == SP_KEPT_NONE || SP_PLANTED(kept_twice)) return state;
    /* Acquire pairs with the release in kept_put: the context that the last run has released. */
    return sp_exchange_acquire(&kept->state, SP_KEPT_NONE);
}

uint32_t sp__run_slots_free_locked(const sp_run_slots *slots)
{
    uint32_t free = sp__run_word_free(sp_load_relaxed(&slots->free.word));
    for (uint32_t i = 0; i < SP_KEPT_SLOTS && !SP_PLANTED(left_unseen); i++) {
        /* Sequentially consistent, as the end of the watcher before it: the owner in kept_put sees
         * that there is none, or its slot is seen here, and a watcher found. */
        free += sp_load_seq_cst(&slots->free.kept[i].state) != SP_KEPT_NONE;
    }
    return free;
}

static uint32_t kept_kind(uint32_t state)
{
    return state & SP_KEPT_KIND;
}

/* A slot that is kept for others, unless waiters of the mask wait, for which it is meant then. */
static bool kept_steal(sp_run_slots *slots, uint64_t word, uint64_t waiters)
{
    if ((word & waiters) != 0) return false;
    for (uint32_t i = 0; i < SP_KEPT_SLOTS; i++) {
        if (kept_take(&slots->free.kept[i]) != SP_KEPT_NONE) return true;
    }
    return false;
}

/* Whether nothing waits that the mask names, and with SP_RUN_WATCHED in it there is a watcher. */
static bool word_allows(uint64_t word, uint64_t mask)
{
    return ((word ^ SP_RUN_WATCHED) & mask) == 0;
}

/* True if the slot is kept now, or was and is another run's; false: it is the caller's still, since
 * the word does not allow it, or the lane keeps one. */
static bool kept_put(sp_run_slots *slots, const sp_run_terms *terms, uint32_t state, uint64_t mask)
{
    uint32_t none = SP_KEPT_NONE;
    if (terms == NULL || !word_allows(sp_load_relaxed(&slots->free.word), mask)) return false;
    sp_kept_slot *kept = kept_of(slots, terms);
    /* Release pairs with kept_take; sequentially consistent: see sp__run_slots_sweep. */
    if (!sp_cas_seq_cst(&kept->state, &none, state)) return false;
    if (word_allows(sp_load_seq_cst(&slots->free.word), mask) || SP_PLANTED(keeps_blindly)) {
        return true;
    }
    return kept_take(kept) == SP_KEPT_NONE;
}

/* ---- the word ---- */

static bool free_acquire(sp_run_slots *slots, uint64_t *word)
{
    *word = sp_load_relaxed(&slots->free.word);
    while (sp__run_word_free(*word) != 0) {
        if (SP_PLANTED(take_taken)) sp_store_relaxed(&slots->free.word, *word - SP_RUN_ONE_FREE);
        if (SP_PLANTED(take_taken) ||
            sp_cas_acquire(&slots->free.word, word, *word - SP_RUN_ONE_FREE)) {
            return true;
        }
    }
    return false;
}

bool sp__run_word_acquire_locked(sp_run_slots *slots, bool may_take, uint64_t refused)
{
    const uint64_t before_sleep = SP_PLANTED(left_withheld) ? ANY_WAITER : ANY_CLAIM_OR_SUBMITTED;
    uint64_t word = sp_load_relaxed(&slots->free.word);
    for (;;) {
        const bool is_free =
            may_take && !SP_PLANTED(line_up_blindly) && sp__run_word_free(word) != 0;
        /* A slot that is left to its owner, before the caller sleeps: a free one would be taken. */
        if (may_take && !is_free && kept_steal(slots, word, before_sleep)) return true;
        const uint64_t next = is_free ? word - SP_RUN_ONE_FREE : word + refused;
        /* Acquire: a free slot's last owner; sequentially consistent: see sp__run_slots_sweep. */
        if (sp_cas_seq_cst(&slots->free.word, &word, next)) return is_free;
    }
}

/* True if the word allows it, and the slot is free now. */
static bool free_release(sp_run_slots *slots, uint64_t mask)
{
    uint64_t word = sp_load_relaxed(&slots->free.word);
    while (word_allows(word, mask)) {
        /* Release: the context that the run has released is there for the next taker. */
        if (sp_cas_release(&slots->free.word, &word, word + SP_RUN_ONE_FREE)) return true;
    }
    return false;
}

/* ---- acquire ---- */

void sp__run_slots_note_return(sp_run_slots *slots, sp_run_tenure *tenure)
{
    if (!sp__run_tenure_return(tenure) || SP_PLANTED(deserted_for_ever)) return;
    if (sp_load_relaxed(&slots->is_deserted) != 0) sp_store_relaxed(&slots->is_deserted, 0);
}

/* A free slot, while others wait: by a thread that has returned, or by a newcomer. */
static SP_NOINLINE void note_return(sp_run_slots *slots)
{
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) sp__run_slots_note_return(slots, &record->tenure);
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
    if (has_slot && sp__run_word_threads(sp_load_relaxed(&slots->free.word)) != 0)
        note_return(slots);
    return has_slot;
}

bool sp__run_slots_try_acquire(sp_run_slots *slots, const sp_run_terms *terms)
{
    uint64_t word;
    if (SP_UNLIKELY(is_counted(terms))) return counted_acquire(slots, terms);
    const uint32_t kept = terms != NULL ? kept_take(kept_of(slots, terms)) : SP_KEPT_NONE;
    if (kept_kind(kept) == SP_KEPT_LEFT) note_return(slots);
    if (SP_LIKELY(kept != SP_KEPT_NONE)) return true;
    if (!free_acquire(slots, &word)) return kept_steal(slots, word, ANY_WAITER);
    if (sp__run_word_threads(word) != 0) note_return(slots);
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
    sp_fetch_sub_relaxed(&slots->free.word, SP_RUN_ONE_CLAIMED);
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
        /* One for which a thread was not called has been cancelled. */
        if (calls && heirs->called == NULL) heirs->called = sp__run_thread_call_locked(slots);
        sp_fetch_add_release(&slots->free.word, SP_RUN_ONE_FREE);
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

/* Another quantum for short runs (docs/decisions/0038), while only runs of the same flow wait, by
 * threads of normal priority: others would wait longer than for their turn. */
static bool tenure_goes_on(sp_run_slots *slots, const sp_run_terms *terms, sp_run_tenure *tenure,
                           uint64_t held_ns)
{
    if (!sp__run_tenure_may_go_on(tenure)) return false;
    sp_mutex_lock(&slots->lock);
    const bool is_alone = sp__run_line_has_no_other_locked(slots, terms);
    if (is_alone) sp__run_line_charge_locked(slots, terms, held_ns);
    sp_mutex_unlock(&slots->lock);
    if (is_alone) sp__run_tenure_go_on(tenure);
    return is_alone;
}

/* What the owner does with a slot for which others wait. */
static sp_release_action action_choose(sp_run_slots *slots, const sp_run_terms *terms,
                                       uint64_t word, uint64_t *held_ns)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_RELEASE_CALL;
    const bool may_leave = sp_load_relaxed(&slots->is_deserted) == 0 || SP_PLANTED(owner_expected);
    sp_release_action action = sp__run_tenure_release(&record->tenure, may_leave, held_ns);
    if (action == SP_RELEASE_CALL_AND_STAY &&
        tenure_goes_on(slots, terms, &record->tenure, *held_ns)) {
        action = SP_RELEASE_LEAVE;
        *held_ns = 0;
    }
    const bool is_high = terms != NULL && terms->priority == SP_PRIORITY_HIGH;
    const bool is_overdue = (word & SP_RUN_URGENT) != 0 && !is_high && !SP_PLANTED(not_urgent);
    return action == SP_RELEASE_LEAVE && is_overdue ? SP_RELEASE_CALL_AND_STAY : action;
}

/* The thread has a record, or would not leave its slot. */
static bool kept_leave(sp_run_slots *slots, const sp_run_terms *terms, uint64_t mask)
{
    return kept_put(slots, terms, sp__run_tenure_left_state(&sp__thread_record()->tenure), mask);
}

static SP_NOINLINE sp_wait_entry *contended_release(sp_run_slots *slots, const sp_run_terms *terms)
{
    uint64_t held_ns = 0;
    const uint64_t word = sp_load_relaxed(&slots->free.word);
    const uint64_t waiters = SP_PLANTED(submitted_left) ? ANY_CLAIM : ANY_CLAIM_OR_SUBMITTED;
    const uint64_t mask = waiters + (SP_PLANTED(left_unwatched) ? 0 : SP_RUN_WATCHED);
    const sp_release_action action =
        (word & ANY_WAITER) != 0 ? action_choose(slots, terms, word, &held_ns) : SP_RELEASE_CALL;
    const bool may_leave = action == SP_RELEASE_LEAVE && !is_counted(terms);
    if (may_leave && kept_leave(slots, terms, mask)) return NULL;
    if (may_leave && free_release(slots, mask)) return NULL;
    return pass_on(slots, terms, action, held_ns);
}

sp_wait_entry *sp__run_slots_release(sp_run_slots *slots, const sp_run_terms *terms)
{
    if (SP_UNLIKELY(is_counted(terms))) return contended_release(slots, terms);
    if (SP_LIKELY(kept_put(slots, terms, SP_KEPT_FREE, ANY_WAITER))) return NULL;
    return free_release(slots, ANY_WAITER) ? NULL : contended_release(slots, terms);
}

/* ---- owners that do not come back ---- */

void sp__run_slots_note_deserted(sp_run_slots *slots)
{
    const uint64_t now = sp_clock_now();
    for (uint32_t i = 0; i < SP_KEPT_SLOTS; i++) {
        const uint32_t state = sp_load_relaxed(&slots->free.kept[i].state);
        if (kept_kind(state) != SP_KEPT_LEFT || !sp__run_tenure_is_overdue(state, now)) continue;
        sp_store_relaxed(&slots->is_deserted, 1);
        return;
    }
}

/* A slot that is left for a quantum stays with its owner, unless all are wanted. */
static bool kept_sweep(sp_kept_slot *kept, bool wants_left)
{
    /* Sequentially consistent, as the change of the word before it: the owner in kept_put sees that
     * change, or its slot is seen here. */
    uint32_t state = sp_load_seq_cst(&kept->state);
    if (state == SP_KEPT_NONE || (kept_kind(state) == SP_KEPT_LEFT && !wants_left)) return false;
    if (wants_left) return kept_take(kept) != SP_KEPT_NONE;
    return sp_cas_acquire(&kept->state, &state, SP_KEPT_NONE);
}

void sp__run_slots_sweep(sp_run_slots *slots, bool wants_left, sp_resume_list *ready)
{
    for (uint32_t i = 0; i < SP_KEPT_SLOTS && !SP_PLANTED(kept_unseen); i++) {
        if (!kept_sweep(&slots->free.kept[i], wants_left)) continue;
        sp_wait_entry *heirs = pass_on(slots, NULL, SP_RELEASE_CALL, 0);
        if (ready != NULL) sp__resume_list_add(ready, heirs);
        else sp__wait_entry_resume(heirs);
    }
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
    const bool may_wait = sp__run_line_may_wait_locked(slots, request, &queued);
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
    else sp__run_slots_sweep(slots, true, NULL);
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
