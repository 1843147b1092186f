/* SPDX-License-Identifier: Apache-2.0 */
/* The queues for run slots, and which request is next. */
#include "base/error.h"
#include "exec/run_slots_build.h"

#include "base/clock.h"

#include <streampool/model.h>

/* How often high priority is preferred in a row, while others wait. */
#define PASSES_OVER 8u

static const sp_run_terms any_terms;

static const sp_run_terms *terms_or_any(const sp_run_terms *terms)
{
    return terms != NULL ? terms : &any_terms;
}

/* ---- terms ---- */

bool sp__run_terms_have_lapsed(const sp_run_terms *terms)
{
    if (terms->cancel != NULL && sp_load_acquire(terms->cancel) != 0) return true;
    return terms->deadline_ns != 0 && terms->deadline_ns != SP_NO_DEADLINE &&
           sp_clock_now() >= terms->deadline_ns;
}

sp_status sp__run_terms_check(const sp_run_terms *terms)
{
    if (SP_LIKELY(!sp__run_terms_have_lapsed(terms))) return SP_OK;
    if (terms->cancel != NULL && sp_load_acquire(terms->cancel) != 0) {
        return sp__fail_cancelled();
    }
    return sp__fail(SP_TIMEOUT, "the run did not begin before its time-out; it was not run");
}

/* ---- counts ---- */

static sp_run_flow *flow_of(sp_run_slots *slots, const sp_run_terms *terms)
    SP_REQUIRES(&slots->lock)
{
    return terms->flow != NULL ? terms->flow : &slots->own;
}

static bool flow_has_room(const sp_run_flow *flow)
{
    return flow->limit == 0 || flow->active < flow->limit || SP_PLANTED(no_limit);
}

static bool submitted_have_room_locked(const sp_run_slots *slots, uint32_t priority)
    SP_REQUIRES(&slots->lock)
{
    const uint32_t others =
        SP_PLANTED(high_is_limited) ? slots->active[SP_PRIORITY_HIGH - priority] : 0;
    return slots->active[priority] + others < slots->width || SP_PLANTED(submitted_unlimited);
}

bool sp__run_line_has_room_locked(const sp_run_slots *slots, const sp_run_terms *terms)
{
    if (terms == NULL) return true;
    if (terms->is_submitted && !submitted_have_room_locked(slots, terms->priority)) return false;
    return terms->flow == NULL || flow_has_room(terms->flow);
}

void sp__run_line_count_locked(sp_run_slots *slots, const sp_run_terms *terms)
{
    if (terms == NULL || !terms->is_counted) return;
    if (terms->flow != NULL) terms->flow->active++;
    if (terms->is_submitted) slots->active[terms->priority]++;
    if (terms->priority == SP_PRIORITY_HIGH) slots->high++;
}

void sp__run_line_uncount_locked(sp_run_slots *slots, const sp_run_terms *terms)
{
    if (terms == NULL || !terms->is_counted || SP_PLANTED(slot_uncounted)) return;
    if (terms->flow != NULL) terms->flow->active--;
    if (terms->is_submitted && !SP_PLANTED(submitted_uncounted)) slots->active[terms->priority]--;
    if (terms->priority == SP_PRIORITY_HIGH) slots->high--;
}

void sp__run_line_charge_locked(sp_run_slots *slots, const sp_run_terms *terms, uint64_t ns)
{
    sp_run_flow *flow = flow_of(slots, terms_or_any(terms));
    const bool has_weight = flow->weight != 0 && !SP_PLANTED(weight_ignored);
    flow->used += ns / (has_weight ? flow->weight : 1) + 1;
}

bool sp__run_line_has_no_other_locked(sp_run_slots *slots, const sp_run_terms *terms)
{
    const sp_run_flow *own = flow_of(slots, terms_or_any(terms));
    const uint64_t word = sp_load_relaxed(&slots->free.word);
    const bool has_others = slots->flows != NULL && (slots->flows != own || own->next != NULL);
    if (SP_PLANTED(quanta_beside_others)) return true;
    return !has_others && slots->urgent == 0 && sp__run_word_submitted(word) == 0;
}

/* ---- places ---- */

static uint32_t flow_waiting(const sp_run_flow *flow)
{
    return flow->queued + flow->reserved;
}

static bool may_be_queued_locked(sp_run_slots *slots, const sp_run_terms *terms)
    SP_REQUIRES(&slots->lock)
{
    const sp_run_flow *flow = flow_of(slots, terms);
    return !terms->is_bounded || flow->most_queued == 0 || flow_waiting(flow) < flow->most_queued;
}

