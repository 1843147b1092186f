/* SPDX-License-Identifier: Apache-2.0 */
#include "batches_world.h"

#include <string.h>

#include "base/heap.h"
#include "device/thread_record.h"

/* ---- the world ---- */

static void bucket_add(sp_batches_world *w, uint32_t i, uint32_t rows)
{
    sp_batch *batch = &w->batches[i];
    batch->plans = &w->plans;
    batch->bucket = sp__batch_bucket_add(&w->plans, rows, 0, NULL);
    sp_store_relaxed(&batch->bucket->pays_for_threads, 1);
    batch->ports = w->addresses[i];
    batch->places = w->places_of[i];
    for (uint32_t port = 0; port < 2; port++) w->addresses[i][port] = w->tensors[i][port];
    sp__batch_release(batch);
    sp__batch_bucket_publish(&w->plans);
}

void sp__batches_begin(sp_batches_world *w, uint32_t slots, uint32_t rows_a, uint32_t rows_b)
{
    memset(w, 0, sizeof *w);
    sp__run_slots_init(&w->slots, slots, slots);
    w->plans.input_count = w->plans.output_count = 1;
    w->plans.ports = w->ports;
    w->plans.shared_bytes = w->shared_bytes;
    for (uint32_t i = 0; i < 2; i++) {
        w->ports[i] = (sp_batch_port){.is_batched = true, .outer = 1, .chunk = sizeof(uint32_t)};
    }
    bucket_add(w, 0, rows_a);
    if (rows_b != 0) bucket_add(w, 1, rows_b);
}

void sp__batches_add_rows(sp_batches_world *w, uint32_t count)
{
    w->row_offsets[1] = sizeof(uint32_t);
    w->rows = (sp_batch_rows){.ports = w->ports,
                              .input_count = 1,
                              .output_count = 1,
                              .offsets = w->row_offsets,
                              .row_bytes = sizeof w->row_memory[0],
                              .count = count,
                              .links = w->row_links,
                              .base = (char *)w->row_memory};
    for (uint32_t i = 0; i < count; i++) sp__batch_rows_release(&w->rows, w->row_memory[i]);
    sp_store_relaxed(&w->rows.is_there, 1);
    w->plans.rows = &w->rows;
    for (uint32_t port = 0; port < 2; port++) {
        w->ports[port].is_by_rows = true;
        for (uint32_t i = 0; i < SP_BATCHES_BUCKETS; i++) {
            w->places_of[i][port] = w->places[i][port];
        }
    }
}

/* All are back. */
static void rows_end(sp_batches_world *w)
{
    uint32_t count = 0;
    while (sp__batch_rows_acquire(&w->rows) != NULL) count++;
    SP_SCHED_ASSERT(count == w->rows.count);
}

void sp__batches_end(sp_batches_world *w, uint32_t computed)
{
    SP_SCHED_ASSERT(sp_load_relaxed(&w->computed) == computed);
    SP_SCHED_ASSERT(sp__free_slots_word(&w->slots.free) == w->slots.count);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->group.count) == 0 && w->group.first == NULL);
    for (uint32_t i = 0; i < sp__batch_plans_count(&w->plans); i++) {
        SP_SCHED_ASSERT(sp__batch_acquire(&w->plans, w->plans.buckets[i].rows) == &w->batches[i]);
        sp_mutex_deinit(&w->plans.buckets[i].lock);
    }
    for (uint32_t i = 0; i < SP_COUNT_OF(w->runs); i++) {
        SP_SCHED_ASSERT(w->runs[i].ends == (w->runs[i].world != NULL));
    }
    rows_end(w);
    sp__run_slots_deinit(&w->slots);
    sp__subject_end();
}

/* In a slot. */
static void compute(sp_batches_world *w, const uint32_t *inputs, uint32_t *outputs, uint32_t rows)
{
    if (w->slots.count == 1) {
        SP_SCHED_ASSERT(w->inside == 0);
        w->inside = 1;
    }
    for (uint32_t i = 0; i < rows; i++) outputs[i] = inputs[i] + 1;
    sp_fetch_add_relaxed(&w->computed, rows);
    if (w->slots.count == 1) w->inside = 0;
}

/* As the device does: rows are where the lead says. */
static void batch_compute_by_rows(sp_batches_world *w, const sp_batch *batch)
{
    for (uint32_t row = 0; row < (w->fails ? 0 : batch->bucket->rows); row++) {
        const char *input = (const char *)batch->ports[0] + batch->places[0][row];
        char *output = (char *)batch->ports[1] + batch->places[1][row];
        compute(w, (const uint32_t *)(const void *)input, (uint32_t *)(void *)output, 1);
    }
}

static void batch_compute(sp_batches_world *w, const sp_batch *batch)
{
    sp__batch_gather(batch);
    if (w->plans.rows != NULL) {
        batch_compute_by_rows(w, batch);
        return;
    }
    compute(w, batch->ports[0], batch->ports[1], w->fails ? 0 : batch->bucket->rows);
}

/* ---- runs on a thread ---- */

