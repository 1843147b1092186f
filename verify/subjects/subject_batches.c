/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: the owner of a slot takes waiting requests out of the queues, computes them as rows of
 * its own batch, and wakes their callers; or gives them back. */
#include "batches_world.h"
#include "sched/subject.h"

/* ---- line up and lead ---- */

static void subject_batch_lead(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp_batches_world w;
    sp__batches_begin(&w, 1, 2, 3);
    sp__subject_run((const sp_thread_fn[]){sp__batches_run, sp__batches_run, sp__batches_run},
                    threads, &w);
    sp__batches_end(&w, threads);
}

/* The leader waits for its row, whose caller is gone as soon as it is woken. */
static void subject_batch_scatter(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 2, 0);
    sp__subject_run((const sp_thread_fn[]){sp__batches_lead_one, sp__batches_run}, 2, &w);
    sp__batches_end(&w, 2);
}

/* One slot's owner takes what the other one's owner calls, or grants its slot to. */
static void subject_batch_take_or_call(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 2, 2, 0);
    sp__subject_run(
        (const sp_thread_fn[]){sp__batches_lead_now, sp__batches_release_slot, sp__batches_run}, 3,
        &w);
    sp__batches_end(&w, 2);
}

static void subject_batch_take_or_grant(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 2, 2, 0);
    sp__batches_submit(&w, 0);
    sp__subject_run((const sp_thread_fn[]){sp__batches_lead_now, sp__batches_release_slot}, 2, &w);
    sp__batches_end(&w, 2);
}

/* Both owners lead; one request waits. */
static void subject_batch_two_leads(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 2, 2, 0);
    sp__batches_submit(&w, 0);
    sp__subject_run(
        (const sp_thread_fn[]){sp__batches_lead_now, sp__batches_lead_now, sp__batches_run},
        threads, &w);
    sp__batches_end(&w, threads + 1);
}

/* A run that has got a slot without a thread leads one that has a thread. */
static void subject_batch_submitted_lead(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 2, 0);
    if (threads == 2) sp__batches_submit(&w, 0);
    sp__subject_run(
        (const sp_thread_fn[]){sp__batches_release_slot, sp__batches_run, sp__batches_submit_one},
        threads, &w);
    sp__batches_end(&w, 2);
}

/* The one batch is idle again when the next owner gets the slot. */
static void subject_batch_reuse(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 2, 0);
    w.is_found = true;
    sp__batches_submit(&w, 0);
    sp__subject_run((const sp_thread_fn[]){sp__batches_lead_now, sp__batches_run, sp__batches_run},
                    3, &w);
    sp__batches_end(&w, 4);
}

/* ---- take and cancel ---- */

static void subject_batch_cancel(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 2, 3);
    sp__batches_submit(&w, 0);
    sp__subject_run(
        (const sp_thread_fn[]){sp__batches_lead_now, sp__batches_run_inline, sp__batches_run},
        threads, &w);
    sp__batches_end(&w, threads);
}

/* ---- wake ---- */

static void subject_batch_tree(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 4, 0);
    sp_thread threads[3];
    for (uint32_t i = 0; i < 3; i++) {
        SP_SCHED_ASSERT(sp_thread_create(&threads[i], "", sp__batches_run, &w) == SP_OK);
    }
    while (sp_load_relaxed(&w.group.count) < 3) sp_spin_hint();
    sp__batches_lead(&w);
    for (uint32_t i = 0; i < 3; i++) sp_thread_join(&threads[i]);
    sp__batches_end(&w, 4);
}

/* ---- give back ---- */

/* There is a batch for three, and one of two that wait leaves: the other one is given back. */
static void subject_batch_shrink(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 3, 0);
    sp__batches_submit(&w, 0);
    if (threads == 2) sp__batches_submit(&w, 1);
    sp__subject_run(
        (const sp_thread_fn[]){sp__batches_lead_now, sp__batches_run_inline, sp__batches_run},
        threads, &w);
    sp__batches_end(&w, 3);
}

/* A batch has failed: its rows run alone. */
static void subject_batch_break(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 2, 2, 0);
    w.fails = true;
    const sp_thread_fn leader = threads == 2 ? sp__batches_lead_one : sp__batches_lead_now;
    sp__subject_run((const sp_thread_fn[]){leader, sp__batches_run, sp__batches_release_slot},
                    threads, &w);
    if (threads == 2) sp__batches_release_slot(&w);
    sp__batches_end(&w, 2);
}

static void subject_batch_break_submitted(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 2, 2, 0);
    w.fails = true;
    sp__batches_submit(&w, 0);
    sp__subject_run((const sp_thread_fn[]){sp__batches_lead_now, sp__batches_release_slot,
                                           sp__batches_run_inline},
                    threads, &w);
    sp__batches_end(&w, 2);
}

