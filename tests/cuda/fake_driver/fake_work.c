/* SPDX-License-Identifier: Apache-2.0 */
/* The work of streams and graphs: kernels, copies, fills. primitive: see fake.h. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

/* The context that the calling stream's thread runs in, for fake_cuda_raise. */
static _Thread_local CUcontext context_of_kernel;

void fake_cuda_raise(CUresult result)
{
    if (context_of_kernel == NULL) abort(); /* not called by a kernel */
    fake_context_fail(context_of_kernel, result);
}

static fake_work *make_work(fake_work_kind kind, size_t param_bytes, CUresult *result)
{
    fake_work *work = calloc(1, sizeof *work + param_bytes);
    *result = work != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (work == NULL) return NULL;
    work->kind = kind;
    work->param_bytes = param_bytes;
    return work;
}

static bool is_launch_ok(const CUDA_KERNEL_NODE_PARAMS *p)
{
    if (p->gridDimX == 0 || p->gridDimY == 0 || p->gridDimZ == 0) return false;
    if (p->gridDimX > INT32_MAX || p->gridDimY > 65535 || p->gridDimZ > 65535) return false;
    if (p->blockDimX > 1024 || p->blockDimY > 1024 || p->blockDimZ > 64) return false;
    const uint64_t threads = (uint64_t)p->blockDimX * p->blockDimY * p->blockDimZ;
    if (threads == 0 || threads > 1024 || p->sharedMemBytes > atomic_load(&p->func->shared_bytes)) {
        return false;
    }
    return p->extra == NULL && (p->kernelParams != NULL || p->func->param_count == 0);
}

fake_work *fake_work_kernel(const CUDA_KERNEL_NODE_PARAMS *p, CUresult *result)
{
    *result = p->func != NULL ? CUDA_ERROR_INVALID_VALUE : FAKE_ERROR_INVALID_HANDLE;
    if (p->func == NULL || !is_launch_ok(p)) return NULL;
    const CUfunction function = p->func;
    size_t at[FAKE_MAX_PARAMS] = {0};
    size_t bytes = 0;
    for (uint32_t i = 0; i < function->param_count; i++) {
        at[i] = bytes;
        bytes += (function->param_bytes[i] + 15) / 16 * 16;
    }
    fake_work *work = make_work(FAKE_KERNEL, bytes, result);
    if (work == NULL) return NULL;
    work->as.kernel.function = function->function;
    memcpy(work->as.kernel.grid, (uint32_t[3]){p->gridDimX, p->gridDimY, p->gridDimZ},
           sizeof work->as.kernel.grid);
    memcpy(work->as.kernel.block, (uint32_t[3]){p->blockDimX, p->blockDimY, p->blockDimZ},
           sizeof work->as.kernel.block);
    work->as.kernel.param_count = function->param_count;
    memcpy(work->as.kernel.param_at, at, sizeof at);
    for (uint32_t i = 0; i < function->param_count; i++) {
        memcpy(work->params + at[i], p->kernelParams[i], function->param_bytes[i]);
    }
    return work;
}

static bool is_linear(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_UNIFIED || (int)type == 2;
}

fake_work *fake_work_copy(const CUDA_MEMCPY3D *p, CUresult *result)
{
    *result = CUDA_ERROR_INVALID_VALUE;
    if (p->WidthInBytes == 0 || p->Height == 0 || p->Depth == 0) return NULL;
    if (!is_linear(p->srcMemoryType) || !is_linear(p->dstMemoryType)) return NULL;
    const bool has_rows = p->Height > 1 || p->Depth > 1;
    if (has_rows && (p->srcPitch < p->WidthInBytes || p->dstPitch < p->WidthInBytes)) return NULL;
    if (p->Depth > 1 && (p->srcHeight < p->Height || p->dstHeight < p->Height)) return NULL;
    fake_work *work = make_work(FAKE_COPY, 0, result);
    if (work != NULL) work->as.copy = *p;
    return work;
}

fake_work *fake_work_fill(const CUDA_MEMSET_NODE_PARAMS *p, CUresult *result)
{
    *result = CUDA_ERROR_INVALID_VALUE;
    if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) return NULL;
    if (p->width == 0 || p->height == 0 || p->dst % p->elementSize != 0) return NULL;
    if (p->height > 1 && p->pitch < p->width * p->elementSize) return NULL;
    if (p->height > 1 && p->pitch % p->elementSize != 0) return NULL;
    if (p->elementSize < 4 && p->value >> (8 * p->elementSize) != 0) return NULL;
    fake_work *work = make_work(FAKE_FILL, 0, result);
    if (work != NULL) work->as.fill = *p;
    return work;
}

fake_work *fake_work_clone(const fake_work *work)
{
    const size_t bytes = sizeof *work + work->param_bytes;
    fake_work *copy = malloc(bytes);
    if (copy != NULL) memcpy(copy, work, bytes);
    return copy;
}

static void run_copy(const CUDA_MEMCPY3D *p)
{
    const unsigned char *source = p->srcMemoryType == CU_MEMORYTYPE_HOST
                                      ? p->srcHost
                                      : (const unsigned char *)(uintptr_t)p->srcDevice;
    unsigned char *target = p->dstMemoryType == CU_MEMORYTYPE_HOST
                                ? p->dstHost
                                : (unsigned char *)(uintptr_t)p->dstDevice;
    for (size_t z = 0; z < p->Depth; z++) {
        for (size_t y = 0; y < p->Height; y++) {
            const size_t source_row = (p->srcZ + z) * p->srcHeight + p->srcY + y;
            const size_t target_row = (p->dstZ + z) * p->dstHeight + p->dstY + y;
            memmove(target + target_row * p->dstPitch + p->dstXInBytes,
                    source + source_row * p->srcPitch + p->srcXInBytes, p->WidthInBytes);
        }
    }
}

