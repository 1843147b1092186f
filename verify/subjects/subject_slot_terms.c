/* SPDX-License-Identifier: Apache-2.0 */
/* On which terms runs get slots: flows that take turns, limits, priorities, and threads that leave
 * the queues since they are cancelled. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "device/thread_record.h"
#include "exec/run_slots.h"
#include "sched/subject.h"

#define RUNS 12u
#define HIGH 1u /* SP_PRIORITY_HIGH */

typedef struct terms_world terms_world;

/* A submitted run, which ends when the subject says so. */
typedef struct terms_run {
    sp_run_request request;
    terms_world *world;
    char name;
} terms_run;

struct terms_world {
    sp_run_slots slots;
    sp_run_flow flows[2];
    terms_run runs[RUNS];
    uint32_t run_count;
    /* Plain: the slots order them. */
    uint32_t started;
    terms_run *order[RUNS];
    /* Of the thread that is cancelled. */
    sp_atomic_u32 is_cancelled;
    SP_ATOMIC(sp_parker *) parker;
    sp_status status;
};

static void terms_begin(terms_world *w, uint32_t slots)
{
    memset(w, 0, sizeof *w);
    sp__run_slots_init(&w->slots, slots, slots);
}

static void terms_end(terms_world *w, uint32_t slots)
{
    SP_SCHED_ASSERT(sp__free_slots_word(&w->slots.free) == slots);
    for (uint32_t i = 0; i < 2; i++) {
        SP_SCHED_ASSERT(w->flows[i].queued == 0 && w->flows[i].active == 0);
    }
    sp__run_slots_deinit(&w->slots);
    sp__subject_end();
}

static void run_started(sp_wait_entry *entry, sp_resume_list *ready)
{
    terms_run *run = SP_CONTAINER_OF(entry, terms_run, request.entry);
    (void)ready;
    run->world->order[run->world->started++] = run;
}

/* Not merged. */
static void run_finished(sp_run_request *request, sp_resume_list *ready)
{
    (void)request;
    (void)ready;
    SP_SCHED_ASSERT(false);
}

static void submit_on(terms_world *w, char name, const sp_run_terms *terms)
{
    terms_run *run = &w->runs[w->run_count++];
    run->world = w;
    run->name = name;
    run->request.entry.resume = run_started;
    run->request.finish = run_finished;
    run->request.terms = *terms;
    if (terms->flow != NULL && terms->flow->limit != 0) run->request.terms.is_counted = true;
    SP_SCHED_ASSERT(sp__run_slots_submit(&w->slots, &run->request) == SP_OK);
}

/* With as many slots as there are, so that the order alone is seen. */
static void submit(terms_world *w, char name, sp_run_flow *flow, uint32_t priority)
{
    const bool is_counted = priority == HIGH;
    submit_on(w, name,
              &(sp_run_terms){.flow = flow, .priority = priority, .is_counted = is_counted});
}

/* The i-th run that was started ends, after so many seconds in its slot. */
static void end(terms_world *w, uint32_t i, uint64_t seconds)
{
    sp_run_request *request = &w->order[i]->request;
    request->granted_ns = sp_clock_now() - seconds * 1000000000u;
    if (seconds == 0) request->granted_ns = 0;
    sp__wait_entry_resume(sp__run_slots_release_submitted(&w->slots, request));
}

static void expect_order(const terms_world *w, const char *names)
{
    SP_SCHED_ASSERT(w->started == strlen(names));
    for (uint32_t i = 0; i < w->started; i++) SP_SCHED_ASSERT(w->order[i]->name == names[i]);
}

static void pass_hour(void)
{
    sp_clock_sleep(3600u * UINT64_C(1000000000));
}

/* ---- order ---- */

static void subject_terms_priority(void *arg)
{
    terms_world w;
    (void)arg;
    terms_begin(&w, 1);
    submit(&w, 'a', NULL, 0);
    submit(&w, 'b', NULL, 0);
    submit(&w, 'c', NULL, 0);
    submit(&w, 'X', NULL, HIGH);
    submit(&w, 'Y', NULL, HIGH);
    for (uint32_t i = 0; i < 5; i++) end(&w, i, 0);
    expect_order(&w, "aXYbc");
    terms_end(&w, 1);
}

