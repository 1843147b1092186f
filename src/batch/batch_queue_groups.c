/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a batch queue: which one leads next, which ones it takes, and when. */
#include "batch/batch_queue.h"

#include "base/clock.h"
#include "base/heap.h"
#include "batch/batch_queue_timer.h"

static sp_rt_future *run_of(sp_wait_entry *entry)
{
    return SP_CONTAINER_OF(entry, sp_rt_future, request.entry);
}

/* ---- groups ---- */

static bool group_is_used(const sp_batch_group *group)
{
    return group->count + group->pending > 0;
}

static sp_batch_group *group_add_locked(sp_rt_batch_queue *queue) SP_REQUIRES(&queue->lock)
{
    sp_batch_group *group = sp_calloc(1, sizeof *group);
    if (group == NULL) return NULL;
    sp__wait_queue_init(&group->requests);
    group->next = queue->alone.next;
    queue->alone.next = group;
    return group;
}

/* The group of the run. Without memory for one, and for a plan that no other run uses, that of the
 * requests that run alone. */
static sp_batch_group *group_of_locked(sp_rt_batch_queue *queue, const sp_rt_future *run)
    SP_REQUIRES(&queue->lock)
{
    sp_batch_group *unused = NULL;
    const sp_plan_entry *entry = run->plan_entry;
    const uint32_t priority = run->request.terms.priority;
    if (entry->is_private) return &queue->alone;
    for (sp_batch_group *group = queue->alone.next; group != NULL; group = group->next) {
        if (!group_is_used(group)) unused = group;
        else if (group->entry == entry && group->priority == priority) return group;
    }
    if (unused == NULL) unused = group_add_locked(queue);
    if (unused == NULL) return &queue->alone;
    unused->entry = entry;
    unused->priority = priority;
    return unused;
}

static void group_push_locked(sp_batch_group *group, sp_rt_future *run)
{
    run->place.group = group;
    run->place.is_in_group = true;
    run->place.is_due = false;
    group->count++;
    if (group->gated == NULL) group->gated = &run->request.entry;
    sp__wait_queue_push(&group->requests, &run->request.entry);
}

/* The run's entry was unlinked; `next` came after it. */
static void group_left_locked(sp_batch_group *group, sp_rt_future *run, sp_wait_entry *next)
{
    sp_queue_place *place = &run->place;
    if (group->gated == &run->request.entry) group->gated = next;
    if (place->is_due) group->due--;
    place->is_due = place->is_in_group = false;
    group->count--;
}

/* False if another party has claimed the run, which removes it. */
static bool group_take_locked(sp_batch_group *group, sp_rt_future *run)
{
    sp_wait_entry *next = run->request.entry.next;
    if (!sp__wait_queue_take(&group->requests, &run->request.entry)) return false;
    group_left_locked(group, run, next);
    return true;
}

/* The oldest request, or NULL. */
static sp_rt_future *group_pop_locked(sp_batch_group *group)
{
    for (sp_wait_entry *entry = group->requests.first; entry != NULL; entry = entry->next) {
        if (group_take_locked(group, run_of(entry))) return run_of(entry);
    }
    return NULL;
}

/* ---- the end of the wait ---- */

/* The run starts, or ends without a start. */
static void run_start_locked(sp_rt_batch_queue *queue, sp_rt_future *run, uint64_t now)
    SP_REQUIRES(&queue->lock)
{
    sp_queue_place *place = &run->place;
    if (place->is_pending) place->group->pending--;
    place->is_pending = false;
    if (!place->is_waiting) return;
    place->is_waiting = false;
    queue->waiting--;
    const uint64_t waited = now > place->arrived_ns ? now - place->arrived_ns : 0;
    queue->total_wait_ns += waited;
    if (waited > queue->longest_wait_ns) queue->longest_wait_ns = waited;
}

/* ---- gates ---- */

/* The most rows of a batch of the group; 1: no batches are made of it. */
static uint32_t group_rows_most_locked(const sp_rt_batch_queue *queue, const sp_batch_group *group)
    SP_REQUIRES(&queue->lock)
{
    const sp_batch_plans *plans = group->entry != NULL ? sp__batch_plans_of(group->entry) : NULL;
    if (plans == NULL) return 1;
    for (uint32_t i = sp__batch_plans_count(plans); i-- > 0;) {
        if (plans->buckets[i].rows <= queue->options.max_batch) return plans->buckets[i].rows;
    }
    return 1;
}