static void fill_row(unsigned char *row, const CUDA_MEMSET_NODE_PARAMS *p)
{
    const uint8_t value8 = (uint8_t)p->value;
    const uint16_t value16 = (uint16_t)p->value;
    const uint32_t value32 = p->value;
    const void *value = p->elementSize == 1   ? (const void *)&value8
                        : p->elementSize == 2 ? (const void *)&value16
                                              : (const void *)&value32;
    for (size_t i = 0; i < p->width; i++) memcpy(row + i * p->elementSize, value, p->elementSize);
}

static void run_kernel(fake_work *work)
{
    void *params[FAKE_MAX_PARAMS] = {0};
    for (uint32_t i = 0; i < work->as.kernel.param_count; i++) {
        params[i] = work->params + work->as.kernel.param_at[i];
    }
    work->as.kernel.function(work->as.kernel.grid, work->as.kernel.block, params);
}

void fake_work_run(fake_work *work, CUcontext context)
{
    if (fake_failure(context) != CUDA_SUCCESS) return; /* an earlier node of the graph failed */
    switch (work->kind) {
    case FAKE_COPY:
        run_copy(&work->as.copy);
        return;
    case FAKE_FILL:
        for (size_t y = 0; y < work->as.fill.height; y++) {
            fill_row((unsigned char *)(uintptr_t)work->as.fill.dst + y * work->as.fill.pitch,
                     &work->as.fill);
        }
        return;
    case FAKE_KERNEL: {
        const CUresult fault = fake_kernel_fault();
        if (fault != CUDA_SUCCESS) {
            fake_context_fail(context, fault);
            return;
        }
        context_of_kernel = context;
        run_kernel(work);
        context_of_kernel = NULL;
        return;
    }
    }
}

typedef struct work_command {
    fake_command base;
    CUcontext context;
    fake_work *work;
} work_command;

static void run_work(fake_command *command)
{
    work_command *self = (work_command *)command;
    fake_work_run(self->work, self->context);
}

static void end_work(fake_command *command)
{
    free(((work_command *)command)->work);
    free(command);
}

CUresult fake_work_push(CUstream stream, CUcontext context, fake_work *work, CUresult result)
{
    if (work == NULL) return result;
    work_command *command = calloc(1, sizeof *command);
    if (command == NULL) {
        free(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *command = (work_command){{NULL, run_work, end_work}, context, work};
    return fake_stream_push(stream, &command->base);
}

CUresult fake_work_push_copy(CUstream stream, CUcontext context, CUdeviceptr target,
                             CUdeviceptr source, size_t bytes)
{
    if (target == 0 || source == 0) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY3D params = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                  .srcDevice = source,
                                  .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                  .dstDevice = target,
                                  .WidthInBytes = bytes,
                                  .Height = 1,
                                  .Depth = 1};
    CUresult result;
    fake_work *work = fake_work_copy(&params, &result);
    return fake_work_push(stream, context, work, result);
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    FAKE_CONTEXT(cuMemcpyAsync, context);
    FAKE_TRY(fake_stream_check(stream, context));
    if (bytes == 0) return CUDA_SUCCESS;
    return fake_work_push_copy(stream, context, target, source, bytes);
}

static CUresult push_fill(CUstream stream, CUcontext context, const CUDA_MEMSET_NODE_PARAMS *params)
{
    FAKE_TRY(fake_stream_check(stream, context));
    if (params->width == 0 || params->height == 0) return CUDA_SUCCESS;
    if (params->dst == 0) return CUDA_ERROR_INVALID_VALUE;
    CUresult result;
    fake_work *work = fake_work_fill(params, &result);
    return fake_work_push(stream, context, work, result);
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream)
{
    FAKE_CONTEXT(cuMemsetD8Async, context);
    return push_fill(stream, context, &(CUDA_MEMSET_NODE_PARAMS){target, 0, value, 1, count, 1});
}

CUresult cuMemsetD16Async(CUdeviceptr target, unsigned short value, size_t count, CUstream stream)
{
    FAKE_CONTEXT(cuMemsetD16Async, context);
    return push_fill(stream, context, &(CUDA_MEMSET_NODE_PARAMS){target, 0, value, 2, count, 1});
}

CUresult cuMemsetD32Async(CUdeviceptr target, unsigned int value, size_t count, CUstream stream)
{
    FAKE_CONTEXT(cuMemsetD32Async, context);
    return push_fill(stream, context, &(CUDA_MEMSET_NODE_PARAMS){target, 0, value, 4, count, 1});
}

CUresult cuMemsetD2D32Async(CUdeviceptr target, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream)
{
    FAKE_CONTEXT(cuMemsetD2D32Async, context);
    return push_fill(stream, context,
                     &(CUDA_MEMSET_NODE_PARAMS){target, pitch, value, 4, width, height});
}

/* NOLINTNEXTLINE(readability-function-size): the driver's parameters */
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **params, void **extra)
{
    FAKE_CONTEXT(cuLaunchKernel, context);
    FAKE_TRY(fake_stream_check(stream, context));
    const CUDA_KERNEL_NODE_PARAMS launch = {.func = function,
                                            .gridDimX = grid_x,
                                            .gridDimY = grid_y,
                                            .gridDimZ = grid_z,
                                            .blockDimX = block_x,
                                            .blockDimY = block_y,
                                            .blockDimZ = block_z,
                                            .sharedMemBytes = shared_bytes,
                                            .kernelParams = params,
                                            .extra = extra};
    CUresult result;
    fake_work *work = fake_work_kernel(&launch, &result);
    return fake_work_push(stream, context, work, result);
}
