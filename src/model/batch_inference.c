/* SPDX-License-Identifier: Apache-2.0 */
/* sp_batch_inference: many runs by one call, through a batch queue of its own. */
#include <streampool/batch.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "runtime/runtime_state.h"

/* Requests in flight: enough for the largest batches of all workers of a queue. */
#define WINDOW 1024u

typedef struct inference_batch {
    sp_batch_queue queue;
    sp_inference *requests;
    sp_future *futures; /* of the newest requests, by index modulo `window`; zero: none */
    uint32_t window;
    /* The first request, by index, that has failed. */
    uint32_t first_failed;
    sp_status status;
    char message[SP_ERROR_BYTES];
} inference_batch;

static void request_end(inference_batch *batch, uint32_t index, sp_status status)
{
    batch->requests[index].status = status;
    if (status == SP_OK || (batch->status != SP_OK && batch->first_failed < index)) return;
    batch->first_failed = index;
    batch->status = status;
    snprintf(batch->message, sizeof batch->message, "%s", sp_last_error());
}

static void request_submit(inference_batch *batch, uint32_t index)
{
    sp_inference *request = &batch->requests[index];
    const sp_status status = sp_batch_queue_submit(
        batch->queue, NULL, request->inputs, request->input_count, request->outputs,
        request->output_count, &batch->futures[index % batch->window]);
    if (status != SP_OK) request_end(batch, index, status);
}

/* A run in several plans has not known its outputs at the submit: they are the future's. */
static sp_status outputs_take(const sp_inference *request, sp_future future)
{
    for (uint32_t i = 0; i < request->output_count; i++) {
        SP_TRY(sp_future_take_output(future, i, &request->outputs[i]));
    }
    return SP_OK;
}

static void request_wait(inference_batch *batch, uint32_t index)
{
    const sp_future future = batch->futures[index % batch->window];
    if (future.bits == 0) return; /* the submit has failed */
    sp_status status = sp_future_wait(future);
    if (status == SP_OK) status = outputs_take(&batch->requests[index], future);
    request_end(batch, index, status);
    (void)sp_future_release(future);
}

static void requests_run(inference_batch *batch, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i >= batch->window) request_wait(batch, i - batch->window);
        request_submit(batch, i);
    }
    const uint32_t first = count > batch->window ? count - batch->window : 0;
    for (uint32_t i = first; i < count; i++) request_wait(batch, i);
}

static sp_status batch_run(sp_model model, inference_batch *batch, uint32_t count)
{
    SP_TRY(sp_batch_queue_create(model, NULL, &batch->queue));
    batch->window = count < WINDOW ? count : WINDOW;
    batch->futures = sp_calloc(batch->window, sizeof *batch->futures);
    if (batch->futures == NULL) {
        (void)sp_batch_queue_release(batch->queue);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for %u requests in flight", batch->window);
    }
    requests_run(batch, count);
    sp_free(batch->futures);
    (void)sp_batch_queue_release(batch->queue);
    return SP_OK;
}

sp_status sp_batch_inference(sp_model model, sp_inference *requests, uint32_t count)
{
    inference_batch batch = {.requests = requests};
    if (requests == NULL && count > 0) {
        return sp__fail(SP_INVALID, "sp_batch_inference: requests is NULL");
    }
    sp_status status = sp__runtime_enter();
    if (status == SP_OK && count > 0) status = batch_run(model, &batch, count);
    for (uint32_t i = 0; i < count && status != SP_OK; i++) requests[i].status = status;
    if (status != SP_OK || batch.status == SP_OK) return status;
    return sp__fail(batch.status, "requests[%u]: %s", batch.first_failed, batch.message);
}
