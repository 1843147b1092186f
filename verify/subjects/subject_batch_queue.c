/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues: requests lead, gather behind a gate that a flush, the timer or the shutdown opens,
 * take places that submitters wait for, and leave by a claim. Slots, batches and the queue are
 * real; a run adds 1 to a number. */
#include "batch_queue_world.h"

#include <streampool/runtime.h>

#include "sched/subject.h"

#define LONG_NS INT64_C(3600000000000)

/* ---- threads ---- */

static void add_0(void *arg)
{
    (void)arg;
    sp__queue_world_add(0);
}

static void add_1(void *arg)
{
    (void)arg;
    sp__queue_world_add(1);
}

static void add_2(void *arg)
{
    (void)arg;
    sp__queue_world_add(2);
}

static void release_slot(void *arg)
{
    static const sp_run_request held;
    (void)arg;
    sp__wait_entry_resume(sp__run_slots_release_submitted(&sp__queue_world.base.slots, &held));
}

static void flush(void *arg)
{
    (void)arg;
    sp__batch_queue_flush(sp__queue_world.queue, false);
}

static void release_queue(void *arg)
{
    (void)arg;
    SP_SCHED_ASSERT(sp__batch_queue_release(sp__queue_world.handle) == SP_OK);
}

static void stop(void *arg)
{
    (void)arg;
    SP_SCHED_ASSERT(sp_shutdown() == SP_OK);
}

/* As a wait inside a callback for requests[1]. */
static void claim_1(void *arg)
{
    sp_resume_list ready = {0};
    sp_rt_future *run = &sp__queue_world.requests[1].run;
    (void)arg;
    if (!sp__run_request_claim(&run->request)) return;
    if (run->place.is_in_group) sp__batch_queue_remove(run, &ready);
    else sp__run_slots_dequeue(run->slots, &run->request);
    run->request.run_inline(&run->request, &ready);
    sp__resume_list_run(&ready);
}

/* ---- lead ---- */

static const sp_batch_queue_options one_worker = {.workers = 1, .max_batch = 4, .max_waiting = 4};

static void subject_batch_queue_add(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp__queue_world_begin(&one_worker, 3);
    sp__subject_run((const sp_thread_fn[]){add_0, add_1, add_2}, threads, NULL);
    sp__queue_world_end(threads);
}

/* Where the device is busy a lead waits, and the next request does not lead beside it. */
static void subject_batch_queue_pending(void *arg)
{
    const sp_batch_queue_options options = {.workers = 2, .max_batch = 4, .max_waiting = 4};
    (void)arg;
    sp__queue_world_begin(&options, 2);
    sp__batches_take_slots(&sp__queue_world.base);
    sp__subject_run((const sp_thread_fn[]){add_0, add_1}, 2, NULL);
    release_slot(NULL);
    SP_SCHED_ASSERT(sp_load_relaxed(&sp__queue_world.batches) == 1);
    sp__queue_world_end(2);
}

/* Gates stay open after the last release, whatever flushes come behind it. */
static void subject_batch_queue_last_release(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    const sp_batch_queue_options options = {
        .workers = 1, .max_batch = 4, .max_waiting = 4, .max_delay_ns = LONG_NS};
    sp__queue_world_begin(&options, 2);
    sp__subject_run((const sp_thread_fn[]){add_0, release_queue, flush}, threads, NULL);
    sp__queue_world.handle.bits = 0;
    sp__queue_world_end(1);
}

/* ---- gates ---- */

static const sp_batch_queue_options delayed = {
    .workers = 1, .max_batch = 4, .max_waiting = 4, .max_delay_ns = LONG_NS};

/* The requests that are inside before the flush do not wait for its end. */
static void subject_batch_queue_flush(void *arg)
{
    (void)arg;
    sp__queue_world_begin(&delayed, 3);
    sp__queue_world_add(0);
    sp__subject_run((const sp_thread_fn[]){flush, add_1}, 2, NULL);
    SP_SCHED_ASSERT(sp_load_acquire(&sp__queue_world.ended[0]) == 1);
    flush(NULL);
    sp__queue_world_end(2);
}

