/* SPDX-License-Identifier: Apache-2.0 */
/* Order between queues and CUDA streams of other code in the process, by events that live for the
 * two calls only: the driver keeps what it needs of a destroyed event. */
#include "device/cuda/cuda_device.h"

void *sp__cuda_queue_native(sp_queue *queue)
{
    return sp__cuda_queue(sp__command_queue(queue))->stream;
}

static CUresult stream_follow(CUstream stream, CUstream former)
{
    CUevent event = NULL;
    CUresult result = SP_CUDA(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) return result;
    result = SP_CUDA(cuEventRecord)(event, former);
    if (result == CUDA_SUCCESS) result = SP_CUDA(cuStreamWaitEvent)(stream, event, 0);
    SP_CUDA(cuEventDestroy)(event);
    return result;
}

static sp_status follow(sp_queue *queue, CUstream stream, CUstream former)
{
    sp_cuda_device *device = sp__cuda_device(queue->device);
    sp__cuda_enter(device);
    sp__gpu_gate_close(&device->gpu.gate);
    const CUresult result = stream_follow(stream, former);
    sp__gpu_gate_open(&device->gpu.gate);
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
