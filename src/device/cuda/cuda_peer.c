/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between two GPUs that reach each other's memory. */
#include "base/error.h"
#include "device/cuda/cuda_command.h"

#define MAX_PEERS 32 /* places of sp_cuda_device.peers */

/* Whether the device reaches the peer; *is_final: it will not be asked again. */
static bool peer_enable(sp_cuda_device *device, const sp_cuda_device *peer, bool *is_final)
{
    int can = 0;
    *is_final =
        SP_CUDA(cuDeviceCanAccessPeer)(&can, device->ordinal, peer->ordinal) == CUDA_SUCCESS;
    if (can == 0) return false;
    const CUresult result = SP_CUDA(cuCtxEnablePeerAccess)(peer->context, 0);
    /* Other code in the process may have enabled it. */
    return *is_final = result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

bool sp__cuda_reaches(sp_dev *dev, sp_dev *other)
{
    sp_cuda_device *device = sp__cuda_device(dev);
    const sp_cuda_device *peer = sp__cuda_device(other);
    const uint32_t n = other->limits.ordinal;
    if (n >= MAX_PEERS) return false;
    const uint64_t known = sp_load_acquire(&device->peers) >> 2 * n;
    if ((known & 1) != 0) return (known & 2) != 0;
    bool is_final;
    sp__cuda_enter(device);
    sp__gpu_gate_close(&device->gpu.gate);
    const bool is_reached = peer_enable(device, peer, &is_final);
    sp__gpu_gate_open(&device->gpu.gate);
    sp__cuda_leave();
    const uint64_t found = is_reached ? 3 : 1;
    if (is_final) sp_fetch_or_release(&device->peers, found << 2 * n);
    return is_reached;
}

sp_status sp__cuda_copy_peer(sp_cuda_queue *queue, const sp_binding *to, const sp_binding *from)
{
    if (to->bytes == 0) return SP_OK; /* between devices of any kinds */
    const CUcontext target = sp__cuda_device(to->memory->device)->context;
    const CUcontext source = sp__cuda_device(from->memory->device)->context;
    const CUresult result = SP_CUDA(cuMemcpyPeerAsync)(
        sp__cuda_address(to), target, sp__cuda_address(from), source, to->bytes, queue->stream);
    return sp__cuda_check_on(sp__cuda_device_of(queue), result, "cuMemcpyPeerAsync", NULL);
}