/* High priority leaves every ninth slot. */
static void subject_terms_share(void *arg)
{
    terms_world w;
    (void)arg;
    terms_begin(&w, 1);
    submit(&w, 'a', NULL, 0);
    submit(&w, 'b', NULL, 0);
    for (uint32_t i = 0; i < 10; i++) submit(&w, 'X', NULL, HIGH);
    for (uint32_t i = 0; i < 12; i++) end(&w, i, 0);
    expect_order(&w, "aXXXXXXXXbXX");
    terms_end(&w, 1);
}

/* The second flow has three times the weight. */
static void subject_terms_weights(void *arg)
{
    terms_world w;
    (void)arg;
    pass_hour();
    terms_begin(&w, 1);
    w.flows[1].weight = 3;
    submit(&w, 'a', &w.flows[0], 0);
    for (uint32_t i = 0; i < 2; i++) submit(&w, 'a', &w.flows[0], 0);
    for (uint32_t i = 0; i < 6; i++) submit(&w, 'b', &w.flows[1], 0);
    for (uint32_t i = 0; i < 9; i++) end(&w, i, 3);
    expect_order(&w, "abbbabbba");
    terms_end(&w, 1);
}

/* A flow that had nothing to run has not saved time up. */
static void subject_terms_idle(void *arg)
{
    terms_world w;
    (void)arg;
    pass_hour();
    terms_begin(&w, 1);
    for (uint32_t i = 0; i < 6; i++) submit(&w, 'a', &w.flows[0], 0);
    for (uint32_t i = 0; i < 3; i++) end(&w, i, 3);
    for (uint32_t i = 0; i < 3; i++) submit(&w, 'b', &w.flows[1], 0);
    for (uint32_t i = 3; i < 9; i++) end(&w, i, 3);
    SP_SCHED_ASSERT(w.order[5]->name == 'a' || w.order[6]->name == 'a');
    SP_SCHED_ASSERT(w.started == 9);
    terms_end(&w, 1);
}

static void subject_terms_limit(void *arg)
{
    terms_world w;
    (void)arg;
    terms_begin(&w, 3);
    w.flows[0].limit = 1;
    submit(&w, 'a', &w.flows[0], 0);
    submit(&w, 'b', &w.flows[0], 0);
    submit(&w, 'c', &w.flows[1], 0);
    expect_order(&w, "ac");
    end(&w, 0, 0);
    expect_order(&w, "acb");
    end(&w, 1, 0);
    end(&w, 2, 0);
    terms_end(&w, 3);
}

/* ---- threads ---- */

/* A thread of the first flow, until it has a slot or is cancelled. */
static void wait_cancellable(void *arg)
{
    terms_world *w = arg;
    const sp_run_terms terms = {
        .flow = &w->flows[0], .is_counted = w->flows[0].limit != 0, .cancel = &w->is_cancelled};
    sp_store_release(&w->parker, &sp__thread_record()->parker); /* pairs with the canceller's */
    w->status = sp__run_slots_acquire(&w->slots, &terms);
    if (w->status == SP_OK) sp__wait_entry_resume(sp__run_slots_release(&w->slots, &terms));
    else SP_SCHED_ASSERT(w->status == SP_CANCELLED);
}

static void cancel(void *arg)
{
    terms_world *w = arg;
    sp_store_release(&w->is_cancelled, 1); /* pairs with the acquire of the terms' check */
    sp_parker *parker = sp_load_acquire(&w->parker);
    if (parker != NULL) sp_parker_unpark(parker);
}

static void release_counted(void *arg)
{
    terms_world *w = arg;
    const sp_run_terms terms = {.flow = &w->flows[0], .is_counted = w->flows[0].limit != 0};
    while (sp__run_slots_waiting(&w->slots) < 1) sp_spin_hint();
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, &terms));
}

/* The thread is cancelled while it is queued, called, claims, or has the slot. */
static void subject_terms_cancel(void *arg)
{
    terms_world w;
    (void)arg;
    terms_begin(&w, 1);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w.slots, NULL) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){wait_cancellable, cancel}, 2, &w);
    SP_SCHED_ASSERT(w.status == SP_CANCELLED);
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, NULL));
    terms_end(&w, 1);
}

static void submit_limited(void *arg)
{
    terms_world *w = arg;
    submit(w, 'a', &w->flows[0], 0);
}

