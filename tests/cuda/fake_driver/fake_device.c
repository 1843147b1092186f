/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, primary contexts, each thread's stack of current contexts, error texts. primitive: see
 * fake.h. */
#include "fake.h"

#include <stdio.h>

struct CUctx_st fake_contexts[FAKE_DEVICES];

static atomic_bool is_initialized;
static atomic_int device_count = FAKE_DEVICES;
static atomic_uint retains[FAKE_DEVICES];

static struct attribute {
    int attribute;
    atomic_int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
};

#define STACK_DEPTH 64
static _Thread_local struct {
    CUcontext contexts[STACK_DEPTH];
    uint32_t depth;
} stack;

void fake_cuda_set_device_count(int count)
{
    atomic_store(&device_count, count);
}

static struct attribute *find_attribute(int attribute)
{
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        if (attributes[i].attribute == attribute) return &attributes[i];
    }
    return NULL;
}

void fake_cuda_set_attribute(int attribute, int value)
{
    struct attribute *found = find_attribute(attribute);
    if (found != NULL) atomic_store(&found->value, value);
}

bool fake_is_device(CUdevice device)
{
    return device >= 0 && device < atomic_load(&device_count);
}

CUresult cuInit(unsigned int flags)
{
    FAKE_ENTER(cuInit);
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&device_count) == 0) return CUDA_ERROR_NO_DEVICE;
    atomic_store(&is_initialized, true);
    return CUDA_SUCCESS;
}

static const struct error_text {
    CUresult error;
    const char *name, *text;
} error_texts[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {FAKE_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {FAKE_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {FAKE_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {FAKE_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {FAKE_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {FAKE_ERROR_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

static const struct error_text *find_error(CUresult error)
{
    for (size_t i = 0; i < sizeof error_texts / sizeof error_texts[0]; i++) {
        if (error_texts[i].error == error) return &error_texts[i];
    }
    return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    const struct error_text *found = find_error(error);
    *name = found != NULL ? found->name : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    const struct error_text *found = find_error(error);
    *text = found != NULL ? found->text : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_initialized(void)
{
    return atomic_load_explicit(&is_initialized, memory_order_relaxed) ? CUDA_SUCCESS
                                                                       : FAKE_ERROR_NOT_INITIALIZED;
}

static CUresult check_device(CUdevice device)
{
    FAKE_TRY(check_initialized());
    return fake_is_device(device) ? CUDA_SUCCESS : (CUresult)101; /* INVALID_DEVICE */
}

CUresult cuDeviceGetCount(int *count)
{
    FAKE_ENTER(cuDeviceGetCount);
    FAKE_TRY(check_initialized());
    *count = atomic_load(&device_count);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    FAKE_ENTER(cuDeviceGet);
    FAKE_TRY(check_device(ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    FAKE_ENTER(cuDeviceTotalMem);
    FAKE_TRY(check_device(device));
    *bytes = FAKE_MEMORY_BYTES;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    FAKE_ENTER(cuDeviceGetAttribute);
    FAKE_TRY(check_device(device));
    struct attribute *found = find_attribute(attribute);
    if (found == NULL) return CUDA_ERROR_INVALID_VALUE;
    *value = atomic_load(&found->value);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    FAKE_ENTER(cuDevicePrimaryCtxRetain);
    FAKE_TRY(check_device(device));
    fake_wait_to_retain();
    atomic_fetch_add(&retains[device], 1);
    fake_count(FAKE_RETAIN, 1);
    *context = &fake_contexts[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    FAKE_ENTER(cuDevicePrimaryCtxRelease);
    FAKE_TRY(check_device(device));
    unsigned int seen = atomic_load(&retains[device]);
    do {
        if (seen == 0) return FAKE_ERROR_INVALID_CONTEXT;
    } while (!atomic_compare_exchange_weak(&retains[device], &seen, seen - 1));
    if (seen == 1) fake_forget_peers(device);
    fake_count(FAKE_RETAIN, -1);
    return CUDA_SUCCESS;
}

bool fake_is_alive(CUcontext context)
{
    return context != NULL && atomic_load(&retains[context - fake_contexts]) > 0;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    FAKE_ENTER(cuCtxPushCurrent);
    FAKE_TRY(check_initialized());
    if (context != NULL && !fake_is_alive(context)) return FAKE_ERROR_INVALID_CONTEXT;
    if (stack.depth == STACK_DEPTH) return CUDA_ERROR_OUT_OF_MEMORY;
    stack.contexts[stack.depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    FAKE_ENTER(cuCtxPopCurrent);
    FAKE_TRY(check_initialized());
    if (stack.depth == 0) return FAKE_ERROR_INVALID_CONTEXT;
    stack.depth--;
    if (context != NULL) *context = stack.contexts[stack.depth];
    return CUDA_SUCCESS;
}

CUresult fake_current(CUcontext *out)
{
    FAKE_TRY(check_initialized());
    *out = stack.depth > 0 ? stack.contexts[stack.depth - 1] : NULL;
    return fake_is_alive(*out) ? CUDA_SUCCESS : FAKE_ERROR_INVALID_CONTEXT;
}

CUresult fake_failure(CUcontext context)
{
    /* Acquire: a caller that gets a failure sees all writes before it. Pairs with the exchange
     * below. */
    return (CUresult)atomic_load_explicit(&context->failure, memory_order_acquire);
}

void fake_context_fail(CUcontext context, CUresult result)
{
    int none = CUDA_SUCCESS; /* the first failure is kept */
    atomic_compare_exchange_strong(&context->failure, &none, (int)result);
}