/* Two requests fill a batch: no timer is needed. */
static void subject_batch_queue_full(void *arg)
{
    (void)arg;
    sp__queue_world_begin(&delayed, 2);
    sp__subject_run((const sp_thread_fn[]){add_0, add_1}, 2, NULL);
    SP_SCHED_ASSERT(sp_load_relaxed(&sp__queue_world.batches) == 1);
    sp__queue_world_end(2);
}

/* The same while the only batch for two is in use: each runs alone, at once. */
static void subject_batch_queue_full_busy(void *arg)
{
    (void)arg;
    sp__queue_world_begin(&delayed, 2);
    sp_batch *busy = sp__batch_acquire(&sp__queue_world.base.plans, 2);
    sp__subject_run((const sp_thread_fn[]){add_0, add_1}, 2, NULL);
    sp__batch_release(busy);
    sp__queue_world_end(2);
}

/* The second gate closes when the timer may be asleep. */
static void add_one_by_one(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < 2; i++) {
        sp__queue_world_add(i);
        sp__queue_world_await(i);
    }
}

static void subject_batch_queue_timer(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp__queue_world_begin(&delayed, 3);
    sp__subject_run((const sp_thread_fn[]){add_one_by_one, add_2}, threads, NULL);
    if (threads == 2) sp__queue_world_await(2);
    sp__queue_world_end(threads + 1);
}

/* A gate that closes beside the shutdown does not stay closed. */
static void subject_batch_queue_stop(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp__queue_world_begin(&delayed, 3);
    sp__subject_run((const sp_thread_fn[]){add_0, stop, add_1}, threads, NULL);
    sp__queue_world_end(threads - 1);
}

/* ---- places ---- */

static void subject_batch_queue_room(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    const sp_batch_queue_options options = {.workers = 1, .max_batch = 4, .max_waiting = 1};
    sp__queue_world_begin(&options, 2);
    sp__batches_take_slots(&sp__queue_world.base);
    sp__queue_world_add(0);
    sp__subject_run((const sp_thread_fn[]){release_slot, add_1, add_2}, threads, NULL);
    sp__queue_world_end(threads);
}

/* Its time-out ends the wait for a place, or not. */
static void add_2_in_time(void *arg)
{
    (void)arg;
    const sp_run_terms terms = {.deadline_ns = 1};
    sp_status *status = &sp__queue_world.status;
    *status = sp__batch_queue_reserve(sp__queue_world.queue, true, &terms);
    SP_SCHED_ASSERT(*status == SP_OK || *status == SP_TIMEOUT);
    if (*status == SP_OK) sp__batch_queue_unreserve(sp__queue_world.queue);
}

/* The submitter that leaves does not keep the place from the one behind it. */
static void subject_batch_queue_room_left(void *arg)
{
    (void)arg;
    const sp_batch_queue_options options = {.workers = 1, .max_batch = 4, .max_waiting = 1};
    sp__queue_world_begin(&options, 2);
    sp__batches_take_slots(&sp__queue_world.base);
    sp__queue_world_add(0);
    sp__subject_run((const sp_thread_fn[]){release_slot, add_2_in_time, add_1}, 3, NULL);
    sp__queue_world_end(2);
}

/* ---- claims ---- */

static void subject_batch_queue_claim(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    sp__queue_world_begin(&one_worker, 3);
    sp__batches_take_slots(&sp__queue_world.base);
    sp__queue_world_add(0);
    sp__queue_world_add(1);
    sp__subject_run((const sp_thread_fn[]){release_slot, claim_1, add_2}, threads, NULL);
    sp__queue_world_end(threads);
}

/* The request that leads is claimed while it waits for the slot. */
static void subject_batch_queue_claim_lead(void *arg)
{
    (void)arg;
    const sp_batch_queue_options options = {.workers = 2, .max_batch = 1, .max_waiting = 4};
    sp__queue_world_begin(&options, 2);
    sp__batches_take_slots(&sp__queue_world.base);
    sp__queue_world_add(0);
    sp__subject_run((const sp_thread_fn[]){add_1, claim_1, release_slot}, 3, NULL);
    sp__queue_world_end(2);
}

/* The batch of both fails, and its slot is not free before the run ends that a callback waits for.
 */