/* One poll of the gates of all groups. */
typedef struct gate_poll {
    bool is_open; /* all are */
    uint64_t now;
    uint64_t opens_ns; /* when the next one opens by itself */
} gate_poll;

/* Lets the `count` oldest of those behind the gate through. */
static void gate_pass_locked(sp_batch_group *group, uint32_t count)
{
    for (; count > 0 && group->gated != NULL; count--) {
        run_of(group->gated)->place.is_due = true;
        group->due++;
        group->gated = group->gated->next;
    }
}

static void gate_poll_locked(const sp_rt_batch_queue *queue, sp_batch_group *group, uint32_t most,
                             gate_poll *poll) SP_REQUIRES(&queue->lock)
{
    const uint32_t gated = group->count - group->due;
    const uint32_t full = gated - gated % most;
    gate_pass_locked(group, SP_PLANTED(rest_is_gated) && full > 0 ? 1 : full);
    if (group->gated == NULL) return;
    const uint64_t opens_ns =
        run_of(group->gated)->place.arrived_ns + (uint64_t)queue->options.max_delay_ns;
    if (opens_ns <= poll->now) gate_pass_locked(group, UINT32_MAX);
    else if (opens_ns < poll->opens_ns) poll->opens_ns = opens_ns;
}

/* Whether the oldest request of the group may lead: not if pending leads can take all that are due.
 */
static bool group_may_lead_locked(const sp_rt_batch_queue *queue, sp_batch_group *group,
                                  gate_poll *poll) SP_REQUIRES(&queue->lock)
{
    const uint32_t most = group_rows_most_locked(queue, group);
    const bool has_gate = !poll->is_open && most > 1 && group->priority == SP_PRIORITY_NORMAL;
    if (has_gate) gate_poll_locked(queue, group, most, poll);
    return (has_gate ? group->due : group->count) > group->pending * (most - 1);
}

/* How often high priority is preferred in a row, while others wait. */
#define PASSES_OVER 8u

/* Whether requests of `group` lead before those of `other`. */
static bool group_precedes_locked(const sp_rt_batch_queue *queue, const sp_batch_group *group,
                                  const sp_batch_group *other) SP_REQUIRES(&queue->lock)
{
    const bool is_turn = queue->passed_over >= PASSES_OVER;
    if (group->priority != other->priority) {
        return (group->priority == SP_PRIORITY_HIGH) != is_turn;
    }
    return run_of(group->requests.first)->place.number <
           run_of(other->requests.first)->place.number;
}

/* The group whose oldest request is the next to lead, or NULL. */
static sp_batch_group *group_next_locked(sp_rt_batch_queue *queue, gate_poll *poll)
    SP_REQUIRES(&queue->lock)
{
    sp_batch_group *next = NULL;
    for (sp_batch_group *group = &queue->alone; group != NULL; group = group->next) {
        if (group->count == 0 || !group_may_lead_locked(queue, group, poll)) continue;
        if (next == NULL || group_precedes_locked(queue, group, next)) next = group;
    }
    return next;
}

/* False if the timer does not run: the gates are open then. */
static bool timer_set_locked(sp_rt_batch_queue *queue, uint64_t opens_ns) SP_REQUIRES(&queue->lock)
{
    if (queue->timer_ns <= opens_ns) return true;
    if (!sp__batch_timer_set(opens_ns)) return false;
    queue->timer_ns = opens_ns;
    return true;
}

static sp_batch_group *group_open_locked(sp_rt_batch_queue *queue) SP_REQUIRES(&queue->lock)
{
    /* No request comes to a full queue before one starts. */
    const bool is_full = queue->waiting >= queue->options.max_waiting;
    gate_poll poll = {.is_open = queue->options.max_delay_ns == 0 || queue->is_released || is_full,
                      .opens_ns = SP_NO_DEADLINE};
    if (!poll.is_open) poll.now = sp_clock_now();
    sp_batch_group *group = group_next_locked(queue, &poll);
    if (group != NULL || poll.opens_ns == SP_NO_DEADLINE) return group;
    if (timer_set_locked(queue, poll.opens_ns)) return NULL;
    poll.is_open = true;
    return group_next_locked(queue, &poll);
}