static void unreserve_locked(sp_run_slots *slots, sp_run_request *request) SP_REQUIRES(&slots->lock)
{
    if (request->has_place) flow_of(slots, &request->terms)->reserved--;
    request->has_place = false;
}

bool sp__run_slots_reserve(sp_run_slots *slots, sp_run_request *request)
{
    sp_mutex_lock(&slots->lock);
    request->has_place = may_be_queued_locked(slots, &request->terms);
    if (request->has_place) flow_of(slots, &request->terms)->reserved++;
    sp_mutex_unlock(&slots->lock);
    return request->has_place;
}

void sp__run_slots_unreserve(sp_run_slots *slots, sp_run_request *request)
{
    if (SP_LIKELY(!request->has_place)) return;
    sp_mutex_lock(&slots->lock);
    if (!SP_PLANTED(place_kept)) unreserve_locked(slots, request);
    sp_mutex_unlock(&slots->lock);
}

bool sp__run_line_may_wait_locked(sp_run_slots *slots, sp_run_request *request, uint32_t *waiting)
{
    const bool has_place = request->has_place;
    unreserve_locked(slots, request);
    *waiting = flow_waiting(flow_of(slots, &request->terms));
    if (request->terms.is_refused) return false;
    return has_place || may_be_queued_locked(slots, &request->terms);
}

/* ---- refusal ---- */

sp_status sp__run_terms_refuse(const sp_run_terms *terms, uint32_t waiting)
{
    if (terms->is_refused) {
        return sp__fail(SP_BUSY,
                        "no run slot is free%s, or max_concurrent_runs of the model is reached, "
                        "and the run is not to wait for one",
                        terms->is_submitted ? " for one more submitted run" : "");
    }
    return sp__fail(SP_BUSY,
                    "%u runs of the model wait for a run slot, as many as max_waiting of its "
                    "options allows; try again later",
                    waiting);
}

/* ---- queues ---- */

static sp_wait_queue *queue_of(sp_run_flow *flow, bool has_thread, uint32_t priority)
{
    return has_thread ? &flow->threads[priority] : &flow->submitted[priority];
}

/* Of one that has waited before, which is not put behind those of the same moment. */
static bool has_arrived_before(const sp_run_request *request, const sp_run_request *other)
{
    return request->queued_ns <= other->queued_ns;
}

static bool entry_precedes(const sp_wait_entry *entry, const sp_wait_entry *other)
{
    return has_arrived_before(SP_CONTAINER_OF(entry, const sp_run_request, entry),
                              SP_CONTAINER_OF(other, const sp_run_request, entry));
}

static void group_add(sp_run_request *request, bool is_again)
{
    sp_run_group *group = request->group;
    if (group == NULL) return;
    if (group->end == NULL) group->end = &group->first;
    sp_run_request **link = is_again ? &group->first : group->end;
    while (*link != NULL && !has_arrived_before(request, *link)) link = &(*link)->group_next;
    request->group_next = *link;
    request->group_link = link;
    *link = request;
    *(request->group_next != NULL ? &request->group_next->group_link : &group->end) =
        &request->group_next;
    sp_store_relaxed(&group->count, sp_load_relaxed(&group->count) + 1);
}

static void group_remove(sp_run_request *request)
{
    sp_run_group *group = request->group;
    if (group == NULL) return;
    *request->group_link = request->group_next;
    *(request->group_next != NULL ? &request->group_next->group_link : &group->end) =
        request->group_link;
    sp_store_relaxed(&group->count, sp_load_relaxed(&group->count) - 1);
}

/* A flow that had nothing to run begins beside the others, not before them. */
static void flow_list_locked(sp_run_slots *slots, sp_run_flow *flow) SP_REQUIRES(&slots->lock)
{
    for (uint32_t p = 0; p < SP_RUN_PRIORITIES; p++) {
        sp__wait_queue_init(&flow->threads[p]);
        sp__wait_queue_init(&flow->submitted[p]);
    }
    if (flow->used < slots->used && !SP_PLANTED(idle_saves)) flow->used = slots->used;
    flow->next = slots->flows;
    flow->link = &slots->flows;
    if (flow->next != NULL) flow->next->link = &flow->next;
    slots->flows = flow;
}

static void flow_unlist(sp_run_flow *flow)
{
    *flow->link = flow->next;
    if (flow->next != NULL) flow->next->link = flow->link;
}

static void urgent_add_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock)
{
    if (slots->urgent++ == 0) sp_fetch_add_relaxed(&slots->free.word, SP_RUN_URGENT);
}

static void urgent_remove_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock)
{
    if (--slots->urgent == 0) sp_fetch_sub_relaxed(&slots->free.word, SP_RUN_URGENT);
}

