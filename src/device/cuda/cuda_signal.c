/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: events behind what was issued, recorded and asked by whoever wants to know. */
#include <stdio.h>

#include "base/delay.h"
#include "base/error.h"
#include "device/cuda/cuda_device.h"

sp_status sp__cuda_signals_open(sp_cuda_queue *queue)
{
    CUresult result = SP_CUDA(cuEventCreate)(&queue->settle, CU_EVENT_DISABLE_TIMING);
    sp_mutex_lock(&queue->lock);
    for (uint32_t i = 0; i < SP_CUDA_SIGNALS && result == CUDA_SUCCESS; i++) {
        result = SP_CUDA(cuEventCreate)(&queue->signals[i].event, CU_EVENT_DISABLE_TIMING);
    }
    sp_mutex_unlock(&queue->lock);
    return sp__cuda_check(result, "cuEventCreate", NULL);
}

void sp__cuda_signals_close(sp_cuda_queue *queue)
{
    sp_mutex_lock(&queue->lock);
    for (uint32_t i = 0; i < SP_CUDA_SIGNALS; i++) {
        if (queue->signals[i].event != NULL) SP_CUDA(cuEventDestroy)(queue->signals[i].event);
    }
    sp_mutex_unlock(&queue->lock);
    if (queue->settle != NULL) SP_CUDA(cuEventDestroy)(queue->settle);
}

static sp_cuda_signal *newest_locked(sp_cuda_queue *queue) SP_REQUIRES(&queue->lock)
{
    if (queue->count == 0) return NULL;
    return &queue->signals[(queue->first + queue->count - 1) % SP_CUDA_SIGNALS];
}

/* A signal behind everything that has been issued. The event may stand behind later submissions
 * too: then it comes a little late, never early. */
static CUresult record_locked(sp_cuda_queue *queue) SP_REQUIRES(&queue->lock)
{
    /* Pairs with the store in finish: the driver has the commands up to here. */
    const uint64_t drained = sp_load_seq_cst(&queue->common.drained);
    sp_cuda_signal *newest = newest_locked(queue);
    const uint64_t known =
        newest != NULL ? newest->value : sp_load_relaxed(&queue->common.base.timeline.done);
    if (drained == known) return CUDA_SUCCESS;
    if (queue->count < SP_CUDA_SIGNALS) {
        newest = &queue->signals[(queue->first + queue->count) % SP_CUDA_SIGNALS];
    } /* else the newest moves on: whoever waits for it waits a little longer */
    const CUresult result = SP_CUDA(cuEventRecord)(newest->event, queue->stream);
    if (result != CUDA_SUCCESS) return result;
    if (queue->count < SP_CUDA_SIGNALS) queue->count++;
    newest->value = drained;
    return CUDA_SUCCESS;
}

/* Sees to it that there is a signal, and drops those that the GPU has passed; the newest value
 * among them, or 0. */
static uint64_t ask_locked(sp_cuda_queue *queue, CUresult *result) SP_REQUIRES(&queue->lock)
{
    uint64_t value = 0;
    *result = record_locked(queue);
    while (*result == CUDA_SUCCESS && queue->count > 0) {
        *result = SP_CUDA(cuEventQuery)(queue->signals[queue->first].event);
        if (*result != CUDA_SUCCESS) break;
        value = queue->signals[queue->first].value;
        queue->first = (queue->first + 1) % SP_CUDA_SIGNALS;
        queue->count--;
    }
    if (*result == CUDA_ERROR_NOT_READY) *result = CUDA_SUCCESS;
    return value;
}

/* The GPU will do no more: everything issued has failed. */
static uint64_t give_up_locked(sp_cuda_queue *queue) SP_REQUIRES(&queue->lock)
{
    sp_timeline *timeline = &queue->common.base.timeline;
    const uint64_t drained = sp_load_seq_cst(&queue->common.drained);
    if (drained > sp_load_relaxed(&timeline->done)) {
        sp__timeline_lose(timeline, drained, sp_load_acquire(&queue->common.base.device->lost));
    }
    queue->count = 0;
    return drained;
}

static void settle_if_done(sp_cuda_queue *queue, bool is_lost)
{
    if (sp_load_acquire(&queue->must_settle) == 0) return;
    if (!is_lost && SP_CUDA(cuEventQuery)(queue->settle) == CUDA_ERROR_NOT_READY) return;
    /* Acquire and release: one of several that see the event done unparks the queue. */
    if (sp_exchange_acq_rel(&queue->must_settle, 0) == 1) sp__queue_unpark(&queue->common);
}

static bool is_lost(const sp_cuda_queue *queue)
{
    return sp_load_acquire(&queue->common.base.device->lost) != SP_NO_FAULT;
}

/* The driver does not say which command failed; it is not far from the newest. */
static void report(sp_cuda_queue *queue, CUresult result)
{
    const char *name = sp_load_relaxed(&queue->last_issued);
    char what[128];
    snprintf(what, sizeof what, "kernel %s, or a command shortly before it on stream %u",
             name != NULL ? name : "(none)", queue->common.base.index);
    (void)sp__cuda_check_on(sp__cuda_device_of(queue), result, "cuEventQuery", what);
}

void sp__cuda_poll(sp_cuda_queue *queue)
{
    sp_timeline *timeline = &queue->common.base.timeline;
    CUresult result = CUDA_SUCCESS;
    sp_mutex_lock(&queue->lock);
    const uint64_t value = is_lost(queue) ? give_up_locked(queue) : ask_locked(queue, &result);
    const bool is_news = value > sp_load_relaxed(&timeline->done);
    if (is_news) {
        sp__cuda_stamps_resolve_locked(queue, value);
        sp__timeline_publish(timeline, value);
    }
    sp_mutex_unlock(&queue->lock);
    if (is_news) sp__timeline_fire(timeline, value);
    sp_delay_point();
    if (result != CUDA_SUCCESS) report(queue, result);
    settle_if_done(queue, is_lost(queue));
}

sp_status sp__cuda_wait_signal(sp_cuda_queue *queue, uint64_t value, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;
    sp_mutex_lock(&queue->lock);
    if (sp_load_relaxed(&queue->common.base.timeline.done) < value) {
        const sp_cuda_signal *newest = newest_locked(queue);
        if (newest == NULL || newest->value < value) {
            /* The awaited queue may be of another GPU than the caller's context. */
            sp__cuda_enter(sp__cuda_device_of(queue));
            result = record_locked(queue);
            sp__cuda_leave();
            newest = newest_locked(queue);
        }
        if (result == CUDA_SUCCESS) result = SP_CUDA(cuStreamWaitEvent)(stream, newest->event, 0);
    }
    sp_mutex_unlock(&queue->lock);
    return sp__cuda_check_on(sp__cuda_device_of(queue), result, "cuStreamWaitEvent", NULL);
}

bool sp__cuda_is_busy(sp_cuda_queue *queue)
{
    return sp_load_seq_cst(&queue->common.drained) >
               sp_load_acquire(&queue->common.base.timeline.done) ||
           sp_load_acquire(&queue->must_settle) != 0;
}
