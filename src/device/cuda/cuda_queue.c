/* SPDX-License-Identifier: Apache-2.0 */
/* The engine below a cuda queue, and the calls of those who submit and wait. */
#include "base/clock.h"
#include "base/error.h"
#include "device/cuda/cuda_device.h"

/* How long a waiting thread asks the driver by itself before it sleeps and leaves that to the
 * poller: about what a sleep and a wake-up cost, several times over. */
#define SPIN_NS 100000u
#define LOOKS_PER_CLOCK 16

/* ---- the calling thread ---- */

void sp__cuda_enter(const sp_cuda_device *device)
{
    SP_CUDA(cuCtxPushCurrent)(device->context);
}

void sp__cuda_leave(void)
{
    CUcontext popped;
    SP_CUDA(cuCtxPopCurrent)(&popped);
}

static void enter(sp_command_queue *queue)
{
    sp__cuda_enter(sp__cuda_device_of(sp__cuda_queue(queue)));
}

sp_status sp__cuda_check_on(sp_cuda_device *device, CUresult result, const char *call,
                            const char *what)
{
    if (SP_LIKELY(result == CUDA_SUCCESS)) return SP_OK;
    const sp_status status = sp__cuda_check(result, call, what);
    if (status == SP_DEVICE_LOST) {
        sp__device_lose(&device->common.base, sp__fault_new(SP_DEVICE_LOST));
    }
    return status;
}

/* ---- the engine ---- */

static bool has_room(sp_command_queue *commands, uint64_t value)
{
    if (value <= SP_CUDA_MAX_IN_FLIGHT) return true;
    const sp_point point = {&commands->base.timeline, value - SP_CUDA_MAX_IN_FLIGHT};
    if (sp__point_has_passed(point)) return true;
    sp__cuda_poll(sp__cuda_queue(commands));
    return !sp__queue_park_on(commands, point);
}

/* A point of a cuda queue that has been issued can be waited for on the GPU; and its outcome is
 * known by now, but for the loss of the device. */
static bool wait_on_gpu(sp_command_queue *commands, sp_point point)
{
    if (sp__point_has_passed(point)) return true;
    sp_queue *owner = point.timeline->owner;
    if (owner == NULL || owner->device->vtable != commands->base.device->vtable) return false;
    sp_cuda_queue *behind = sp__cuda_queue(sp__command_queue(owner));
    if (sp_load_seq_cst(&behind->common.drained) < point.value) return false;
    return sp__cuda_wait_signal(behind, point.value, sp__cuda_queue(commands)->stream) == SP_OK;
}

static bool settle(sp_command_queue *commands)
{
    sp_cuda_queue *queue = sp__cuda_queue(commands);
    sp_cuda_device *device = sp__cuda_device_of(queue);
    CUresult result = CUDA_SUCCESS;
    if (!queue->is_settling) result = SP_CUDA(cuEventRecord)(queue->settle, queue->stream);
    queue->is_settling = true;
    if (result == CUDA_SUCCESS) result = SP_CUDA(cuEventQuery)(queue->settle);
    if (result != CUDA_ERROR_NOT_READY) {
        queue->is_settling = false;
        (void)sp__cuda_check_on(device, result, "cuEventQuery", "before a host function");
        return true;
    }
    sp_store_relaxed(&commands->parked_on, NULL);
    sp__queue_become_parked(commands);
    sp_store_seq_cst(&queue->must_settle, 1);
    sp__cuda_watch(&commands->base);
    return false;
}

static void finish(sp_command_queue *commands, uint64_t value)
{
    /* Both sequentially consistent: a sleeper that found it not issued yet, see cuda_poller.c. */
    sp_store_seq_cst(&commands->drained, value);
    if (SP_UNLIKELY(sp_load_seq_cst(&commands->base.timeline.wanted) <= value)) {
        sp__cuda_watch(&commands->base);
    }
}

static sp_status queue_open(sp_command_queue *commands)
{
    sp_cuda_queue *queue = sp__cuda_queue(commands);
    sp_mutex_init(&queue->lock, SP_LOCK_CUDA_QUEUE);
    sp_mutex_lock(&queue->lock);
    queue->stamps_end = &queue->stamps;
    sp_mutex_unlock(&queue->lock);
    sp__cuda_enter(sp__cuda_device_of(queue));
    sp_status status = sp__cuda_check(
        SP_CUDA(cuStreamCreate)(&queue->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", NULL);
    if (status == SP_OK) status = sp__cuda_signals_open(queue);
    sp__cuda_leave();
    if (status != SP_OK) sp__cuda_engine.queue_close(commands);
    return status;
}

static void queue_close(sp_command_queue *commands)
{
    sp_cuda_queue *queue = sp__cuda_queue(commands);
    sp__cuda_enter(sp__cuda_device_of(queue));
    sp__cuda_stamps_free(queue);
    sp__cuda_signals_close(queue);
    if (queue->stream != NULL) SP_CUDA(cuStreamDestroy)(queue->stream);
    sp__cuda_leave();
    sp_mutex_deinit(&queue->lock);
}

const sp_queue_engine sp__cuda_engine = {
    .queue_size = sizeof(sp_cuda_queue),
    .is_drained_by_submitters = true,
    .enter = enter,
    .leave = sp__cuda_leave,
    .has_room = has_room,
    .wait = wait_on_gpu,
    .execute = sp__cuda_issue,
    .execute_list = sp__cuda_issue_list,
    .settle = settle,
    .finish = finish,
    .queue_open = queue_open,
    .queue_close = queue_close,
};

/* ---- those who submit and wait ---- */

void sp__cuda_kick(sp_queue *base)
{
    sp_command_queue *commands = sp__command_queue(base);
    sp__queue_note_commit(commands);
    sp__queue_issue(commands, NULL);
}

void sp__cuda_flush(sp_queue *base)
{
    sp_cuda_queue *queue = sp__cuda_queue(sp__command_queue(base));
    if (!sp__cuda_is_busy(queue)) return;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp__cuda_enter(sp__cuda_device_of(queue));
    sp__cuda_poll(queue);
    sp__cuda_leave();
    sp__error_put_back(&scope);
}

/* Asks until the point has passed or the time is over. What this thread is waiting for may become
 * free to be issued meanwhile. */
static void spin(sp_cuda_queue *queue, sp_point point, sp_thread_record *record)
{
    const uint64_t deadline = sp_clock_now() + SPIN_NS;
    for (uint32_t look = 1;; look++) {
        sp__cuda_poll(queue);
        if (sp__point_has_passed(point)) return;
        if (sp__queue_has_work(&queue->common)) sp__queue_issue(&queue->common, record);
        if (look % LOOKS_PER_CLOCK == 0 && sp_clock_now() >= deadline) return;
        sp_spin_hint();
    }
}

void sp__cuda_help(sp_queue *base, uint64_t value)
{
    sp_cuda_queue *queue = sp__cuda_queue(sp__command_queue(base));
    sp_thread_record *record = sp__thread_record();
    /* What fails here is told to those who wait for it; this thread's last error is of its calls.
     */
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp__queue_issue(&queue->common, record);
    sp__cuda_enter(sp__cuda_device_of(queue));
    spin(queue, (sp_point){&base->timeline, value}, record);
    sp__cuda_leave();
    sp__error_put_back(&scope);
}
