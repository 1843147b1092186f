/* SPDX-License-Identifier: Apache-2.0 */
#include "runs_world.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/thread_record.h"
#include "runtime/submit_queue.h"

#define IS_LIVE ((uint64_t)1 << 63) /* of a plan's entry */

/* ---- a plan ---- */

static sp_status rows_add(const sp_tile *tile)
{
    const uint32_t rows = *(const uint32_t *)tile->constants;
    const uint32_t *in = tile->bindings[0];
    uint32_t *out = tile->bindings[1];
    for (uint32_t i = 0; i < rows; i++) {
        if (in[i] == SP_RUNS_BAD) return sp__fail(SP_INVALID, "a bad row");
        out[i] = in[i] + 1;
    }
    return SP_OK;
}

static const sp_run_terms any_terms;

static void one_tile(const void *constants, sp_tiling *out)
{
    (void)constants;
    *out = (sp_tiling){.grid = {1, 1, 1}};
}

static const sp_kernel kernels[] = {{.name = "rows_add", .run = rows_add, .tiling = one_tile}};

static void plan_init(sp_world_plan *p, sp_rt_device *device, uint32_t rows)
{
    const uint64_t bytes = rows * sizeof(uint32_t);
    p->rows = rows;
    p->bindings[0] = (sp_plan_binding){.where = SP_PLACE_INPUT, .bytes = bytes};
    p->bindings[1] = (sp_plan_binding){.where = SP_PLACE_OUTPUT, .is_write = true, .bytes = bytes};
    p->step = (sp_plan_step){.binding_count = 2,
                             .bindings = p->bindings,
                             .constants = &p->rows,
                             .constant_bytes = sizeof p->rows};
    p->ports[0] = p->ports[1] = (sp_plan_tensor){.bytes = bytes};
    p->plan = (sp_graph_plan){.kernels = kernels,
                              .steps = &p->step,
                              .inputs = &p->ports[0],
                              .outputs = &p->ports[1],
                              .step_count = 1,
                              .input_count = 1,
                              .output_count = 1};
    p->segment = (sp_segment){.device = SP_SEGMENT_MODEL, .step_count = 1};
    p->executable.plan = &p->plan;
    p->executable.segments = (sp_segments){.list = &p->segment, .count = 1};
    p->executable.targets[SP_SEGMENT_MODEL].device = device;
    p->executable.target_count = 1;
    p->executable.labels = &p->label;
    sp_mutex_init(&p->executable.lock, SP_LOCK_EXECUTABLE);
    sp_mutex_lock(&p->executable.lock);
    sp__wait_queue_init(&p->executable.queue);
    sp_mutex_unlock(&p->executable.lock);
}

static void plan_deinit(sp_world_plan *p)
{
    SP_SCHED_ASSERT(sp_load_relaxed(&p->executable.waiting) == 0);
    sp__executable_destroy_contexts(&p->executable);
    sp_mutex_deinit(&p->executable.lock);
}

/* ---- the world ---- */

static void bucket_add(sp_runs_world *w, uint32_t i, uint32_t rows)
{
    sp_batch *batch = &w->batches[i];
    sp_executable *executable = &w->larger[i].executable;
    plan_init(&w->larger[i], w->device, rows);
    batch->plans = &w->plans;
    batch->bucket = sp__batch_bucket_add(&w->plans, rows, 0, executable);
    sp_store_relaxed(&batch->bucket->pays_for_threads, 1);
    batch->ports = w->addresses[i];
    for (uint32_t port = 0; port < 2; port++) w->addresses[i][port] = w->tensors[i][port];
    SP_SCHED_ASSERT(sp__exec_context_create(executable, true, &batch->context) == SP_OK);
    sp__exec_context_begin(batch->context, (const void *const *)batch->ports, &batch->ports[1]);
    sp__batch_release(batch);
    sp__batch_bucket_publish(&w->plans);
}