/* ---- leads ---- */

/* The next run that leads; NULL: none may. */
static sp_rt_future *lead_take_locked(sp_rt_batch_queue *queue) SP_REQUIRES(&queue->lock)
{
    if (queue->leads >= queue->options.workers) return NULL;
    sp_batch_group *group = group_open_locked(queue);
    sp_rt_future *run = group != NULL ? group_pop_locked(group) : NULL;
    if (run == NULL) return NULL; /* all of them are being removed, which settles the queue */
    if (!SP_PLANTED(lead_is_not_pending)) group->pending++;
    if (!SP_PLANTED(lead_is_not_pending)) run->place.is_pending = true;
    const bool is_high = group->priority == SP_PRIORITY_HIGH;
    queue->passed_over = is_high ? queue->passed_over + 1 : 0;
    run->place.is_lead = true;
    queue->leads++;
    return run;
}

/* For the counters of the model. */
static void wait_note(sp_rt_future *run, uint64_t now)
{
    run->request.queued_ns = run->place.arrived_ns;
    run->request.granted_ns = now;
}

/* A callback may wait for the run already, so it is as one that is given back: if it would have to
 * wait for a slot it is run inline. */
static void lead_start(sp_rt_future *run, sp_resume_list *ready)
{
    sp__run_slots_give_back(run->slots, &run->request, ready);
}

/* A thread that has a place now, or NULL. */
static sp_wait_entry *room_take_locked(sp_rt_batch_queue *queue) SP_REQUIRES(&queue->lock)
{
    if (queue->waiting + queue->reserved >= queue->options.max_waiting) return NULL;
    sp_wait_entry *entry = sp__wait_queue_pop(&queue->room);
    if (entry != NULL) queue->reserved++;
    return entry;
}

void sp__batch_queue_settle(sp_rt_batch_queue *queue, sp_resume_list *ready)
{
    sp_rt_future *lead;
    sp_wait_entry *submitter;
    do {
        sp_mutex_lock(&queue->lock);
        lead = lead_take_locked(queue);
        submitter = SP_PLANTED(room_unseen) ? NULL : room_take_locked(queue);
        sp_mutex_unlock(&queue->lock);
        sp__resume_list_add(ready, submitter); /* a thread: it is unparked */
        if (lead == NULL) continue;
        wait_note(lead, sp_clock_now());
        lead_start(lead, ready);
    } while (lead != NULL || submitter != NULL);
}

void sp__batch_queue_flush(sp_rt_batch_queue *queue, bool is_last)
{
    sp_resume_list ready = {0};
    if (SP_PLANTED(late_flush)) sp__batch_queue_settle(queue, &ready);
    sp_mutex_lock(&queue->lock);
    if (is_last || SP_PLANTED(flush_closes)) queue->is_released = is_last;
    /* The first group by itself: else clang-analyzer assumes that its address may be NULL. */
    gate_pass_locked(&queue->alone, UINT32_MAX);
    for (sp_batch_group *group = queue->alone.next; group != NULL; group = group->next) {
        gate_pass_locked(group, UINT32_MAX);
    }
    sp_mutex_unlock(&queue->lock);
    if (!SP_PLANTED(late_flush)) sp__batch_queue_settle(queue, &ready);
    sp__resume_list_run(&ready);
}

/* ---- requests ---- */

void sp__batch_queue_add(sp_rt_batch_queue *queue, sp_rt_future *run, sp_resume_list *ready)
{
    sp_queue_place *place = &run->place;
    place->arrived_ns = sp_clock_now();
    sp_mutex_lock(&queue->lock);
    queue->reserved--;
    queue->waiting++;
    place->is_waiting = true;
    place->number = queue->next_number++;
    group_push_locked(group_of_locked(queue, run), run);
    sp_rt_future *lead = lead_take_locked(queue);
    sp_mutex_unlock(&queue->lock);
    if (lead == NULL) return;
    if (lead != run) wait_note(lead, sp_clock_now());
    lead_start(lead, ready);
    sp__batch_queue_settle(queue, ready);
}