static void subject_batch_awaited(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 2, 0);
    sp__batches_submit(&w, 0);
    sp__subject_run((const sp_thread_fn[]){sp__batches_lead_awaited, sp__batches_run_inline}, 2,
                    &w);
    sp__batches_end(&w, 2);
}

/* ---- batches that do not pay for threads ---- */

static void subject_batch_unpaid(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin(&w, 1, 2, 0);
    sp_store_relaxed(&w.plans.buckets[0].pays_for_threads, 0);
    sp__batches_run_unmerged(&w);
    sp__batches_end(&w, 3);
}

/* The batch of three, which pays for threads, gets two rows; one of two does not pay for them. */
static void subject_batch_unpaid_shrink(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin(&w, 1, 2, 3);
    sp_store_relaxed(&w.plans.buckets[0].pays_for_threads, 0);
    w.second_lapses = true;
    sp__batches_run_unmerged(&w);
    sp__batches_end(&w, 3);
}

/* ---- the watchdog ---- */

static void subject_batch_watcher(void *arg)
{
    (void)arg;
    sp_batches_world w;
    sp__batches_begin_taken(&w, 1, 2, 0);
    sp__subject_run(
        (const sp_thread_fn[]){sp__batches_lead_and_leave, sp__batches_run_apart, sp__batches_run},
        3, &w);
    sp__batches_end(&w, 3);
}

/* ---- the table ---- */

const sp_subject sp__subjects_batches[] = {
    {.name = "batch_lead_2",
     .test = subject_batch_lead,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_grant late_scatter lost_call",
     .seconds = 0.5},
    {.name = "batch_lead_3",
     .test = subject_batch_lead,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "relaxed_grant late_scatter taken_counts",
     .seconds = 0.5},
    {.name = "batch_scatter",
     .test = subject_batch_scatter,
     .thread_count = 2,
     .planted = "relaxed_grant late_scatter taken_counts",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "batch_take_or_call",
     .test = subject_batch_take_or_call,
     .thread_count = 3,
     .planted = "take_and_leave lost_call",
     .seconds = 0.5},
    {.name = "batch_take_or_grant",
     .test = subject_batch_take_or_grant,
     .thread_count = 2,
     .planted = "take_and_leave taken_counts",
     .seconds = 0.5},
    {.name = "batch_two_leads_2",
     .test = subject_batch_two_leads,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "take_and_leave",
     .seconds = 0.5},
    {.name = "batch_two_leads_3",
     .test = subject_batch_two_leads,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "take_and_leave",
     .seconds = 0.5},
    {.name = "batch_submitted_lead_2",
     .test = subject_batch_submitted_lead,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_grant late_scatter",
     .seconds = 0.5},
    {.name = "batch_submitted_lead_3",
     .test = subject_batch_submitted_lead,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "relaxed_grant late_scatter",
     .seconds = 0.5},
    {.name = "batch_reuse",
     .test = subject_batch_reuse,
     .thread_count = 3,
     .planted = "batch_after_slot",
     .seconds = 0.5},
    {.name = "batch_cancel_2",
     .test = subject_batch_cancel,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "leave_promised",
     .seconds = 0.5},
    {.name = "batch_cancel_3",
     .test = subject_batch_cancel,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "leave_promised",
     .seconds = 0.5},
    {.name = "batch_tree",
     .test = subject_batch_tree,
     .thread_count = 4,
     .planted = "wakes_too_late half_tree late_scatter",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "batch_shrink_2",
     .test = subject_batch_shrink,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "surplus_forgotten",
     .seconds = 0.5},
    {.name = "batch_shrink_3",
     .test = subject_batch_shrink,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "surplus_forgotten",
     .seconds = 0.5},
    {.name = "batch_break_2",
     .test = subject_batch_break,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "given_uncounted",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "batch_break_3",
     .test = subject_batch_break,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "given_uncounted",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "batch_break_submitted_2",
     .test = subject_batch_break_submitted,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "stays_counted given_slot_lost",
     .seconds = 0.5},
    {.name = "batch_break_submitted_3",
     .test = subject_batch_break_submitted,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "leave_promised",
     .seconds = 0.5},
    {.name = "batch_awaited",
     .test = subject_batch_awaited,
     .thread_count = 2,
     .planted = "awaited_unseen",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "batch_unpaid",
     .test = subject_batch_unpaid,
     .thread_count = 2,
     .planted = "wakes_unpaid",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "batch_unpaid_shrink",
     .test = subject_batch_unpaid_shrink,
     .thread_count = 2,
     .inexhaustible = "1.4 million orders with sequential consistency, 25 s; more with weak memory",
     .planted = "lead_counts_only",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "batch_watcher",
     .test = subject_batch_watcher,
     .thread_count = 3,
     .planted = "watcher_taken left_unwatched no_watch",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {0},
};