static void plans_begin(sp_runs_world *w, uint32_t slots)
{
    sp__run_slots_init(&w->slots, slots, slots);
    w->plans.own_slots = &w->slots;
    w->plans.input_count = w->plans.output_count = 1;
    w->plans.ports = w->ports;
    w->plans.shared_bytes = w->shared_bytes;
    for (uint32_t i = 0; i < 2; i++) {
        w->ports[i] = (sp_batch_port){.is_batched = true, .outer = 1, .chunk = sizeof(uint32_t)};
    }
    w->entry.executable = &w->single.executable;
    sp_store_relaxed(&w->entry.run_ns, 1); /* as of a plan that was timed: no steps for a clock */
    sp_store_relaxed(&w->entry.word, IS_LIVE | 1);
    sp_store_relaxed(&w->entry.extra, &w->plans.extra);
}

void sp__runs_begin(sp_runs_world *w, uint32_t slots, uint32_t contexts, uint32_t rows_a,
                    uint32_t rows_b)
{
    memset(w, 0, sizeof *w);
    w->device = sp__subject_bare_device();
    w->device->dev->limits.run_slots = contexts;
    w->common = sp__queue_device(w->device->dev);
    w->model.device = w->device;
    sp__run_counters_init(&w->model.counters, w->model.lanes);
    sp_store_relaxed(&w->model.object.word, 1);
    plan_init(&w->single, w->device, 1);
    sp__executable_preallocate(&w->single.executable);
    plans_begin(w, slots);
    if (rows_a != 0) bucket_add(w, 0, rows_a);
    if (rows_b != 0) bucket_add(w, 1, rows_b);
    SP_SCHED_ASSERT(sp__executable_open_queues(&w->single.executable) == SP_OK);
    for (uint32_t i = 0; i < SP_COUNT_OF(w->streams); i++) {
        w->streams[i].device = w->device;
        w->streams[i].index = i;
        sp_store_relaxed(&w->streams[i].queue, &sp__subject_queue(w->common, i, false)->base);
    }
}

void sp__runs_end(sp_runs_world *w)
{
    SP_SCHED_ASSERT(sp__free_slots_word(&w->slots.free) == w->slots.count);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->slots.submitted_count) == 0);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->plans.own_group.count) == 0);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->entry.word) == (IS_LIVE | 1));
    SP_SCHED_ASSERT(sp_load_relaxed(&w->model.object.word) == 1);
    SP_SCHED_ASSERT(sp__run_counters_in_flight(&w->model.counters) == 0);
    for (uint32_t i = 0; i < sp__batch_plans_count(&w->plans); i++) {
        SP_SCHED_ASSERT(sp__batch_acquire(&w->plans, w->plans.buckets[i].rows) == &w->batches[i]);
        sp__exec_context_destroy(w->batches[i].context);
        plan_deinit(&w->larger[i]);
        sp_mutex_deinit(&w->plans.buckets[i].lock);
    }
    plan_deinit(&w->single);
    sp__run_slots_deinit(&w->slots);
    sp__subject_bare_device_free(w->device);
    sp__futures_deinit();
    sp__subject_end();
}

void sp__runs_take_slots(sp_runs_world *w)
{
    for (uint32_t i = 0; i < w->slots.count; i++) {
        SP_SCHED_ASSERT(sp__run_slots_try_acquire(&w->slots, NULL));
    }
}

void sp__runs_take_context(sp_runs_world *w)
{
    SP_SCHED_ASSERT(
        sp__exec_context_acquire(&w->single.executable, SP_NO_HOME, true, &w->context) == SP_OK);
}

/* ---- runs on threads ---- */

/* Apart from the stack, so that the memory is gone with the call. */
static sp_status run_once(sp_runs_world *w, uint32_t input)
{
    sp_world_run *run = sp_malloc(sizeof *run);
    SP_SCHED_ASSERT(run != NULL);
    *run = (sp_world_run){.input = input, .data = {&run->input}, .outputs = {&run->output}};
    sp_rt_stream *own = &w->streams[sp_fetch_add_relaxed(&w->next_stream, 1)];
    const sp_stream_ref stream = {.stream = own, .queue = sp_load_relaxed(&own->queue)};
    const void *data[1] = {&run->input};
    const sp_status status =
        sp__batch_run(&w->model, &w->entry, data, run->outputs, &stream, &any_terms);
    if (status == SP_OK) SP_SCHED_ASSERT(run->output == input + 1);
    sp_free(run);
    return status;
}