static void release_to_cancelled(void *arg)
{
    release_counted(arg);
    cancel(arg);
}

/* The called thread has the room of its flow, and is cancelled: the submitted run gets it. */
static void subject_terms_promise(void *arg)
{
    terms_world w;
    (void)arg;
    terms_begin(&w, 1);
    w.flows[0].limit = 1;
    const sp_run_terms terms = {.flow = &w.flows[0], .is_counted = true};
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w.slots, &terms) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){wait_cancellable, release_to_cancelled, submit_limited},
                    3, &w);
    SP_SCHED_ASSERT(w.started == 1);
    end(&w, 0, 0);
    terms_end(&w, 1);
}

/* ---- urgent threads ---- */

static void wait_high(void *arg)
{
    terms_world *w = arg;
    const sp_run_terms terms = {.priority = HIGH, .is_counted = true};
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, &terms) == SP_OK);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, &terms));
}

static bool has_claim(terms_world *w)
{
    sp_mutex_lock(&w->slots.lock);
    const bool is_any = w->slots.claims.first != NULL;
    sp_mutex_unlock(&w->slots.lock);
    return is_any;
}

/* An owner of normal priority that would return soon; a thread of high priority claims its slot
 * without a call. */
static void release_to_high(void *arg)
{
    terms_world *w = arg;
    while (!has_claim(w)) sp_spin_hint();
    sp__thread_record()->tenure.returns_soon = true;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
    SP_SCHED_ASSERT(sp__run_slots_waiting(&w->slots) == 0);
}

static void subject_terms_high(void *arg)
{
    terms_world w;
    (void)arg;
    terms_begin(&w, 1);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w.slots, NULL) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){release_to_high, wait_high}, 2, &w);
    terms_end(&w, 1);
}

static bool is_urgent(terms_world *w)
{
    sp_mutex_lock(&w->slots.lock);
    const bool is_any = w->slots.urgent > 0;
    sp_mutex_unlock(&w->slots.lock);
    return is_any;
}

/* As if another run of high priority had a slot, so that the thread is queued. The owner would
 * return soon, but calls it. */
static void release_to_urgent(void *arg)
{
    terms_world *w = arg;
    while (!is_urgent(w)) sp_spin_hint();
    sp__thread_record()->tenure.returns_soon = true;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
    SP_SCHED_ASSERT(sp__run_slots_waiting(&w->slots) == 0);
    sp_mutex_lock(&w->slots.lock);
    w->slots.high--;
    sp_mutex_unlock(&w->slots.lock);
}

static void subject_terms_urgent(void *arg)
{
    terms_world w;
    (void)arg;
    terms_begin(&w, 1);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w.slots, NULL) == SP_OK);
    sp_mutex_lock(&w.slots.lock);
    w.slots.high++;
    sp_mutex_unlock(&w.slots.lock);
    sp__subject_run((const sp_thread_fn[]){release_to_urgent, wait_high}, 2, &w);
    terms_end(&w, 1);
}

/* ---- submitted runs ---- */

static void submit_counted(terms_world *w, char name)
{
    submit_on(w, name, &(sp_run_terms){.is_submitted = true, .is_counted = true});
}

static void submitted_begin(terms_world *w)
{
    terms_begin(w, 2);
    w->slots.width = 1;
}

/* They have one slot of two; a thread gets the other one, and leaves it to no submitted run. */
static void subject_terms_submitted(void *arg)
{
    terms_world w;
    (void)arg;
    submitted_begin(&w);
    submit_counted(&w, 'a');
    submit_counted(&w, 'b');
    submit_counted(&w, 'c');
    expect_order(&w, "a");
    SP_SCHED_ASSERT(sp__run_slots_try_acquire(&w.slots, NULL));
    end(&w, 0, 0);
    expect_order(&w, "ab");
    sp__wait_entry_resume(sp__run_slots_release(&w.slots, NULL));
    expect_order(&w, "ab");
    end(&w, 1, 0);
    end(&w, 2, 0);
    expect_order(&w, "abc");
    terms_end(&w, 2);
}

/* High priority gets a slot beside as many as there may be of normal priority, and takes none of
 * theirs; but not all slots. */
