/* SPDX-License-Identifier: Apache-2.0 */
/* Peer access, and copies between devices. primitive: see fake.h. */
#include "fake.h"

static atomic_bool are_peers = true;
/* [from][to]: the context `from` has access to the memory of `to`. */
static atomic_bool is_enabled[FAKE_DEVICES][FAKE_DEVICES];

void fake_cuda_set_peers(bool value)
{
    atomic_store(&are_peers, value);
}

void fake_forget_peers(CUdevice device)
{
    for (int i = 0; i < FAKE_DEVICES; i++) {
        atomic_store(&is_enabled[device][i], false);
        atomic_store(&is_enabled[i][device], false);
    }
}

CUresult cuDeviceCanAccessPeer(int *can_access, CUdevice device, CUdevice peer)
{
    FAKE_ENTER(cuDeviceCanAccessPeer);
    if (can_access == NULL || !fake_is_device(device) || !fake_is_device(peer)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *can_access = device != peer && atomic_load(&are_peers);
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    FAKE_CONTEXT(cuCtxEnablePeerAccess, context);
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!fake_is_alive(peer) || peer == context) return FAKE_ERROR_INVALID_CONTEXT;
    if (!atomic_load(&are_peers)) return FAKE_ERROR_PEER_ACCESS_UNSUPPORTED;
    const bool was =
        atomic_exchange(&is_enabled[context - fake_contexts][peer - fake_contexts], true);
    return was ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

/* Relaxed: the caller knows of the access. */
static bool has_access(CUcontext from, CUcontext to)
{
    return from == to || atomic_load_explicit(&is_enabled[from - fake_contexts][to - fake_contexts],
                                              memory_order_relaxed);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                           CUcontext source_context, size_t bytes, CUstream stream)
{
    FAKE_CONTEXT(cuMemcpyPeerAsync, context);
    FAKE_TRY(fake_stream_check(stream, context));
    if (!fake_is_alive(target_context) || !fake_is_alive(source_context)) {
        return FAKE_ERROR_INVALID_CONTEXT;
    }
    if (!has_access(context, target_context) || !has_access(context, source_context)) {
        return FAKE_ERROR_PEER_ACCESS_NOT_ENABLED;
    }
    return fake_work_push_copy(stream, context, target, source, bytes);
}