static bool is_urgent(const sp_run_request *request)
{
    return request->terms.priority == SP_PRIORITY_HIGH && sp__run_request_has_thread(request);
}

static void watcher_set_locked(sp_run_slots *slots, sp_run_request *request)
    SP_REQUIRES(&slots->lock)
{
    slots->watcher = request;
    sp_fetch_add_relaxed(&slots->free.word, SP_RUN_WATCHED);
}

static void watcher_leave_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock)
{
    slots->watcher = NULL;
    /* Sequentially consistent: see sp__run_slots_free_locked. */
    sp_fetch_sub_seq_cst(&slots->free.word, SP_RUN_WATCHED);
}

void sp__run_line_push_locked(sp_run_slots *slots, sp_run_request *request, bool is_again)
{
    const bool has_thread = sp__run_request_has_thread(request);
    sp_run_flow *flow = flow_of(slots, &request->terms);
    if (request->queued_ns == 0) request->queued_ns = sp_clock_now();
    if (flow->queued++ == 0) flow_list_locked(slots, flow);
    sp_wait_queue *queue = queue_of(flow, has_thread, request->terms.priority);
    if (is_again) sp__wait_queue_return(queue, &request->entry, entry_precedes);
    else sp__wait_queue_push(queue, &request->entry);
    group_add(request, is_again);
    if (is_urgent(request)) urgent_add_locked(slots);
    request->watches = has_thread && !is_again && slots->watcher == NULL;
    if (request->watches) watcher_set_locked(slots, request);
}

/* The entry is not linked any more. What it counts in the word. */
static uint64_t request_unlist_locked(sp_run_slots *slots, sp_run_request *request)
    SP_REQUIRES(&slots->lock)
{
    const bool has_thread = sp__run_request_has_thread(request);
    sp_run_flow *flow = flow_of(slots, &request->terms);
    group_remove(request);
    if (is_urgent(request)) urgent_remove_locked(slots);
    if (slots->watcher == request) watcher_leave_locked(slots);
    if (--flow->queued == 0) flow_unlist(flow);
    if (SP_PLANTED(stays_counted)) return 0;
    return has_thread ? SP_RUN_ONE_THREAD : SP_RUN_ONE_SUBMITTED;
}

static void request_removed_locked(sp_run_slots *slots, sp_run_request *request)
    SP_REQUIRES(&slots->lock)
{
    sp_fetch_sub_relaxed(&slots->free.word, request_unlist_locked(slots, request));
}

bool sp__run_line_unlist_locked(sp_run_slots *slots, sp_run_request *request, uint64_t *counted)
{
    sp_wait_queue *queue = queue_of(flow_of(slots, &request->terms),
                                    sp__run_request_has_thread(request), request->terms.priority);
    if (!sp__wait_queue_take(queue, &request->entry)) return false;
    *counted += request_unlist_locked(slots, request);
    return true;
}

bool sp__run_line_take_locked(sp_run_slots *slots, sp_run_request *request)
{
    uint64_t counted = 0;
    const bool is_taken = sp__run_line_unlist_locked(slots, request, &counted);
    sp_fetch_sub_relaxed(&slots->free.word, counted);
    return is_taken;
}

void sp__run_line_remove_locked(sp_run_slots *slots, sp_run_request *request)
{
    sp__wait_queue_remove(queue_of(flow_of(slots, &request->terms), false, request->terms.priority),
                          &request->entry);
    request_removed_locked(slots, request);
}

/* ---- which is next ---- */

/* The oldest one that is not cancelled; NULL: there is none. */
static const sp_run_request *oldest_of(const sp_wait_queue *queue)
{
    const sp_wait_entry *entry = queue->first;
    while (entry != NULL && sp_load_relaxed(&entry->is_queued) == 0) entry = entry->next;
    return entry != NULL ? SP_CONTAINER_OF(entry, const sp_run_request, entry) : NULL;
}

/* Whether the last run that the flow's limit allows is a submitted one: of higher priority than the
 * thread, or one that has waited for longer. A called thread counts before it has a slot, so that
 * without this each run that ends would make room for a thread, and never for a submitted run. */
static bool is_left_to_submitted_locked(const sp_run_slots *slots, const sp_run_flow *flow,
                                        const sp_run_request *thread) SP_REQUIRES(&slots->lock)
{
    if (flow->limit == 0 || flow->active + 1 < flow->limit || SP_PLANTED(threads_only))
        return false;
    for (uint32_t p = thread->terms.priority; p < SP_RUN_PRIORITIES; p++) {
        const sp_run_request *submitted = oldest_of(&flow->submitted[p]);
        if (submitted == NULL || !submitted_have_room_locked(slots, p)) continue;
        if (p > thread->terms.priority || has_arrived_before(submitted, thread)) return true;
    }
    return false;
}

