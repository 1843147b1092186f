/* SPDX-License-Identifier: Apache-2.0 */
#include "batch_queue_world.h"

#include <string.h>

#include <streampool/streampool.h>

#include "base/clock.h"
#include "base/wait.h"

sp_queue_world sp__queue_world;

/* ---- runs, as those of submitted.c ---- */

static sp_queue_world_run *queued_of(sp_run_request *request)
{
    return SP_CONTAINER_OF(request, sp_queue_world_run, run.request);
}

static void run_end(sp_run_request *request, sp_resume_list *ready)
{
    sp_queue_world_run *q = queued_of(request);
    sp_rt_batch_queue *queue = q->run.place.queue;
    SP_SCHED_ASSERT(q->output == q->input + 1);
    q->ends++;
    if (q->run.has_slot) {
        sp__resume_list_add(ready, sp__run_slots_release_submitted(q->run.slots, request));
    }
    sp__batch_queue_end(&q->run, ready);
    sp_atomic_u32 *ended = &sp__queue_world.ended[q - sp__queue_world.requests];
    sp_store_release(ended, 1);
    sp_word_wake(ended, SP_WAKE_ALL);
    sp__batch_queue_drop(queue);
}

static void compute_alone(sp_run_request *request, sp_resume_list *ready)
{
    sp_queue_world_run *q = queued_of(request);
    q->run.is_counted = true;
    q->output = q->input + 1;
    sp_fetch_add_relaxed(&sp__queue_world.base.computed, 1);
    run_end(request, ready);
}

void sp__queue_world_await(uint32_t i)
{
    while (sp_load_acquire(&sp__queue_world.ended[i]) == 0) {
        (void)sp_word_wait(&sp__queue_world.ended[i], 0, SP_NO_DEADLINE);
    }
}

static void batch_run(sp_batch *batch, sp_resume_list *ready)
{
    const uint32_t rows = batch->bucket->rows;
    sp_run_request *lead = batch->requests[0];
    sp__batch_gather(batch);
    if (sp__queue_world.base.fails) {
        sp__batch_queue_break(batch, ready);
        if (sp__queue_world.waits_for_one) sp__queue_world_await(1);
        compute_alone(lead, ready);
        return;
    }
    const uint32_t *inputs = batch->ports[0];
    uint32_t *outputs = batch->ports[1];
    for (uint32_t i = 0; i < rows; i++) outputs[i] = inputs[i] + 1;
    sp_fetch_add_relaxed(&sp__queue_world.base.computed, rows);
    sp_fetch_add_relaxed(&sp__queue_world.batches, 1);
    sp__batch_queue_count(sp__queue_world.queue, rows);
    sp__batch_scatter(batch);
    sp__batch_finish(batch, NULL, ready);
}

/* With a slot. */
static void run_resume(sp_wait_entry *entry, sp_resume_list *ready)
{
    sp_rt_future *run = SP_CONTAINER_OF(entry, sp_rt_future, request.entry);
    run->has_slot = true;
    sp_batch *batch = sp__batch_queue_form(run, ready);
    if (batch != NULL) batch_run(batch, ready);
    else compute_alone(&run->request, ready);
}

/* ---- the world ---- */

void sp__queue_world_begin(const sp_batch_queue_options *options, uint32_t rows)
{
    memset(&sp__queue_world, 0, sizeof sp__queue_world);
    sp__batches_begin(&sp__queue_world.base, 1, 2, rows == 3 ? 3 : 0);
    sp__queue_world.device = sp__subject_bare_device();
    sp__queue_world.model.device = sp__queue_world.device;
    sp_store_relaxed(&sp__queue_world.model.object.word, (uint64_t)1);
    sp_store_relaxed(&sp__queue_world.entry.extra, &sp__queue_world.base.plans.extra);
    sp_store_release(&sp__runtime_phase, SP_RUNTIME_UP);
    SP_SCHED_ASSERT(
        sp__batch_queue_create(&sp__queue_world.model, options, &sp__queue_world.handle) == SP_OK);
    SP_SCHED_ASSERT(sp__batch_queue_hold(sp__queue_world.handle, &sp__queue_world.queue) == SP_OK);
    for (uint32_t i = 0; i < SP_QUEUE_WORLD_RUNS; i++) {
        sp_queue_world_run *q = &sp__queue_world.requests[i];
        q->input = 10 * i;
        q->inputs[0] = &q->input;
        q->outputs[0] = &q->output;
        q->run.slots = &sp__queue_world.base.slots;
        q->run.plan_entry = &sp__queue_world.entry;
        q->run.request = (sp_run_request){.entry = {.resume = run_resume},
                                          .inputs = q->inputs,
                                          .outputs = q->outputs,
                                          .finish = run_end,
                                          .run_inline = compute_alone};
    }
}

void sp__queue_world_end(uint32_t count)
{
    for (uint32_t i = 0; i < SP_QUEUE_WORLD_RUNS; i++) {
        SP_SCHED_ASSERT(sp_load_acquire(&sp__queue_world.ended[i]) == (i < count));
        SP_SCHED_ASSERT(sp__queue_world.requests[i].ends == (i < count));
    }
    sp_batch_queue_statistics s;
    sp__batch_queue_read(sp__queue_world.queue, &s);
    SP_SCHED_ASSERT(s.done == count && s.submitted == count && s.rows == count);
    SP_SCHED_ASSERT(s.waiting == 0 && s.in_flight == 0);
    sp__batch_queue_drop(sp__queue_world.queue);
    if (sp__queue_world.handle.bits != 0)
        SP_SCHED_ASSERT(sp__batch_queue_release(sp__queue_world.handle) == SP_OK);
    SP_SCHED_ASSERT(sp_shutdown() == SP_OK);
    SP_SCHED_ASSERT(sp_load_relaxed(&sp__queue_world.model.object.word) == 1);
    sp__batch_queues_deinit();
    sp__subject_bare_device_free(sp__queue_world.device);
    sp__subject_runtime_down();
    sp__batches_end(&sp__queue_world.base, count);
}

void sp__queue_world_add(uint32_t i)
{
    sp_resume_list ready = {0};
    sp_rt_future *run = &sp__queue_world.requests[i].run;
    SP_SCHED_ASSERT(sp__batch_queue_reserve(sp__queue_world.queue, true, &run->request.terms) ==
                    SP_OK);
    sp__object_hold(&sp__queue_world.queue->object);
    run->place.queue = sp__queue_world.queue;
    sp__batch_queue_add(sp__queue_world.queue, run, &ready);
    sp__resume_list_run(&ready);
}
