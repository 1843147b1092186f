/* SPDX-License-Identifier: Apache-2.0 */
/* Issues single commands to the driver. */
#include <string.h>

#include "base/error.h"
#include "device/cuda/cuda_command.h"

sp_status sp__cuda_launch_make(sp_cuda_device *device, const sp_kernel *kernel,
                               const uint32_t grid[3], const sp_binding *bindings, uint32_t count,
                               const void *constants, sp_cuda_launch *out)
{
    if (kernel->gpu == NULL) {
        return sp__fail(SP_UNSUPPORTED, "kernel %s does not run on a GPU", kernel->name);
    }
    const sp_gpu_kernel *gpu = kernel->gpu;
    if (gpu->tiled != NULL) {
        gpu->tiled(constants, device->programs.shared_bytes, &out->shape);
    } else if (gpu->shape != NULL) {
        gpu->shape(constants, &out->shape);
    } else {
        out->shape = (sp_launch_shape){.grid = {grid[0], grid[1], grid[2]}, .block = {1, 1, 1}};
    }
    if (out->shape.variant != NULL) gpu = out->shape.variant;
    SP_TRY(sp__cuda_program_function(&device->programs, gpu, &out->function));
    out->waits = gpu->program->waits;
    for (uint32_t i = 0; i < count; i++) out->bindings.at[i] = sp__cuda_address(&bindings[i]);
    if (count < SP_MAX_BINDINGS) out->bindings.at[count] = 0; /* no report */
    memcpy(out->bindings.tile, out->shape.tile, sizeof out->bindings.tile);
    out->params[0] = &out->bindings;
    out->params[1] = (void *)(uintptr_t)constants; /* the driver only reads it */
    return SP_OK;
}

static sp_status issue_dispatch(sp_cuda_queue *queue, const sp_record *record,
                                const sp_binding *bindings)
{
    sp_cuda_device *device = sp__cuda_device_of(queue);
    sp_cuda_launch launch;
    if (sp__cuda_signals(record->command.kernel, record->count)) return SP_OK; /* an event tells */
    SP_TRY(sp__cuda_launch_make(device, record->command.kernel, record->command.tiling.grid,
                                bindings, record->count, sp__record_constants(record), &launch));
    if (sp__cuda_launch_is_empty(&launch)) return SP_OK;
    sp_store_relaxed(&queue->gpu.last_issued, record->command.kernel->name);
    const sp_launch_shape *shape = &launch.shape;
    const CUresult result = SP_CUDA(cuLaunchKernel)(
        launch.function, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
        shape->block[1], shape->block[2], shape->shared_bytes, queue->stream, launch.params, NULL);
    return sp__cuda_check_on(device, result, "cuLaunchKernel", record->command.kernel->name);
}

static bool is_overlapping(CUdeviceptr a, CUdeviceptr b, uint64_t bytes)
{
    return a < b ? b - a < bytes : a - b < bytes;
}

/* Overlapping ranges are copied in pieces that do not overlap, starting at the safe end. */
static CUresult issue_copy_overlapping(CUdeviceptr target, CUdeviceptr source, uint64_t bytes,
                                       CUstream stream)
{
    const uint64_t distance = target < source ? source - target : target - source;
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t piece = bytes - done < distance ? bytes - done : distance;
        const uint64_t at = target < source ? done : bytes - done - piece;
        const CUresult result = SP_CUDA(cuMemcpyAsync)(target + at, source + at, piece, stream);
        if (result != CUDA_SUCCESS) return result;
        done += piece;
    }
    return CUDA_SUCCESS;
}

static CUresult issue_copy(const sp_binding *bindings, CUstream stream)
{
    const CUdeviceptr target = sp__cuda_address(&bindings[0]);
    const CUdeviceptr source = sp__cuda_address(&bindings[1]);
    const uint64_t bytes = bindings[0].bytes;
    if (bytes == 0 || target == source) return CUDA_SUCCESS;
    if (is_overlapping(target, source, bytes)) {
        return issue_copy_overlapping(target, source, bytes, stream);
    }
    return SP_CUDA(cuMemcpyAsync)(target, source, bytes, stream);
}

/* A pattern of 8 bytes is two columns of a matrix of 4-byte words. */
static CUresult issue_fill_64(CUdeviceptr target, uint64_t pattern, uint64_t count, CUstream stream)
{
    const CUresult result =
        SP_CUDA(cuMemsetD2D32Async)(target, 8, (uint32_t)pattern, 1, count, stream);
    if (result != CUDA_SUCCESS) return result;
    return SP_CUDA(cuMemsetD2D32Async)(target + 4, 8, (uint32_t)(pattern >> 32), 1, count, stream);
}

static CUresult issue_fill(const sp_binding *binding, const void *pattern, uint32_t pattern_bytes,
                           CUstream stream)
{
    const CUdeviceptr target = sp__cuda_address(binding);
    const uint64_t count = binding->bytes / pattern_bytes;
    uint64_t value = 0;
    memcpy(&value, pattern, pattern_bytes);
    if (count == 0) return CUDA_SUCCESS;
    switch (pattern_bytes) {
    case 1:
        return SP_CUDA(cuMemsetD8Async)(target, (uint8_t)value, count, stream);
    case 2:
        return SP_CUDA(cuMemsetD16Async)(target, (uint16_t)value, count, stream);
    case 4:
        return SP_CUDA(cuMemsetD32Async)(target, (uint32_t)value, count, stream);
    default:
        return issue_fill_64(target, value, count, stream);
    }
}

sp_status sp__cuda_issue(sp_command_queue *commands, const sp_record *record,
                         const sp_binding *bindings)
{
    sp_cuda_queue *queue = sp__cuda_queue(commands);
    sp_cuda_device *device = sp__cuda_device_of(queue);
    sp__gpu_gate_pass(&device->gpu.gate);
    sp__gpu_note_command(&queue->gpu);
    switch ((sp_command_type)record->type) {
    case SP_COMMAND_DISPATCH:
        return issue_dispatch(queue, record, bindings);
    case SP_COMMAND_COPY:
        SP_TRY(sp__gpu_write_note(&queue->gpu, &bindings[0]));
        if (SP_UNLIKELY(sp__cuda_is_peer_copy(&bindings[0], &bindings[1]))) {
            return sp__cuda_copy_peer(queue, &bindings[0], &bindings[1]);
        }
        return sp__cuda_check_on(device, issue_copy(bindings, queue->stream), "cuMemcpyAsync",
                                 NULL);
    case SP_COMMAND_FILL:
        return sp__cuda_check_on(device,
                                 issue_fill(&bindings[0], sp__record_constants(record),
                                            record->constant_bytes, queue->stream),
                                 "cuMemsetAsync", NULL);
    case SP_COMMAND_TIMESTAMP:
        return sp__cuda_stamp(queue, record->command.timestamp);
    case SP_COMMAND_HOST:
    case SP_COMMAND_LIST:
        break; /* handled in drain.c */
    }
    return sp__fail(SP_INTERNAL, "unknown command %u", record->type);
}
