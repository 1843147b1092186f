/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots that are kept for the threads of a lane: never more runs than slots, no request waits
 * beside a slot that is kept for another lane, and a claim is not passed over. */
#include "support.h"

#include <string.h>

#include "device/thread_record.h"
#include "exec/run_slots.h"
#include "sched/subject.h"

#define HIGH 1u /* SP_PRIORITY_HIGH */

typedef struct kept_world {
    sp_run_slots slots;
    uint32_t inside; /* plain: with one slot, the slot orders it */
    uint32_t runs;   /* plain, likewise */
    sp_atomic_u32 now;
    sp_run_request submitted;
} kept_world;

static void kept_begin(kept_world *w, uint32_t slots)
{
    memset(w, 0, sizeof *w);
    sp__run_slots_init(&w->slots, slots, slots);
}

static void kept_end(kept_world *w, uint32_t slots)
{
    SP_SCHED_ASSERT(sp__free_slots_word(&w->slots.free) == slots);
    sp__run_slots_deinit(&w->slots);
    sp__subject_end();
}

static void compute(kept_world *w)
{
    SP_SCHED_ASSERT(w->inside == 0);
    w->inside = 1;
    w->runs++;
    w->inside = 0;
}

static void run_on(kept_world *w, const sp_run_terms *terms)
{
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, terms) == SP_OK);
    compute(w);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, terms));
}

static void run_on_first(void *arg)
{
    const sp_run_terms terms = {.lane = 0};
    run_on(arg, &terms);
}

static void run_on_second(void *arg)
{
    const sp_run_terms terms = {.lane = 1};
    run_on(arg, &terms);
}

static void run_on_first_twice(void *arg)
{
    run_on_first(arg);
    run_on_first(arg);
}

static void subject_kept_one(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    kept_world w;
    kept_begin(&w, 1);
    const bool again = threads > 2;
    sp__subject_run((const sp_thread_fn[]){again ? run_on_first_twice : run_on_first, run_on_second,
                                           run_on_first},
                    threads, &w);
    SP_SCHED_ASSERT(w.runs == threads + again);
    kept_end(&w, 1);
}

/* ---- two slots ---- */

static void run_beside(kept_world *w, uint32_t lane)
{
    const sp_run_terms terms = {.lane = lane};
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, &terms) == SP_OK);
    SP_SCHED_ASSERT(sp_fetch_add_relaxed(&w->now, 1) < 2);
    sp_fetch_sub_relaxed(&w->now, 1);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, &terms));
}

static void run_beside_on_first(void *arg)
{
    run_beside(arg, 0);
}

static void run_beside_on_second(void *arg)
{
    run_beside(arg, 1);
}

static void subject_kept_two(void *arg)
{
    (void)arg;
    kept_world w;
    kept_begin(&w, 2);
    sp__subject_run(
        (const sp_thread_fn[]){run_beside_on_first, run_beside_on_second, run_beside_on_second}, 3,
        &w);
    kept_end(&w, 2);
}

/* ---- requests that wait beside a kept slot ---- */

static void start_submitted(sp_wait_entry *entry, sp_resume_list *ready)
{
    kept_world *w = SP_CONTAINER_OF(entry, kept_world, submitted.entry);
    compute(w);
    sp__resume_list_add(ready, sp__run_slots_release_submitted(&w->slots, &w->submitted));
}

static void submit(void *arg)
{
    kept_world *w = arg;
    w->submitted.terms = (sp_run_terms){.is_submitted = true, .is_counted = true, .lane = 1};
    w->submitted.entry.resume = start_submitted;
    w->submitted.finish = sp__subject_is_not_merged;
    SP_SCHED_ASSERT(sp__run_slots_submit(&w->slots, &w->submitted) == SP_OK);
}

static void subject_kept_submitted(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    kept_world w;
    kept_begin(&w, 1);
    sp__subject_run((const sp_thread_fn[]){run_on_first, submit, run_on_second}, threads, &w);
    SP_SCHED_ASSERT(w.runs == threads);
    kept_end(&w, 1);
}

/* Claims at once, without a call. */
static void run_high(void *arg)
{
    const sp_run_terms terms = {.lane = 1, .priority = HIGH, .is_counted = true};
    run_on(arg, &terms);
}

