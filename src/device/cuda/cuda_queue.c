/* SPDX-License-Identifier: Apache-2.0 */
/* Queues as CUstreams, and the driver functions for the common part of GPUs. */
#include "base/error.h"
#include "device/cuda/cuda_device.h"

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

static void driver_enter(const sp_gpu_device *device)
{
    sp__cuda_enter(SP_CONTAINER_OF(device, sp_cuda_device, gpu));
}

sp_status sp__cuda_check_on(sp_cuda_device *device, CUresult result, const char *call,
                            const char *what)
{
    if (SP_LIKELY(result == CUDA_SUCCESS)) return SP_OK;
    const sp_status status = sp__cuda_check(result, call, what);
    if (status == SP_DEVICE_LOST) {
        sp__device_lose(&device->gpu.common.base, sp__fault_create(SP_DEVICE_LOST));
    }
    return status;
}

/* ---- the driver ---- */

static CUevent event_of(sp_gpu_event *event)
{
    return (CUevent)(void *)event;
}

static sp_gpu_result result_of(CUresult result)
{
    if (result == CUDA_SUCCESS) return SP_GPU_DONE;
    return result == CUDA_ERROR_NOT_READY ? SP_GPU_NOT_READY : (sp_gpu_result)result;
}

static const sp_cuda_queue *queue_of(const sp_gpu_queue *queue)
{
    return SP_CONTAINER_OF(queue, sp_cuda_queue, gpu);
}

static sp_gpu_result event_create(sp_gpu_event **out)
{
    CUevent event = NULL;
    const CUresult result = SP_CUDA(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    *out = (sp_gpu_event *)(void *)event;
    return result_of(result);
}

static void event_destroy(sp_gpu_event *event)
{
    SP_CUDA(cuEventDestroy)(event_of(event));
}

static sp_gpu_result event_record(sp_gpu_event *event, const sp_gpu_queue *queue)
{
    return result_of(SP_CUDA(cuEventRecord)(event_of(event), queue_of(queue)->stream));
}

static sp_gpu_result event_query(sp_gpu_event *event)
{
    return result_of(SP_CUDA(cuEventQuery)(event_of(event)));
}

static sp_gpu_result event_wait(const sp_gpu_queue *queue, sp_gpu_event *event)
{
    return result_of(SP_CUDA(cuStreamWaitEvent)(queue_of(queue)->stream, event_of(event), 0));
}

/* Under queue->lock, which the analysis does not see through the table. */
static void driver_passed(sp_gpu_queue *queue, uint64_t value) SP_NO_LOCK_ANALYSIS
{
    sp__cuda_stamps_resolve_locked(SP_CONTAINER_OF(queue, sp_cuda_queue, gpu), value);
}

static sp_status driver_check(sp_gpu_device *device, sp_gpu_result result, sp_gpu_call call,
                              const char *what)
{
    static const char *const names[] = {[SP_GPU_CREATE] = "cuEventCreate",
                                        [SP_GPU_RECORD] = "cuEventRecord",
                                        [SP_GPU_QUERY] = "cuEventQuery",
                                        [SP_GPU_WAIT] = "cuStreamWaitEvent"};
    return sp__cuda_check_on(SP_CONTAINER_OF(device, sp_cuda_device, gpu), (CUresult)result,
                             names[call], what);
}

const sp_gpu_driver sp__cuda_driver = {
    .enter = driver_enter,
    .leave = sp__cuda_leave,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_wait = event_wait,
    .passed = driver_passed,
    .check = driver_check,
};

/* ---- the engine ---- */

static sp_status queue_open(sp_command_queue *commands)
{
    sp_cuda_queue *queue = sp__cuda_queue(commands);
    sp_cuda_device *device = sp__cuda_device_of(queue);
    sp__cuda_enter(device);
    sp__gpu_gate_close(&device->gpu.gate);
    sp_status status = sp__gpu_queue_open(&queue->gpu);
    sp__cuda_stamps_init(queue);
    if (status == SP_OK) {
        const CUresult result = SP_CUDA(cuStreamCreate)(&queue->stream, CU_STREAM_NON_BLOCKING);
        status = sp__cuda_check(result, "cuStreamCreate", NULL);
    }
    sp__gpu_gate_open(&device->gpu.gate);
    sp__cuda_leave();
    if (status != SP_OK) sp__cuda_engine.queue_close(commands);
    return status;
}

static void queue_close(sp_command_queue *commands)
{
    sp_cuda_queue *queue = sp__cuda_queue(commands);
    sp_cuda_device *device = sp__cuda_device_of(queue);
    sp__cuda_enter(device);
    sp__gpu_gate_close(&device->gpu.gate);
    sp__cuda_stamps_deinit(queue);
    sp__gpu_queue_close(&queue->gpu);
    if (queue->stream != NULL) SP_CUDA(cuStreamDestroy)(queue->stream);
    sp__gpu_gate_open(&device->gpu.gate);
    sp__cuda_leave();
}

const sp_queue_engine sp__cuda_engine = {
    .queue_size = sizeof(sp_cuda_queue),
    .is_drained_by_submitters = true,
    .enter = sp__gpu_enter,
    .leave = sp__cuda_leave,
    .has_room = sp__gpu_has_room,
    .wait = sp__gpu_wait,
    .execute = sp__cuda_issue,
    .execute_list = sp__cuda_issue_list,
    .settle = sp__gpu_settle,
    .finish = sp__gpu_finish,
    .queue_open = queue_open,
    .queue_close = queue_close,
};