void sp__batch_queue_remove(sp_rt_future *run, sp_resume_list *ready)
{
    sp_rt_batch_queue *queue = run->place.queue;
    sp_batch_group *group = run->place.group;
    const uint64_t now = sp_clock_now();
    sp_mutex_lock(&queue->lock);
    sp_wait_entry *next = run->request.entry.next;
    sp__wait_queue_remove(&group->requests, &run->request.entry);
    group_left_locked(group, run, next);
    run_start_locked(queue, run, now);
    sp_mutex_unlock(&queue->lock);
    sp__batch_queue_settle(queue, ready);
}

static void outcome_count(sp_rt_batch_queue *queue, const sp_rt_future *run)
{
    const sp_status status = sp__fault_status(run->fault);
    sp_atomic_u64 *count = &queue->failed;
    if (status == SP_OK) count = &queue->done;
    else if (status == SP_CANCELLED) count = &queue->cancelled;
    else if (status == SP_TIMEOUT) count = &queue->expired;
    sp_fetch_add_relaxed(count, (uint64_t)1);
    if (run->is_counted) sp__batch_queue_count(queue, 1); /* it was computed alone */
}

void sp__batch_queue_end(sp_rt_future *run, sp_resume_list *ready)
{
    sp_rt_batch_queue *queue = run->place.queue;
    if (run->place.is_waiting) {
        const uint64_t now = sp_clock_now();
        sp_mutex_lock(&queue->lock);
        run_start_locked(queue, run, now);
        sp_mutex_unlock(&queue->lock);
    }
    outcome_count(queue, run);
    if (!run->place.is_lead) return;
    sp__batch_queue_lead_end(queue);
    if (!SP_PLANTED(quiet_lead)) sp__batch_queue_settle(queue, ready);
}

/* ---- batches ---- */

/* Up to so many requests are searched for a batch: where few of them go together, the others wait
 * for a lead of their own. */
#define SEARCHED (8 * SP_BATCH_ROWS)

/* How many requests a batch of the group may take beside its lead. With a delay all that wait were
 * gathered for one batch; without, each worker of a device with few slots takes its share. */
static uint32_t share_locked(const sp_rt_batch_queue *queue, const sp_batch_plans *plans,
                             const sp_rt_future *lead) SP_REQUIRES(&queue->lock)
{
    const uint32_t waiting = lead->place.group->count;
    const uint32_t most = queue->options.max_batch - 1;
    uint32_t parts = 1;
    if (plans->own_slots == NULL && queue->options.max_delay_ns == 0) {
        const sp_run_flow *flow = lead->request.terms.flow;
        const uint32_t limit = flow != NULL ? flow->limit : 0;
        parts = lead->slots->width < queue->options.workers ? lead->slots->width
                                                            : queue->options.workers;
        if (limit != 0 && limit < parts) parts = limit;
    }
    const uint32_t share = (waiting + parts - 1) / parts;
    return share < most ? share : most;
}

static bool run_may_join(const sp_batch_plans *plans, const sp_rt_future *lead,
                         const sp_rt_future *run)
{
    const bool is_queued = sp_load_relaxed(&run->request.entry.is_queued) != 0;
    return is_queued && sp__batch_accepts(plans, &lead->request, &run->request);
}

/* How many of the `most` oldest that may join the batch there are. */
static uint32_t joiners_count(const sp_batch_plans *plans, const sp_rt_future *lead, uint32_t most)
{
    uint32_t count = 0;
    uint32_t searched = 0;
    for (sp_wait_entry *entry = lead->place.group->requests.first;
         entry != NULL && count < most && searched < SEARCHED; entry = entry->next) {
        searched++;
        if (run_may_join(plans, lead, run_of(entry))) count++;
    }
    return count;
}

static uint32_t joiners_take_locked(sp_rt_batch_queue *queue, const sp_rt_future *lead,
                                    sp_batch *batch, uint64_t now) SP_REQUIRES(&queue->lock)
{
    sp_batch_group *group = lead->place.group;
    uint32_t count = 1;
    uint32_t searched = 0;
    for (sp_wait_entry *next, *entry = group->requests.first;
         entry != NULL && count < batch->bucket->rows && searched < SEARCHED; entry = next) {
        sp_rt_future *run = run_of(entry);
        next = entry->next;
        searched++;
        if (!run_may_join(batch->plans, lead, run) || !group_take_locked(group, run)) continue;
        run_start_locked(queue, run, now);
        wait_note(run, now);
        batch->requests[count++] = &run->request;
    }
    return count;
}