static void subject_kept_claim(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    kept_world w;
    kept_begin(&w, 1);
    sp__subject_run((const sp_thread_fn[]){run_on_first, run_high, run_on_second}, threads, &w);
    SP_SCHED_ASSERT(w.runs == threads);
    kept_end(&w, 1);
}

/* Returns soon, so that the other one is called while the slot is kept. */
static void run_and_return(void *arg)
{
    run_on_first(arg);
    sp__thread_record()->tenure.returns_soon = true;
    run_on_first(arg);
}

/* With the slot: leaves it to return soon, for a quantum, and does not. */
static void leave_for_good(kept_world *w, uint32_t waiting)
{
    const sp_run_terms terms = {.lane = 0};
    while (sp__run_slots_waiting(&w->slots) < waiting) sp_spin_hint();
    sp__thread_record()->tenure.returns_soon = true;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, &terms));
}

static void leave_to_one(void *arg)
{
    leave_for_good(arg, 1);
}

static void leave_to_two(void *arg)
{
    leave_for_good(arg, 2);
}

static void left_begin(kept_world *w)
{
    const sp_run_terms terms = {.lane = 0};
    kept_begin(w, 1);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w->slots, &terms) == SP_OK);
}

static void subject_kept_left(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    kept_world w;
    left_begin(&w);
    sp__subject_run((const sp_thread_fn[]){threads > 2 ? leave_to_two : leave_to_one, run_on_second,
                                           run_on_first},
                    threads, &w);
    SP_SCHED_ASSERT(w.runs == threads - 1);
    kept_end(&w, 1);
}

/* The submitted run does not wait for the quantum of a thread. */
static void subject_kept_left_submitted(void *arg)
{
    (void)arg;
    kept_world w;
    left_begin(&w);
    sp__subject_run((const sp_thread_fn[]){leave_to_one, run_on_second, submit}, 3, &w);
    SP_SCHED_ASSERT(w.runs == 2);
    kept_end(&w, 1);
}

/* Nor does a run of high priority. */
static void subject_kept_left_claim(void *arg)
{
    (void)arg;
    kept_world w;
    left_begin(&w);
    sp__subject_run((const sp_thread_fn[]){leave_to_one, run_on_second, run_high}, 3, &w);
    SP_SCHED_ASSERT(w.runs == 2);
    kept_end(&w, 1);
}

static void subject_kept_call(void *arg)
{
    (void)arg;
    kept_world w;
    kept_begin(&w, 1);
    sp__subject_run((const sp_thread_fn[]){run_and_return, run_on_second}, 2, &w);
    SP_SCHED_ASSERT(w.runs == 3);
    kept_end(&w, 1);
}

/* ---- the table ---- */

const sp_subject sp__subjects_kept_slots[] = {
    {.name = "kept_one_2",
     .test = subject_kept_one,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "kept_twice"},
    {.name = "kept_one_3",
     .test = subject_kept_one,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "kept_twice"},
    {.name = "kept_two", .test = subject_kept_two, .thread_count = 3, .planted = "kept_twice"},
    {.name = "kept_submitted_2",
     .test = subject_kept_submitted,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "kept_unseen keeps_blindly"},
    {.name = "kept_submitted_3",
     .test = subject_kept_submitted,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "kept_twice"},
    {.name = "kept_claim_2",
     .test = subject_kept_claim,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "kept_unseen keeps_blindly"},
    {.name = "kept_claim_3",
     .test = subject_kept_claim,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "kept_twice"},
    {.name = "kept_call",
     .test = subject_kept_call,
     .thread_count = 2,
     .inexhaustible_weak = SP_ENDLESS_CLAIM,
     .planted = "kept_unseen keeps_blindly"},
    {.name = "kept_left_2",
     .test = subject_kept_left,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "left_unseen no_watch watch_once",
     .options = SP_SLEEPERS},
    {.name = "kept_left_3",
     .test = subject_kept_left,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "left_unseen no_watch",
     .options = SP_SLEEPERS},
    {.name = "kept_left_submitted",
     .test = subject_kept_left_submitted,
     .thread_count = 3,
     .planted = "keeps_blindly",
     .options = SP_SLEEPERS},
    {.name = "kept_left_claim",
     .test = subject_kept_left_claim,
     .thread_count = 3,
     .planted = "keeps_blindly",
     .options = SP_SLEEPERS},
    {0},
};
