/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the driver, and maps its errors to statuses. */
#include "device/cuda/cuda_api.h"

#include <string.h>

#include "base/error.h"
#include "base/library.h"
#include "base/option.h"
#include "base/thread.h"

/* process-wide: there is one driver. Written by the one run of api_open_driver, before any call. */
sp_cuda_api sp__cuda_api;
sp_atomic_u64 sp__cuda_calls[SP_CUDA_CALL_COUNT];
static sp_once opened;

static sp_status api_find_functions(sp_library library)
{
    sp_library_function function;
#define FIND(name, symbol, params)                                                                 \
    function = sp_library_find(library, #symbol);                                                  \
    memcpy(&sp__cuda_api.name, &function, sizeof function);
#define REQUIRE(name, symbol, params)                                                              \
    if (sp__cuda_api.name == NULL) {                                                               \
        return sp__fail(SP_UNSUPPORTED, "the CUDA driver is too old: it has no " #symbol);         \
    }
    SP_CUDA_LIST(FIND)
    SP_CUDA_REQUIRED_LIST(REQUIRE)
#undef REQUIRE
#undef FIND
    return SP_OK;
}

static sp_status api_open_driver(void *unused)
{
    (void)unused;
    const char *named = sp_option_text(SP_OPTION_CUDA_DRIVER);
    const char *const names[] = {named[0] != '\0' ? named : "libcuda.so.1", NULL};
    sp_library library;
    if (sp_library_open(names, &library) != SP_OK) {
        return sp__fail_prefix(SP_UNSUPPORTED, "there is no CUDA driver: ");
    }
    SP_TRY(api_find_functions(library));
    if (SP_CUDA(cuInit)(0) != CUDA_SUCCESS) {
        return sp__fail(SP_UNSUPPORTED, "the CUDA driver finds no usable device");
    }
    return SP_OK;
}

sp_status sp__cuda_api_open(void)
{
    return sp_once_run(&opened, api_open_driver, NULL);
}

uint64_t sp__cuda_call_count(sp_cuda_call call)
{
    return sp_load_relaxed(&sp__cuda_calls[call]);
}

/* Errors after which the context, and all work in it, is lost. */
static bool result_is_sticky(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    case CUDA_SUCCESS:
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NOT_READY:
    case CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
        return false;
    }
    return false;
}

static sp_status result_status(CUresult result)
{
    if (result_is_sticky(result)) return SP_DEVICE_LOST;
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return SP_OUT_OF_MEMORY;
    return SP_FAILED;
}

sp_status sp__cuda_check(CUresult result, const char *call, const char *what)
{
    if (SP_LIKELY(result == CUDA_SUCCESS)) return SP_OK;
    const char *name = NULL;
    const char *text = NULL;
    SP_CUDA(cuGetErrorName)(result, &name);
    SP_CUDA(cuGetErrorString)(result, &text);
    return sp__fail(result_status(result), "%s%s%s: %s (%s)", what != NULL ? what : "",
                    what != NULL ? ": " : "", call, name != NULL ? name : "unknown CUDA error",
                    text != NULL ? text : "no text");
}