void sp__runs_run(void *arg)
{
    SP_SCHED_ASSERT(run_once(arg, 10) == SP_OK);
}

void sp__runs_run_bad(void *arg)
{
    SP_SCHED_ASSERT(run_once(arg, SP_RUNS_BAD) == SP_INVALID);
}

void sp__runs_release_slot(void *arg)
{
    sp_runs_world *w = arg;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

/* ---- submitted runs ---- */

void sp__runs_submit(sp_runs_world *w, uint32_t i, uint32_t input)
{
    sp_world_run *run = &w->runs[i];
    *run = (sp_world_run){.input = input};
    const void *data[1] = {&run->input};
    void *outputs[1] = {&run->output};
    const sp_run_ports ports = {.data = data, .outputs = outputs};
    sp_batch_line line;
    sp_rt_future *future;
    SP_SCHED_ASSERT(sp__batch_line_of(&w->model, &w->entry, false, &line) == SP_OK);
    SP_SCHED_ASSERT(
        sp__submitted_create(w->device, &w->single.executable, &line, &ports, &future) == SP_OK);
    sp_fetch_add_relaxed(&w->entry.word, (uint64_t)1);
    SP_SCHED_ASSERT(sp__submitted_accept(future, &w->model, &w->entry, &line, &any_terms,
                                         &run->handle) == SP_OK);
    SP_SCHED_ASSERT(sp__future_hold(run->handle, &run->future) == SP_OK);
}

bool sp__runs_has_ended(const sp_world_run *run)
{
    return sp__point_has_passed((sp_point){&run->future->timeline, run->future->value});
}

void sp__runs_check(sp_runs_world *w, uint32_t i, sp_status expected)
{
    sp_world_run *run = &w->runs[i];
    SP_SCHED_ASSERT(sp__runs_has_ended(run));
    SP_SCHED_ASSERT(sp__future_query(run->future) == expected);
    if (expected == SP_OK) SP_SCHED_ASSERT(run->output == run->input + 1);
    sp__future_drop(run->future);
    SP_SCHED_ASSERT(sp__future_release(run->handle) == SP_OK);
}

static void run_wait(sp_world_run *run)
{
    const sp_status status = sp__future_wait(run->future, SP_NO_DEADLINE);
    SP_SCHED_ASSERT(sp__runs_has_ended(run));
    if (status == SP_OK) SP_SCHED_ASSERT(run->output == run->input + 1);
}

void sp__runs_wait(void *arg)
{
    run_wait(&((sp_runs_world *)arg)->runs[0]);
}

void sp__runs_wait_second(void *arg)
{
    run_wait(&((sp_runs_world *)arg)->runs[1]);
}

/* There is one submit queue for each context. */
static bool work_once(sp_runs_world *w)
{
    static const sp_executor executor = {
        .kind = SP_WORKER, .until = UINT64_MAX, .budget = UINT32_MAX};
    bool is_any = false;
    for (uint32_t i = 0; i < sp__submit_queues_count(w->device); i++) {
        sp_command_queue *queue = sp__command_queue(sp__submit_queue_at(w->device, i));
        if (!sp__queue_claim(queue)) continue;
        sp__queue_drain(queue, &executor);
        is_any = true;
    }
    return is_any;
}

void sp__runs_release_and_work(void *arg)
{
    sp_runs_world *w = arg;
    sp__runs_release_slot(w);
    while (!sp__runs_has_ended(&w->runs[0])) {
        if (!work_once(w)) sp_spin_hint();
    }
}

void sp__runs_wait_inside(void *arg)
{
    sp_thread_record *record = sp__thread_record();
    record->is_executor = true;
    sp__runs_wait(arg);
    record->is_executor = false;
}

void sp__runs_release_late(void *arg)
{
    sp_runs_world *w = arg;
    sp__runs_wait(w);
    sp__wait_entry_resume(sp__exec_context_release(w->context));
    sp__runs_release_slot(w);
}