static void subject_terms_submitted_high(void *arg)
{
    const sp_run_terms high = {.is_submitted = true, .is_counted = true, .priority = HIGH};
    terms_world w;
    (void)arg;
    terms_begin(&w, 3);
    w.slots.width = 1;
    submit_counted(&w, 'a');
    submit_counted(&w, 'b');
    submit_on(&w, 'X', &high);
    submit_on(&w, 'Y', &high);
    expect_order(&w, "aX");
    end(&w, 1, 0);
    expect_order(&w, "aXY");
    end(&w, 0, 0);
    expect_order(&w, "aXYb");
    end(&w, 2, 0);
    end(&w, 3, 0);
    terms_end(&w, 3);
}

/* The end of `a` lets two begin: one of its model, another one of its priority. */
static void subject_terms_heirs(void *arg)
{
    sp_run_terms terms = {.is_submitted = true, .is_counted = true};
    terms_world w;
    (void)arg;
    terms_begin(&w, 4);
    w.slots.width = 2;
    w.flows[0].limit = 1;
    terms.flow = &w.flows[0];
    submit_on(&w, 'a', &terms);
    terms.priority = HIGH;
    submit_on(&w, 'X', &terms);
    terms = (sp_run_terms){.flow = &w.flows[1], .is_submitted = true, .is_counted = true};
    submit_on(&w, 'b', &terms);
    submit_on(&w, 'c', &terms);
    expect_order(&w, "ab");
    end(&w, 0, 0);
    expect_order(&w, "abXc");
    for (uint32_t i = 1; i < 4; i++) end(&w, i, 0);
    terms_end(&w, 4);
}

static void end_first(void *arg)
{
    end(arg, 0, 0);
}

static void submit_second(void *arg)
{
    submit_counted(arg, 'b');
}

static void take_and_release(void *arg)
{
    terms_world *w = arg;
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, NULL) == SP_OK);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

/* The second run finds that the first one has ended, or is found by its end. */
static void subject_terms_submitted_end(void *arg)
{
    terms_world w;
    (void)arg;
    submitted_begin(&w);
    submit_counted(&w, 'a');
    sp__subject_run((const sp_thread_fn[]){end_first, submit_second, take_and_release}, 3, &w);
    expect_order(&w, "ab");
    end(&w, 1, 0);
    terms_end(&w, 2);
}

/* ---- the table ---- */

const sp_subject sp__subjects_slot_terms[] = {
    {.name = "slots_priority",
     .test = subject_terms_priority,
     .thread_count = 1,
     .planted = "priority_ignored"},
    {.name = "slots_share",
     .test = subject_terms_share,
     .thread_count = 1,
     .planted = "always_over"},
    {.name = "slots_weights",
     .test = subject_terms_weights,
     .thread_count = 1,
     .planted = "weight_ignored"},
    {.name = "slots_idle", .test = subject_terms_idle, .thread_count = 1, .planted = "idle_saves"},
    {.name = "slots_limit",
     .test = subject_terms_limit,
     .thread_count = 1,
     .planted = "no_limit slot_uncounted"},
    {.name = "slots_cancel",
     .test = subject_terms_cancel,
     .thread_count = 2,
     .planted = "cancel_unseen"},
    {.name = "slots_promise",
     .test = subject_terms_promise,
     .thread_count = 3,
     .planted = "promise_lost slot_uncounted",
     .options = SP_SLEEPERS},
    {.name = "slots_high",
     .test = subject_terms_high,
     .thread_count = 2,
     .planted = "forget_claim"},
    {.name = "slots_urgent",
     .test = subject_terms_urgent,
     .thread_count = 2,
     .planted = "not_urgent",
     .options = SP_SLEEPERS},
    {.name = "slots_submitted",
     .test = subject_terms_submitted,
     .thread_count = 1,
     .planted = "submitted_unlimited submitted_uncounted"},
    {.name = "slots_submitted_high",
     .test = subject_terms_submitted_high,
     .thread_count = 1,
     .planted = "high_is_limited"},
    {.name = "slots_heirs",
     .test = subject_terms_heirs,
     .thread_count = 1,
     .planted = "one_heir submitted_uncounted slot_uncounted"},
    {.name = "slots_submitted_end",
     .test = subject_terms_submitted_end,
     .thread_count = 3,
     .planted = "submitted_uncounted"},
    {0},
};
