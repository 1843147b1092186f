/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "runtime/submit_queue.h"

#define PORT_ALIGNMENT 64u

/* ---- memory ---- */

static const sp_plan_tensor *port_tensor(const sp_graph_plan *plan, uint32_t port)
{
    return port < plan->input_count ? &plan->inputs[port]
                                    : &plan->outputs[port - plan->input_count];
}

static uint64_t port_bytes(const sp_graph_plan *plan, uint32_t port)
{
    const uint64_t bytes = port_tensor(plan, port)->bytes;
    return (bytes + PORT_ALIGNMENT - 1) & ~(uint64_t)(PORT_ALIGNMENT - 1);
}

static sp_allocator *port_allocator(const sp_batch *batch)
{
    return &sp__executable_device(batch->bucket->executable)->allocator;
}

static sp_status ports_allocate(sp_batch *batch, uint32_t count)
{
    const sp_graph_plan *plan = batch->bucket->executable->plan;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) bytes += port_bytes(plan, i);
    SP_TRY(sp__allocator_acquire_any(port_allocator(batch), bytes, true, &batch->block));
    void *at;
    SP_TRY(sp__block_host(batch->block, &at));
    for (uint32_t i = 0; i < count; i++) {
        batch->ports[i] = at;
        at = (char *)at + port_bytes(plan, i);
    }
    return SP_OK;
}

static sp_status batch_fill(sp_batch *batch)
{
    const uint32_t count = batch->plans->input_count + batch->plans->output_count;
    batch->ports = sp_calloc(count, sizeof *batch->ports);
    batch->places = sp_calloc(count, sizeof *batch->places);
    if (batch->ports == NULL || batch->places == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a batch");
    }
    SP_TRY(sp__exec_context_create(batch->bucket->executable, true, &batch->context));
    if (batch->context->staging == NULL) {
        SP_TRY(ports_allocate(batch, count));
        void *const *ports = batch->ports;
        sp__exec_context_begin(batch->context, (const void *const *)ports,
                               ports + batch->plans->input_count);
        return SP_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        batch->ports[i] = sp__staging_at(batch->context->staging, i);
        batch->places[i] = sp__staging_places(batch->context->staging, i);
    }
    return SP_OK;
}