static void subject_batch_queue_awaited(void *arg)
{
    (void)arg;
    sp__queue_world_begin(&one_worker, 2);
    sp__queue_world.base.fails = sp__queue_world.waits_for_one = true;
    sp__batches_take_slots(&sp__queue_world.base);
    sp__queue_world_add(0);
    sp__queue_world_add(1);
    sp__subject_run((const sp_thread_fn[]){release_slot, claim_1}, 2, NULL);
    sp__queue_world_end(2);
}

static void subject_batch_queue_break(void *arg)
{
    (void)arg;
    sp__queue_world_begin(&one_worker, 3);
    sp__queue_world.base.fails = true;
    sp__batches_take_slots(&sp__queue_world.base);
    sp__queue_world_add(0);
    sp__queue_world_add(1);
    sp__subject_run((const sp_thread_fn[]){release_slot, add_2}, 2, NULL);
    sp__queue_world_end(3);
}

/* ---- the table ---- */

const sp_subject sp__subjects_batch_queue[] = {
    {.name = "batch_queue_add_2",
     .test = subject_batch_queue_add,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "quiet_lead late_scatter",
     .seconds = 0.5},
    {.name = "batch_queue_add_3",
     .test = subject_batch_queue_add,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "quiet_lead",
     .seconds = 0.5},
    {.name = "batch_queue_pending",
     .test = subject_batch_queue_pending,
     .thread_count = 2,
     .planted = "lead_is_not_pending",
     .seconds = 0.5},
    {.name = "batch_queue_last_release_2",
     .test = subject_batch_queue_last_release,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 3,
     .planted = "late_flush",
     .seconds = 0.5},
    {.name = "batch_queue_last_release_3",
     .test = subject_batch_queue_last_release,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 4,
     .planted = "flush_closes",
     .seconds = 0.5},
    {.name = "batch_queue_flush",
     .test = subject_batch_queue_flush,
     .thread_count = 3,
     .planted = "late_flush",
     .seconds = 0.5},
    {.name = "batch_queue_full",
     .test = subject_batch_queue_full,
     .thread_count = 3,
     .planted = "late_scatter",
     .seconds = 0.5},
    {.name = "batch_queue_full_busy",
     .test = subject_batch_queue_full_busy,
     .thread_count = 3,
     .planted = "rest_is_gated quiet_lead",
     .seconds = 0.5},
    {.name = "batch_queue_timer_1",
     .test = subject_batch_queue_timer,
     .arg = SP_SUBJECT_ARG(1),
     .thread_count = 2,
     .planted = "quiet_gate",
     .seconds = 0.5,
     .dpor_seconds = 2,
     .inexhaustible_weak = "two gates close and open: no end within 90,000 orders"},
    {.name = "batch_queue_timer_2",
     .test = subject_batch_queue_timer,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 3,
     .planted = "quiet_gate",
     .seconds = 0.5},
    {.name = "batch_queue_stop_2",
     .test = subject_batch_queue_stop,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 3,
     .planted = "gates_stay_closed",
     .seconds = 0.5},
    {.name = "batch_queue_stop_3",
     .test = subject_batch_queue_stop,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 4,
     .planted = "gates_stay_closed",
     .seconds = 0.5},
    {.name = "batch_queue_room_2",
     .test = subject_batch_queue_room,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "room_unseen",
     .seconds = 0.5},
    {.name = "batch_queue_room_3",
     .test = subject_batch_queue_room,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "room_unseen",
     .seconds = 0.5},
    {.name = "batch_queue_room_left",
     .test = subject_batch_queue_room_left,
     .thread_count = 3,
     .planted = "room_blocked",
     .seconds = 0.5},
    {.name = "batch_queue_claim_2",
     .test = subject_batch_queue_claim,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "leave_promised",
     .seconds = 0.5},
    {.name = "batch_queue_claim_3",
     .test = subject_batch_queue_claim,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "leave_promised quiet_lead",
     .seconds = 0.5},
    {.name = "batch_queue_claim_lead",
     .test = subject_batch_queue_claim_lead,
     .thread_count = 3,
     .planted = "leave_promised",
     .seconds = 0.5},
    {.name = "batch_queue_awaited",
     .test = subject_batch_queue_awaited,
     .thread_count = 2,
     .planted = "awaited_alone",
     .seconds = 0.5},
    {.name = "batch_queue_break",
     .test = subject_batch_queue_break,
     .thread_count = 2,
     .planted = "quiet_lead",
     .seconds = 0.5},
    {0},
};