/* The flow that has used its slots for the shortest time, of those with such a request. */
static sp_run_flow *flow_next_locked(sp_run_slots *slots, bool has_thread, uint32_t priority)
    SP_REQUIRES(&slots->lock)
{
    sp_run_flow *best = NULL;
    for (sp_run_flow *flow = slots->flows; flow != NULL; flow = flow->next) {
        if (best != NULL && flow->used >= best->used) continue;
        const sp_run_request *oldest = oldest_of(queue_of(flow, has_thread, priority));
        if (oldest == NULL || !flow_has_room(flow)) continue;
        if (has_thread && is_left_to_submitted_locked(slots, flow, oldest)) continue;
        best = flow;
    }
    return best;
}

static sp_run_request *pop_locked(sp_run_slots *slots, bool has_thread, uint32_t priority)
    SP_REQUIRES(&slots->lock)
{
    if (!has_thread && !submitted_have_room_locked(slots, priority)) return NULL;
    for (sp_run_flow *flow; (flow = flow_next_locked(slots, has_thread, priority)) != NULL;) {
        sp_wait_entry *entry = sp__wait_queue_pop(queue_of(flow, has_thread, priority));
        if (entry == NULL) continue; /* cancelled since */
        if (flow->used > slots->used) slots->used = flow->used;
        request_removed_locked(slots, sp__run_request_of(entry));
        return sp__run_request_of(entry);
    }
    return NULL;
}

sp_run_request *sp__run_line_pop_locked(sp_run_slots *slots, bool has_thread)
{
    uint32_t *passed_over = &slots->passed_over[has_thread];
    const bool is_turn = *passed_over >= PASSES_OVER && !SP_PLANTED(always_over);
    const bool is_normal_first = is_turn || SP_PLANTED(priority_ignored);
    const uint32_t first = is_normal_first ? SP_PRIORITY_NORMAL : SP_PRIORITY_HIGH;
    sp_run_request *request = pop_locked(slots, has_thread, first);
    if (request == NULL) {
        request = pop_locked(slots, has_thread, SP_PRIORITY_HIGH + SP_PRIORITY_NORMAL - first);
    }
    if (request == NULL) return NULL;
    *passed_over = request->terms.priority == SP_PRIORITY_HIGH ? *passed_over + 1 : 0;
    sp__run_line_count_locked(slots, &request->terms);
    return request;
}

sp_wait_entry *sp__run_line_start_locked(sp_run_slots *slots)
{
    sp_wait_entry *first = NULL, **end = &first;
    while (sp__run_word_acquire_locked(slots, true, 0)) {
        sp_run_request *submitted = sp__run_line_pop_locked(slots, false);
        if (submitted == NULL) {
            sp_fetch_add_release(&slots->free.word, SP_RUN_ONE_FREE);
            break;
        }
        submitted->granted_ns = sp_clock_now();
        *end = &submitted->entry;
        end = &submitted->entry.next;
    }
    return first;
}

bool sp__run_line_pass_over_locked(sp_run_slots *slots, const sp_run_request *claim)
{
    if (claim->terms.priority != SP_PRIORITY_HIGH) return false;
    return ++slots->passed_over[true] >= PASSES_OVER;
}

/* ---- the watcher ---- */

/* The newest thread of any flow. */
static sp_run_request *thread_find_locked(const sp_run_slots *slots) SP_REQUIRES(&slots->lock)
{
    for (sp_run_flow *flow = slots->flows; flow != NULL; flow = flow->next) {
        for (uint32_t p = 0; p < SP_RUN_PRIORITIES; p++) {
            const sp_wait_queue *queue = &flow->threads[p];
            if (queue->first == NULL) continue;
            return sp__run_request_of(SP_CONTAINER_OF(queue->end, sp_wait_entry, next));
        }
    }
    return NULL;
}

sp_parker *sp__run_line_find_watcher_locked(sp_run_slots *slots)
{
    if (slots->watcher != NULL || SP_PLANTED(watcher_taken)) return NULL;
    /* Called threads take as many. A slot is not left free later without a watcher. */
    if (sp__run_slots_free_locked(slots) <= slots->called) return NULL;
    sp_run_request *request = thread_find_locked(slots);
    if (request == NULL) return NULL;
    watcher_set_locked(slots, request);
    if (request->watches) return NULL;
    request->watches = true;
    return request->parker;
}
