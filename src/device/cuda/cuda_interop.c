/* SPDX-License-Identifier: Apache-2.0 */
/* Order between queues and CUDA streams of other code in the process, by an event: a wait is for
 * what the event stands for when it is enqueued, so the event may be recorded anew at once. */
#include "device/cuda/cuda_device.h"

void *sp__cuda_queue_native(sp_queue *queue)
{
    return sp__cuda_queue(sp__command_queue(queue))->stream;
}

/* ---- events ---- */

static CUresult event_take(sp_cuda_device *device, CUevent *out)
{
    *out = sp_exchange_acquire(&device->spare_event, NULL);
    if (*out != NULL) return CUDA_SUCCESS;
    sp__gpu_gate_close(&device->gpu.gate);
    const CUresult result = SP_CUDA(cuEventCreate)(out, CU_EVENT_DISABLE_TIMING);
    sp__gpu_gate_open(&device->gpu.gate);
    return result;
}

static void event_put(sp_cuda_device *device, CUevent event)
{
    CUevent none = NULL;
    if (sp_cas_release(&device->spare_event, &none, event)) return;
    sp__gpu_gate_close(&device->gpu.gate);
    SP_CUDA(cuEventDestroy)(event);
    sp__gpu_gate_open(&device->gpu.gate);
}

void sp__cuda_interop_close(sp_cuda_device *device)
{
    CUevent event = sp_exchange_acquire(&device->spare_event, NULL);
    if (event != NULL) SP_CUDA(cuEventDestroy)(event);
}

/* ---- order ---- */

static CUresult stream_follow(sp_cuda_device *device, CUstream stream, CUstream former)
{
    CUevent event = NULL;
    CUresult result = event_take(device, &event);
    if (result != CUDA_SUCCESS) return result;
    sp__gpu_gate_pass(&device->gpu.gate);
    result = SP_CUDA(cuEventRecord)(event, former);
    if (result == CUDA_SUCCESS) result = SP_CUDA(cuStreamWaitEvent)(stream, event, 0);
    event_put(device, event);
    return result;
}

static sp_status follow(sp_queue *queue, CUstream stream, CUstream former)
{
    sp_cuda_device *device = sp__cuda_device(queue->device);
    sp__cuda_enter(device);
    const CUresult result = stream_follow(device, stream, former);
    sp__cuda_leave();
    return sp__cuda_check_on(device, result, "cuEventRecord", "for a stream of other code");
}

sp_status sp__cuda_queue_follow(sp_queue *queue, void *native)
{
    return follow(queue, sp__cuda_queue_native(queue), native);
}

sp_status sp__cuda_native_follow(sp_queue *queue, uint64_t value, void *native)
{
    const sp_command_queue *commands = sp__command_queue(queue);
    /* Pairs with the store in sp__gpu_finish: the driver has the commands up to here. */
    if (sp_load_seq_cst(&commands->drained) < value) return SP_BUSY;
    return follow(queue, native, sp__cuda_queue_native(queue));
}

sp_status sp__cuda_native_wait(sp_dev *dev, void *native)
{
    sp_cuda_device *device = sp__cuda_device(dev);
    sp__cuda_enter(device);
    const CUresult result = SP_CUDA(cuStreamSynchronize)(native);
    sp__cuda_leave();
    return sp__cuda_check_on(device, result, "cuStreamSynchronize", "for a stream of other code");
}