/* Apart from the stack, so that the memory is gone with the call. */
typedef struct call {
    sp_run_request request;
    uint32_t input, output;
    const void *inputs[1];
    void *outputs[1];
} call;

static call *call_begin(uint32_t input)
{
    call *c = sp_malloc(sizeof *c);
    SP_SCHED_ASSERT(c != NULL);
    *c = (call){.input = input, .inputs = {&c->input}, .outputs = {&c->output}};
    c->request.inputs = c->inputs;
    c->request.outputs = c->outputs;
    return c;
}

static void call_end(call *c)
{
    SP_SCHED_ASSERT(c->output == c->input + 1);
    sp_free(c);
}

/* Computes the batch, if any, or the call alone, and releases the slot: as sp__batch_run does. */
static void run_in_slot(sp_batches_world *w, call *c, sp_batch *batch)
{
    sp_resume_list ready = {0};
    if (batch != NULL) batch_compute(w, batch);
    if (batch != NULL && !w->fails) {
        sp__batch_scatter(batch);
        sp__batch_finish(batch, &w->slots, &ready);
        sp__resume_list_run(&ready);
        sp__batch_row_return(&w->plans, &c->request, true);
        return;
    }
    if (batch != NULL) sp__batch_break(batch, &w->slots, &ready);
    sp__resume_list_run(&ready);
    sp__batch_row_return(&w->plans, &c->request, false);
    compute(w, &c->input, &c->output, 1);
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static sp_batch *form(sp_batches_world *w, sp_run_request *lead)
{
    const uint32_t waiting = sp_load_relaxed(&w->group.count);
    sp_batch *batch = sp__batch_form(&w->plans, &w->slots, &w->group, lead);
    SP_SCHED_ASSERT(batch != NULL || waiting == 0 || !w->is_found);
    return batch;
}

/* True if the call is done, as a row of another one's batch. */
static bool call_wait(sp_batches_world *w, call *c, sp_run_group *group)
{
    bool is_done = false;
    if (sp__run_slots_try_acquire(&w->slots, NULL)) return false;
    c->request.group = group;
    sp__batch_row_take(&w->plans, &w->slots, &c->request);
    SP_SCHED_ASSERT(sp__run_slots_wait(&w->slots, &c->request, &is_done) == SP_OK);
    if (is_done) sp__batch_row_return(&w->plans, &c->request, true);
    return is_done;
}

void sp__batches_run(void *arg)
{
    sp_batches_world *w = arg;
    call *c = call_begin(10);
    if (!call_wait(w, c, &w->group)) run_in_slot(w, c, form(w, &c->request));
    call_end(c);
}

void sp__batches_run_late(void *arg)
{
    sp_batches_world *w = arg;
    bool is_done;
    call *c = call_begin(50);
    c->request.terms.deadline_ns = 1;
    c->request.group = &w->group;
    sp__batch_row_take(&w->plans, &w->slots, &c->request);
    const sp_status status = sp__run_slots_wait(&w->slots, &c->request, &is_done);
    SP_SCHED_ASSERT(!is_done && (status == SP_OK || status == SP_TIMEOUT));
    if (status == SP_OK) run_in_slot(w, c, NULL);
    else sp__batch_row_return(&w->plans, &c->request, false);
    sp_store_relaxed(&w->ended, status == SP_OK);
    sp_free(c);
}

void sp__batches_use_row(void *arg)
{
    sp_batches_world *w = arg;
    uint32_t *row = sp__batch_rows_acquire(&w->rows);
    if (row == NULL) return;
    row[0] = row[1] = 1000;
    sp__batch_rows_release(&w->rows, row);
}

/* A run that must be alone. */
void sp__batches_run_apart(void *arg)
{
    sp_batches_world *w = arg;
    call *c = call_begin(20);
    const bool is_done = call_wait(w, c, NULL);
    SP_SCHED_ASSERT(!is_done);
    run_in_slot(w, c, NULL);
    call_end(c);
}

/* In the group, but of a bucket that does not pay for threads. */
static void run_unmerged(void *arg)
{
    sp_batches_world *w = arg;
    call *c = call_begin(25);
    const bool is_done = call_wait(w, c, &w->group);
    SP_SCHED_ASSERT(!is_done);
    run_in_slot(w, c, form(w, &c->request));
    call_end(c);
}

/* The thread waits before the submitted runs do; the slot is left to one of these. */
static void submit_two_and_release(void *arg)
{
    sp_batches_world *w = arg;
    while (sp_load_relaxed(&w->group.count) < 1) sp_spin_hint();
    sp__batches_submit(w, 0);
    sp__batches_submit(w, 1);
    sp__thread_record()->tenure.returns_soon = true;
    sp__batches_release_slot(w);
}

void sp__batches_run_unmerged(sp_batches_world *w)
{
    sp__batches_take_slots(w);
    sp__subject_run((const sp_thread_fn[]){run_unmerged, submit_two_and_release}, 2, w);
}

/* With a slot that the subject has taken: leads what waits now. */
void sp__batches_lead(sp_batches_world *w)
{
    call *c = call_begin(30);
    run_in_slot(w, c, form(w, &c->request));
    call_end(c);
}

void sp__batches_lead_now(void *arg)
{
    sp__batches_lead(arg);
}

void sp__batches_lead_one(void *arg)
{
    sp_batches_world *w = arg;
    while (sp_load_relaxed(&w->group.count) < 1) sp_spin_hint();
    sp__batches_lead(w);
}

void sp__batches_release_slot(void *arg)
{
    sp_batches_world *w = arg;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

void sp__batches_take_slots(sp_batches_world *w)
{
    for (uint32_t i = 0; i < w->slots.count; i++) {
        SP_SCHED_ASSERT(sp__run_slots_try_acquire(&w->slots, NULL));
    }
}

void sp__batches_begin_taken(sp_batches_world *w, uint32_t slots, uint32_t rows_a, uint32_t rows_b)
{
    sp__batches_begin(w, slots, rows_a, rows_b);
    sp__batches_take_slots(w);
}

/* ---- runs without a thread ---- */

static sp_queued_run *run_of(sp_run_request *request)
{
    return SP_CONTAINER_OF(request, sp_queued_run, request);
}

static void run_end(sp_run_request *request, sp_resume_list *ready)
{
    sp_queued_run *r = run_of(request);
    sp_batches_world *w = r->world;
    SP_SCHED_ASSERT(r->output == r->input + 1);
    r->ends++;
    sp_store_relaxed(&r->world->ended, 1);
    r->request.inputs = NULL;
    r->request.group = NULL;
    r->request.group_next = NULL;
    if (r->has_slot)
        sp__resume_list_add(ready, sp__run_slots_release_submitted(&w->slots, request));
}

static void run_alone(sp_queued_run *r, sp_resume_list *ready)
{
    compute(r->world, &r->input, &r->output, 1);
    run_end(&r->request, ready);
}

/* With a slot: as a submitted run. */
static void run_resume(sp_wait_entry *entry, sp_resume_list *ready)
{
    sp_queued_run *r = SP_CONTAINER_OF(entry, sp_queued_run, request.entry);
    sp_batches_world *w = r->world;
    r->has_slot = true;
    sp_batch *batch = r->request.group != NULL ? form(w, &r->request) : NULL;
    if (batch != NULL) batch_compute(w, batch);
    if (batch != NULL && !w->fails) {
        sp__batch_scatter(batch);
        sp__batch_finish(batch, NULL, ready);
        return;
    }
    if (batch != NULL) sp__batch_break(batch, &w->slots, ready);
    run_alone(r, ready);
}

/* Without a slot. */
static void run_now(sp_run_request *request, sp_resume_list *ready)
{
    sp_queued_run *r = run_of(request);
    r->output = r->input + 1;
    sp_fetch_add_relaxed(&r->world->computed, 1);
    run_end(request, ready);
}

void sp__batches_submit(sp_batches_world *w, uint32_t i)
{
    sp_queued_run *r = &w->runs[i];
    r->world = w;
    r->input = 40 + i;
    r->inputs[0] = &r->input;
    r->outputs[0] = &r->output;
    r->request = (sp_run_request){.entry = {.resume = run_resume},
                                  .group = &w->group,
                                  .inputs = r->inputs,
                                  .outputs = r->outputs,
                                  .finish = run_end,
                                  .run_inline = run_now};
    if (i == 1 && w->second_lapses) r->request.terms.deadline_ns = 1;
    SP_SCHED_ASSERT(sp__run_slots_submit(&w->slots, &r->request) == SP_OK);
}

void sp__batches_submit_one(void *arg)
{
    sp__batches_submit(arg, 0);
}

/* As a wait inside a callback: runs it without a slot, if it is still queued. */
void sp__batches_run_inline(void *arg)
{
    sp_batches_world *w = arg;
    sp_run_request *request = &w->runs[0].request;
    if (!sp__run_request_claim(request)) return;
    sp_resume_list ready = {0};
    sp__run_slots_dequeue(&w->slots, request);
    run_now(request, &ready);
    sp__resume_list_run(&ready);
}

/* ---- other leaders ---- */

/* The leader's slot is not free before the run ends that a callback waits for: it may not wait for
 * a slot. */
void sp__batches_lead_awaited(void *arg)
{
    sp_batches_world *w = arg;
    call *c = call_begin(30);
    sp_resume_list ready = {0};
    sp_batch *batch = form(w, &c->request);
    if (batch != NULL) sp__batch_break(batch, &w->slots, &ready);
    sp__resume_list_run(&ready);
    while (sp_load_relaxed(&w->ended) == 0) sp_spin_hint();
    run_in_slot(w, c, NULL);
    call_end(c);
}

/* Leads the one that is in the group, and leaves the slot to itself, but does not come back. */
void sp__batches_lead_and_leave(void *arg)
{
    sp_batches_world *w = arg;
    while (sp__run_slots_waiting(&w->slots) < 2 || sp_load_relaxed(&w->group.count) < 1) {
        sp_spin_hint();
    }
    sp__thread_record()->tenure.returns_soon = true;
    sp__batches_lead(w);
}