sp_status sp__batch_create(sp_batch_plans *plans, sp_batch_bucket *bucket, sp_batch **out)
{
    sp_batch *batch = sp_calloc(1, sizeof *batch);
    if (batch == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a batch");
    batch->plans = plans;
    batch->bucket = bucket;
    const sp_status status = batch_fill(batch);
    if (status == SP_OK) *out = batch;
    else sp__batch_destroy(batch);
    return status;
}

void sp__batch_destroy(sp_batch *batch)
{
    if (batch->block != NULL) sp__allocator_release(port_allocator(batch), batch->block);
    if (batch->context != NULL) sp__exec_context_destroy(batch->context);
    sp_free((void *)batch->places);
    sp_free(batch->ports);
    sp_free(batch);
}

uint64_t sp__batch_bytes(const sp_batch *batch)
{
    const sp_block *arena = batch->context->arenas[SP_SEGMENT_MODEL];
    const uint64_t bytes = arena != NULL ? arena->bytes : 0;
    return batch->block != NULL ? bytes + batch->block->bytes : bytes;
}

/* ---- forming ---- */

/* A run that is not to begin any more leaves by itself. */
bool sp__batch_accepts(const sp_batch_plans *plans, const sp_run_request *lead,
                       const sp_run_request *request)
{
    if (sp__run_terms_have_lapsed(&request->terms)) return false;
    for (uint32_t i = 0; i < plans->input_count; i++) {
        const uint64_t bytes = plans->shared_bytes[i];
        if (bytes != 0 && memcmp(request->inputs[i], lead->inputs[i], bytes) != 0) return false;
    }
    return true;
}

static bool has_thread(const sp_run_request *request)
{
    return request->finish == NULL;
}

/* Its caller's wake-up is a part of the cost that the bucket was measured against, or is none. */
static bool request_accept(const sp_run_request *request, void *ctx)
{
    const sp_batch *batch = ctx;
    const bool pays = sp_load_relaxed(&batch->bucket->pays_for_threads) != 0;
    return (pays || !has_thread(request) || SP_PLANTED(wakes_unpaid)) &&
           sp__batch_accepts(batch->plans, batch->requests[0], request);
}

static sp_batch *batch_acquire(sp_batch_plans *plans, bool has_threads, uint32_t rows)
{
    return has_threads ? sp__batch_acquire_for_threads(plans, rows)
                       : sp__batch_acquire(plans, rows);
}

/* A batch of a size that pays for threads may have some although its lead has none. */
static bool any_has_thread(sp_run_request *const *requests, uint32_t count)
{
    for (uint32_t i = SP_PLANTED(lead_counts_only) ? count : 0; i < count; i++) {
        if (has_thread(requests[i])) return true;
    }
    return false;
}

/* Fewer requests were waiting than a moment ago: a smaller batch, and what is too much for it is
 * given back. Releases the batch. */
static SP_NOINLINE sp_batch *batch_shrink(sp_batch *batch, sp_run_slots *slots, uint32_t count)
{
    const bool has_threads = any_has_thread(batch->requests, count);
    sp_batch *smaller = count > 1 ? batch_acquire(batch->plans, has_threads, count) : NULL;
    const uint32_t kept = smaller != NULL ? smaller->bucket->rows : 1;
    sp_resume_list ready = {0};
    for (uint32_t i = kept; i < count && !SP_PLANTED(surplus_forgotten); i++) {
        sp__run_slots_give_back(slots, batch->requests[i], &ready);
    }
    if (smaller != NULL) {
        memcpy((void *)smaller->requests, (const void *)batch->requests,
               kept * sizeof batch->requests[0]);
    }
    sp__batch_release(batch);
    sp__resume_list_run(&ready);
    return smaller;
}

/* How many batches can advance at the same time. */
static uint32_t width_of_flow(const sp_run_slots *slots, const sp_run_flow *flow)
{
    const uint32_t limit = flow != NULL ? flow->limit : 0;
    return limit != 0 && limit < slots->width ? limit : slots->width;
}

sp_batch *sp__batch_form(sp_batch_plans *plans, sp_run_slots *slots, sp_run_group *group,
                         sp_run_request *lead)
{
    const uint32_t waiting = sp_load_relaxed(&group->count);
    if (waiting == 0 || sp__batch_plans_count(plans) == 0) return NULL;
    const bool is_shared = plans->own_slots == NULL;
    const uint32_t leaders = width_of_flow(slots, lead->terms.flow);
    const uint32_t share = is_shared ? (waiting + leaders - 1) / leaders : waiting;
    sp_batch *batch = batch_acquire(plans, has_thread(lead), 1 + share);
    if (batch == NULL) return NULL;
    const uint32_t rows = batch->bucket->rows;
    batch->requests[0] = lead;
    const uint32_t count =
        1 + sp__run_slots_take(slots, group, rows - 1, request_accept, batch, &batch->requests[1]);
    return SP_LIKELY(count == rows) ? batch : batch_shrink(batch, slots, count);
}

/* ---- rows ---- */

/* The row's bytes in the batch's own memory. */
static char *own_row(const sp_batch *batch, uint32_t port, uint32_t row)
{
    return (char *)batch->ports[port] + row * sp__batch_port_row_bytes(&batch->plans->ports[port]);
}

/* Each row is where its caller has put it, or in the batch's memory. */
static void rows_place(const sp_batch *batch, uint32_t port)
{
    for (uint32_t row = 0; row < batch->bucket->rows; row++) {
        void *own = batch->requests[row]->row;
        if (SP_PLANTED(row_unplaced)) own = NULL;
        const char *at = own != NULL ? sp__batch_rows_at(batch->plans->rows, own, port)
                                     : own_row(batch, port, row);
        batch->places[port][row] = (int64_t)((uintptr_t)at - (uintptr_t)batch->ports[port]);
    }
}

static void input_gather_by_rows(const sp_batch *batch, uint32_t port)
{
    const uint64_t bytes = sp__batch_port_row_bytes(&batch->plans->ports[port]);
    rows_place(batch, port);
    for (uint32_t row = 0; row < batch->bucket->rows; row++) {
        const sp_run_request *request = batch->requests[row];
        if (request->row != NULL) continue;
        memcpy(own_row(batch, port, row), request->inputs[port], bytes);
    }
}

static void input_gather(const sp_batch *batch, uint32_t i)
{
    const sp_batch_port *port = &batch->plans->ports[i];
    const uint32_t rows = batch->bucket->rows;
    for (uint32_t row = 0; row < (port->is_batched ? rows : 1); row++) {
        sp__batch_port_gather(port, rows, row, batch->requests[row]->inputs[i], batch->ports[i]);
    }
}

void sp__batch_gather(const sp_batch *batch)
{
    const sp_batch_plans *plans = batch->plans;
    for (uint32_t i = 0; i < plans->input_count; i++) {
        if (plans->ports[i].is_by_rows) input_gather_by_rows(batch, i);
        else input_gather(batch, i);
    }
    for (uint32_t i = 0; i < plans->output_count; i++) {
        const uint32_t port = plans->input_count + i;
        if (plans->ports[port].is_by_rows) rows_place(batch, port);
    }
}

static void row_scatter(const sp_batch *batch, uint32_t row, uint32_t i)
{
    const sp_batch_plans *plans = batch->plans;
    const sp_run_request *request = batch->requests[row];
    const uint32_t at = plans->input_count + i;
    const sp_batch_port *port = &plans->ports[at];
    void *to = request->outputs[i];
    if (to == NULL) return;
    if (!port->is_by_rows) {
        sp__batch_port_scatter(port, batch->bucket->rows, row, batch->ports[at], to);
    } else if (request->row == NULL) {
        memcpy(to, own_row(batch, at, row), sp__batch_port_row_bytes(port));
    }
}

static void rows_scatter(const sp_batch *batch)
{
    for (uint32_t i = 0; i < batch->plans->output_count; i++) {
        for (uint32_t row = 0; row < batch->bucket->rows; row++) row_scatter(batch, row, i);
    }
}

void sp__batch_scatter(const sp_batch *batch)
{
    if (!SP_PLANTED(late_scatter)) rows_scatter(batch);
}

/* ---- a caller's row ---- */

void sp__batch_row_take(const sp_batch_plans *plans, sp_run_slots *slots, sp_run_request *request)
{
    if (plans == NULL || plans->rows == NULL || request->group == NULL) return;
    if (request->terms.is_refused) return; /* it does not wait */
    if (request->terms.is_bounded && !sp__run_slots_reserve(slots, request)) return;
    void *row = sp__batch_rows_acquire(plans->rows);
    if (row == NULL) return;
    sp__batch_rows_copy_in(plans->rows, row, request->inputs);
    request->row = row;
}

void sp__batch_row_return(const sp_batch_plans *plans, sp_run_request *request, bool is_done)
{
    if (request->row == NULL || (!is_done && SP_PLANTED(row_leaked))) return;
    if (SP_PLANTED(row_early)) sp__batch_rows_release(plans->rows, request->row);
    if (is_done) sp__batch_rows_copy_out(plans->rows, request->row, request->outputs);
    if (!SP_PLANTED(row_early)) sp__batch_rows_release(plans->rows, request->row);
    request->row = NULL;
}

/* ---- a run ---- */

void sp__batch_count(sp_rt_model *model, const sp_batch *batch)
{
    sp__run_counters_batch(&model->counters, batch->bucket->rows);
}

void sp__batch_finish(sp_batch *batch, sp_run_slots *slots, sp_resume_list *ready)
{
    sp_run_request *requests[SP_BATCH_ROWS];
    const uint32_t count = batch->bucket->rows;
    const uint32_t first = slots != NULL ? 1 : 0;
    memcpy((void *)requests, (const void *)batch->requests, count * sizeof requests[0]);
    const sp_run_terms *terms = &requests[0]->terms; /* of the caller, if it has the slots */
    if (!SP_PLANTED(batch_after_slot)) sp__batch_release(batch);
    if (slots != NULL) sp__resume_list_add(ready, sp__run_slots_release(slots, terms));
    if (SP_PLANTED(batch_after_slot)) sp__batch_release(batch);
    sp__run_requests_finish(requests + first, count - first, ready);
    if (SP_PLANTED(late_scatter)) rows_scatter(batch);
}

void sp__batch_break(sp_batch *batch, sp_run_slots *slots, sp_resume_list *ready)
{
    for (uint32_t row = 1; row < batch->bucket->rows; row++) {
        sp__run_slots_give_back(slots, batch->requests[row], ready);
    }
    batch->requests[0]->group = NULL;
    sp__batch_release(batch);
}