/* The run is to run alone. If a callback waits for it, it may not wait behind others: it is
 * prepended to the list, linked by group_next, of those to be run inline. */
static void alone_push_locked(sp_rt_batch_queue *queue, sp_run_request *request,
                              sp_run_request **awaited) SP_REQUIRES(&queue->lock)
{
    sp_rt_future *run = run_of(&request->entry);
    group_push_locked(&queue->alone, run);
    if (sp_fetch_add_acq_rel(&request->is_awaited, 0) == 0 || SP_PLANTED(awaited_alone)) return;
    if (!group_take_locked(&queue->alone, run)) return; /* the waiting thread removes it */
    request->group_next = *awaited;
    *awaited = request;
}

static void awaited_run(sp_run_request *awaited, sp_resume_list *ready)
{
    for (sp_run_request *next; awaited != NULL; awaited = next) {
        next = awaited->group_next;
        awaited->run_inline(awaited, ready);
    }
}

/* A request that was counted has been claimed since: a smaller batch, and the surplus runs alone.
 * Releases the batch. */
static SP_NOINLINE sp_batch *batch_shrink_locked(sp_rt_batch_queue *queue, sp_batch *batch,
                                                 uint32_t count, sp_run_request **awaited)
    SP_REQUIRES(&queue->lock)
{
    sp_batch *smaller = count > 1 ? sp__batch_acquire(batch->plans, count) : NULL;
    const uint32_t kept = smaller != NULL ? smaller->bucket->rows : 1;
    for (uint32_t i = 0; i < kept && smaller != NULL; i++)
        smaller->requests[i] = batch->requests[i];
    for (uint32_t i = kept; i < count; i++) alone_push_locked(queue, batch->requests[i], awaited);
    sp__batch_release(batch);
    return smaller;
}

static sp_batch *batch_form_locked(sp_rt_batch_queue *queue, sp_rt_future *lead, uint64_t now,
                                   sp_run_request **awaited) SP_REQUIRES(&queue->lock)
{
    const sp_batch_group *group = lead->place.group;
    sp_batch_plans *plans = group->entry != NULL ? sp__batch_plans_of(group->entry) : NULL;
    if (plans == NULL || sp__batch_plans_count(plans) == 0 || group->count == 0) return NULL;
    const uint32_t joiners = joiners_count(plans, lead, share_locked(queue, plans, lead));
    sp_batch *batch = joiners > 0 ? sp__batch_acquire(plans, 1 + joiners) : NULL;
    if (batch == NULL) return NULL;
    batch->requests[0] = &lead->request;
    const uint32_t count = joiners_take_locked(queue, lead, batch, now);
    if (SP_LIKELY(count == batch->bucket->rows)) return batch;
    return batch_shrink_locked(queue, batch, count, awaited);
}

sp_batch *sp__batch_queue_form(sp_rt_future *lead, sp_resume_list *ready)
{
    sp_rt_batch_queue *queue = lead->place.queue;
    sp_run_request *awaited = NULL;
    const uint64_t now = sp_clock_now();
    sp_mutex_lock(&queue->lock);
    sp_batch *batch = batch_form_locked(queue, lead, now, &awaited);
    run_start_locked(queue, lead, now);
    sp_mutex_unlock(&queue->lock);
    awaited_run(awaited, ready);
    sp__batch_queue_settle(queue, ready);
    return batch;
}

void sp__batch_queue_break(sp_batch *batch, sp_resume_list *ready)
{
    sp_rt_batch_queue *queue = run_of(&batch->requests[0]->entry)->place.queue;
    sp_run_request *awaited = NULL;
    sp_mutex_lock(&queue->lock);
    for (uint32_t row = 1; row < batch->bucket->rows; row++) {
        alone_push_locked(queue, batch->requests[row], &awaited);
    }
    sp_mutex_unlock(&queue->lock);
    sp__batch_release(batch);
    awaited_run(awaited, ready);
    sp__batch_queue_settle(queue, ready);
}
